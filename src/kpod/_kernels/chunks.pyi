from typing import Any

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[Any]
Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Labels = NDArray[np.int32]
Positions = NDArray[np.intp]

MOST_FEW: int

class Rows:
    n_rows: int
    n_columns: int
    is_sparse: bool
    def __init__(
        self,
        values: Reals,
        shift: Reals,
        weights: Floats | None = None,
        indices: NDArray[np.int32] | None = None,
        indptr: NDArray[np.int64] | None = None,
    ) -> None: ...

class Workspace:
    chunk: int
    def __init__(self, longest_row: int, stride: int, chunk: int) -> None: ...

def measure(
    rows: Rows,
    start: int,
    stop: int,
    like: Reals,
    squares: Floats,
    counts: Floats,
    observed: Labels,
) -> None: ...
def add_up(
    rows: Rows,
    start: int,
    stop: int,
    labels: Labels,
    like: Reals,
    sums: Floats,
    counts: Floats,
) -> None: ...
def losses(
    rows: Rows,
    start: int,
    stop: int,
    labels: Labels,
    like: Reals,
    centers: Floats,
    out: Floats,
) -> float: ...
def distances(
    rows: Rows, start: int, stop: int, panel: Reals, offsets: Reals, out: Reals, space: Workspace
) -> None: ...
def list_entries(
    rows: Rows,
    index: Positions,
    like: Reals,
    start: Positions,
    columns: NDArray[np.int32],
    values: Singles,
    space: Workspace,
) -> None: ...
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
def assign(
    rows: Rows,
    start: int,
    stop: int,
    panel: Reals,
    offsets: Reals,
    single_panel: Singles,
    single_offsets: Singles,
    longest: float,
    few: int,
    epsilon: float,
    tie: float,
    drift: Singles,
    others: Singles,
    labels: Labels,
    upper: Singles,
    lower: Singles,
    sums: Floats,
    counts: Floats,
    space: Workspace,
) -> int: ...
def screen(
    rows: Rows,
    start: int,
    stop: int,
    panel: Reals,
    factors: Reals,
    offsets: Reals,
    epsilon: float,
    drift: Singles,
    others: Singles,
    leaving: Singles,
    joining: float,
    labels: Labels,
    upper: Singles,
    lower: Singles,
    own: Floats,
    found: Positions,
    space: Workspace,
) -> int: ...
def move(
    rows: Rows,
    candidates: Positions,
    like: Reals,
    fallback: Floats,
    labels: Labels,
    centers: Floats,
    sums: Floats,
    counts: Floats,
    sizes: NDArray[np.int64],
    space: Workspace,
) -> tuple[int, float]: ...
