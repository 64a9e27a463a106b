"""
Repairing a photograph
======================

Blocks of 4 x 4 pixels, three colours each, are rows of 48 columns. 60 % of the entries are lost. `impute`
fills a gap with the value of the row's cluster.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_sample_image

from kpod import KPOD
from kpod.missingness import mcar

photo = load_sample_image("flower.jpg")[60:360, 140:540] / 255.0
height, width, _ = photo.shape


def to_rows(image):
    blocks = image.reshape(height // 4, 4, width // 4, 4, 3).swapaxes(1, 2)
    return blocks.reshape(-1, 48)


def to_image(rows):
    blocks = rows.reshape(height // 4, width // 4, 4, 4, 3).swapaxes(1, 2)
    return blocks.reshape(height, width, 3)


X = mcar(to_rows(photo), 0.6, random_state=0)
model = KPOD(150, n_init=1, random_state=0).fit(X)
repaired = model.impute(X)

figure, axes = plt.subplots(1, 3, figsize=(12, 3.4), layout="constrained")
titles = ["60 % of the values lost (shown as 0)", "filled in from 150 cluster means", "the original"]
for ax, image, title in zip(axes, (np.nan_to_num(X), repaired, to_rows(photo)), titles, strict=True):
    ax.imshow(np.clip(to_image(image), 0, 1))
    ax.set_title(title, fontsize=11)
    ax.axis("off")
plt.show()

# %%
# No block is complete, so there is nothing that could be clustered after dropping rows:

lost = np.isnan(X)
print(f"{len(X)} rows, of which {(~lost.any(axis=1)).sum()} are complete")
error = np.abs(repaired - to_rows(photo))[lost].mean()
means = np.abs(np.nanmean(X, axis=0) - to_rows(photo))[lost].mean()
print(f"mean error of a lost value: {error:.3f}, and with column means {means:.3f} (of 1)")
