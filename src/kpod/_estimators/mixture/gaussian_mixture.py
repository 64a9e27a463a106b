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
from kpod._mixture.fit import Fitted, Options, fit_mixture
from kpod._mixture.outlying_cells import Prices
from kpod._mixture.search import WIDEST_WHOLE
from kpod._mixture.starts import standardised_sample

# What only some fits leave behind.
OPTIONAL = ("missing_rates_", "missingness_", "missingness_decision_", "outlier_cells_")

STARTS_FOR_ONE = 4  # of KPOD, where a table is clustered again: they are short


class GaussianMixture(ClusterMixin, MixtureModel):
    r"""Gaussian mixture for tables with missing values (NaN).

    Maximises the log-likelihood of the observed entries only:

    .. math::

        \sum_i w_i \log \sum_l \pi_l\, N\bigl(x_{i,o(i)} \mid \mu_{l,o(i)}, \Sigma_{l,o(i)}\bigr)

    over the cluster proportions :math:`\pi`, means :math:`\mu` and covariances :math:`\Sigma`,
    where :math:`o(i)` are the columns observed in row i. Nothing is imputed or deleted; on a complete table
    it is the model of `sklearn.mixture.GaussianMixture`. Clusters may be elongated, differ in size and
    spread, and have correlated columns; those of `KPOD` are round and of about the same size.

    Parameters
    ----------
    n_components : int, default=1
        The number of clusters.

    covariance_type : {"auto", "full", "tied", "diag", "spherical", "tied_diag", "tied_spherical"},
    default="auto"
        The covariances of the clusters. "full": each cluster has its own matrix; "tied": all share one;
        "diag": each has its own variances of the columns, which are uncorrelated; "spherical": each has one
        variance for all columns; "tied_diag" and "tied_spherical": these are shared by all clusters. "auto"
        takes the type with the lowest BIC.

    n_factors : int, "auto" or None, default="auto"
        None uses full covariance matrices, for tables of up to 100 columns. A number makes them loadings
        times their transpose plus a diagonal, with that many factors: with "full" each cluster has its own
        loadings and diagonal, with "tied" the clusters share both, and with "diag" they share loadings but
        not diagonals. "auto" takes the number with the lowest BIC, of at most 4, or None.

    n_init : int or "auto", default="auto"
        The number of starts: the clusterings of `KPOD`, then rows far apart as means. All are run for a few
        steps, and the most likely is continued. "auto" is 60. If the table has more than 32,768 entries and
        1,000 rows, they are run on a sample of the rows of that size, on which the shape is also chosen.

    max_iter : int, default=300
        The maximum number of EM steps.

    tol : float, default=1e-4
        EM stops when a step raises the mean log-likelihood per row by no more than this.

    reg_covar : float, default=1e-6
        The smallest variance allowed in any direction, as a share of the variance of the column. Columns
        with at most 20 distinct values have a higher one, a sixth of the square of the smallest step
        between them.

    variance_prior : float, default=5.0
        The weight, in rows, of the pooled variances in the variances of each cluster (and likewise for
        covariances), so that a cluster of few rows cannot collapse. 0 means maximum likelihood.

    missingness : {"ignore", "informative", "auto"}, default="ignore"
        Whether *which* entries are missing carries information about a row's cluster, as for `KPOD`. With
        "informative", each column is observed in each cluster with its own probability, and rows with
        nothing observed are assigned by their gaps. "auto" decides as `KPOD` does; `missingness_decision_`
        has the reason.

    outlier_cells : bool or "auto", default=False
        Whether to treat entries that are unlikely in every cluster, given the rest of their row, as gaps, at
        a price: the log of one hundredth over the range of the column. `outlier_cells_` lists them. "auto"
        decides by BIC. Not for sparse tables.

    select_columns : bool or "auto", default=False
        Whether columns that are uninformative about the clusters, according to BIC, share one mean and one
        variance; `selected_` has the other columns. "auto" decides by BIC whether to. Not with
        loadings of each cluster or full covariance matrices.

    random_state : int, RandomState instance or None, default=None
        Determines the starts. The same int gives bit-identical results on any number of threads.

    n_threads : int or None, default=None
        The number of threads; None means as many as there are processors available, or at most
        OMP_NUM_THREADS.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        The cluster proportions, the largest first.

    means_ : ndarray of shape (n_components, n_features)
        The mean of each cluster; NaN in a column with no observed entries. Also `cluster_centers_`.

    covariances_ : ndarray
        Shaped by `covariance_type_`: (n_components, n_features, n_features) for "full", (n_features,
        n_features) for "tied", (n_components, n_features) for "diag", (n_components,) for "spherical",
        (n_features,) for "tied_diag", a number for "tied_spherical". With factors, it is that of "full"
        or "tied".

    covariance_type_ : str
        The type of the covariances: `covariance_type`, or the one chosen by "auto".

    n_factors_ : int or None
        The number of factors: `n_factors`, or the one chosen by "auto".

    loadings_ : ndarray of shape (n_components, n_features, n_factors)
        The factor loadings; identical for all clusters if they are shared.

    shape_bics_ : dict
        BIC of the shapes that were compared, by name, lowest first.

    missing_rates_ : ndarray of shape (n_components, n_features)
        With informative gaps: the share of each column that is missing in each cluster (smoothed by one row
        at the column's own rate); all 0 if the column has no gaps.

    missingness_ : {"ignore", "informative"}
        `missingness`, or the decision of "auto"; "ignore" if nothing is missing.

    missingness_decision_ : MissingnessDecision
        With `missingness="auto"`: the reason. It prints as a sentence, and has the numbers behind it.

    outlier_cells_ : ndarray of shape (n_cells, 2)
        With `outlier_cells`: row and column of each entry treated as a gap. Not available for Dask or
        Spark tables.

    n_rows_ : int
        The number of rows the mixture was fitted to: for a large Dask or Spark table, a random sample of at
        most 50,000, which is the same on any number of workers.

    selected_ : ndarray of shape (n_features,)
        Which columns are informative about the clusters; all of them without `select_columns`.

    labels_ : ndarray of shape (n_samples,)
        The most likely cluster of each row, -1 if nothing was observed; the result of `predict` on the same
        table.

    lower_bound_ : float
        The mean log-likelihood per row (by weight).

    lower_bounds_ : ndarray
        The quantity that EM maximises, per row, before each step on all rows and at the end: the
        log-likelihood plus the log density of the prior. It never falls.

    converged_ : bool
        Whether EM converged within `max_iter`.

    n_iter_ : int
        The number of EM steps on all rows, from the best start.

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
    Missingness is ignored in the likelihood, which is valid if it depends only on observed values of the row
    (MAR). The units of the columns do not matter.

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
            does not store. A large Dask collection or Spark DataFrame is sampled, see `n_rows_`.
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None
            The weight of each row; a row of weight 0 gets a label but has no influence.

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
        if collections.is_collection(X):  # results for rows are computed where the rows are
            self.__dict__.pop("outlier_cells_", None)
            self.labels_ = self.predict(collections.without(X, sample_weight))
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Labels:
        """Fit the mixture to the rows of X and return their labels."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def _with_gaps(self, table: Table, rng: np.random.Generator) -> tuple[bool, list[Labels], dict[str, Any]]:
        """Whether gaps are used, the labels of the `KPOD` that decided it, and its decision."""
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
        uninformative = (
            np.zeros(table.n_columns, bool)
            if fitted.within.uninformative is None
            else fitted.within.uninformative
        )
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
            "selected_": table.live & ~uninformative,
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
