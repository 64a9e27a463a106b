"""An outcome compared between clusters that were found without it.

Shares have Wilson's interval, means that of Student's t; the difference between the highest and the lowest
cluster has one that allows for all pairs of clusters (Bonferroni), since these two were picked among them:
Newcombe's hybrid interval for shares, Welch's for means.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from kpod._common.notebook import ReadsAsText
from kpod._common.sentences.outcome_sentences import outcome_sentence
from kpod._common.typing import Floats, Labels
from kpod._findings.unused_column_profiles import UnusedColumn

LEVEL = 0.95
LEAST = 2
"""Rows of a cluster with a known outcome, below which it is not reported."""


@dataclass(frozen=True)
class OfCluster:
    """The outcome in one cluster: its mean or share, with an interval.

    Attributes
    ----------
    cluster : int
    n : int
        The rows whose outcome is known.
    value, low, high : float
        The mean, or the share, and the ends of its 95 % interval; NaN where too few are known.
    """

    cluster: int
    n: int
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Outcome(ReadsAsText):
    """How an outcome differs between clusters that were found without it.

    Attributes
    ----------
    column : str
    level : str
        The value whose share is compared, of an outcome that is not a number; else empty.
    clusters : list of OfCluster
    difference : tuple of (float, float, float) or None
        The highest minus the lowest, and an interval corrected for all pairs of clusters.
    n_missing : int
        Rows whose outcome is not known.
    repeated : bool
        Whether there are several rows of the same individual, which makes intervals too narrow.
    sentence_ : str
    """

    column: str
    level: str
    clusters: list[OfCluster]
    difference: tuple[float, float, float] | None
    n_missing: int
    repeated: bool = False
    is_share: bool = False

    @property
    def sentence_(self) -> str:
        return outcome_sentence(self)

    def __str__(self) -> str:
        return self.sentence_

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        clusters = [
            {name: value if value == value else None for name, value in vars(one).items()}  # noqa: PLR0124
            for one in self.clusters
        ]
        return {**vars(self), "clusters": clusters, "sentence": self.sentence_}


def outcome_of(
    column: UnusedColumn, labels: Labels, k: int, weights: Floats | None = None, *, repeated: bool = False
) -> Outcome:
    """Compare a column between clusters: its mean, or the share of the level that differs most."""
    weights = np.ones(len(labels)) if weights is None else np.asarray(weights, dtype=np.float64)
    placed = labels >= 0
    if column.values is not None:
        seen = np.asarray(column.values, dtype=np.float64)
        is_share = bool(np.isin(seen[~np.isnan(seen)], (0, 1)).all())
        return compared(column.name, "", seen, labels, k, weights, is_share, repeated)
    assert column.codes is not None
    codes = np.asarray(column.codes)
    found = [
        compared(
            column.name,
            str(level),
            np.where(codes >= 0, codes == j, np.nan),
            labels,
            k,
            weights,
            True,
            repeated,
        )
        for j, level in enumerate(column.levels)
        if (placed & (codes == j)).any()
    ]
    if len(found) == 2:  # the rarer of two: the other is its mirror image
        return min(found, key=lambda one: np.nansum([of.value * of.n for of in one.clusters]))
    return max(found, key=lambda one: 0.0 if one.difference is None else one.difference[0])


def compared(
    name: str,
    level: str,
    values: Floats,
    labels: Labels,
    k: int,
    weights: Floats,
    is_share: bool,
    repeated: bool,
) -> Outcome:
    here = (labels >= 0) & ~np.isnan(values) & (weights > 0)
    parts = [Part.of(values[here & (labels == m)], weights[here & (labels == m)], is_share) for m in range(k)]
    clusters = [OfCluster(m, part.n_rows, part.mean, *part.interval(LEVEL)) for m, part in enumerate(parts)]
    known = [m for m in range(k) if parts[m].n_rows >= LEAST]
    difference = None
    if len(known) > 1:
        highest, lowest = max(known, key=lambda m: parts[m].mean), min(known, key=lambda m: parts[m].mean)
        pairs = len(known) * (len(known) - 1) // 2
        difference = parts[highest].above(parts[lowest], 1 - (1 - LEVEL) / pairs)
    missing = int(((labels >= 0) & np.isnan(values)).sum())
    return Outcome(name, level, clusters, difference, missing, repeated, is_share)


@dataclass(frozen=True)
class Part:
    """The outcome of the rows of one cluster; weights make fewer rows of them (Kish's effective size)."""

    n_rows: int
    n: float
    mean: float
    variance: float
    is_share: bool

    @classmethod
    def of(cls, values: Floats, weights: Floats, is_share: bool) -> Part:
        if len(values) < LEAST:
            return cls(len(values), 0.0, np.nan, np.nan, is_share)
        n = float(weights.sum() ** 2 / (weights**2).sum())
        mean = float(np.average(values, weights=weights))
        squares = float(np.average((values - mean) ** 2, weights=weights))
        return cls(len(values), n, mean, squares * n / max(n - 1, 1e-9), is_share)

    def interval(self, level: float) -> tuple[float, float]:
        if not np.isfinite(self.mean):
            return np.nan, np.nan
        if not self.is_share:
            off = float(student.ppf((1 + level) / 2, max(self.n - 1, 1e-9)) * np.sqrt(self.variance / self.n))
            return self.mean - off, self.mean + off
        z = float(norm.ppf((1 + level) / 2))
        middle = (self.mean + z**2 / (2 * self.n)) / (1 + z**2 / self.n)
        off = z * np.sqrt(self.mean * (1 - self.mean) / self.n + z**2 / (4 * self.n**2)) / (1 + z**2 / self.n)
        return max(0.0, middle - off), min(1.0, middle + off)

    def above(self, other: Part, level: float) -> tuple[float, float, float]:
        """The difference to another, with an interval."""
        difference = self.mean - other.mean
        if self.is_share:
            (low, high), (other_low, other_high) = self.interval(level), other.interval(level)
            return (
                difference,
                difference - float(np.hypot(self.mean - low, other_high - other.mean)),
                difference + float(np.hypot(high - self.mean, other.mean - other_low)),
            )
        own, theirs = self.variance / self.n, other.variance / other.n
        error = np.sqrt(own + theirs)
        freedom = (own + theirs) ** 2 / max(
            own**2 / max(self.n - 1, 1e-9) + theirs**2 / max(other.n - 1, 1e-9), np.finfo(float).tiny
        )
        off = float(student.ppf((1 + level) / 2, max(freedom, 1.0)) * error)
        return difference, difference - off, difference + off
