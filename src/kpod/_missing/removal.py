"""Entries removed from a complete table: at random, or by the values of the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from kpod._common.typing import AnyFloats, Floats, Positions
from kpod._common.warnings import warn
from kpod._inputs import frames, validation

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
RandomState = np.random.Generator | np.random.RandomState | int | None


def generator(random_state: RandomState) -> np.random.Generator:
    """What to draw from."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    return np.random.default_rng(random_state)


def takes_rng(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Let a function take `rng`, the name of `random_state` in 0.1.0."""

    @wraps(function)
    def call(*args: Any, **options: Any) -> Result:
        if "rng" in options:
            warn("rng is now called random_state; rng will be an error in a later version.", FutureWarning)
            options["random_state"] = options.pop("rng")
        return function(*args, **options)

    return call


@takes_rng
def mcar(X: Any, fraction: float, random_state: RandomState = None) -> Any:
    """Missing completely at random (MCAR): every entry is equally likely to be removed.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features), complete
    fraction : float in [0, 1]
        Share of all entries to remove.
    random_state : int, RandomState or Generator instance, or None, default=None

    Returns
    -------
    A copy of X with NaN in the gaps (null in a polars or pyarrow table).

    Examples
    --------
    >>> import numpy as np
    >>> from kpod.missingness import mcar
    >>> int(np.isnan(mcar(np.ones((10, 7)), 0.3, random_state=0)).sum())
    21
    """
    values, n_gaps = _complete(X, fraction)
    return _remove(X, values, generator(random_state).permutation(values.size)[:n_gaps])


@takes_rng
def mar(
    X: Any,
    fraction: float,
    random_state: RandomState = None,
    *,
    columns: Sequence[int] | None = None,
    depends_on: Sequence[int] | None = None,
    slope: float = 2.0,
) -> Any:
    """Missing at random (MAR): whether an entry is removed depends on nothing, or on observed values.

    Without `depends_on`, entries of the chosen columns are removed at random, as in the experiments
    of Chi, Chi & Baraniuk (2016), who removed entries of three columns of the wine table.
    With it, the mechanism is missing at random in the proper sense: the columns `depends_on`
    stay complete, and an entry of row i is removed with odds that grow with them,

        odds_i = exp(slope * s_i),

    s_i the mean of the row's standardised values in those columns, standardised.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features), complete
    fraction : float in [0, 1]
        Share of all entries of the table to remove, not only of `columns`.
    random_state : int, RandomState or Generator instance, or None, default=None
    columns : positions of the columns to remove from; all but `depends_on` by default
    depends_on : positions of the columns that missingness depends on
    slope : float
        How strongly it depends on them; 0 is not at all.

    Returns
    -------
    A copy of X with NaN in the gaps (null in a polars or pyarrow table).

    Examples
    --------
    >>> import numpy as np
    >>> from kpod.missingness import mar
    >>> X = np.arange(40.0).reshape(10, 4)
    >>> np.isnan(mar(X, 0.25, random_state=0, columns=[0, 2])).any(axis=0)
    array([ True, False,  True, False])
    """
    values, n_gaps = _complete(X, fraction)
    n_columns = values.shape[1]
    deciding = _positions(depends_on if depends_on is not None else [], n_columns, "depends_on")
    everything = [j for j in range(n_columns) if j not in deciding]
    chosen = _positions(everything if columns is None else columns, n_columns, "columns")
    both = sorted(set(chosen) & set(deciding))
    if both:
        raise ValueError(f"columns and depends_on share {both}; a column that decides must stay complete.")
    score = np.zeros(len(values))
    if deciding:
        score = slope * _standardise(_standardise(values[:, deciding]).mean(axis=1))
    return _by_odds(X, values, n_gaps, score[:, None], generator(random_state), chosen)


@takes_rng
def nmar(X: Any, fraction: float, random_state: RandomState = None) -> Any:
    """Not missing at random (NMAR, MNAR): in every column, the lowest values are removed.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features), complete
    fraction : float in [0, 1]
        Share of all entries to remove, the same in every column but for rounding.
    random_state : int, RandomState or Generator instance, or None, default=None
        Decides between equal values, and which columns round up.

    Returns
    -------
    A copy of X with NaN in the gaps (null in a polars or pyarrow table).

    Examples
    --------
    >>> from kpod.missingness import nmar
    >>> nmar([[1.0], [4.0], [3.0], [2.0]], 0.5, random_state=0).ravel()
    array([nan,  4.,  3., nan])
    """
    return detection_limit(X, fraction, random_state)


@takes_rng
def detection_limit(
    X: Any,
    fraction: float,
    random_state: RandomState = None,
    *,
    end: str = "low",
    columns: Sequence[int] | None = None,
) -> Any:
    """Detection limits: in every chosen column, all values beyond a limit are removed.

    An instrument that cannot read below (or above) a value leaves a gap there. With `m` gaps in a
    column, x_ij is removed if its rank in column j is at most m (`end="low"`), above n - m (`"high"`), or
    at most m / 2 or above n - m / 2 (`"both"`).

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features), complete
    fraction : float in [0, 1]
        Share of all entries to remove, the same in every chosen column but for rounding.
    random_state : int, RandomState or Generator instance, or None, default=None
        Decides between equal values, and which columns round up.
    end : {"low", "high", "both"}
        The end of the scale at which values are removed.
    columns : positions of the columns to remove from; all by default

    Returns
    -------
    A copy of X with NaN in the gaps (null in a polars or pyarrow table).

    Examples
    --------
    >>> from kpod.missingness import detection_limit
    >>> detection_limit([[1.0], [4.0], [3.0], [2.0]], 0.5, random_state=0, end="both").ravel()
    array([nan, nan,  3.,  2.])
    """
    values, n_gaps = _complete(X, fraction)
    rng = generator(random_state)
    if end not in ("low", "high", "both"):
        raise ValueError(f"end must be 'low', 'high' or 'both', got {end!r}.")
    n_rows, n_columns = values.shape
    chosen = _chosen(columns, n_columns)
    _check_room(n_gaps, n_rows, len(chosen), n_columns)
    per_column = np.full(len(chosen), n_gaps // max(len(chosen), 1))
    per_column[rng.permutation(len(chosen))[: n_gaps - per_column.sum()]] += 1
    order = np.lexsort((rng.random((n_rows, len(chosen))), values[:, chosen]), axis=0)
    from_low = {"low": per_column, "high": 0 * per_column, "both": per_column // 2}[end]
    rank = np.arange(n_rows)[:, None]
    goes = (rank < from_low) | (rank >= n_rows - (per_column - from_low))
    return _remove(X, values, (order * n_columns + np.asarray(chosen, dtype=np.intp))[goes])


@takes_rng
def by_value(
    X: Any,
    fraction: float,
    random_state: RandomState = None,
    *,
    slope: float | Sequence[float] = -2.0,
    columns: Sequence[int] | None = None,
) -> Any:
    """Gaps that depend on the value itself (MNARy): the lower a value, the more likely it is removed.

        odds_ij = exp(slope_j * z_ij),

    z_ij the value in standard deviations from its column's mean. `detection_limit` is the deterministic
    version.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features), complete
    fraction : float in [0, 1]
        Share of all entries to remove.
    random_state : int, RandomState or Generator instance, or None, default=None
    slope : float, or one for each chosen column
        Negative removes low values, positive high values; with 0 it does not depend on the value.
    columns : positions of the columns to remove from; all by default

    Returns
    -------
    A copy of X with NaN in the gaps (null in a polars or pyarrow table).

    Examples
    --------
    >>> import numpy as np
    >>> from kpod.missingness import by_value
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> holed = by_value(X, 0.3, random_state=0)
    >>> bool(X[np.isnan(holed)].mean() < -0.5)
    True
    """
    values, n_gaps = _complete(X, fraction)
    chosen = _chosen(columns, values.shape[1])
    slopes = np.asarray(slope, dtype=np.float64)
    if slopes.shape not in ((), (len(chosen),)):
        raise ValueError(f"slope must be a number or one for each of the {len(chosen)} columns.")
    scores = slopes * _standardise(values[:, chosen])
    return _by_odds(X, values, n_gaps, scores, generator(random_state), chosen)


def _complete(X: Any, fraction: float) -> tuple[AnyFloats, int]:
    values = validation.as_array(X, None)
    if not np.isfinite(values).all():
        raise ValueError("X must be complete and finite: it already has gaps, or holds infinity.")
    if not 0 <= fraction <= 1:
        raise ValueError(f"fraction must lie between 0 and 1, got {fraction!r}.")
    return values, round(fraction * values.size)


def _by_odds(
    X: Any,
    values: AnyFloats,
    n_gaps: int,
    log_odds: Floats,
    rng: np.random.Generator,
    columns: list[int] | None = None,
) -> Any:
    """Remove so many entries, drawn without replacement with the given odds, which may be broadcast."""
    n_rows, n_columns = values.shape
    chosen = list(range(n_columns)) if columns is None else columns
    _check_room(n_gaps, n_rows, len(chosen), n_columns)
    # Adding Gumbel noise to log odds and keeping the largest draws without replacement.
    keys = log_odds + rng.gumbel(size=(n_rows, len(chosen)))
    rows, places = np.divmod(np.argsort(-keys, axis=None, kind="stable")[:n_gaps], max(len(chosen), 1))
    return _remove(X, values, rows * n_columns + np.asarray(chosen, dtype=np.intp)[places])


def _check_room(n_gaps: int, n_rows: int, n_chosen: int, n_columns: int) -> None:
    n_entries = n_rows * n_columns
    if n_gaps > n_rows * n_chosen:
        raise ValueError(
            f"fraction={n_gaps / n_entries:.4g} asks for {n_gaps} gaps, but the {n_chosen} columns to remove "
            f"from hold only {n_rows * n_chosen} entries: at most {n_chosen / n_columns:.4g} overall."
        )


def _positions(columns: Sequence[int], n_columns: int, name: str) -> list[int]:
    positions = [int(j) for j in columns]
    if any(not 0 <= j < n_columns for j in positions) or len(set(positions)) < len(positions):
        raise ValueError(f"{name} must be different positions from 0 to {n_columns - 1}, got {positions}.")
    return positions


def _chosen(columns: Sequence[int] | None, n_columns: int) -> list[int]:
    return list(range(n_columns)) if columns is None else _positions(columns, n_columns, "columns")


def _standardise(a: AnyFloats) -> AnyFloats:
    spread = a.std(axis=0)
    return (a - a.mean(axis=0)) / np.where(spread > 0, spread, 1)


def _remove(X: Any, values: AnyFloats, flat: Positions) -> Any:
    holed = values.copy()
    holed.flat[flat] = np.nan
    return frames.with_values(X, holed, np.isnan(holed).any(axis=0))
