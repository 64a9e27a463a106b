"""
Ratings: what is not stored is missing, not zero
================================================

6,000 users have each rated some of 800 films. scikit-learn's `KMeans` takes the sparse matrix and counts
every film without a rating as rated 0, so that it groups users by how much they rate.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from kpod import KPOD, ObservedScaler
from kpod.datasets import make_ratings

ratings, groups = make_ratings(6_000, 800, n_groups=5, mean_activity=60, random_state=0)
X = ObservedScaler(rows="center", scale=False).fit_transform(ratings)
model = KPOD(5, n_init=10, random_state=1).fit(X)
zeros = KMeans(5, n_init=5, random_state=0).fit(ratings)

# %%
# Users of each true group (down) by the cluster they are assigned to (across), and how many films the users
# of each cluster have rated:

figure, axes = plt.subplots(2, 2, figsize=(9, 6.6), layout="constrained", height_ratios=[1.4, 1])
active = np.diff(ratings.tocsr().indptr)
titles = {"KPOD: absent is missing": model.labels_, "KMeans: absent is 0": zeros.labels_}
for (top, bottom), (title, labels) in zip(axes.T, titles.items(), strict=True):
    table = np.zeros((5, 5))
    np.add.at(table, (groups, labels), 1)
    order = np.argsort(table.argmax(axis=0), kind="stable")
    share = table[:, order] / table.sum(axis=1, keepdims=True)
    top.imshow(share, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for (row, column), value in np.ndenumerate(share):
        colour = "white" if value > 0.55 else "black"
        top.text(column, row, f"{value:.0%}", ha="center", va="center", color=colour, fontsize=9)
    score = adjusted_rand_score(groups, labels)
    top.set(title=f"{title}\nadjusted Rand score {score:.2f}", xticks=[], yticks=range(5))
    bottom.boxplot([active[labels == cluster] for cluster in order], showfliers=False)
    bottom.set(xlabel="cluster", yscale="log")
axes[0, 0].set_ylabel("group of users")
axes[1, 0].set_ylabel("films rated")
plt.show()
