"""k-means clustering of tables with missing entries (k-POD)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kpod import plot
    from kpod._encoder import TableEncoder
    from kpod._estimator import KPOD
    from kpod._models import load, save
    from kpod._report.page import report
    from kpod._scaler import ObservedScaler

    __version__: str

__all__ = ["KPOD", "ObservedScaler", "TableEncoder", "__version__", "load", "plot", "report", "save"]

_HOMES = {
    "KPOD": "kpod._estimator",
    "ObservedScaler": "kpod._scaler",
    "TableEncoder": "kpod._encoder",
    "load": "kpod._models",
    "report": "kpod._report.page",
    "save": "kpod._models",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("scikit-kpod")
    if name == "plot":
        return importlib.import_module("kpod.plot")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
