import numpy as np
from numpy.typing import NDArray

from kpod._typing import Floats, Positions, Singles

MOST_CANDIDATES: int

def draw_seed(
    start: Positions,
    columns: NDArray[np.int32],
    values: Singles,
    weights: Floats,
    variance: float,
    uniform: Floats,
    nearest: Singles,
    mass: Floats,
    panel: Singles,
    observed: Singles,
    distances: Singles,
    potentials: Floats,
) -> int: ...
