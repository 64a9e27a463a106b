import numpy as np
from numpy.typing import NDArray

from kpod._common.typing import Floats, Labels, Singles
from kpod._kernels.gap_likelihood import GapLikelihood
from kpod._kernels.moves import Gaps
from kpod._kernels.panel import Panel
from kpod._kernels.rows import Rows, Sums, Workspace

GOING: int
UNCHANGED: int
LITTLE: int
EMPTY: int

def excess(counts: Floats, centers: Floats, means: Floats) -> float: ...
def squared_distance(one: Floats, other: Floats) -> float: ...
def along(to: Floats, start: Floats, step: Floats) -> float: ...
def go_beyond(out: Floats, at: Floats, step: Floats, run: int) -> None: ...
def descend(
    rows: Rows,
    panel: Panel,
    gaps: GapLikelihood | None,
    totals: Sums,
    prior: Floats,
    fallback: Floats,
    centers: Floats,
    means: Floats,
    counts: Floats,
    labels: Labels,
    upper: Singles,
    lower: Singles,
    loss: float,
    lowest: float,
    penalty: float,
    little: float,
    little_fall: float,
    path: Floats,
    run: int,
    iteration: int,
    creep_start: int,
    creep_stop: int,
    falls: Floats,
    losses: Floats,
    space: Workspace,
) -> tuple[int, int, int, float, float, int]: ...
def sweep(
    rows: Rows,
    panel: Panel,
    moving: Gaps | None,
    gaps: GapLikelihood | None,
    totals: Sums,
    prior: Floats,
    fallback: Floats,
    means: Floats,
    counts: Floats,
    labels: Labels,
    upper: Singles,
    lower: Singles,
    sizes: NDArray[np.int64],
    weight: float,
    weighted: bool,
    live: NDArray[np.uint8],
    loss: float,
    share: float,
    little_fall: float,
    falls: Floats,
    losses: Floats,
    space: Workspace,
) -> tuple[int, int, float]: ...
