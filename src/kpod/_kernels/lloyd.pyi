from kpod._common.typing import AnyFloats, Floats, Labels, Singles
from kpod._kernels.panel import Panel
from kpod._kernels.rows import Rows, Sums, Workspace

LEVELS: tuple[str, ...]

def use_level(level: str) -> None: ...
def assign(
    rows: Rows,
    start: int,
    stop: int,
    panel: Panel,
    drift: Singles,
    other_drift: Singles,
    labels: Labels,
    upper: Singles,
    lower: Singles,
    to: Sums | None,
    space: Workspace,
) -> tuple[int, float]: ...
def drift(before: Floats, after: Floats, more: Floats | None, own: Singles, other: Singles) -> None: ...
def distances(rows: Rows, start: int, stop: int, panel: Panel, out: AnyFloats, space: Workspace) -> None: ...
