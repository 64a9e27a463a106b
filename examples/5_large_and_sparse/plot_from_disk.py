"""
A table that is not read into memory
====================================

`kpod.scan` decodes a folder of Parquet, Arrow, CSV or NumPy files into a scratch file, and the fit reads
that page by page. A million rows here, in ten files; the same lines serve for a table larger than memory.
"""

import tempfile
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.colors import LogNorm

import kpod

rng = np.random.default_rng(0)
middles = rng.uniform(-6, 6, size=(7, 6)).astype("float32")
folder = tempfile.TemporaryDirectory()
for part in range(10):
    rows = middles[rng.integers(7, size=100_000)] + rng.normal(size=(100_000, 6)).astype("float32")
    gaps = rng.random(rows.shape) < 0.3
    gaps[gaps.all(axis=1), 0] = False  # something is known of every row
    rows[gaps] = np.nan
    np.save(Path(folder.name) / f"part-{part}.npy", rows)

with kpod.scan(f"{folder.name}/*.npy") as table:
    model = kpod.KPOD(7, n_init=5, random_state=0).fit(table)
sizes = np.bincount(model.labels_)
print(f"{len(model.labels_):,} rows in clusters of {sizes.min():,} to {sizes.max():,}")

# %%
# The first two columns of all rows that have both, the true means (rings) and the centers found (crosses):

X = np.concatenate([np.load(path)[:, :2] for path in sorted(Path(folder.name).glob("*.npy"))])
X = X[~np.isnan(X).any(axis=1)]
folder.cleanup()
figure, ax = plt.subplots(figsize=(6.5, 5.2), layout="constrained")
density = ax.hexbin(*X.T, gridsize=90, cmap="Blues", norm=LogNorm(), linewidths=0)
ax.scatter(*middles[:, :2].T, s=160, facecolors="none", edgecolors="black", linewidths=1.5, label="true mean")
ax.scatter(
    *model.cluster_centers_[:, :2].T, s=90, marker="x", color="#D55E00", linewidths=2.2, label="center found"
)
ax.set(xlabel="column 0", ylabel="column 1")
ax.legend(loc="upper left")
figure.colorbar(density, label="rows")
plt.show()
