from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kpod._common.typing import AnyFloats, Floats, Labels

def interleave(
    columns: Sequence[AnyFloats],
    bits: Sequence[NDArray[np.uint8] | None],
    first: NDArray[np.int64],
    out: AnyFloats,
    low: Floats,
    high: Floats,
    gaps: NDArray[np.int64],
    whole: NDArray[np.uint8],
) -> None: ...
def standardise(rows: AnyFloats, mean: Floats, scale: Floats, out: AnyFloats) -> None: ...
def count_observed(rows: AnyFloats, groups: Labels, n_groups: int) -> NDArray[np.integer]: ...
def units_at_a_glance(some: Floats, far: float, single: bool) -> tuple[Floats, int] | None: ...
def anchors_of_sums(
    weights: Floats,
    squares: Floats,
    exponent: Floats,
    nonzero: NDArray[np.int64],
    of_weight: float,
    n_rows: int,
    digits: float,
    most_levels: int,
) -> Floats: ...
