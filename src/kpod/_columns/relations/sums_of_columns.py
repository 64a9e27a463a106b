"""Columns that are sums of others: a total beside its parts counts them a second time.

    total_i = sum over the parts j of x_ij

in every row, up to the digits that were written. The parts are found by non-negative least squares: those
with a coefficient of 1, where all other coefficients are 0.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.optimize import nnls

from kpod._columns.relations.same_information import rounding_of
from kpod._common.typing import Floats

MOST_COLUMNS = 60
MOST_ROWS = 300
"""Rows in which parts are looked for; a sum holds in all rows."""
LEAST_ROWS = 10
"""Complete rows more than columns: any column is nearly a sum of as many others as there are rows."""
LEAST_VALUES = 5
NEAR = 1e-3


def sums_of_columns(columns: Mapping[str, Floats]) -> dict[str, list[str]]:
    """The columns that are sums of others, with their parts; those of one sum are not tried in another."""
    names = [name for name, values in columns.items() if len(np.unique(values[:MOST_ROWS])) >= LEAST_VALUES]
    if not 3 <= len(names) <= MOST_COLUMNS:
        return {}
    complete = np.ones(len(columns[names[0]]), bool)
    for name in names:
        complete &= np.isfinite(columns[name])
    X = np.column_stack([columns[name][complete] for name in names])
    if len(X) < len(names) + LEAST_ROWS:
        return {}
    head = X[np.linspace(0, len(X) - 1, min(len(X), MOST_ROWS)).astype(int)]
    rounding = np.array([rounding_of(column) for column in head.T])
    found: dict[str, list[str]] = {}
    gone: set[int] = set()
    for j in np.argsort(np.abs(head).sum(axis=0), kind="stable"):  # subtotals come before totals
        others = [k for k in range(len(names)) if k != j and k not in gone]
        parts = parts_of(head[:, j], head[:, others])
        among = [others[part] for part in parts]
        most = 1e-9 * np.abs(X[:, j]).max() + 1.01 * (rounding[j] + rounding[among].sum())
        if parts and np.abs(X[:, j] - X[:, among].sum(axis=1)).max() <= most:
            found[names[j]] = [names[k] for k in among]
            gone.update(among)
    return found


def parts_of(total: Floats, others: Floats) -> list[int]:
    """The columns that add up to a total, two at least; none where others are needed, too."""
    size = np.linalg.norm(others, axis=0)
    kept = np.flatnonzero(size > 0)
    if len(kept) < 2:
        return []
    try:
        weights = nnls(others[:, kept] / size[kept], total)[0] / size[kept]
    except RuntimeError:  # it did not converge
        return []
    whole = np.abs(weights - 1) < NEAR
    return [int(k) for k in kept[whole]] if whole.sum() > 1 and (np.abs(weights[~whole]) < NEAR).all() else []
