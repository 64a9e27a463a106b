"""
Impute first, or cluster what was observed?
===========================================

The usual advice is to fill the gaps and then run k-means. How well are the clusters recovered as more entries
are missing? 300 rows in 20 clusters, 60 columns.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.cluster import KMeans
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.metrics import adjusted_rand_score

from kpod import KPOD
from kpod.datasets import make_mixture
from kpod.missingness import mcar

shares = [0.2, 0.4, 0.6, 0.7, 0.8]
trials = 3


def fill_and_cluster(imputer, X):
    return KMeans(20, n_init=5, random_state=0).fit_predict(imputer.fit_transform(X))


methods = {
    "KPOD": lambda X: KPOD(20, n_init=5, random_state=0).fit_predict(X),
    "nearest neighbours, then KMeans": lambda X: fill_and_cluster(KNNImputer(), X),
    "column means, then KMeans": lambda X: fill_and_cluster(SimpleImputer(), X),
}
scores = {name: np.empty((trials, len(shares))) for name in methods}
for trial in range(trials):
    complete, truth = make_mixture(20, n_samples=300, n_features=60, random_state=trial)
    for at, share in enumerate(shares):
        X = mcar(complete, share, random_state=trial)
        for name, cluster in methods.items():
            scores[name][trial, at] = adjusted_rand_score(truth, cluster(X))

figure, ax = plt.subplots(figsize=(7.5, 4.4), layout="constrained")
for name, found in scores.items():
    (line,) = ax.plot(shares, found.mean(axis=0), marker="o", label=name)
    ax.fill_between(shares, found.min(axis=0), found.max(axis=0), color=line.get_color(), alpha=0.15)
ax.set(xlabel="share of entries missing", ylabel="adjusted Rand score", ylim=(0, 1.05))
ax.xaxis.set_major_formatter("{x:.0%}")
ax.legend(loc="lower left")
ax.set_title("20 clusters, entries missing completely at random (mean and range of 3 tables)", fontsize=10)
plt.show()

# %%
# Filling in column means pulls every row toward the middle. A nearest-neighbours imputer does well here,
# and takes several times as long as the clustering. If missingness depends on the value itself, the
# order changes: see :ref:`sphx_glr_auto_examples_3_missingness_plot_detection_limit.py`.
