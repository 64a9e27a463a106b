import numpy as np
from numpy.typing import NDArray

from kpod._common.typing import AnyFloats, Floats, Labels

LEVELS: int

class Rows:
    n_rows: int
    n_columns: int
    n_entries: int
    longest_row: int
    is_sparse: bool
    is_double: bool
    scale: float
    chunk: int
    def __init__(
        self,
        values: AnyFloats,
        shift: AnyFloats,
        scale: float = 1.0,
        weights: Floats | None = None,
        indices: NDArray[np.int32] | None = None,
        indptr: NDArray[np.int64] | None = None,
        hidden: NDArray[np.uint8] | None = None,
        only_hidden: bool = False,
    ) -> None: ...

class Workspace:
    chunk: int
    def __init__(self, rows: Rows, stride: int, chunk: int) -> None: ...
    def fits(self, rows: Rows, stride: int, chunk: int) -> bool: ...

class Sums:
    k: int
    n_columns: int
    sums: Floats
    counts: Floats
    weights: Floats
    anchors: Floats
    weight_anchors: Floats
    def __init__(self, k: int, anchors: Floats, weight_anchors: Floats) -> None: ...
    def add(self, other: Sums) -> None: ...
    def clear(self) -> None: ...

def means(totals: Sums, prior: Floats, fallback: Floats, centers: Floats, counts: Floats) -> None: ...
def measure(
    rows: Rows,
    start: int,
    stop: int,
    about: Floats,
    exponents: NDArray[np.int64],
    observed: Labels,
    space: Workspace,
) -> None: ...
def add_up(rows: Rows, start: int, stop: int, labels: Labels, to: Sums, space: Workspace) -> None: ...
def losses(
    rows: Rows, start: int, stop: int, labels: Labels, centers: Floats, out: Floats, space: Workspace
) -> float: ...
