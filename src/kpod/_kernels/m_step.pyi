import numpy as np
from numpy.typing import NDArray

from kpod._common.typing import Floats

NOTHING: float

def maximise_factors(
    sums: Floats,
    cluster_sums: Floats,
    old_means: Floats,
    old_variances: Floats,
    own_loadings: bool,
    own_variances: bool,
    is_round: bool,
    prior_rows: float,
    prior: Floats,
    floor: Floats,
    fallback: Floats,
    silent: NDArray[np.uint8],
    means: Floats,
    variances: Floats,
    loadings: Floats,
) -> None: ...
