"""Say what the gaps of a table go with; or remove entries from a complete table.

`diagnose` says how much of a table is missing and where, which columns are missing together, and with
which values and clusters the gaps go.

The other functions make gaps, by the mechanisms that the literature on missing data uses. Each takes a
table, the fraction of all entries to remove and a source of randomness, and returns a copy with exactly
that many gaps, to the nearest entry (`modules`: to the nearest module). By what decides which entries go:

- nothing: `mcar`;
- values that stay: `mar`, `by_driver`;
- the values that go: `nmar`, `detection_limit`, `by_value`;
- the cluster: `by_class`, and `modules` and `dropout` with labels;
- something else about the row: `by_row`, `by_nuisance_group`, `modules` and `dropout` without labels.

Only the third and fourth kind say something about clusters of values.

>>> import numpy as np
>>> from kpod import missingness
>>> table = np.arange(20.0).reshape(5, 4)
>>> int(np.isnan(missingness.mcar(table, 0.25, rng=0)).sum())
5
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kpod._common.typing import AnyFloats, Floats, Positions
from kpod._inputs import containers, validation
from kpod._missing.diagnosis import Diagnosis, diagnose

__all__ = [
    "Diagnosis",
    "by_class",
    "by_driver",
    "by_nuisance_group",
    "by_row",
    "by_value",
    "detection_limit",
    "diagnose",
    "dropout",
    "mar",
    "mcar",
    "modules",
    "nmar",
]

Rng = np.random.Generator | int | None


def mcar(X: Any, fraction: float, rng: Rng = None) -> Any:
    """Missing completely at random: every entry is as likely to go as any other.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features), complete
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
    X : array-like or dataframe of shape (n_samples, n_features), complete
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
    return _by_odds(X, values, n_gaps, score[:, None], np.random.default_rng(rng), chosen)


