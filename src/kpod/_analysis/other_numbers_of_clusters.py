"""One cluster more, one cluster less: which clusters split, and which become one."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.cluster import contingency_matrix

from kpod._common.sentences.verdict_sentences import other_number
from kpod._common.typing import Floats, Labels
from kpod._findings.fitted_clusters.models import is_mixture

if TYPE_CHECKING:
    from kpod._analysis.analysis import Analysis

MOST_ROWS = 5_000
"""Of more rows, a sample is clustered."""
MOST = 0.8
"""The share of a cluster that is found in one other, from which that is what became of it."""


@dataclass(frozen=True)
class OtherNumber:
    """The rows divided into one cluster more, or one fewer.

    Attributes
    ----------
    n_clusters : int
    merged : tuple of int
        The clusters of the analysis that were merged, if nothing else changed.
    split : int or None
        The cluster that was split in two, if nothing else changed.
    into : tuple of int
        Its number of rows in each of the two; of a large table, of those in the sample.
    agreement : float
        The adjusted Rand index with the clusters of the analysis.
    n_sampled : int or None
        The number of rows that were clustered again, if they are a sample.
    """

    n_clusters: int
    merged: tuple[int, ...]
    split: int | None
    into: tuple[int, ...]
    agreement: float
    n_sampled: int | None = None

    @property
    def sentence_(self) -> str:
        return other_number(self)

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {
            **vars(self), "merged": list(self.merged), "into": list(self.into), "sentence": self.sentence_
        }  # fmt: skip


def other_numbers(analysis: Analysis) -> list[OtherNumber]:
    """What comes of one cluster less, and of one more, of the same shape; nothing for ratings and pieces."""
    c, k = analysis._clustering, analysis.n_clusters
    seen = c.seen
    if analysis._table.in_pieces or not isinstance(seen, np.ndarray):
        return []
    rows = np.flatnonzero(c.labels >= 0)
    n_sampled = MOST_ROWS if len(rows) > MOST_ROWS else None
    if n_sampled:
        rows = np.sort(np.random.default_rng(0).choice(rows, MOST_ROWS, replace=False))
    weights = None if analysis._weights is None else np.asarray(analysis._weights)[rows]
    out = []
    for number in (k - 1, k + 1):
        if 1 < number < len(rows) and k > 1:
            labels = clustered(c.kpod, seen[rows], weights, number)
            found = compared(np.asarray(c.labels)[rows], labels, k, number)
            out.append(replace(found, n_sampled=n_sampled))
    return out


def clustered(model: Any, values: Floats, weights: Floats | None, number: int) -> Labels:
    if is_mixture(model):
        shape = {"covariance_type": model.covariance_type_, "n_factors": model.n_factors_}
        again = clone(model).set_params(n_components=number, **shape)
    else:
        again = clone(model).set_params(n_clusters=number, probability=False, checkpoint=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of starts and of rows: they are not the result
        return np.asarray(again.fit(values, sample_weight=weights).labels_)


def compared(ours: Labels, theirs: Labels, k: int, number: int) -> OtherNumber:
    """Which clusters of ours became one, or fell into two, if little else happened."""
    agreement = float(adjusted_rand_score(ours, theirs))
    both = np.zeros((k, number))
    found = contingency_matrix(ours, theirs)
    both[np.ix_(np.unique(ours), np.unique(theirs))] = found
    kept, made = (both / np.maximum(both.sum(axis=axis, keepdims=True), 1) for axis in (1, 0))
    if number < k:
        to = kept.argmax(axis=1)
        merged = [m for m in range(k) if (to == to[m]).sum() > 1]
        clean = len(merged) == 2 and bool((kept.max(axis=1) >= MOST).all()) and len(set(to)) == number
        return OtherNumber(number, tuple(merged) if clean else (), None, (), agreement)
    source = made.argmax(axis=0)
    doubled = [m for m in range(k) if (source == m).sum() == 2]
    clean = len(doubled) == 1 and bool((made.max(axis=0) >= MOST).all()) and len(set(source)) == k
    if not clean:
        return OtherNumber(number, (), None, (), agreement)
    parts = both[doubled[0], source == doubled[0]]
    if parts.sum() < MOST * both[doubled[0]].sum():
        return OtherNumber(number, (), None, (), agreement)
    return OtherNumber(number, (), doubled[0], tuple(sorted(map(int, parts), reverse=True)), agreement)
