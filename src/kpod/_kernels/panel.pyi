from typing import Any

import numpy as np

from kpod._typing import AnyFloats, Floats

class Panel:
    k: int
    n_columns: int
    stride: int
    single_stride: int
    centers: Floats
    offsets: Floats | None
    terms: Floats | None
    longest: float
    dtype: np.dtype[Any]
    def __init__(
        self,
        centers: Floats,
        dtype: np.dtype[Any],
        offsets: Floats | None = None,
        terms: Floats | None = None,
    ) -> None: ...

def aligned_zeros(shape: tuple[int, ...], dtype: Any) -> AnyFloats: ...
def side_by_side(by_center: Floats, dtype: np.dtype[Any]) -> AnyFloats: ...
