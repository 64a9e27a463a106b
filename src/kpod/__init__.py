"""k-means clustering of tables with missing entries (k-POD)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kpod import datasets, metrics, missingness, plot
    from kpod._choose import choose_k
    from kpod._dask import on_dask
    from kpod._encoder import TableEncoder
    from kpod._estimator import KPOD
    from kpod._io.scanning import scan
    from kpod._minibatch import MiniBatchKPOD
    from kpod._models import load, save
    from kpod._report.page import report
    from kpod._scaler import ObservedScaler
    from kpod._stability import stability
    from kpod._sums import summary

    __version__: str

__all__ = [
    "KPOD",
    "MiniBatchKPOD",
    "ObservedScaler",
    "TableEncoder",
    "__version__",
    "choose_k",
    "datasets",
    "load",
    "metrics",
    "missingness",
    "on_dask",
    "plot",
    "report",
    "save",
    "scan",
    "stability",
    "summary",
]

_HOMES = {
    "KPOD": "kpod._estimator",
    "MiniBatchKPOD": "kpod._minibatch",
    "ObservedScaler": "kpod._scaler",
    "TableEncoder": "kpod._encoder",
    "choose_k": "kpod._choose",
    "load": "kpod._models",
    "on_dask": "kpod._dask",
    "report": "kpod._report.page",
    "save": "kpod._models",
    "scan": "kpod._io.scanning",
    "stability": "kpod._stability",
    "summary": "kpod._sums",
}
_MODULES = ["datasets", "metrics", "missingness", "plot"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("scikit-kpod")
    if name in _MODULES:
        return importlib.import_module(f"kpod.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
