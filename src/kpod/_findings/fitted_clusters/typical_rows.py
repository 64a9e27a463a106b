"""Rows that show what a cluster is like: those nearest to its center."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from kpod._common.typing import Labels, Positions
from kpod._findings.fitted_clusters.models import is_mixture

if TYPE_CHECKING:
    from kpod._findings.fitted_clusters.clustering import Clustering

ROWS_AT_ONCE = 1 << 18


def members_of(labels: Labels, sizes: Positions, most: int) -> list[Positions]:
    """The rows of each cluster, or where they are more than `most` that many of them, drawn at random."""
    ranks = [
        np.arange(n) if n <= most else np.sort(np.random.default_rng(0).choice(n, most, replace=False))
        for n in sizes.tolist()
    ]
    return by_rank(labels, ranks)


def by_rank(labels: Labels, ranks: list[Positions]) -> list[Positions]:
    """Of each cluster, the rows with these numbers among its own, from 0 and in ascending order.

    Labels are sorted some at a time, so that one look at them serves all clusters.
    """
    found: list[list[Positions]] = [[np.empty(0, np.intp)] for _ in ranks]
    short = np.int16 if len(ranks) < np.iinfo(np.int16).max else np.int32  # which are sorted by counting
    before = np.zeros(len(ranks), np.intp)
    for start in range(0, len(labels), ROWS_AT_ONCE):
        here = labels[start : start + ROWS_AT_ONCE].astype(short)
        order = np.argsort(here, kind="stable")
        ends = np.cumsum(np.bincount(here + 1, minlength=len(ranks) + 1))  # rows without a cluster come first
        for cluster, (first, end) in enumerate(pairwise(ends)):
            wanted, so_far = ranks[cluster], before[cluster]
            low, high = np.searchsorted(wanted, [so_far, so_far + end - first])
            found[cluster].append(start + order[first + wanted[low:high] - so_far])
        before += np.diff(ends)
    return [np.concatenate(parts) for parts in found]


def nearest_members(c: Clustering, cluster: int, members: Positions) -> list[int]:
    """Members of a cluster with the most observed entries, the nearest to its center first."""
    if not len(members):
        return []
    known = c.source.by_row[members]
    members = members[known >= np.quantile(known, 0.5)]
    center = np.asarray(c.kpod.cluster_centers_[cluster], dtype=np.float64)
    spreads = c.kpod._standard_deviations()[cluster] if is_mixture(c.kpod) else 1.0
    squares = ((c.values.rows(members) - center) / spreads) ** 2
    count = np.maximum((~np.isnan(squares)).sum(axis=1), 1)
    return [int(i) for i in members[np.argsort(np.nansum(squares, axis=1) / count, kind="stable")]]
