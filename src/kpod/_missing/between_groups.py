"""Do groups of rows differ in which values are missing? A likelihood ratio, calibrated by permutation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kpod._common.arrays import membership
from kpod._common.typing import Floats, Positions

N_PERMUTATIONS = 199

Gaps = NDArray[np.bool_]


@dataclass(frozen=True)
class GapTest:
    """Whether groups differ in their gaps.

    `excess` is the statistic over its mean when groups are assigned to rows at random, 1 where groups
    do not differ; `p` how often such a random grouping differs as much.
    """

    excess: float
    p: float


def compare_gaps(
    gaps: Gaps, groups: Positions, rng: np.random.Generator, n_permutations: int = N_PERMUTATIONS
) -> GapTest:
    """Test whether the share missing of any column differs between groups of rows.

        LR = 2 sum_j [ sum_l ( h(m_lj) + h(w_l - m_lj) - h(w_l) ) - ( h(m_j) + h(w - m_j) - h(w) ) ],

    h(u) = u ln u, m_lj the gaps of column j in group l of w_l rows. Rows keep their gaps together when
    groups are permuted, so the test holds for gaps that are skipped in blocks, too.
    """
    vary = gaps.any(axis=0) & ~gaps.all(axis=0)
    if not vary.any() or len(np.unique(groups)) < 2:
        return GapTest(1.0, 1.0)
    varied = gaps[:, vary].astype(np.float64)
    found = _statistic(varied, groups)
    drawn = np.array([_statistic(varied, rng.permutation(groups)) for _ in range(n_permutations)])
    as_much = int((drawn >= found * (1 - 1e-9)).sum())
    return GapTest(found / max(float(drawn.mean()), 1e-12), (1 + as_much) / (1 + n_permutations))


def gaps_by_group(gaps: Gaps | Floats, groups: Positions) -> tuple[Floats, Floats]:
    """Gaps of each group and column, and rows of each group."""
    member = membership(groups, int(groups.max()) + 1, np.ones(len(groups)))
    return member @ gaps, member.sum(axis=1)


def _statistic(gaps: Floats, groups: Positions) -> float:
    counts, rows = gaps_by_group(gaps, groups)
    inside = _h(counts) + _h(rows[:, None] - counts) - _h(rows)[:, None]
    total, n = counts.sum(axis=0), np.array(float(len(gaps)))
    return float(2 * (inside.sum() - (_h(total) + _h(n - total) - _h(n)).sum()))


def _h(u: Floats) -> Floats:
    return np.asarray(u * np.log(np.maximum(u, 1e-300)), dtype=np.float64)
