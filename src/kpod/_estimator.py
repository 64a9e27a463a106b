"""KPOD: the scikit-learn estimator. Parameters, validation and conventions; no arithmetic."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from kpod import _validation
from kpod._blocks import AnyFloats, Floats, Labels, Table, make_table
from kpod._executors import Executor, available_threads
from kpod._seeding import SEEDINGS, Seeding, fill_gaps, usable_rows
from kpod._solvers import SOLVERS, Settings, Solution, Start, nearest

STARTS = 10
ONE_START = 1_000_000  # observed entries beyond which "auto" is one start


class KPOD(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    r"""k-means clustering of tables with missing entries.

    Minimises the k-means loss over the entries that were observed, and over nothing else:

    .. math::

        \sum_i w_i \sum_{j\ \text{observed in row}\ i} (x_{ij} - c_{l(i) j})^2

    over the labels :math:`l(i)` and the centers :math:`c` [1]_. Nothing is imputed or
    deleted, and with nothing missing it is k-means. A row's nearest center is judged by the
    row's own observed columns; a center is the mean of what was observed in its cluster,
    and the column's mean where nothing was. In a sparse table, entries that are not stored are
    missing, not zero.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.

    init : {"k-means++", "mean-fill", "random"}, array or callable, default="k-means++"
        Where a fit starts. "k-means++" draws rows far apart by partial distances (from a
        sample of the rows where the table has more than two million entries), "random" any
        rows; "mean-fill", the start of the paper, runs k-means on the table with its gaps at
        the column means. An array of shape (n_clusters, n_features) gives the centers; NaN
        in it means the column's mean. A callable takes `X` (an array with NaN in the gaps),
        `n_clusters` and `random_state` and returns such an array.

    n_init : "auto" or int, default="auto"
        The number of starts, the best of which is kept. "auto" is 1 for an array, otherwise
        10 up to a million observed entries and 1 beyond.

    algorithm : {"hartigan", "lloyd", "mm"}, default="hartigan"
        "lloyd" assigns rows and moves centers in turn; where that takes more than 20 iterations
        on a table with gaps and over 100,000 observed entries, centers get momentum for as long
        as it lowers the loss. "hartigan" goes on with single rows for as long as moving one
        lowers the loss, and never ends higher. "mm" is the algorithm as published [1]_, k-means
        on a table filled in from its own centers time and again; it is here for comparison and
        ends higher than the other two.

    max_iter : int, default=300
        Most iterations of "lloyd" (and then most sweeps of "hartigan": never more than 60
        beyond 300,000 observed entries), or of filling in for "mm".

    tol : float, default=1e-4
        "lloyd" stops when the centers move by no more than `tol` times the mean variance of
        the observed entries of a column (sum of squares, as in scikit-learn). "hartigan" then
        goes on until no row moves; beyond 300,000 observed entries, until a sweep of moves
        lowers the loss by less than `tol` / 10 of it.

    shrinkage : float, default=0.0
        Pulls centers that rest on few observations to the column's mean: the objective gets
        :math:`+\ \lambda \sum_{lj} (c_{lj} - \bar x_j)^2`, as if every cluster had `shrinkage`
        more units of weight there. Worth trying on very sparse tables; not for "mm".

    random_state : int, RandomState instance or None, default=None
        Determines the starts. The same int gives the same result, to the bit, on any number
        of threads.

    n_threads : int or None, default=None
        The number of threads; None for as many as BLAS would use.

    verbose : int, default=0
        1 prints a line for each start, 2 for each iteration.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centers; NaN in a column of which nothing was observed.

    labels_ : ndarray of shape (n_samples,)
        The cluster of each row, -1 where nothing was observed.

    inertia_ : float
        The loss.

    n_iter_ : int
        Iterations run by the best start.

    converged_ : bool
        Whether the best start came to rest within `max_iter`.

    loss_curve_ : ndarray
        The loss (with what `shrinkage` adds) after each iteration, then after each sweep of
        single-row moves.

    counts_ : ndarray of shape (n_clusters, n_features)
        The weight of the observed entries behind each entry of `cluster_centers_`.

    column_means_ : ndarray of shape (n_features,)
        The mean of the observed entries of each column.

    n_features_in_ : int
        Number of columns seen during `fit`.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of those columns, if all were strings.

    Notes
    -----
    The loss is that of complete data only in the limit of few gaps: even when entries are
    missing completely at random its minimiser is not consistent for the centers of the
    complete table [2]_, and where *what* is missing depends on the cluster, a lower loss
    need not be a better clustering. It suits many columns with few gaps in each best.
    Columns count by their scale: standardise them first unless they share a unit.

    References
    ----------
    .. [1] Chi, Chi & Baraniuk (2016). k-POD: A Method for k-Means Clustering of Missing
       Data. The American Statistician 70(1).
    .. [2] Terada & Guan (2024). arXiv:2410.00546.

    Examples
    --------
    >>> import numpy as np
    >>> from kpod import KPOD
    >>> X = np.array([[1, 2], [1, np.nan], [np.nan, 2],
    ...               [10, 12], [np.nan, 14], [10, np.nan]])
    >>> model = KPOD(n_clusters=2, random_state=0).fit(X)
    >>> model.labels_ == model.labels_[0]
    array([ True,  True,  True, False, False, False])
    >>> model.predict([[0, np.nan], [np.nan, 13]]) == model.labels_[[0, 3]]
    array([ True,  True])
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: str | Any | Callable[..., Any] = "k-means++",
        n_init: str | int = "auto",
        algorithm: str = "hartigan",
        max_iter: int = 300,
        tol: float = 1e-4,
        shrinkage: float = 0.0,
        random_state: Any = None,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.algorithm = algorithm
        self.max_iter = max_iter
        self.tol = tol
        self.shrinkage = shrinkage
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KPOD:
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like, dataframe or sparse matrix of shape (n_samples, n_features)
            The table; NaN, None, NA, null and masked entries are missing, and so is what a
            sparse matrix does not store.
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None
            The weight of each row; a row of weight 0 gets a label and moves nothing.

        Returns
        -------
        self
        """
        self._check_parameters()
        if sparse.issparse(X) and self._fills_in():
            raise ValueError(
                "algorithm='mm' and init='mean-fill' fill the table in, which a sparse table is too large "
                "for. Use algorithm='hartigan' or 'lloyd' with another init."
            )
        values = self._validate(X, reset=True)
        weights = _validation.check_weights(sample_weight, values.shape[0])
        with self._table(values, weights=weights) as table:
            self._check_table(table)
            starts = self._starts(table)
            report = self._report if self.verbose > 1 else None
            settings = Settings(self.max_iter, self.tol, self.shrinkage, report)

            def solve(number: int) -> Solution:
                solution = SOLVERS[self.algorithm](table, starts[number](), settings)
                if self.verbose:
                    print(f"start {number + 1}/{len(starts)}: loss {solution.loss:.6g}")
                return solution

            # Starts of a small table share the threads; a large one's blocks do.
            order = range(len(starts))
            solutions = (
                table.executor.map(solve, order) if len(table.blocks) == 1 else [solve(i) for i in order]
            )
            self._keep(min(solutions, key=lambda solution: solution.objective), table)
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Labels:
        """Cluster the rows of X and return their labels."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> AnyFloats:
        """Cluster the rows of X and return their distances to the centers, see `transform`."""
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def predict(self, X: Any) -> Labels:
        """The nearest center of each row by its observed columns; -1 where there are none."""
        with self._fitted_table(X) as table:
            return nearest(table, self._centers(table))

    def transform(self, X: Any) -> AnyFloats:
        r"""Distance of each row to each center, rescaled for the columns not observed.

        .. math:: d_{il} = \sqrt{\frac{p}{m_i} \sum_{j\ \text{observed}} (x_{ij} - c_{lj})^2}

        with :math:`m_i` of p columns observed, as `nan_euclidean_distances` has it, so that
        rows with many and with few gaps compare. Because of the factor, the squares of the
        distances to the nearest center do not sum to `inertia_`. NaN for a row with nothing
        observed.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
        """
        with self._fitted_table(X) as table:
            squared = table.distances(self._centers(table))
            with np.errstate(divide="ignore", invalid="ignore"):
                scale = np.where(table.observed > 0, self.n_features_in_ / table.observed, np.nan)
            return np.sqrt(squared * scale[:, None]).astype(table.dtype, copy=False)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the loss of X with every row at its nearest center."""
        with self._fitted_table(X, sample_weight) as table:
            centers = self._centers(table)
            return -table.loss(nearest(table, centers), centers)

    def impute(self, X: Any) -> Any:
        """X with its gaps filled from the center of each row's cluster.

        These are cluster means, good for looking at and for tools that need a complete
        table; they understate how much the missing values vary. A row with nothing observed
        gets the column means; a column of which nothing was observed in `fit` stays missing.

        Returns
        -------
        A table of the same kind: array, pandas, polars or pyarrow. Of a dataframe, columns
        without gaps are returned as they are.
        """
        if sparse.issparse(X):
            raise ValueError(
                "impute does not take a sparse table: filled in, it would be dense. Look up the centers "
                "instead, cluster_centers_[predict(X)], or pass the rows you need as an array with NaN."
            )
        with self._fitted_table(X) as table:
            labels = nearest(table, self._centers(table))
            values = table.values
        fill = np.vstack([self.cluster_centers_, self.column_means_]).astype(values.dtype)
        gaps = np.isnan(values)
        return _validation.with_values(X, np.where(gaps, fill[labels], values), gaps.any(axis=0))

    def _validate(self, X: Any, *, reset: bool) -> AnyFloats:
        values = _validation.as_table(X, self)
        validate_data(self, X if _validation.is_frame(X) else values, reset=reset, skip_check_array=True)
        return values

    @contextmanager
    def _table(self, values: AnyFloats, **about: Any) -> Iterator[Table]:
        """The table in the engine's form, with threads ready for as long as it is in use."""
        n_threads = available_threads() if self.n_threads is None else self.n_threads
        with Executor(n_threads).running() as executor:
            table = make_table(values, executor, n_clusters=self.n_clusters, **about)
            _validation.check_finite(table, getattr(self, "feature_names_in_", None))
            yield table

    @contextmanager
    def _fitted_table(self, X: Any, sample_weight: Any = None) -> Iterator[Table]:
        check_is_fitted(self)
        values = self._validate(X, reset=False)
        weights = _validation.check_weights(sample_weight, values.shape[0])
        with self._table(values, weights=weights, column_means=self.column_means_) as table:
            yield table

    def _centers(self, table: Table) -> Floats:
        """The centers as the engine has them: less the shift, zero in an ignored column."""
        return np.nan_to_num(self.cluster_centers_.astype(np.float64) - table.shift)

    def _check_parameters(self) -> None:
        for name, least in (("n_clusters", 1), ("max_iter", 1), ("n_threads", 1), ("verbose", 0)):
            value = getattr(self, name)
            if name == "n_threads" and value is None:
                continue
            if (
                not isinstance(value, Integral)
                or (isinstance(value, bool) and name != "verbose")
                or value < least
            ):
                raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}.")
        for name in ("tol", "shrinkage"):
            value = getattr(self, name)
            if not isinstance(value, Real) or not 0 <= float(value) < np.inf:
                raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}.")
        if self.algorithm not in SOLVERS:
            raise ValueError(f"algorithm must be one of {sorted(SOLVERS)}, got {self.algorithm!r}.")
        if isinstance(self.init, str) and self.init not in SEEDINGS:
            raise ValueError(
                f"init must be one of {sorted(SEEDINGS)}, an array or a callable, got {self.init!r}."
            )
        auto = isinstance(self.n_init, str) and self.n_init == "auto"
        if not auto and (not isinstance(self.n_init, Integral) or self.n_init < 1):
            raise ValueError(f"n_init must be 'auto' or an integer of at least 1, got {self.n_init!r}.")

        if self.algorithm == "mm" and self.shrinkage > 0:
            raise ValueError("shrinkage is not part of algorithm='mm', which is kept as published.")

    def _fills_in(self) -> bool:
        return self.algorithm == "mm" or (isinstance(self.init, str) and self.init == "mean-fill")

    def _check_table(self, table: Table) -> None:
        n_usable, n_empty = len(usable_rows(table)), int((table.observed == 0).sum())
        if self.n_clusters > n_usable:
            raise ValueError(
                f"n_samples={n_usable} should be >= n_clusters={self.n_clusters}: of {table.n_rows} rows, "
                f"{n_usable} have an observed entry and a positive weight. Ask for fewer clusters."
            )
        if n_empty:
            warnings.warn(
                f"{n_empty} of {table.n_rows} rows have nothing observed: they get the label -1 and "
                "no say in the clustering.",
                UserWarning,
                stacklevel=3,
            )
        ignored = np.flatnonzero(np.isnan(table.column_means))
        if len(ignored):
            names = _validation.name_columns(ignored, getattr(self, "feature_names_in_", None))
            warnings.warn(
                f"Nothing is observed in column {names}: ignored, NaN in the centers.",
                UserWarning,
                stacklevel=3,
            )

    def _starts(self, table: Table) -> list[Callable[[], Start]]:
        """What to start from, each drawn when its turn comes but fixed beforehand."""
        random_state = check_random_state(self.random_state)
        if not isinstance(self.init, str) and not callable(self.init):
            if self.n_init not in ("auto", 1):
                warnings.warn(
                    f"init is an array: 1 start instead of n_init={self.n_init}.",
                    RuntimeWarning,
                    stacklevel=3,
                )
            return [partial(self._start_at, self.init, table)]
        many = table.n_observed > ONE_START
        n_init = int(self.n_init) if self.n_init != "auto" else 1 if many else STARTS
        if callable(self.init):
            given = [
                self.init(table.values, self.n_clusters, random_state=random_state) for _ in range(n_init)
            ]
            return [partial(self._start_at, centers, table) for centers in given]
        seeds = random_state.randint(np.iinfo(np.int32).max, size=n_init + 1)
        seeding = SEEDINGS[self.init](table, self.n_clusters, np.random.default_rng(seeds[-1]))
        return [partial(self._draw, seeding, seed) for seed in seeds[:-1]]

    def _draw(self, seeding: Seeding, seed: int) -> Start:
        return seeding.draw(np.random.default_rng(seed))

    def _start_at(self, centers: Any, table: Table) -> Start:
        centers = _validation.as_array(centers, self)
        expected = (self.n_clusters, table.n_columns)
        if centers.shape != expected:
            raise ValueError(
                f"The initial centers have shape {centers.shape}, expected {expected}: one row per cluster."
            )
        if np.isinf(centers).any():
            raise ValueError("The initial centers contain infinity.")
        return Start(fill_gaps(table, centers - table.shift.astype(np.float64)))

    def _report(self, step: str, iteration: int, loss: float) -> None:
        print(f"  {step} {iteration}: loss {loss:.6g}")

    def _keep(self, solution: Solution, table: Table) -> None:
        self.labels_ = solution.labels
        self.cluster_centers_ = (solution.centers + table.shift).astype(table.dtype)
        self.counts_ = solution.counts
        self.inertia_ = solution.loss
        self.loss_curve_ = np.array(solution.trace)
        self.n_iter_ = solution.n_iter
        self.converged_ = solution.converged
        self.column_means_ = table.column_means
        self._n_features_out = self.n_clusters
        if not solution.converged:
            warnings.warn(
                f"Not converged after {self.max_iter} iterations; the result is usable, and a larger "
                "max_iter or tol may improve or settle it.",
                ConvergenceWarning,
                stacklevel=3,
            )
        n_distinct = len(np.unique(solution.labels[solution.labels >= 0]))
        if n_distinct < self.n_clusters:
            warnings.warn(
                f"Number of distinct clusters ({n_distinct}) found smaller than n_clusters "
                f"({self.n_clusters}). Possibly due to duplicate points in X.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = not self._fills_in()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
