"""
Handwritten digits with most of their pixels missing
====================================================

1,797 images of 8 x 8 pixels, 70 % of which are hidden. The centers still look like digits.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.impute import SimpleImputer
from sklearn.metrics import adjusted_rand_score

from kpod import KPOD
from kpod.missingness import mcar

digits = load_digits()
X = mcar(digits.data, 0.7, random_state=0)
model = KPOD(10, random_state=0).fit(X)
filled = KMeans(10, n_init=10, random_state=0).fit(SimpleImputer().fit_transform(X))

figure, axes = plt.subplots(4, 10, figsize=(10, 4.6), layout="constrained")
for at in range(10):
    for row, images in enumerate((digits.data, X, model.cluster_centers_, filled.cluster_centers_)):
        axes[row, at].imshow(images[at].reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        axes[row, at].set(xticks=[], yticks=[])
        axes[row, at].spines[:].set_visible(False)
        axes[row, at].set_facecolor("#f5d0c5")  # where a pixel is missing
names = ["digits", "70 % missing", "KPOD's centers", "means filled in,\nKMeans"]
for ax, name in zip(axes[:, 0], names, strict=True):
    ax.set_ylabel(name, rotation=0, ha="right", va="center")
plt.show()

# %%
# The clusters of the rows, compared with the digits that were written:

for name, labels in {"KPOD": model.labels_, "means filled in, KMeans": filled.labels_}.items():
    print(f"{name}: adjusted Rand score {adjusted_rand_score(digits.target, labels):.2f}")
print(f"entries missing: {np.isnan(X).mean():.0%}")
