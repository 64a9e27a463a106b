"""Small helpers on arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from kpod._common.typing import Floats, Labels, Positions


def membership(groups: Positions | Labels, k: int, weights: Floats) -> Any:
    """The (k, n) matrix that has the weight of each row in its group.

    Sparse, because each row is in one group: its products cost a k-th of a dense matrix's, and do not
    depend on how many threads BLAS has.
    """
    n = len(groups)
    return sparse.csr_array((weights, groups, np.arange(n + 1)), shape=(n, k)).T


def row_starts(starts: Any) -> Any:
    """Where the rows of a CSR table start, as 32-bit integers if they fit: many tools take no others."""
    return np.asarray(starts, np.int32 if starts[-1] <= np.iinfo(np.int32).max else np.int64)
