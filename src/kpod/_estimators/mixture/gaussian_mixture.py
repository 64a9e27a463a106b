"""GaussianMixture: the scikit-learn estimator. Parameters, validation, conventions."""

from __future__ import annotations

import copy
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from kpod._common.typing import Labels
from kpod._common.warnings import warn
from kpod._engine.blocks import SparseBlock
from kpod._engine.executors import Executor, threads
from kpod._engine.table import Table, make_table
from kpod._estimators.choices import warn_of_empty
from kpod._estimators.kpod import KPOD
from kpod._estimators.mixture.model import MixtureModel
from kpod._estimators.mixture.parameters import check_mixture_parameters
from kpod._estimators.parameters import is_auto
from kpod._inputs import collections, validation
from kpod._inputs.samples import brought_here
from kpod._mixture.cells import Prices
from kpod._mixture.fit import Fitted, Options, fit_mixture
from kpod._mixture.search import WIDEST_WHOLE
from kpod._mixture.starts import standardised_sample

# What only some fits leave behind.
OPTIONAL = ("missing_rates_", "missingness_", "missingness_decision_", "outlier_cells_")

STARTS_FOR_ONE = 4  # of KPOD, where a table is clustered again: they are short


class GaussianMixture(ClusterMixin, MixtureModel):
    r"""Gaussian mixture of tables with missing entries.

    Maximises the log-likelihood of the entries that were observed, and of nothing else:

    .. math::

        \sum_i w_i \log \sum_l \pi_l\, N\bigl(x_{i,o(i)} \mid \mu_{l,o(i)}, \Sigma_{l,o(i)}\bigr)

    over the shares :math:`\pi`, the means :math:`\mu` and the covariances :math:`\Sigma` of the clusters,
    with :math:`o(i)` the columns that row i observes. Nothing is imputed or deleted; with nothing missing
    it is the model of `sklearn.mixture.GaussianMixture`. Clusters may be stretched, differ in size and
    spread, and have correlated columns, where `KPOD` sees round ones of about the same size.

    Parameters
    ----------
    n_components : int, default=1
        The number of clusters.

    covariance_type : {"auto", "full", "tied", "diag", "spherical", "tied_diag", "tied_spherical"},
    default="auto"
        What covariances the clusters have. "full": each its own matrix; "tied": all the same; "diag": each
        its own variances of the columns, which are uncorrelated; "spherical": each one variance for all
        columns; "tied_diag" and "tied_spherical": the same for all clusters. "auto" takes the one with the
        least BIC.

    n_factors : int, "auto" or None, default="auto"
        None writes covariance matrices out, for tables of up to 100 columns. A number makes them loadings
        times their transpose plus a diagonal, with so many factors: "full" has loadings and diagonals of
        each cluster's own, "tied" has both in common, and "diag" common loadings with diagonals of each
        cluster's own. "auto" takes the number with the least BIC, of at most 4, or None.

    n_init : int or "auto", default="auto"
        The number of starts: the clusterings of `KPOD`, then rows far apart as means. All are run for a few
        steps, and the most likely goes on. "auto" is 60. On a table of more than 65,536 entries and 1,000
        rows they are run on a sample of the rows with that many, on which the shape is chosen, too.

    max_iter : int, default=300
        The most steps of EM.

    tol : float, default=1e-4
        EM stops when a step raises the mean log-likelihood of a row by no more than this.

    reg_covar : float, default=1e-6
        The least variance, as a share of the variance of the column: no covariance is smaller in any
        direction. Columns of at most 20 values have a higher one, a sixth of the square of the smallest
        step between them.

    variance_prior : float, default=5.0
        Rows with the variances that the clusters have in common, behind those of each cluster's own (and
        likewise for covariances): a cluster of few rows cannot collapse. With 0, likelihood alone counts.

    missingness : {"ignore", "informative", "auto"}, default="ignore"
        Whether *which* entries are missing says something of the cluster a row is in, as for `KPOD`. With
        "informative", each cluster observes each column with a probability of its own, and rows with
        nothing observed are placed by their gaps. "auto" decides as `KPOD` does; `missingness_decision_` says
        why.

    outlier_cells : bool or "auto", default=False
        Whether entries that no cluster expects, given the rest of their row, count as gaps, at a price: the
        log of one hundredth over the range of the column. `outlier_cells_` lists them. "auto" decides by
        BIC. Not for sparse tables.

    select_columns : bool or "auto", default=False
        Whether columns that say nothing of the clusters have one mean and one variance for all of them,
        where BIC says so; `selected_` says which columns count. "auto" decides by BIC whether to. Not with
        own loadings or covariance matrices that are written out.

    random_state : int, RandomState instance or None, default=None
        Determines the starts. The same int gives the same result, to the bit, on any number of threads.

    n_threads : int or None, default=None
        The number of threads; None for as many as there are processors to use, or as OMP_NUM_THREADS says.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        The share of each cluster, the largest first.

    means_ : ndarray of shape (n_components, n_features)
        The mean of each cluster; NaN in a column of which nothing was observed. Also `cluster_centers_`.

    covariances_ : ndarray
        As `covariance_type_` says: (n_components, n_features, n_features) for "full", (n_features,
        n_features) for "tied", (n_components, n_features) for "diag", (n_components,) for "spherical",
        (n_features,) for "tied_diag", a number for "tied_spherical". With factors, of the shape for "full"
        or "tied".

    covariance_type_ : str
        The type of the covariances: `covariance_type`, or what "auto" chose.

    n_factors_ : int or None
        The number of factors: `n_factors`, or what "auto" chose.

    loadings_ : ndarray of shape (n_components, n_features, n_factors)
        Of the factors; with common ones the same for all clusters.

    shape_bics_ : dict
        BIC of the shapes that were compared, least first, by their names.

    missing_rates_ : ndarray of shape (n_components, n_features)
        With informative gaps: the share of each column that is missing in each cluster (smoothed by one row
        at the column's own rate); all 0 where the column has no gaps.

    missingness_ : {"ignore", "informative"}
        `missingness`, or what "auto" decided; "ignore" where nothing is missing.

    missingness_decision_ : MissingnessDecision
        With `missingness="auto"`: why. Printed, it is a sentence; it has the numbers behind it, too.

    outlier_cells_ : ndarray of shape (n_cells, 2)
        With `outlier_cells`: row and column of each entry that counts as a gap. Not of a table of Dask or
        Spark.

    n_rows_ : int
        The number of rows the mixture was fitted to: of a large table of Dask or Spark a random sample of at
        most 50,000, which is the same on any number of workers.

    selected_ : ndarray of shape (n_features,)
        Which columns say something of the clusters; all but with `select_columns`.

    labels_ : ndarray of shape (n_samples,)
        The most likely cluster of each row, -1 where nothing was observed. What `predict` says of the same
        table.

    lower_bound_ : float
        The mean log-likelihood of a row (by weight).

    lower_bounds_ : ndarray
        What EM maximised, before each step on all rows and at the end, for each row: the log-likelihood
        with the log density of the prior. It never falls.

    converged_ : bool
        Whether EM converged within `max_iter`.

    n_iter_ : int
        Steps of EM on all rows, from the best start.

    column_means_ : ndarray of shape (n_features,)
        The mean of the observed entries of each column.

    counts_ : ndarray of shape (n_components, n_features)
        The weight of the observed entries behind each mean.

    n_features_in_ : int
        Number of columns seen during `fit`.

    feature_names_in_ : ndarray of shape (n_features,)
        Names of those columns, if all were strings.

    See Also
    --------
    KPOD : round clusters, faster.

    Notes
    -----
    Gaps are ignored in the sense of likelihood: right where they depend on what is observed of the row. The
    units of the columns do not matter.

    References
    ----------
    .. [1] Ghahramani & Jordan (1994). Supervised learning from incomplete data via an EM approach. NIPS 6.
    .. [2] Ghahramani & Hinton (1996). The EM algorithm for mixtures of factor analyzers.
    .. [3] Biernacki, Celeux & Govaert (2003). Choosing starting values for the EM algorithm for getting the
       highest likelihood in multivariate Gaussian mixture models.

    Examples
    --------
    Two parallel ridges, which k-means would cut across:

    >>> import numpy as np
    >>> from kpod import GaussianMixture
    >>> rng = np.random.default_rng(0)
    >>> side = np.arange(200) % 2
    >>> along = rng.normal(size=200)
    >>> X = np.column_stack([5 * along, 5 * along + 4 * side]) + rng.normal(size=(200, 2)) / 2
    >>> X[::9, 1] = np.nan
    >>> model = GaussianMixture(2, random_state=0).fit(X)
    >>> model.covariance_type_
    'tied'
    >>> model.predict_proba([[0, 0], [0, 4], [0, np.nan]]).shape
    (3, 2)
    """

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "auto",
        n_factors: int | str | None = "auto",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        reg_covar: float = 1e-6,
        variance_prior: float = 5.0,
        missingness: str = "ignore",
        outlier_cells: bool | str = False,
        select_columns: bool | str = False,
        random_state: Any = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.n_factors = n_factors
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.reg_covar = reg_covar
        self.variance_prior = variance_prior
        self.missingness = missingness
        self.outlier_cells = outlier_cells
        self.select_columns = select_columns
        self.random_state = random_state
        self.n_threads = n_threads

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> GaussianMixture:
        """Fit the mixture to the rows of X.

        Parameters
        ----------
        X : array-like, dataframe, sparse matrix or scanned table of shape (n_samples, n_features)
            The table; NaN, None, NA, null and masked entries are missing, and so is what a sparse matrix
            does not store. Of a large Dask collection or Spark DataFrame a sample is taken, see `n_rows_`.
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None
            The weight of each row; a row of weight 0 gets a label and moves nothing.

        Returns
        -------
        self
        """
        return self._fit(X, sample_weight, [])

    def _fit(self, X: Any, sample_weight: Any, clusterings: list[Labels]) -> GaussianMixture:
        """As `fit`; `clusterings` are labels of the rows to start from as well."""
        check_mixture_parameters(self)
        new = copy.copy(self)
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        rng, here = np.random.default_rng(seed), brought_here(X, sample_weight, seed, by_content=True)
        with threads(self._n_threads()) as executor:
            values = new._validate(here.table, executor, reset=True)
            names = getattr(new, "feature_names_in_", None)
            weights = validation.check_weights(here.weights, values.shape[0])
            table = make_table(values, executor, weights=weights, checked=True)
            validation.check_finite(table, names)
            self._check_table(table, names)
            gaps, of_gaps, about_gaps = self._with_gaps(table, rng)
            fitted = fit_mixture(table, executor, self._options(gaps), rng, [*of_gaps, *clusterings])
            table.check_unchanged(executor)
            validation.check_unchanged(X)
            for name in OPTIONAL:
                new.__dict__.pop(name, None)
            new.__dict__.update(about_gaps, **self._attributes(fitted, table))
            new.__dict__.update(new._about_rows(table, executor), n_rows_=table.n_rows)
        if not fitted.solution.converged:
            warn(
                f"Not converged after {self.max_iter} steps; the result is usable, and increasing "
                "max_iter or tol may help.",
                ConvergenceWarning,
            )
        for name in (*OPTIONAL, "feature_names_in_"):
            self.__dict__.pop(name, None)
        self.__dict__.update(new.__dict__)
        if collections.is_collection(X):  # what is said of rows is said where they are
            self.__dict__.pop("outlier_cells_", None)
            self.labels_ = self.predict(collections.without(X, sample_weight))
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Labels:
        """Fit the mixture to the rows of X and return their labels."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def _with_gaps(self, table: Table, rng: np.random.Generator) -> tuple[bool, list[Labels], dict[str, Any]]:
        """Whether gaps count, the labels of `KPOD` where it looked at them, and what it decided."""
        if self.missingness == "ignore" or not table.has_gaps:
            return False, [], {"missingness_": "ignore"}
        sample = standardised_sample(table, rng)
        seed = int(rng.integers(2**31 - 1))
        peer = KPOD(
            self.n_components, missingness=self.missingness, random_state=seed, n_threads=self.n_threads
        )
        values = sample.table.entries(np.arange(sample.table.n_rows))[:, table.live]
        peer.fit(values, sample_weight=sample.table.weights)
        names = ("missingness_", "missingness_decision_")
        decided = {name: getattr(peer, name) for name in names if hasattr(peer, name)}
        if not hasattr(peer, "missing_rates_"):
            return False, [], decided
        labels = np.full(table.n_rows, -1, np.int32)
        labels[sample.rows] = peer.labels_
        return True, [labels], decided

    def _options(self, gaps: bool) -> Options:
        n_factors = (
            self.n_factors if self.n_factors is None or is_auto(self.n_factors) else int(self.n_factors)
        )
        return Options(
            int(self.n_components),
            self.covariance_type,
            n_factors,
            None if is_auto(self.n_init) else int(self.n_init),
            int(self.max_iter),
            float(self.tol),
            float(self.reg_covar),
            float(self.variance_prior),
            gaps,
            self.outlier_cells,
            self.select_columns,
        )

    def _labels_again(self, table: Table, executor: Executor, n_starts: int, seed: int) -> Labels:
        """The clusters of a table like that of the fit, by a mixture of the same shape from other starts."""
        options = replace(
            self._options(self._rates is not None),
            n_components=self.n_clusters_,
            covariance_type=self.covariance_type_,
            n_factors=self.n_factors_,
            n_init=STARTS_FOR_ONE * n_starts,
            outlier_cells=self._prices is not None,
            select_columns=not self.selected_[~np.isnan(self.column_means_)].all(),
        )
        again = copy.copy(self)
        fitted = fit_mixture(table, executor, options, np.random.default_rng(seed), [])
        again.__dict__.update(again._attributes(fitted, table))
        return again._labels(table, again._posterior(table, executor)[0])

    def _check_table(self, table: Table, names: Any) -> None:
        n_usable, n_empty = table.n_usable, table.n_empty
        if self.n_components > n_usable:
            raise ValueError(
                f"n_samples={n_usable} should be >= n_components={self.n_components}: of {table.n_rows} "
                f"rows, {n_usable} have an observed entry and a positive weight. Ask for fewer components."
            )
        n_live = int(table.live.sum())
        if self.n_factors is None and self.covariance_type in ("tied", "full") and n_live > WIDEST_WHOLE:
            raise ValueError(
                f"X has {n_live} columns; covariance_type={self.covariance_type!r} with n_factors=None is "
                f"for at most {WIDEST_WHOLE}. Set n_factors to a number, or 'auto'."
            )
        if isinstance(self.n_factors, Integral) and self.n_factors >= max(2, n_live):
            raise ValueError(
                f"n_factors={self.n_factors} must be less than the number of columns, {n_live}. "
                "Use n_factors=None."
            )
        if self.outlier_cells and any(isinstance(block, SparseBlock) for block in table.blocks):
            raise ValueError("outlier_cells is not supported for sparse tables. Pass an array with NaN.")
        if n_empty and self.missingness == "ignore":
            warn_of_empty(n_empty, table)
        ignored = np.flatnonzero(~table.live)
        if len(ignored):
            warn(
                f"No observed entries in column {validation.name_columns(ignored, names)}: ignored, and "
                "NaN in the means."
            )

    def _attributes(self, fitted: Fitted, table: Table) -> dict[str, Any]:
        """What a fit leaves behind, in the table's own units."""
        solution, scale = fitted.solution, table.units.scale
        shape = solution.shape
        with np.errstate(over="ignore", under="ignore"):
            own = solution.parameters.rescaled(table.units.shift, scale)
        smallest = own.variances[:, table.live].min()
        if not np.isfinite(own.variances).all() or smallest < np.finfo(np.float64).tiny:
            raise ValueError(
                "The variances of X are too large or too small to compute with. Use other units: multiply "
                "X by a power of ten."
            )
        weight = float(table.n_rows if table.weights is None else table.weights.sum())
        found: dict[str, Any] = {}
        if own.rates is not None:
            found["missing_rates_"] = np.where(own.rates == 0.5, 0.0, 1 - own.rates)
        silent = np.zeros(table.n_columns, bool) if fitted.within.silent is None else fitted.within.silent
        prices = fitted.prices
        if prices is not None:
            prices = Prices(table.units.back(prices.middle), prices.spread / scale, prices.range / scale)
        return found | {
            "weights_": own.shares,
            "means_": own.means,
            "loadings_": own.loadings,
            "covariance_type_": shape.covariance_type,
            "n_factors_": shape.n_factors,
            "shape_bics_": fitted.bics,
            "selected_": table.live & ~silent,
            "converged_": solution.converged,
            "n_iter_": len(solution.trace) - 1,
            "lower_bounds_": np.array(solution.trace) / weight,
            "column_means_": table.column_means,
            "n_features_in_": table.n_columns,
            "_variances": np.where(table.live, own.variances, np.nan),
            "_whole": own.whole,
            "_rates": own.rates,
            "_prices": None if prices is None else np.array([prices.middle, prices.spread, prices.range]),
            "_shift": table.units.shift,
            "_scale": scale,
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags
