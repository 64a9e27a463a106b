"""What came out, in the terms in which people speak of it.

The one place that works out sizes, differences, separation and sentences; the command line,
the pictures and the report only show them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from kpod import _validation
from kpod._estimator import KPOD
from kpod._report.words import counted, listed
from kpod._typing import Floats, Labels

FEW = 5
"""A center resting on fewer observed entries than this is not spoken of."""
CLEAR = 0.5
"""A center this many standard deviations off the column's mean is high or low."""
MOST_SAID = 3


@dataclass(frozen=True)
class Clustering:
    """A fitted model seen together with a table, both in the table's own units."""

    kpod: KPOD
    names: list[str]
    table: Floats
    """The table in the units it came in."""
    values: Floats
    """The same as the model sees it, scaled for example."""
    seen: Any
    """That once more, in the form the model takes it: a dataframe where it was fitted on one."""
    centers: Floats
    """In the units of `table`."""
    labels: Labels
    is_fitted_table: bool

    @classmethod
    def of(cls, estimator: Any, X: Any, column_names: Sequence[str] | None = None) -> Clustering:
        """From a KPOD, or a pipeline that ends in one, and a table of the kind it was fitted on."""
        before, kpod = split(estimator)
        check_is_fitted(kpod)
        table = _validation.as_array(X, kpod)
        seen = X if before is None else before.transform(X)
        values = table if before is None else _validation.as_array(seen, kpod)
        centers = np.asarray(kpod.cluster_centers_)
        given = column_names if column_names is not None else names_of(estimator, kpod, X)
        if before is not None:
            if table.shape == values.shape and hasattr(before, "inverse_transform"):
                centers = before.inverse_transform(centers)
            else:  # columns were made anew: speak of those
                table, given = values, names_of(kpod, kpod, values)
        names = [str(name) for name in given] if given is not None else numbered(table.shape[1])
        if len(names) != table.shape[1]:
            raise ValueError(f"{len(names)} column names for {table.shape[1]} columns; give one for each.")
        labels, fitted = labels_of(kpod, values, seen)
        return cls(kpod, names, table, values, seen, np.asarray(centers, dtype=np.float64), labels, fitted)

    @cached_property
    def observed(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        return ~np.isnan(self.table)

    @property
    def k(self) -> int:
        return int(self.kpod.n_clusters)

    @cached_property
    def sizes(self) -> np.ndarray[Any, Any]:
        return np.bincount(self.labels[self.labels >= 0], minlength=self.k)

    @cached_property
    def counts(self) -> Floats:
        return np.asarray(self.kpod.counts_, dtype=np.float64)

    @cached_property
    def missing_by_column(self) -> Floats:
        return 1 - self.observed.mean(axis=0)

    @cached_property
    def observed_by_row(self) -> Labels:
        return self.observed.sum(axis=1)

    @cached_property
    def moments(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the observed entries of each column; NaN for none."""
        means, stds = np.full(len(self.names), np.nan), np.full(len(self.names), np.nan)
        for j in range(len(self.names)):
            entries = self.table[self.observed[:, j], j]
            if len(entries):
                means[j], stds[j] = entries.mean(dtype=np.float64), entries.std(dtype=np.float64)
        return means, stds

    @cached_property
    def differences(self) -> Floats:
        """Centers less the column's mean, in its standard deviations; 0 where nothing varies."""
        means, stds = self.moments
        with np.errstate(divide="ignore", invalid="ignore"):
            difference = (self.centers - means) / stds
        return np.nan_to_num(difference, nan=0.0, posinf=0.0, neginf=0.0)

    @cached_property
    def separation(self) -> Floats:
        """Of each column, the share of its variance over observed entries that the clusters explain."""
        share = np.zeros(len(self.names))
        rows = self.labels >= 0
        for j in range(len(self.names)):
            here = rows & self.observed[:, j]
            entries, labels = self.table[here, j].astype(np.float64), self.labels[here]
            counts = np.bincount(labels, minlength=self.k)
            sums = np.bincount(labels, weights=entries, minlength=self.k)
            total = float(((entries - entries.mean()) ** 2).sum()) if len(entries) else 0.0
            if total > 0:
                means = sums / np.maximum(counts, 1)
                share[j] = 1 - float(((entries - means[labels]) ** 2).sum()) / total
        return np.clip(share, 0, 1)

    @cached_property
    def by_separation(self) -> list[int]:
        return [int(j) for j in np.argsort(-self.separation, kind="stable")]

    @cached_property
    def margins(self) -> Floats:
        """How well each row sits: 0 halfway between two centers, 1 on its own; NaN for no cluster.

        The silhouette with centers in place of clusters: (b - a) / max(a, b), a the partial
        distance to the row's own center and b that to the nearest other one.
        """
        distances = np.asarray(self.kpod.transform(self.seen), dtype=np.float64)
        rows = np.arange(len(distances))
        own = distances[rows, self.labels].copy()
        distances[rows, self.labels] = np.inf
        other = distances.min(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            margin = np.where(np.maximum(own, other) > 0, (other - own) / np.maximum(own, other), 0.0)
        margin[self.labels < 0] = np.nan
        return margin

    @property
    def converged(self) -> bool:
        return bool(self.kpod.converged_)

    @cached_property
    def explained(self) -> float:
        """The share of the sum of squares over observed entries that the clusters explain."""
        rows = self.labels >= 0
        means = np.asarray(self.kpod.column_means_, dtype=np.float64)
        total = within = 0.0
        for j in range(len(self.names)):
            here = rows & ~np.isnan(self.values[:, j])
            entries = self.values[here, j].astype(np.float64)
            if len(entries):
                total += float(((entries - means[j]) ** 2).sum())
                within += float(((entries - self.kpod.cluster_centers_[self.labels[here], j]) ** 2).sum())
        return 1 - within / total if total > 0 else 0.0

    def said_of(self, cluster: int) -> tuple[list[str], list[str]]:
        """The columns a cluster is clearly high and low in, clearest first."""
        difference = np.where(self.counts[cluster] >= FEW, self.differences[cluster], 0.0)
        order = np.argsort(-np.abs(difference), kind="stable")
        high = [self.names[j] for j in order if difference[j] >= CLEAR]
        low = [self.names[j] for j in order if difference[j] <= -CLEAR]
        return high[:MOST_SAID], low[:MOST_SAID]

    def sentence(self, cluster: int) -> str:
        """One line on a cluster, as one would say it."""
        high, low = self.said_of(cluster)
        said = [f"{word} in {listed(names)}" for word, names in (("high", high), ("low", low)) if names]
        enough = bool((self.counts[cluster] >= FEW).any())
        otherwise = "close to the average throughout" if enough else "too few to say more"
        rows = counted(int(self.sizes[cluster]), "row")
        return f"cluster {cluster}: {rows}, {', '.join(said) or otherwise}"


def split(estimator: Any) -> tuple[Any, KPOD]:
    """What comes before the KPOD, if anything, and the KPOD."""
    if isinstance(estimator, Pipeline):
        before, last = (estimator[:-1] if len(estimator) > 1 else None), estimator[-1]
    else:
        before, last = None, estimator
    if not isinstance(last, KPOD):
        raise TypeError(f"Expected a fitted KPOD, or a pipeline that ends in one, got {estimator!r}.")
    return before, last


def names_of(estimator: Any, kpod: KPOD, X: Any) -> Sequence[str] | None:
    for holder in (estimator, kpod):
        if hasattr(holder, "feature_names_in_"):
            return list(holder.feature_names_in_)
    return list(map(str, X.columns)) if hasattr(X, "columns") and not callable(X.columns) else None


def numbered(n: int) -> list[str]:
    return [f"column {j}" for j in range(n)]


def labels_of(kpod: KPOD, values: Floats, seen: Any) -> tuple[Labels, bool]:
    """The labels of the fit where this is the table of the fit, else each row's nearest center.

    It is that table if it has the counts behind the centers (row weights change those).
    """
    labels = np.asarray(kpod.labels_)
    if len(labels) == len(values):
        observed = ~np.isnan(values)
        counts = np.array([observed[labels == c].sum(axis=0) for c in range(int(kpod.n_clusters))])
        if np.array_equal(counts, kpod.counts_):
            return labels, True
    return np.asarray(kpod.predict(seen)), False


def patterns_of_gaps(missing: Any, most: int) -> tuple[int, list[tuple[list[int], int]]]:
    """How many patterns of gaps there are; of the commonest, the columns missing and the rows."""
    packed = np.packbits(missing, axis=1)
    rows = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, counts = np.unique(rows, return_index=True, return_counts=True)
    order = np.lexsort((first, -counts))[:most]
    patterns = [([int(j) for j in np.flatnonzero(missing[first[o]])], int(counts[o])) for o in order]
    return len(counts), patterns
