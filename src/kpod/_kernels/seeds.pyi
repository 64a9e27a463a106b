import numpy as np
from numpy.typing import NDArray

from kpod._common.typing import Floats, Positions, Singles

MOST_CANDIDATES: int

class Sample:
    n_rows: int
    n_columns: int
    n_entries: int
    n_counted: float
    def __init__(
        self,
        start: Positions,
        columns: NDArray[np.int32],
        values: Singles,
        weights: Floats,
        n_columns: int,
        shares: Singles | None = None,
    ) -> None: ...

def draw_seeds(
    sample: Sample,
    variance: float,
    uniform: Floats,
    nearest: Singles,
    mass: Floats,
    panel: Singles,
    observed: Singles,
    distances: Singles,
    potentials: Floats,
    drawn: Positions,
) -> None: ...
