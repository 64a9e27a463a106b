"""Punch holes into a complete table, by the three mechanisms of Little & Rubin.

Each function takes a table, the fraction of all entries to remove and a source of
randomness, and returns a copy with exactly that many gaps, to the nearest entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kpod import _validation
from kpod._typing import AnyFloats, Positions

__all__ = ["mar", "mcar", "nmar"]

Rng = np.random.Generator | int | None


def mcar(X: Any, fraction: float, rng: Rng = None) -> Any:
    """Missing completely at random: every entry is as likely to go as any other.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_rows, n_columns), complete
    fraction : float in [0, 1]
        Share of all entries to remove.
    rng : numpy Generator, int or None

    Returns
    -------
    A copy of X with NaN in the gaps (null in a polars or pyarrow table).

    Examples
    --------
    >>> import numpy as np
    >>> from kpod.missingness import mcar
    >>> int(np.isnan(mcar(np.ones((10, 7)), 0.3, rng=0)).sum())
    21
    """
    values, n_gaps = _complete(X, fraction)
    return _remove(X, values, np.random.default_rng(rng).permutation(values.size)[:n_gaps])


def mar(
    X: Any,
    fraction: float,
    rng: Rng = None,
    *,
    columns: Sequence[int] | None = None,
    depends_on: Sequence[int] | None = None,
    slope: float = 2.0,
) -> Any:
    """Missing at random: what goes depends on nothing, or on what stays.

    Without `depends_on`, entries of the chosen columns go at random, as in the experiments
    of Chi, Chi & Baraniuk (2016), who removed entries of three columns of the wine table.
    With it, the mechanism is missing at random in the proper sense: the columns `depends_on`
    stay complete, and an entry of row i goes with odds that grow with them,

        odds_i = exp(slope * s_i),

    s_i the mean of the row's standardised values in those columns, standardised.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_rows, n_columns), complete
    fraction : float in [0, 1]
        Share of all entries of the table to remove, not only of `columns`.
    rng : numpy Generator, int or None
    columns : positions of the columns to remove from; all but `depends_on` by default
    depends_on : positions of the columns that decide
    slope : float
        How strongly they decide; 0 is not at all.

    Returns
    -------
    A copy of X with NaN in the gaps (null in a polars or pyarrow table).

    Examples
    --------
    >>> import numpy as np
    >>> from kpod.missingness import mar
    >>> X = np.arange(40.0).reshape(10, 4)
    >>> np.isnan(mar(X, 0.25, rng=0, columns=[0, 2])).any(axis=0)
    array([ True, False,  True, False])
    """
    values, n_gaps = _complete(X, fraction)
    n_rows, n_columns = values.shape
    deciding = _positions(depends_on if depends_on is not None else [], n_columns, "depends_on")
    everything = [j for j in range(n_columns) if j not in deciding]
    chosen = _positions(everything if columns is None else columns, n_columns, "columns")
    both = sorted(set(chosen) & set(deciding))
    if both:
        raise ValueError(f"columns and depends_on share {both}; a column that decides must stay complete.")
    if n_gaps > n_rows * len(chosen):
        raise ValueError(
            f"fraction={fraction} asks for {n_gaps} gaps, but the {len(chosen)} columns to remove from hold "
            f"only {n_rows * len(chosen)} entries: at most {n_rows * len(chosen) / values.size:.4g} overall."
        )
    rng = np.random.default_rng(rng)
    score = np.zeros(n_rows)
    if deciding:
        score = slope * _standardise(_standardise(values[:, deciding]).mean(axis=1))
    # Adding Gumbel noise to log odds and keeping the largest draws without replacement.
    keys = score[:, None] + rng.gumbel(size=(n_rows, len(chosen)))
    rows, places = np.divmod(np.argsort(-keys, axis=None, kind="stable")[:n_gaps], max(len(chosen), 1))
    return _remove(X, values, rows * n_columns + np.asarray(chosen, dtype=np.intp)[places])


def nmar(X: Any, fraction: float, rng: Rng = None) -> Any:
    """Not missing at random: in every column, the lowest values go.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_rows, n_columns), complete
    fraction : float in [0, 1]
        Share of all entries to remove, the same in every column but for rounding.
    rng : numpy Generator, int or None
        Decides between equal values, and which columns round up.

    Returns
    -------
    A copy of X with NaN in the gaps (null in a polars or pyarrow table).

    Examples
    --------
    >>> from kpod.missingness import nmar
    >>> nmar([[1.0], [4.0], [3.0], [2.0]], 0.5, rng=0).ravel()
    array([nan,  4.,  3., nan])
    """
    values, n_gaps = _complete(X, fraction)
    rng = np.random.default_rng(rng)
    n_rows, n_columns = values.shape
    per_column = np.full(n_columns, n_gaps // max(n_columns, 1))
    per_column[rng.permutation(n_columns)[: n_gaps - per_column.sum()]] += 1
    order = np.lexsort((rng.random(values.shape), values), axis=0)
    lowest = np.arange(n_rows)[:, None] < per_column
    return _remove(X, values, (order * n_columns + np.arange(n_columns))[lowest])


def _complete(X: Any, fraction: float) -> tuple[AnyFloats, int]:
    values = _validation.as_array(X, None)
    if not np.isfinite(values).all():
        raise ValueError("X must be complete and finite: it already has gaps, or holds infinity.")
    if not 0 <= fraction <= 1:
        raise ValueError(f"fraction must lie between 0 and 1, got {fraction!r}.")
    return values, round(fraction * values.size)


def _positions(columns: Sequence[int], n_columns: int, name: str) -> list[int]:
    positions = [int(j) for j in columns]
    if any(not 0 <= j < n_columns for j in positions) or len(set(positions)) < len(positions):
        raise ValueError(f"{name} must be different positions from 0 to {n_columns - 1}, got {positions}.")
    return positions


def _standardise(a: AnyFloats) -> AnyFloats:
    spread = a.std(axis=0)
    return (a - a.mean(axis=0)) / np.where(spread > 0, spread, 1)


def _remove(X: Any, values: AnyFloats, flat: Positions) -> Any:
    holed = values.copy()
    holed.flat[flat] = np.nan
    return _validation.with_values(X, holed, np.isnan(holed).any(axis=0))
