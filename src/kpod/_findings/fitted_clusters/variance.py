"""How much of the variance clusters explain: of a column, and of the whole table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kpod._common.typing import Floats, Labels
from kpod._findings.fitted_clusters.models import is_mixture

if TYPE_CHECKING:
    from kpod._findings.fitted_clusters.clustering import Clustering


def separation(c: Clustering) -> Floats:
    """Of each column, how much the clusters explain: of its variance, allowing for small counts.

    (1 - (1 - R^2) (n - 1) / (n - k)) n / n_rows, with R^2 over the n observed entries and k the
    clusters that have any; at least 0. Of very many rows, R^2 is by how far the centers are from the
    column's mean, which is as exact as those.
    """
    if c.sample is not None and c.centers_are_means and not c.is_bent:
        means, stds = c.moments
        n, n_rows = c.entries.sum(axis=0), max(1, int((c.labels >= 0).sum()))
        with np.errstate(divide="ignore", invalid="ignore"):
            between = np.nansum(c.entries * (c.centers - means) ** 2, axis=0)
            rest = (1 - between / (n * stds**2)) * (n - 1) / (n - (c.entries > 0).sum(axis=0))
        return np.clip(np.nan_to_num(1 - rest, nan=0.0, posinf=0.0, neginf=0.0), 0, 1) * n / n_rows
    share = np.zeros(len(c.names))
    n_rows = max(1, int((c.sampled_labels >= 0).sum()))
    for j in range(len(c.names)):
        entries, labels = c.labelled(c.measured, j)
        share[j] = explained_share(entries, labels, c.k) * len(entries) / n_rows
    return share


def explained(c: Clustering) -> float | None:
    """The share of the sum of squares over observed entries that the clusters explain.

    Exact where the loss of all rows is known; a few far rows would make that of a sample worthless. None
    for a mixture, which explains by more than its means, and in which no unit is that of all columns.
    """
    if is_mixture(c.kpod):
        return None
    means = np.asarray(c.kpod.column_means_, dtype=np.float64)
    if c.sample is not None and c.centers_are_means:
        total = c.values.squares_around(means)
        return 1 - float(c.kpod.inertia_) / total if total > 0 else 0.0
    total = within = 0.0
    for j in range(len(c.names)):
        entries, labels = c.labelled(c.values, j)
        if len(entries):
            total += float(((entries - means[j]) ** 2).sum())
            within += float(((entries - c.kpod.cluster_centers_[labels, j]) ** 2).sum())
    return 1 - within / total if total > 0 else 0.0


def explained_share(entries: Floats, labels: Labels, k: int) -> float:
    """The share of the variance that groups explain, less what they would explain by chance."""
    counts = np.bincount(labels, minlength=k)
    groups = int((counts > 0).sum())
    total = float(((entries - entries.mean()) ** 2).sum()) if len(entries) else 0.0
    if total <= 0 or len(entries) <= groups:
        return 0.0
    means = np.bincount(labels, weights=entries, minlength=k) / np.maximum(counts, 1)
    within = float(((entries - means[labels]) ** 2).sum())
    return float(np.clip(1 - within / total * (len(entries) - 1) / (len(entries) - groups), 0, 1))
