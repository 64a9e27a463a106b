"""
Groups that are not round
=========================

The three species of iris are stretched, each in a direction of its own, and two of them touch. k-means cuts
across them; a Gaussian mixture follows. A fifth of the values are missing here, and one is a slip of the pen.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline

import kpod
from kpod import KPOD, GaussianMixture, ObservedScaler
from kpod.plot import RowsDisplay

iris = load_iris(as_frame=True)
table = iris.data.mask(np.random.default_rng(0).random(iris.data.shape) < 0.2)
table.columns = ["sepal length", "sepal width", "petal length", "petal width"]
table.iloc[16, 0] = 54.0  # which was 5.4
models = {
    "k-means": make_pipeline(ObservedScaler(), KPOD(3, random_state=0)),
    "mixture": make_pipeline(ObservedScaler(), GaussianMixture(3, outlier_cells="auto", random_state=0)),
}
for name, model in models.items():
    print(f"{name}: {adjusted_rand_score(iris.target, model.fit_predict(table)):.2f}")

# %%
# Of the mixture, ellipses hold nine in ten complete rows of a cluster, by its spread and correlations. The
# value that no cluster expects counts as a gap; k-means spends a cluster on it.

figure, axes = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained")
for ax, model in zip(axes, models.values(), strict=True):
    RowsDisplay.from_estimator(model, table, ax=ax)
plt.show()

# %%
# The report says what shape the clusters have, which columns go together within them, and which value it
# would check.

report = kpod.report(models["mixture"], table)
for cluster in report.data["clusters"]:
    print(cluster["sentence"])
print(report.data["mixture"]["shape"], *report.data["mixture"]["correlations"], sep="\n")
for caution in report.data["cautions"]:
    print(f"{caution['title']}: {caution['text']}")
