import numpy as np
from numpy.typing import NDArray

from kpod._common.typing import Floats, Labels, Positions
from kpod._kernels.rows import Rows, Workspace

FACTORS_AT_MOST: int

def lanes_for(k: int) -> int: ...

class Factors:
    k: int
    n_columns: int
    lanes: int
    q: int
    def __init__(
        self,
        log_shares: Floats,
        means: Floats,
        variances: Floats,
        loadings: Floats,
        offsets: Floats | None = None,
    ) -> None: ...
    def empty_sums(self) -> tuple[Floats, Floats]: ...

def expect_factors(
    rows: Rows,
    start: int,
    stop: int,
    model: Factors,
    labels: Labels | None,
    sums: Floats | None,
    cluster_sums: Floats | None,
    posterior: Floats | None,
    evidence: Floats | None,
    scores: Floats | None,
    covariances: Floats | None,
    space: Workspace,
) -> float: ...

class Covariances:
    k: int
    n_columns: int
    n_matrices: int
    def __init__(
        self, log_shares: Floats, means: Floats, covariances: Floats, offsets: Floats | None = None
    ) -> None: ...

def observed_bits(rows: Rows, start: int, stop: int, bits: NDArray[np.uint8], space: Workspace) -> None: ...
def expect_covariances(
    rows: Rows,
    start: int,
    stop: int,
    model: Covariances,
    order: Positions,
    begins: Positions,
    labels: Labels | None,
    weights: Floats | None,
    first: Floats | None,
    second: Floats | None,
    seen: Floats | None,
    posterior: Floats | None,
    evidence: Floats | None,
    space: Workspace,
) -> float: ...
