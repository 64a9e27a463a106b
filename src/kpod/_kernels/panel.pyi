from typing import Any

from kpod._common.typing import AnyFloats, Floats

class Panel:
    k: int
    n_columns: int
    stride: int
    single_stride: int
    centers: Floats
    offsets: Floats | None
    terms: Floats | None
    roots: Floats | None
    longest: float
    def __init__(
        self,
        centers: Floats,
        offsets: Floats | None = None,
        terms: Floats | None = None,
        roots: Floats | None = None,
    ) -> None: ...

def aligned_zeros(shape: tuple[int, ...], dtype: Any) -> AnyFloats: ...
def side_by_side(by_center: Floats, dtype: Any) -> AnyFloats: ...
