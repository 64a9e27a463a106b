import numpy as np
from numpy.typing import NDArray

from kpod._common.typing import AnyFloats, Floats, Labels, Positions, Singles
from kpod._kernels.panel import Panel
from kpod._kernels.rows import Rows, Sums, Workspace

class Gaps:
    join: Floats
    leave: Floats
    join_offsets: Floats
    leave_offsets: Floats
    def __init__(self, totals: Sums, shares: Floats, variance: float, weight: float = 1) -> None: ...

def screen(
    rows: Rows,
    start: int,
    stop: int,
    panel: Panel,
    costs: AnyFloats,
    drift: Singles,
    other_drift: Singles,
    largest_gains: Singles,
    smallest_cost: float,
    labels: Labels,
    upper: Singles,
    lower: Singles,
    own: Floats,
    gaps: Gaps | None,
    found: Positions,
    space: Workspace,
) -> int: ...
def move(
    rows: Rows,
    candidates: Positions,
    prior: Floats,
    fallback: Floats,
    labels: Labels,
    centers: Floats,
    counts: Floats,
    totals: Sums,
    sizes: NDArray[np.int64],
    gaps: Gaps | None,
    space: Workspace,
) -> tuple[int, float]: ...
