"""Clustering of tables with missing values (NaN): k-means over the observed entries, Gaussian mixtures."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kpod import datasets, metrics, missingness, plot
    from kpod._analysis.analyze import analyze
    from kpod._analysis.comparing import compare
    from kpod._columns.preparing.preparer import TablePreparer
    from kpod._estimators.kpod import KPOD
    from kpod._estimators.mini_batch import MiniBatchKPOD
    from kpod._estimators.mixture.gaussian_mixture import GaussianMixture
    from kpod._estimators.observed_scaler import ObservedScaler
    from kpod._files.opening import read
    from kpod._files.pieces.scanning import scan
    from kpod._findings.choose_k import choose_k
    from kpod._findings.stability import stability
    from kpod._findings.sums_of_squares import summary
    from kpod._inputs.choose_executor import on_dask
    from kpod._report.page import report
    from kpod._saved_models.save_load import load, save

    __version__: str

__all__ = [
    "KPOD",
    "GaussianMixture",
    "MiniBatchKPOD",
    "ObservedScaler",
    "TablePreparer",
    "__version__",
    "analyze",
    "choose_k",
    "compare",
    "datasets",
    "load",
    "metrics",
    "missingness",
    "on_dask",
    "plot",
    "read",
    "report",
    "save",
    "scan",
    "stability",
    "summary",
]

_HOMES = {
    "analyze": "kpod._analysis.analyze",
    "compare": "kpod._analysis.comparing",
    "read": "kpod._files.opening",
    "GaussianMixture": "kpod._estimators.mixture.gaussian_mixture",
    "KPOD": "kpod._estimators.kpod",
    "MiniBatchKPOD": "kpod._estimators.mini_batch",
    "ObservedScaler": "kpod._estimators.observed_scaler",
    "TablePreparer": "kpod._columns.preparing.preparer",
    "choose_k": "kpod._findings.choose_k",
    "load": "kpod._saved_models.save_load",
    "on_dask": "kpod._inputs.choose_executor",
    "report": "kpod._report.page",
    "save": "kpod._saved_models.save_load",
    "scan": "kpod._files.pieces.scanning",
    "stability": "kpod._findings.stability",
    "summary": "kpod._findings.sums_of_squares",
}
_MODULES = ["datasets", "metrics", "missingness", "plot", "results"]


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
