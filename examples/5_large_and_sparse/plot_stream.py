"""
Rows that arrive in batches, from clusters that move
====================================================

`MiniBatchKPOD.partial_fit` learns from batches as they arrive. With `half_life`, older rows count for less,
so the centers can follow clusters that drift. 30 % of the entries are missing throughout.
"""

import numpy as np
from matplotlib import pyplot as plt

from kpod import MiniBatchKPOD

rng = np.random.default_rng(0)
hours = np.arange(120)
angle = hours / 120 * np.pi * 0.6
paths = np.stack([[5 * np.cos(angle + turn), 5 * np.sin(angle + turn)] for turn in (0.0, 2.1, 4.2)])
paths = paths.transpose(0, 2, 1)  # cluster, hour, coordinate

models = {
    "all rows count the same": MiniBatchKPOD(3, random_state=0),
    "half_life=1000 rows": MiniBatchKPOD(3, half_life=1000, random_state=0),
}
traces = {name: [] for name in models}
for hour in hours:
    batch = np.repeat(paths[:, hour], 60, axis=0) + rng.normal(size=(180, 2))
    gaps = rng.random(batch.shape) < 0.3
    gaps[gaps.all(axis=1), 0] = False
    batch[gaps] = np.nan
    for name, model in models.items():
        traces[name].append(model.partial_fit(batch).cluster_centers_.copy())

figure, axes = plt.subplots(1, 2, figsize=(10, 5), sharex=True, sharey=True, layout="constrained")
for ax, (name, trace) in zip(axes, traces.items(), strict=True):
    for path in paths:
        ax.plot(*path.T, color="#d0d7de", linewidth=10, solid_capstyle="round", zorder=0)
    for cluster in np.array(trace).transpose(1, 0, 2):
        ax.plot(*cluster.T, linewidth=1.8)
        ax.scatter(*cluster[-1], s=90, edgecolors="black", zorder=3)
    ax.set(title=name, aspect="equal", xticks=[], yticks=[])
plt.show()

# %%
# Grey: the path of the clusters in 120 hours. Lines: the path of the centers; dots: the last hour.
