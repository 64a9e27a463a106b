"""Which columns are missing together, and which values and clusters missingness is related to."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from kpod._common.typing import Floats, Positions
from kpod._missing.between_groups import Gaps, GapTest, compare_gaps, gaps_by_group

MOST_COLUMNS = 100
"""Larger tables are diagnosed by a sample of rows, and by the columns whose gaps vary most."""
MOST_PERMUTED = 2_000
LEVEL = 0.01
UNCLEAR = 0.05
"""Of the tests: the chance at most of saying that gaps are related where they are not."""
RELATED = 0.1
"""A correlation of gaps, and half a difference in standard deviations, below which nothing is reported."""
STRONG, MATTERS = 0.5, 0.05
"""A difference in standard deviations that calls for an explanation, and a share missing that does."""
TOGETHER = 0.9
"""A correlation of gaps from which columns are reported as missing together."""
IN_TURN = 0.5
"""The same below 0, from which one column is reported as missing where another is present."""
UNEVEN = 2.0
"""The number of gaps per row varies so many times as much as independent gaps would."""


def gaps_together(gaps: Gaps) -> Floats:
    """Correlations of the gaps of different columns; 0 where not significant."""
    share = gaps.mean(axis=0)
    spread = np.sqrt(share * (1 - share))
    centered = (gaps - share) / np.where(spread > 0, spread, 1)
    correlations = centered.T @ centered / max(len(gaps), 1)
    np.fill_diagonal(correlations, 0)
    z = correlations * np.sqrt(max(len(gaps), 1))
    upper = np.triu(np.ones(z.shape, bool), 1) & (spread > 0)[:, None] & (spread > 0)
    kept = np.zeros(z.shape, bool)
    kept[upper] = _significant(2 * special.ndtr(-np.abs(z[upper])))
    return np.asarray(np.where(kept | kept.T, correlations, 0.0))


def gaps_by_value(gaps: Gaps, values: Floats) -> Floats:
    """Differences in mean between rows that lack a column and rows that have it; 0 where not significant."""
    known = ~np.isnan(values)
    means = np.where(known, values, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    z = np.where(known, values - means, 0.0)
    spread = np.sqrt((z**2).sum(axis=0) / np.maximum(known.sum(axis=0), 1))
    z /= np.where(spread > 0, spread, 1)
    lacking = gaps.astype(np.float64)
    counts = [lacking.T @ known, (1 - lacking).T @ known]
    sums = [lacking.T @ z, (1 - lacking).T @ z]
    squares = [lacking.T @ z**2, (1 - lacking).T @ z**2]
    enough = (counts[0] >= 2) & (counts[1] >= 2) & (spread > 0)
    np.fill_diagonal(enough, val=False)
    mean = [s / np.maximum(n, 1) for s, n in zip(sums, counts, strict=True)]
    variance = [
        np.maximum(q / np.maximum(n, 1) - m**2, 1e-12) / np.maximum(n - 1, 1)
        for q, n, m in zip(squares, counts, mean, strict=True)
    ]
    difference = mean[0] - mean[1]
    # Welch's t; Student's distribution with the smaller group's degrees of freedom is on the safe side.
    t = difference / np.sqrt(variance[0] + variance[1])
    kept = np.zeros(t.shape, bool)
    df = np.maximum(np.minimum(counts[0], counts[1])[enough] - 1, 1)
    kept[enough] = _significant(2 * special.stdtr(df, -np.abs(t[enough])))
    return np.asarray(np.where(kept, difference, 0.0))


def uneven_rows(gaps: Gaps) -> float:
    """The variance of the number of gaps per row over that of independent gaps."""
    share = gaps.mean(axis=0)
    independent = float((share * (1 - share)).sum())
    return float(gaps.sum(axis=1).var() / independent) if independent > 0 else 1.0


def _by_label(gaps: Gaps, labels: Any) -> tuple[list[str], Floats, GapTest | None]:
    if labels is None:
        return [], np.zeros((0, gaps.shape[1])), None
    kept = _in_a_group(labels)
    names, groups = np.unique(labels[kept], return_inverse=True)
    counts, sizes = gaps_by_group(gaps[kept], groups)
    drawn = _sample(len(groups), MOST_PERMUTED)
    test = compare_gaps(gaps[kept][drawn], groups[drawn], np.random.default_rng(0))
    numbers = np.issubdtype(names.dtype, np.integer)
    parts = [f"cluster {name}" if numbers else str(name) for name in names]
    return parts, counts / sizes[:, None], test


def _in_a_group(labels: Any) -> Gaps:
    unplaced = labels == -1 if np.issubdtype(labels.dtype, np.number) else np.zeros(len(labels), bool)
    return np.asarray(~unplaced, dtype=bool)


def _most_varied(missing: Floats) -> Positions:
    if len(missing) <= MOST_COLUMNS:
        return np.arange(len(missing))
    return np.sort(np.argsort(-missing * (1 - missing), kind="stable")[:MOST_COLUMNS])


def _sample(n: int, most: int) -> Positions:
    """All rows, or a fixed random sample of them."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False))


def _dense(table: Any, rows: Positions, columns: Positions) -> Floats:
    """Some rows and columns of a CSR array with NaN in the gaps."""
    part = table[rows][:, columns].tocoo()
    out = np.full(part.shape, np.nan)
    out[part.row, part.col] = part.data
    return out


def _significant(p: Floats) -> Gaps:
    """Which of many tests reject, with a false discovery rate of `LEVEL` (Benjamini & Hochberg)."""
    # As scipy.stats.false_discovery_control(p) <= LEVEL, without the second that loading it takes.
    order = np.argsort(p, kind="stable")
    passed = np.flatnonzero(p[order] <= LEVEL * np.arange(1, len(p) + 1) / max(len(p), 1))
    out = np.zeros(len(p), bool)
    out[order[: passed[-1] + 1 if len(passed) else 0]] = True
    return out


def _strongest(matrix: Floats, at: int | None) -> tuple[int, float]:
    if at is None:
        return 0, 0.0
    j = int(np.abs(matrix[at]).argmax())
    return j, float(matrix[at, j])


def _largest(matrix: Floats) -> list[tuple[int, int]]:
    """The places of the entries other than 0, largest first."""
    order = np.argsort(-np.abs(matrix), axis=None, kind="stable")[: int((matrix != 0).sum())]
    return [(int(i), int(j)) for i, j in zip(*np.unravel_index(order, matrix.shape), strict=True)]


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.2g}"
