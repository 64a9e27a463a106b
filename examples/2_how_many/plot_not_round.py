"""
Groups that are not round
=========================

The three species of iris are elongated, each in its own direction, and two of them touch. k-means cuts
across them; a Gaussian mixture fits their shapes. A fifth of the values are missing here, and one is
a typing error.
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
# The ellipses of the mixture hold nine in ten complete rows of a cluster. The value that is unlikely in every
# cluster is treated as missing; k-means gives it a cluster of its own.

figure, axes = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained")
for ax, model in zip(axes, models.values(), strict=True):
    RowsDisplay.from_estimator(model, table, ax=ax)
plt.show()

# %%
# The report says what shape the clusters have, which columns are correlated within them, and which value to
# check.

report = kpod.report(models["mixture"], table)
for cluster in report.data["clusters"]:
    print(cluster["sentence"])
print(report.data["mixture"]["shape"], *report.data["mixture"]["correlations"], sep="\n")
for caution in report.data["cautions"]:
    print(f"{caution['title']}: {caution['text']}")
