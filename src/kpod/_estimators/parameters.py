"""Parameters of the estimators, checked before anything is computed."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from kpod._engine.executors import Executor
from kpod._engine.fit import SOLVERS
from kpod._engine.seeding import SEEDINGS
from kpod._estimators.fitting import is_auto
from kpod._inputs import validation

MISSINGNESS = ("ignore", "informative", "auto")


def check_parameters(model: Any) -> None:
    """Refuse parameters of a KPOD that cannot be used, alone or together."""
    for name, least in (("n_clusters", 1), ("max_iter", 1), ("n_threads", 1), ("verbose", 0)):
        value = getattr(model, name)
        if (name == "n_threads" and value is None) or (name == "n_clusters" and is_auto(value)):
            continue
        auto = "'auto' or " if name == "n_clusters" else ""
        check_integer(name, value, least, auto)
    for name, auto in (("tol", ""), ("shrinkage", "'auto' or ")):
        value = getattr(model, name)
        if not (auto and is_auto(value)) and not (isinstance(value, Real) and 0 <= float(value) < np.inf):
            raise ValueError(f"{name} must be {auto}a finite number of at least 0, got {value!r}.")
    if model.algorithm not in SOLVERS:
        raise ValueError(f"algorithm must be one of {sorted(SOLVERS)}, got {model.algorithm!r}.")
    if isinstance(model.init, str) and model.init not in SEEDINGS:
        raise ValueError(
            f"init must be one of {sorted(SEEDINGS)}, an array or a callable, got {model.init!r}."
        )
    chosen = [n for n in ("n_clusters", "shrinkage", "missingness") if is_auto(getattr(model, n))]
    if chosen and not isinstance(model.init, str):
        raise ValueError(
            f"{chosen[0]}='auto' also fits parts of the table, so init must be one of "
            f"{sorted(SEEDINGS)}, not an array or a callable."
        )
    if not is_auto(model.n_init) and (
        not isinstance(model.n_init, Integral) or isinstance(model.n_init, bool) or model.n_init < 1
    ):
        raise ValueError(f"n_init must be 'auto' or an integer of at least 1, got {model.n_init!r}.")
    if model.algorithm == "mm" and model.shrinkage != 0:
        raise ValueError("shrinkage is not supported with algorithm='mm'.")
    if not isinstance(model.missingness, str) or model.missingness not in MISSINGNESS:
        raise ValueError(f"missingness must be one of {list(MISSINGNESS)}, got {model.missingness!r}.")
    if model.algorithm == "mm" and model.missingness != "ignore":
        raise ValueError(
            f"missingness={model.missingness!r} is not supported with algorithm='mm', which fills gaps in."
        )


def check_place(model: Any, X: Any, executor: Executor) -> str:
    """The algorithm for a table in this place; refuses what needs the whole table in memory."""
    if not executor.remote and not validation.is_dask(X):
        return str(model.algorithm)
    for name, wants in {
        "algorithm='mm'": model.algorithm == "mm",
        "init='mean-fill'": isinstance(model.init, str) and model.init == "mean-fill",
        "a callable init": callable(model.init),
        "probability=True": model.probability,
        "n_clusters='auto'": is_auto(model.n_clusters),
        "shrinkage='auto'": is_auto(model.shrinkage),
        "missingness='auto'": is_auto(model.missingness),
    }.items():
        if wants:
            raise ValueError(
                f"{name} needs the whole table in memory; Dask tables and clusters are not supported. "
                "Use it on a sample of the rows that fits into memory."
            )
    return "lloyd"


def check_integer(name: str, value: Any, least: int, auto: str = "") -> None:
    if not isinstance(value, Integral) or (isinstance(value, bool) and name != "verbose") or value < least:
        raise ValueError(f"{name} must be {auto}an integer of at least {least}, got {value!r}.")
