import numpy as np
from numpy.typing import NDArray

from kpod._common.typing import Floats, Positions
from kpod._kernels.rows import Rows, Workspace

class Bounds:
    def __init__(
        self,
        own_loadings: bool,
        own_variances: bool,
        is_round: bool,
        prior_rows: float,
        prior: Floats,
        floor: Floats,
        fallback: Floats,
        silent: NDArray[np.uint8],
        loading_rows: float,
        columns_per_entry: float,
        more_entries: float,
        observed: Floats | None,
        shadowed: Positions,
        smallest_rate: float,
    ) -> None: ...

def run_factors(
    rows: Rows,
    start: int,
    stop: int,
    within: Bounds,
    shares: Floats,
    means: Floats,
    variances: Floats,
    loadings: Floats,
    rates: Floats | None,
    has_rates: bool,
    before: float,
    little: float,
    is_last: bool,
    trace: Floats,
    space: Workspace,
) -> tuple[int, float, bool]: ...
