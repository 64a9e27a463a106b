"""
When there are no groups
========================

k-means always returns the given number of clusters. Correlated columns make it worse: one long cloud is cut
into slices, and slices predict hidden entries better than the whole. So `choose_k` also tests whether one
correlated group predicts as well.
"""

import numpy as np
from matplotlib import pyplot as plt

import kpod
from kpod.missingness import mcar

rng = np.random.default_rng(0)
common = rng.normal(size=(400, 1))
X = mcar(common * 0.8 + rng.normal(size=(400, 12)) * 0.6, 0.2, random_state=0)
choice = kpod.choose_k(X, range(1, 7), random_state=0)
asked = kpod.KPOD(4, random_state=0).fit(X)

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
for cluster, marker in enumerate("os^D"):
    left.scatter(
        *X[asked.labels_ == cluster, :2].T, marker=marker, s=22, alpha=0.7, label=f"cluster {cluster}"
    )
left.set(title="four clusters, because four were asked for", xlabel="column 0", ylabel="column 1")
left.legend(fontsize=9)
kpod.plot.ChooseKDisplay.from_choice(choice, ax=right)
plt.show()

# %%
# The error of the centers keeps falling, but one correlated group predicts better still:

print(choice.sentence_)
