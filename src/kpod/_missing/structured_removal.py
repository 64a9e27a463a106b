"""Entries removed in patterns: by class or group of rows, by row, in modules, by dropout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kpod._common.typing import Positions
from kpod._inputs import containers
from kpod._missing.removal import (
    RandomState,
    _by_odds,
    _chosen,
    _complete,
    _remove,
    generator,
    mar,
    takes_rng,
)


@takes_rng
def by_class(
    X: Any,
    fraction: float,
    random_state: RandomState = None,
    *,
    labels: Any,
    spread: float = 1.5,
    by_column: bool = True,
) -> Any:
    """Gaps that depend on the class (MNARz), and only on it.

        odds_ij = exp(b_lj), l the class of row i, b_lj drawn from N(0, spread^2).

    In some classes, some columns are missing more often (MNARzj of Sportisse et al.); with
    `by_column=False`, some classes have more gaps in all columns, b_lj = b_l (MNARz).

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features), complete
    fraction : float in [0, 1]
        Share of all entries to remove.
    random_state : int, RandomState or Generator instance, or None, default=None
    labels : array-like of shape (n_samples,)
        The class of each row.
    spread : float
        How much classes differ: 0 is not at all.
    by_column : bool
        Whether classes differ in which values are missing, or only in how much.

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
    >>> gaps = np.isnan(by_class(np.zeros((1000, 4)), 0.3, random_state=1, labels=labels))
    >>> bool(np.abs(gaps[:500].mean(axis=0) - gaps[500:].mean(axis=0)).max() > 0.2)
    True
    """
    values, n_gaps = _complete(X, fraction)
    rng = generator(random_state)
    of_row, n_classes = _classes(labels, len(values))
    effects = rng.normal(scale=spread, size=(n_classes, values.shape[1] if by_column else 1))
    return _by_odds(X, values, n_gaps, effects[of_row], rng)


@takes_rng
def by_nuisance_group(
    X: Any,
    fraction: float,
    random_state: RandomState = None,
    *,
    n_groups: int = 2,
    columns: Sequence[int] | None = None,
    spread: float = 1.5,
) -> Any:
    """Gaps that depend on a grouping of the rows unrelated to their values.

    Two versions of a form, five hospitals, the years a sensor ran:

        odds_ij = exp(b_gj), g the group of row i, drawn at random, b_gj from N(0, spread^2).

    Such gaps form clear clusters, which are not those of the values.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features), complete
    fraction : float in [0, 1]
        Share of all entries to remove.
    random_state : int, RandomState or Generator instance, or None, default=None
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
    >>> gaps = np.isnan(by_nuisance_group(np.zeros((100, 6)), 0.2, random_state=0, columns=[0, 1, 2]))
    >>> gaps.any(axis=0)
    array([ True,  True,  True, False, False, False])
    """
    values, n_gaps = _complete(X, fraction)
    rng = generator(random_state)
    if n_groups < 1:
        raise ValueError(f"n_groups must be at least 1, got {n_groups}.")
    chosen = _chosen(columns, values.shape[1])
    groups = rng.integers(n_groups, size=len(values))
    effects = rng.normal(scale=spread, size=(n_groups, len(chosen)))
    return _by_odds(X, values, n_gaps, effects[groups], rng, chosen)


@takes_rng
def by_row(X: Any, fraction: float, random_state: RandomState = None, *, spread: float = 1.5) -> Any:
    """Some rows answer little: rows differ in how much is missing, unrelated to their values.

        odds_ij = exp(u_i), u_i drawn from N(0, spread^2).

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features), complete
    fraction : float in [0, 1]
        Share of all entries to remove.
    random_state : int, RandomState or Generator instance, or None, default=None
    spread : float
        How much rows differ: 0 is not at all.

    Returns
    -------
    A copy of X with NaN in the gaps (null in a polars or pyarrow table).

    Examples
    --------
    >>> import numpy as np
    >>> from kpod.missingness import by_row
    >>> per_row = np.isnan(by_row(np.zeros((500, 20)), 0.3, random_state=0)).sum(axis=1)
    >>> bool(per_row.std() > 3)
    True
    """
    values, n_gaps = _complete(X, fraction)
    rng = generator(random_state)
    return _by_odds(X, values, n_gaps, rng.normal(scale=spread, size=(len(values), 1)), rng)


@takes_rng
def by_driver(
    X: Any, fraction: float, random_state: RandomState = None, *, column: int = 0, slope: float = 2.0
) -> Any:
    """One driver: a column that stays complete determines the gaps of all others.

    Only adults are asked about income, only older patients are tested: `mar` with `depends_on=[column]`,

        odds_ij = exp(slope * z_i), z_i the standardised value of row i in that column.

    Clusters that differ in the driver then differ in their gaps, although the gaps carry no information
    beyond the driver.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features), complete
    fraction : float in [0, 1]
        Share of all entries to remove, counting those of the driver, none of which are removed.
    random_state : int, RandomState or Generator instance, or None, default=None
    column : position of the driver
    slope : float
        How strongly the gaps depend on it; 0 is not at all.

    Returns
    -------
    A copy of X with NaN in the gaps (null in a polars or pyarrow table).

    Examples
    --------
    >>> import numpy as np
    >>> from kpod.missingness import by_driver
    >>> np.isnan(by_driver(np.arange(40.0).reshape(10, 4), 0.25, random_state=0)).any(axis=0)
    array([False,  True,  True,  True])
    """
    return mar(X, fraction, random_state, depends_on=[column], slope=slope)


@takes_rng
def modules(
    X: Any,
    fraction: float,
    random_state: RandomState = None,
    *,
    size: int = 5,
    labels: Any = None,
    spread: float = 1.5,
) -> Any:
    """Skipped modules: adjacent columns are either all observed or all missing.

    The columns are cut into modules of `size` (the last may be smaller), and a row skips a module
    with odds 1, or with `labels` by its class l:

        odds_im = exp(b_lm), b_lm drawn from N(0, spread^2).

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features), complete
    fraction : float in [0, 1]
        Share of all entries to remove, to the nearest module.
    random_state : int, RandomState or Generator instance, or None, default=None
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
    >>> np.isnan(modules(np.zeros((3, 6)), 0.5, random_state=1, size=3)).astype(int)
    array([[1, 1, 1, 0, 0, 0],
           [1, 1, 1, 0, 0, 0],
           [0, 0, 0, 1, 1, 1]])
    """
    values, n_gaps = _complete(X, fraction)
    rng = generator(random_state)
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


@takes_rng
def dropout(
    X: Any, fraction: float, random_state: RandomState = None, *, labels: Any = None, spread: float = 1.0
) -> Any:
    """Dropout: after some column, everything in a row is missing.

    A row is lost after each column with hazard h_i, and never before the first:

        h_i = 1 - exp(-exp(a + b_l)), l the class of row i, b_l drawn from N(0, spread^2),

    b = 0 without `labels`; `a` follows from the fraction.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features), complete
    fraction : float in [0, 1]
        Share of all entries to remove; the first column stays.
    random_state : int, RandomState or Generator instance, or None, default=None
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
    >>> np.isnan(dropout(np.zeros((3, 5)), 0.4, random_state=0)).astype(int)
    array([[0, 0, 0, 0, 0],
           [0, 0, 0, 1, 1],
           [0, 1, 1, 1, 1]])
    """
    values, n_gaps = _complete(X, fraction)
    rng = generator(random_state)
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


def _classes(labels: Any, n_rows: int) -> tuple[Positions, int]:
    """The class of each row as a number from 0, and how many there are; one class without labels."""
    if labels is None:
        return np.zeros(n_rows, dtype=np.intp), 1
    names, of_row = np.unique(containers.labels_in(labels, n_rows), return_inverse=True)
    return of_row.astype(np.intp), len(names)
