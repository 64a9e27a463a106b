"""Parameters of the estimators, checked before anything is computed."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from kpod._common.warnings import warn
from kpod._engine.fit import SOLVERS
from kpod._engine.seeding import SEEDINGS
from kpod._engine.table import Table
from kpod._inputs import choose_executor, validation

MISSINGNESS = ("ignore", "informative", "auto")


def is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def check_parameters(model: Any) -> None:
    """Refuse parameters of a KPOD that cannot be used, alone or together."""
    check_shared(model, "'auto' or ")
    check_integer("max_iter", model.max_iter, 1)
    for name, auto in (("tol", ""), ("shrinkage", "'auto' or ")):
        value = getattr(model, name)
        if not (auto and is_auto(value)) and not (isinstance(value, Real) and 0 <= float(value) < np.inf):
            raise ValueError(f"{name} must be {auto}a finite number of at least 0, got {value!r}.")
    if model.algorithm not in SOLVERS:
        raise ValueError(f"algorithm must be one of {sorted(SOLVERS)}, got {model.algorithm!r}.")
    chosen = [n for n in ("n_clusters", "shrinkage", "missingness") if is_auto(getattr(model, n))]
    if chosen and not isinstance(model.init, str):
        raise ValueError(
            f"{chosen[0]}='auto' also fits parts of the table, so init must be one of "
            f"{sorted(SEEDINGS)}, not an array or a callable."
        )
    if model.algorithm == "mm" and model.shrinkage != 0:
        raise ValueError("shrinkage is not supported with algorithm='mm'.")
    if not isinstance(model.missingness, str) or model.missingness not in MISSINGNESS:
        raise ValueError(f"missingness must be one of {list(MISSINGNESS)}, got {model.missingness!r}.")
    if model.algorithm == "mm" and model.missingness != "ignore":
        raise ValueError(
            f"missingness={model.missingness!r} is not supported with algorithm='mm', which fills gaps in."
        )


def check_shared(model: Any, auto: str = "") -> None:
    """Refuse what cannot be used of the parameters that all estimators with centers have."""
    if not (auto and is_auto(model.n_clusters)):
        check_integer("n_clusters", model.n_clusters, 1, auto)
    if model.n_threads is not None:
        check_integer("n_threads", model.n_threads, 1)
    check_integer("verbose", model.verbose, 0)
    if isinstance(model.init, str) and model.init not in SEEDINGS:
        raise ValueError(
            f"init must be one of {sorted(SEEDINGS)}, an array or a callable, got {model.init!r}."
        )
    if not is_auto(model.n_init):
        check_integer("n_init", model.n_init, 1, "'auto' or ")


def check_place(model: Any, X: Any) -> str:
    """The algorithm for a table in this place; refuses what needs the whole table in memory."""
    if not choose_executor.is_spread(X):
        return str(model.algorithm)
    for name, wants in {
        "algorithm='mm'": model.algorithm == "mm",
        "init='mean-fill'": isinstance(model.init, str) and model.init == "mean-fill",
        "a callable init": callable(model.init),
    }.items():
        if wants:
            raise ValueError(
                f"{name} needs the whole table in memory; tables of Dask and Spark, and clusters, are not "
                "supported. Use it on a sample of the rows that fits into memory."
            )
    return "lloyd"


def check_table(table: Table, names: Any, n_clusters: int | None) -> None:
    """Refuse a table with too few rows for so many clusters, None for any number; warn of empty columns."""
    n_usable = table.n_usable
    if not n_usable and n_clusters is None:
        raise ValueError(f"X: no row (n_samples={table.n_rows}) has both an observed entry and a weight.")
    if n_clusters is not None and n_clusters > n_usable:
        raise ValueError(
            f"n_samples={n_usable} should be >= n_clusters={n_clusters}: of {table.n_rows} rows, "
            f"{n_usable} have an observed entry and a positive weight. Ask for fewer clusters."
        )
    ignored = np.flatnonzero(~table.live)
    if len(ignored):
        warn(
            f"No observed entries in column {validation.name_columns(ignored, names)}: ignored, and "
            "NaN in the centers."
        )


def check_integer(name: str, value: Any, least: int, auto: str = "") -> None:
    if not isinstance(value, Integral) or (isinstance(value, bool) and name != "verbose") or value < least:
        raise ValueError(f"{name} must be {auto}an integer of at least {least}, got {value!r}.")