def nmar(X: Any, fraction: float, rng: Rng = None) -> Any:
    """Not missing at random: in every column, the lowest values go.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features), complete
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
    return detection_limit(X, fraction, rng)


def detection_limit(
    X: Any,
    fraction: float,
    rng: Rng = None,
    *,
    end: str = "low",
    columns: Sequence[int] | None = None,
) -> Any:
    """Detection limits: in every chosen column, all values beyond a limit go.

    An instrument that cannot read below (or above) a value leaves a gap there. With `m` gaps in a
    column, x_ij goes if its rank in column j is at most m (`end="low"`), above n - m (`"high"`), or
    at most m / 2 or above n - m / 2 (`"both"`).

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features), complete
    fraction : float in [0, 1]
        Share of all entries to remove, the same in every chosen column but for rounding.
    rng : numpy Generator, int or None
        Decides between equal values, and which columns round up.
    end : {"low", "high", "both"}
        The end of the scale at which values go.
    columns : positions of the columns to remove from; all by default

    Returns
    -------
    A copy of X with NaN in the gaps (null in a polars or pyarrow table).

    Examples
    --------
    >>> from kpod.missingness import detection_limit
    >>> detection_limit([[1.0], [4.0], [3.0], [2.0]], 0.5, rng=0, end="both").ravel()
    array([nan, nan,  3.,  2.])
    """
    values, n_gaps = _complete(X, fraction)
    rng = np.random.default_rng(rng)
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


def by_value(
    X: Any,
    fraction: float,
    rng: Rng = None,
    *,
    slope: float | Sequence[float] = -2.0,
    columns: Sequence[int] | None = None,
) -> Any:
    """Gaps by the value itself (MNARy): the lower a value, the likelier it goes.

        odds_ij = exp(slope_j * z_ij),

    z_ij the value in standard deviations from its column's mean. `detection_limit` is the same
    without chance.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features), complete
    fraction : float in [0, 1]
        Share of all entries to remove.
    rng : numpy Generator, int or None
    slope : float, or one for each chosen column
        Negative: low values go; positive: high values go; 0: it does not depend on the value.
    columns : positions of the columns to remove from; all by default

    Returns
    -------
    A copy of X with NaN in the gaps (null in a polars or pyarrow table).

    Examples
    --------
    >>> import numpy as np
    >>> from kpod.missingness import by_value
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> holed = by_value(X, 0.3, rng=0)
    >>> bool(X[np.isnan(holed)].mean() < -0.5)
    True
    """
    values, n_gaps = _complete(X, fraction)
    chosen = _chosen(columns, values.shape[1])
    slopes = np.asarray(slope, dtype=np.float64)
    if slopes.shape not in ((), (len(chosen),)):
        raise ValueError(f"slope must be a number or one for each of the {len(chosen)} columns.")
    scores = slopes * _standardise(values[:, chosen])
    return _by_odds(X, values, n_gaps, scores, np.random.default_rng(rng), chosen)


def by_class(
    X: Any,
    fraction: float,
    rng: Rng = None,
    *,
    labels: Any,
    spread: float = 1.5,
    by_column: bool = True,
) -> Any:
    """Gaps by class (MNARz): given a row's class, its gaps say nothing more.

        odds_ij = exp(b_lj), l the class of row i, b_lj drawn from N(0, spread^2).

    Some classes lack some columns more often than others do (MNARzj of Sportisse et al.); with
    `by_column=False` some classes lack more of everything, b_lj = b_l (MNARz).

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features), complete
    fraction : float in [0, 1]
        Share of all entries to remove.
    rng : numpy Generator, int or None
    labels : array-like of shape (n_samples,)
        The class of each row.
    spread : float
        How much classes differ: 0 is not at all.
    by_column : bool
        Whether classes differ in what they lack, or only in how much.

    Returns
    -------
    A copy of X with NaN in the gaps (null in a polars or pyarrow table).

    References
    ----------
    A. Sportisse et al., Model-based clustering with missing not at random data, 2024
    (arXiv 2112.10425).

    Examples
    --------
    >>> import numpy as np
    >>> from kpod.missingness import by_class
    >>> labels = np.repeat([0, 1], 500)
    >>> gaps = np.isnan(by_class(np.zeros((1000, 4)), 0.3, rng=1, labels=labels))
    >>> bool(np.abs(gaps[:500].mean(axis=0) - gaps[500:].mean(axis=0)).max() > 0.2)
    True
    """
    values, n_gaps = _complete(X, fraction)
    rng = np.random.default_rng(rng)
    of_row, n_classes = _classes(labels, len(values))
    effects = rng.normal(scale=spread, size=(n_classes, values.shape[1] if by_column else 1))
    return _by_odds(X, values, n_gaps, effects[of_row], rng)


def by_nuisance_group(
    X: Any,
    fraction: float,
    rng: Rng = None,
    *,
    n_groups: int = 2,
    columns: Sequence[int] | None = None,
    spread: float = 1.5,
) -> Any:
    """Gaps by a grouping of the rows that has nothing to do with their values.

    Two versions of a form, five hospitals, the years a sensor ran:

        odds_ij = exp(b_gj), g the group of row i, drawn at random, b_gj from N(0, spread^2).

    Such gaps fall into clear clusters, which are not those of the values.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features), complete
    fraction : float in [0, 1]
        Share of all entries to remove.
    rng : numpy Generator, int or None
    n_groups : int
    columns : positions of the columns to remove from; all by default
    spread : float
        How much groups differ: 0 is not at all.

    Returns
    -------
    A copy of X with NaN in the gaps (null in a polars or pyarrow table).

    Examples
    --------
    >>> import numpy as np
    >>> from kpod.missingness import by_nuisance_group
    >>> gaps = np.isnan(by_nuisance_group(np.zeros((100, 6)), 0.2, rng=0, columns=[0, 1, 2]))
    >>> gaps.any(axis=0)
    array([ True,  True,  True, False, False, False])
    """
    values, n_gaps = _complete(X, fraction)
    rng = np.random.default_rng(rng)
    if n_groups < 1:
        raise ValueError(f"n_groups must be at least 1, got {n_groups}.")
    chosen = _chosen(columns, values.shape[1])
    groups = rng.integers(n_groups, size=len(values))
    effects = rng.normal(scale=spread, size=(n_groups, len(chosen)))
    return _by_odds(X, values, n_gaps, effects[groups], rng, chosen)


def by_row(X: Any, fraction: float, rng: Rng = None, *, spread: float = 1.5) -> Any:
    """Some rows answer little: rows differ in how much of them is missing, for no other reason.

        odds_ij = exp(u_i), u_i drawn from N(0, spread^2).

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features), complete
    fraction : float in [0, 1]
        Share of all entries to remove.
    rng : numpy Generator, int or None
    spread : float
        How much rows differ: 0 is not at all.

    Returns
    -------
    A copy of X with NaN in the gaps (null in a polars or pyarrow table).

    Examples
    --------
    >>> import numpy as np
    >>> from kpod.missingness import by_row
    >>> per_row = np.isnan(by_row(np.zeros((500, 20)), 0.3, rng=0)).sum(axis=1)
    >>> bool(per_row.std() > 3)
    True
    """
    values, n_gaps = _complete(X, fraction)
    rng = np.random.default_rng(rng)
    return _by_odds(X, values, n_gaps, rng.normal(scale=spread, size=(len(values), 1)), rng)


def by_driver(X: Any, fraction: float, rng: Rng = None, *, column: int = 0, slope: float = 2.0) -> Any:
    """One driver: a column that stays complete decides about the gaps of all others.

    Income is asked of adults only, tests are run on the old: `mar` with `depends_on=[column]`,

        odds_ij = exp(slope * z_i), z_i the standardised value of row i in that column.

    Clusters that differ in the driver then differ in their gaps, though the gaps say nothing about
    a row that the driver does not.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features), complete
    fraction : float in [0, 1]
        Share of all entries to remove, the driver's included though none of them goes.
    rng : numpy Generator, int or None
    column : position of the driver
    slope : float
        How strongly it decides; 0 is not at all.

    Returns
    -------
    A copy of X with NaN in the gaps (null in a polars or pyarrow table).

    Examples
    --------
    >>> import numpy as np
    >>> from kpod.missingness import by_driver
    >>> np.isnan(by_driver(np.arange(40.0).reshape(10, 4), 0.25, rng=0)).any(axis=0)
    array([False,  True,  True,  True])
    """
    return mar(X, fraction, rng, depends_on=[column], slope=slope)


def modules(
    X: Any,
    fraction: float,
    rng: Rng = None,
    *,
    size: int = 5,
    labels: Any = None,
    spread: float = 1.5,
) -> Any:
    """Whole modules are skipped: neighbouring columns are all there or all missing.

    The columns are cut into modules of `size` (the last may be smaller), and a row skips a module
    with odds 1, or with `labels` by its class l:

        odds_im = exp(b_lm), b_lm drawn from N(0, spread^2).

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features), complete
    fraction : float in [0, 1]
        Share of all entries to remove, to the nearest module.
    rng : numpy Generator, int or None
    size : int
        Columns of a module.
    labels : array-like of shape (n_samples,), optional
        The class of each row; without it, chance alone decides.
    spread : float
        How much classes differ in what they skip.

    Returns
    -------
    A copy of X with NaN in the gaps (null in a polars or pyarrow table).

    Examples
    --------
    >>> import numpy as np
    >>> from kpod.missingness import modules
    >>> np.isnan(modules(np.zeros((3, 6)), 0.5, rng=1, size=3)).astype(int)
    array([[1, 1, 1, 0, 0, 0],
           [1, 1, 1, 0, 0, 0],
           [0, 0, 0, 1, 1, 1]])
    """
    values, n_gaps = _complete(X, fraction)
    rng = np.random.default_rng(rng)
    n_rows, n_columns = values.shape
    if size < 1:
        raise ValueError(f"size must be at least 1, got {size}.")
    module = np.arange(n_columns) // size
    n_modules = int(module[-1]) + 1
    of_row, n_classes = _classes(labels, n_rows)
    effects = rng.normal(scale=spread if labels is not None else 0.0, size=(n_classes, n_modules))
    keys = effects[of_row] + rng.gumbel(size=(n_rows, n_modules))
    order = np.argsort(-keys, axis=None, kind="stable")
    gone_by = np.concatenate([[0], np.cumsum(np.bincount(module)[order % n_modules])])
    skipped = np.zeros(n_rows * n_modules, dtype=bool)
    skipped[order[: np.abs(gone_by - n_gaps).argmin()]] = True
    return _remove(X, values, np.flatnonzero(skipped.reshape(n_rows, n_modules)[:, module]))


def dropout(X: Any, fraction: float, rng: Rng = None, *, labels: Any = None, spread: float = 1.0) -> Any:
    """Rows drop out: from some column on, everything is missing.

    A row is lost after each column with hazard h_i, and never before the first:

        h_i = 1 - exp(-exp(a + b_l)), l the class of row i, b_l drawn from N(0, spread^2),

    b = 0 without `labels`; `a` follows from the fraction.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features), complete
    fraction : float in [0, 1]
        Share of all entries to remove; the first column stays.
    rng : numpy Generator, int or None
    labels : array-like of shape (n_samples,), optional
        The class of each row; without it, chance alone decides.
    spread : float
        How much classes differ in how soon they drop out.

    Returns
    -------
    A copy of X with NaN in the gaps (null in a polars or pyarrow table).

    Examples
    --------
    >>> import numpy as np
    >>> from kpod.missingness import dropout
    >>> np.isnan(dropout(np.zeros((3, 5)), 0.4, rng=0)).astype(int)
    array([[0, 0, 0, 0, 0],
           [0, 0, 0, 1, 1],
           [0, 1, 1, 1, 1]])
    """
    values, n_gaps = _complete(X, fraction)
    rng = np.random.default_rng(rng)
    n_rows, n_columns = values.shape
    if n_gaps > n_rows * (n_columns - 1):
        raise ValueError(
            f"fraction={fraction} asks for {n_gaps} gaps, but the first column stays, which leaves "
            f"{n_rows * (n_columns - 1)} entries: at most {1 - 1 / n_columns:.4g} overall."
        )
    of_row, n_classes = _classes(labels, n_rows)
    effects = rng.normal(scale=spread if labels is not None else 0.0, size=n_classes)
    # Time to drop out is exponential with rate exp(a + b), so the least exp(a) that loses an entry
    # is known for each of them, and the n_gaps smallest go.
    time = rng.exponential(size=n_rows) / np.exp(effects[of_row])
    needed = time[:, None] / np.arange(1, n_columns)[None, :]
    gone = np.zeros(n_rows * (n_columns - 1), dtype=bool)
    gone[np.argsort(needed, axis=None, kind="stable")[:n_gaps]] = True
    gone_of_row = gone.reshape(n_rows, n_columns - 1).sum(axis=1)
    return _remove(X, values, np.flatnonzero(np.arange(n_columns) >= (n_columns - gone_of_row)[:, None]))


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


def _classes(labels: Any, n_rows: int) -> tuple[Positions, int]:
    """The class of each row as a number from 0, and how many there are; one class without labels."""
    if labels is None:
        return np.zeros(n_rows, dtype=np.intp), 1
    names, of_row = np.unique(containers.labels_in(labels, n_rows), return_inverse=True)
    return of_row.astype(np.intp), len(names)


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
    return validation.with_values(X, holed, np.isnan(holed).any(axis=0))
