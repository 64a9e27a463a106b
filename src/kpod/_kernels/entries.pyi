import numpy as np
from numpy.typing import NDArray

from kpod._common.typing import Floats, Positions, Singles
from kpod._kernels.rows import Rows, Workspace

def list_entries(
    rows: Rows,
    index: Positions,
    start: Positions,
    columns: NDArray[np.int32],
    values: Singles,
    space: Workspace,
) -> None: ...
def gather(rows: Rows, index: Positions, out: Floats, space: Workspace) -> None: ...
def hide(
    rows: Rows,
    first: int,
    seed: int,
    low: float,
    high: float,
    bitmap: NDArray[np.uint8],
    space: Workspace,
    sources: NDArray[np.int32] | None = None,
) -> None: ...
