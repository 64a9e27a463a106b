"""KPOD: the scikit-learn estimator. Parameters, validation, conventions; results in the table's own units."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import softmax
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from kpod._common.column_groups import ColumnGroups
from kpod._common.typing import AnyFloats, Floats, Labels
from kpod._common.warnings import warn
from kpod._common.words import starts_text
from kpod._engine import step
from kpod._engine.blocks import Block, Units
from kpod._engine.executors import Executor, available_threads, threads
from kpod._engine.fit import SOLVERS
from kpod._engine.objective import GapModel, GapObjective, Objective, panel_of
from kpod._engine.seeding import SEEDINGS
from kpod._engine.solvers.lloyd import Solution, loss_of, nearest, nearest_labels, sizes_of
from kpod._engine.table import Table, make_table, with_groups
from kpod._estimators.fitting import Fitting, checkpoint_of, is_auto, progress_printer, warn_of_empty
from kpod._inputs import dask_tables, validation
from kpod._kernels.panel import Panel
from kpod._mixture.confidence import SoftClustering, soften
from kpod._selection.search import Progress

# What `probability` adds to a fitted model.
MIXTURE = ("mixture_centers_", "cluster_shares_", "noise_variance_")

MISSINGNESS = ("ignore", "informative", "auto")


def has_probability(model: KPOD) -> bool:
    """Whether `predict_proba` is there; scikit-learn gives the reason why not beside its own words."""
    if not model.probability:
        raise AttributeError("predict_proba needs probability=True: set it, and fit again.")
    return True


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
    n_clusters : int or "auto", default=8
        The number of clusters. "auto" chooses it by hiding observed entries and predicting them: 1 to
        10, and up to 40 for as long as more clusters predict better, see `kpod.choose_k`. That takes
        as long as several dozen fits; in a cross-validation or a grid search it is done anew on every
        training set. One cluster, with a warning, where there is too little to hide.

    init : {"k-means++", "mean-fill", "random"}, array or callable, default="k-means++"
        Where a fit starts. "k-means++" draws rows far apart by partial distances (from a
        sample of the rows where the table has more than two million entries), "random" any
        rows; "mean-fill", the start of the paper, runs k-means on the table with its gaps at
        the column means. An array of shape (n_clusters, n_features) gives the centers; NaN
        in it means the column's mean. A callable takes `X` (an array with NaN in the gaps, or a
        CSR array for a sparse table), `n_clusters` and `random_state` and returns such an array.

    n_init : "auto" or int, default="auto"
        The number of starts, the best of which is kept. "auto" is 1 for an array, otherwise
        10. Of a table with more than a million observed entries, these are run on a sample of
        the rows with that many, and the best goes on with all rows; a sparse table of that size
        gets one start.

    algorithm : {"hartigan", "lloyd", "mm"}, default="hartigan"
        "lloyd" assigns rows and moves centers in turn; where that takes more than 20 iterations
        on a table with gaps, centers get momentum for as long as it lowers the loss. "hartigan"
        goes on with single rows for as long as moving one lowers the loss, and never ends higher.
        "mm" is the algorithm as published [1]_, k-means on a table filled in from its own centers,
        repeatedly; it is here for comparison and reaches a higher loss than the other two.

    max_iter : int, default=300
        The most iterations of "lloyd", and then the most sweeps of single-row moves of
        "hartigan"; or the most times that "mm" fills in.

    tol : float, default=1e-4
        "lloyd" stops when the centers move by no more than `tol` times the mean variance of
        the observed entries of a column (sum of squares, as in scikit-learn). "hartigan" then
        goes on until no row moves, or a sweep of moves lowers the loss by no more than
        `tol` / 10 of it.

    shrinkage : float or "auto", default=0.0
        Pulls centers that rest on few observations to the column's mean: the objective gets
        :math:`+\ \lambda \sum_{lj} (c_{lj} - \bar x_j)^2`, as if every cluster had `shrinkage`
        more units of weight there. "auto" chooses it by hiding observed entries, among 0 and 0.5 to 32
        rows of mean weight. Worth trying on very sparse tables; not for "mm".

    missingness : {"ignore", "informative", "auto"}, default="ignore"
        Whether *which* entries are missing says something of the cluster a row is in. "ignore" is
        the loss above. "informative" minimises minus twice the classification log-likelihood

        .. math::

            F = \frac{\text{loss}}{\sigma^2} + (N - K) \ln \sigma^2
                - 2 \sum_i w_i \Bigl( \ln \pi_{l(i)} + \sum_j \ln P(o_{ij} \mid r_{l(i) j}) \Bigr)

        of a model in which each cluster observes column j with a probability r of its own [3]_, with
        :math:`o_{ij}` whether the entry is observed, shares :math:`\pi`, variance :math:`\sigma^2`,
        N observed entries and K degrees of freedom of the centers. Use it where gaps differ between
        the groups you look for (refusals, detection limits, tests not ordered); it misleads where
        gaps come in modules or with how much a row answers at all. Rows with nothing observed are
        then placed by their gaps. "auto" decides by the table itself: gaps are used where clusters
        differ in what they lack *and* clusters found with the gaps predict the values of left-out
        columns better, without losing what plain clusters know of them; `missingness_` says what was
        decided. It takes as long as some twenty fits of at most 2,000 rows. With "informative", `fit`
        asks the first of these questions only, and warns where clusters of the values do not differ in
        what they lack (not on Dask tables). Not for "mm".

    probability : bool, default=False
        Whether `predict_proba` is wanted: after the clustering, the mixture of round clusters behind
        it is fitted by EM to the observed entries (of at most 50,000 rows), which takes longer than
        the clustering itself on a small table.

    random_state : int, RandomState instance or None, default=None
        Determines the starts. The same int gives the same result, to the bit, on any number
        of threads.

    n_threads : int or None, default=None
        The number of threads; None for as many as there are processors to use, or as
        OMP_NUM_THREADS says.

    checkpoint : str, path or None, default=None
        A directory in which a fit leaves what it needs to go on, every few seconds. A fit that was
        killed goes on from there when `fit` is called again with the same table and parameters, and ends
        in the same result, to the bit. The checkpoint is deleted when the fit has ended; that of another
        fit is refused. Where it cannot be written (a full disk), the fit warns and goes on.

    verbose : int, default=0
        1 prints a line for each start, 2 for each iteration.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centers; NaN in a column of which nothing was observed.

    labels_ : ndarray of shape (n_samples,)
        The cluster of each row, -1 where nothing was observed (and gaps are ignored). They are what
        `predict` says of the same table; only those of "mm" are its own, of the table as it filled it
        in.

    inertia_ : float
        The loss.

    algorithm_ : str
        The algorithm that ran: `algorithm`, or "lloyd" on a Dask table or cluster, where rows do not
        move one by one.

    n_iter_ : int
        Iterations run by the best start.

    converged_ : bool
        Whether the best start converged within `max_iter`.

    loss_curve_ : ndarray
        The loss (with what `shrinkage` adds) after each iteration, then after each sweep of
        single-row moves.

    losses_ : ndarray of shape (n_init,)
        What each start ended with of what is minimised, see `objective_`.

    counts_ : ndarray of shape (n_clusters, n_features)
        The weight of the observed entries behind each entry of `cluster_centers_`.

    column_means_ : ndarray of shape (n_features,)
        The mean of the observed entries of each column.

    n_clusters_ : int
        The number of clusters: `n_clusters`, or what "auto" chose.

    choice_ : KChoice
        With `n_clusters="auto"`: why this number, see `kpod.choose_k`. `print(model.choice_)` shows it.
        `fit` warns where the choice is not clear.

    shrinkage_ : float
        `shrinkage`, or what "auto" chose.

    mixture_centers_ : ndarray of shape (n_clusters, n_features)
        With `probability`: the centers of the mixture. Where clusters overlap they are nearer to the
        truth than `cluster_centers_`, which minimise the loss (see Notes).

    cluster_shares_ : ndarray of shape (n_clusters,)
        With `probability` or informative gaps: the share of each cluster.

    noise_variance_ : float
        With `probability` or informative gaps: the variance of an entry around its center.

    missing_rates_ : ndarray of shape (n_clusters, n_features)
        With informative gaps: the share of each column that is missing in each cluster (smoothed by
        one row at the column's own rate); all 0 where the column has no gaps.

    missingness_ : str
        With `missingness="auto"`: whether gaps are used and why, in a sentence; `gap_choice_` has the
        numbers.

    objective_ : float
        What was minimised: the loss with what `shrinkage` adds, or F with informative gaps.

    objective_curve_ : ndarray
        That after each iteration; it never rises. (`loss_curve_` may, with informative gaps.)

    column_groups_ : ndarray of shape (n_features,)
        The number of the column of your table that each column comes from, from 0. The indicators of a
        category share a number, see Notes; without any it is 0, 1, 2, ...

    n_features_in_ : int
        Number of columns seen during `fit`.

    feature_names_in_ : ndarray of shape (n_features,)
        Names of those columns, if all were strings.

    Notes
    -----
    The loss is that of complete data only in the limit of few gaps: even when entries are
    missing completely at random its minimiser is not consistent for the centers of the
    complete table [2]_, and where *what* is missing depends on the cluster, a lower loss
    need not be a better clustering. It works best with many columns and few gaps in each.
    Columns count by their scale: standardise them first unless they share a unit.

    A category comes as one column for each of its levels (from `TableEncoder`, `OneHotEncoder`, or
    `pandas.get_dummies` with its gaps put back). `fit` recognises such indicators by their values,
    whatever their scale: neighbouring columns of two values each, missing in the same rows, of which exactly
    one has its higher value in every other row (of at least 10). They count as one column wherever
    columns are counted: they are hidden together when a number of clusters is chosen, their gaps are one
    gap, and two rows that share them share one column. Their weight in the loss is left as it is. A set
    of indicators of which one was dropped is not recognised: its columns count one by one.

    References
    ----------
    .. [1] Chi, Chi & Baraniuk (2016). k-POD: A Method for k-Means Clustering of Missing
       Data. The American Statistician 70(1).
    .. [2] Terada & Guan (2024). arXiv:2410.00546.
    .. [3] Sportisse et al. (2021). Model-based clustering with missing not at random data.
       arXiv:2112.10425.

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

    # Callback for lines on progress; set on an instance by whoever wants to show them.
    _progress_line: Callable[[str], None] | None = None

    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        init: str | Any | Callable[..., Any] = "k-means++",
        n_init: str | int = "auto",
        algorithm: str = "hartigan",
        max_iter: int = 300,
        tol: float = 1e-4,
        shrinkage: float | str = 0.0,
        missingness: str = "ignore",
        probability: bool = False,
        random_state: Any = None,
        n_threads: int | None = None,
        checkpoint: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.algorithm = algorithm
        self.max_iter = max_iter
        self.tol = tol
        self.shrinkage = shrinkage
        self.missingness = missingness
        self.probability = probability
        self.random_state = random_state
        self.n_threads = n_threads
        self.checkpoint = checkpoint
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KPOD:
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like, dataframe or sparse matrix of shape (n_samples, n_features)
            The table; NaN, None, NA, null and masked entries are missing, and so is what a
            sparse matrix does not store. A Dask array or DataFrame runs on the cluster of the
            active client, or else here, with `algorithm="lloyd"` in any case.
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None
            The weight of each row; a row of weight 0 gets a label and moves nothing.

        Returns
        -------
        self
        """
        self._fit(X, sample_weight)
        choice = getattr(self, "choice_", None)
        if choice is not None and not choice.clear_ and choice.n_hidden_:  # too little to hide is warned of
            warn(choice.sentence_)
        return self

    def _fit(self, X: Any, sample_weight: Any, numbers: Any = None, progress: Progress | None = None) -> KPOD:
        """Fit; `numbers` are those that `kpod.choose_k` chooses from."""
        self._check_parameters()
        # Nothing of a fitted model changes before the new fit has succeeded.
        new = copy.copy(self)
        random_state = check_random_state(self.random_state)
        with dask_tables.executor_for(X, self._n_threads()) as executor:
            algorithm = self._check_place(X, executor)
            values = new._validate(X, executor, reset=True)
            if sparse.issparse(values) and self._fills_in():
                raise ValueError(
                    "algorithm='mm' and init='mean-fill' would make a sparse table dense. "
                    "Use algorithm='hartigan' or 'lloyd' with another init."
                )
            names = getattr(new, "feature_names_in_", None)
            weights = validation.check_weights(sample_weight, values.shape[0])
            table = make_table(values, executor, weights=weights, checked=True)
            validation.check_finite(table, names)
            table = with_groups(table, executor)
            self._check_table(table, names)
            with checkpoint_of(self, table, executor, numbers) as checkpoint:
                fitting = Fitting(self, table, executor, values, checkpoint)
                chosen = fitting.choose(numbers, progress)
                solution, losses = fitting.solve(chosen, random_state, algorithm=algorithm, told=True)
                table.check_unchanged(executor)
                validation.check_unchanged(X)
                tell = progress_printer(self, 1)
                if tell is not None and len(losses) > 1:
                    tell(starts_text(losses))
                self._warn_of(solution, table)
                attributes = self._attributes(solution, losses, table) | chosen.attributes()
                attributes["algorithm_"] = algorithm
                if self.probability and not chosen.gaps:
                    attributes |= self._mixture(
                        values, attributes["labels_"], weights, chosen.n_clusters, table.groups
                    )
        self.__dict__.pop("feature_names_in_", None)
        self.__dict__.update({} if names is None else {"feature_names_in_": names})
        for name in (*MIXTURE, "choice_", "gap_choice_", "missing_rates_", "missingness_"):
            self.__dict__.pop(name, None)
        self.__dict__.update(attributes)
        return self

    @property
    def n_clusters_(self) -> int:
        """The number of clusters of the fit."""
        return len(self.cluster_centers_)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Labels:
        """Cluster the rows of X and return their labels."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> AnyFloats:
        """Cluster the rows of X and return their distances to the centers, see `transform`."""
        dask_tables.refuse(X, self, "fit_transform")
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def predict(self, X: Any) -> Labels:
        """The nearest center of each row by its observed columns; -1 where there are none."""
        with self._fitted_table(X) as (table, executor):
            return self._labels(table, executor)

    @available_if(has_probability)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        r"""How likely each cluster is for each row, given the row's observed entries.

        .. math:: P(l \mid x_i) \propto \pi_l \exp\Bigl(-\frac{1}{2 \sigma^2}
                  \sum_{j\ \text{observed}} (x_{ij} - \mu_{lj})^2\Bigr)

        with the shares :math:`\pi` (`cluster_shares_`), the variance :math:`\sigma^2`
        (`noise_variance_`) and the centers :math:`\mu` (`mixture_centers_`) of the mixture of round
        clusters that was fitted from the clustering. Only with ``probability=True``. With informative
        gaps it is the posterior of the model that was fitted, gaps included. The most likely
        cluster may be another one than `predict` says, the nearest: a large cluster takes more of
        the rows between it and a small one. A row with nothing observed gets the shares.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)

        Examples
        --------
        >>> import numpy as np
        >>> from kpod import KPOD
        >>> X = np.random.default_rng(0).normal(size=(100, 3)) + 4 * (np.arange(100) % 2)[:, None]
        >>> model = KPOD(2, probability=True, random_state=0).fit(X)
        >>> model.predict_proba([[0, np.nan, 0], [2, 2, np.nan]]).max(axis=1).round(1)
        array([1. , 0.6])
        """
        check_is_fitted(self)
        dask_tables.refuse(X, self, "predict_proba")
        if getattr(self, "missing_rates_", None) is not None:
            logs = -(self.transform(X).astype(np.float64) ** 2) / (2 * self.noise_variance_)
            return softmax(logs, axis=1)
        check_is_fitted(self, MIXTURE)
        with self._fitted_table(X, here=True):  # refuses what cannot be computed with
            values = validation.as_table(X, self)
        mixture = SoftClustering(
            self.cluster_shares_, self.mixture_centers_, self.noise_variance_, self.column_means_
        )
        return mixture.probabilities(values)

    def transform(self, X: Any) -> AnyFloats:
        r"""Distance of each row to each center, rescaled for the columns not observed.

        .. math:: d_{il} = \sqrt{\frac{p}{m_i} \sum_{j\ \text{observed}} (x_{ij} - c_{lj})^2}

        with :math:`m_i` of p columns observed, as `nan_euclidean_distances` has it, so that
        rows with many and with few gaps compare; the indicators of a category are one column. Because
        of the factor, the squares of the distances to the nearest center do not sum to `inertia_`.
        NaN for a row with nothing observed.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
        """
        dask_tables.refuse(X, self, "transform")
        with self._fitted_table(X, here=True) as (table, executor):
            panel, groups = self._panel(table), self._groups()
            n_columns = float(groups.n_sources)
            out = np.empty((table.n_rows, self.n_clusters_), table.dtype)

            def measure(block: Block) -> None:
                rows = slice(block.first, block.first + block.n_rows)
                if panel.terms is not None:
                    out[rows] = np.sqrt(np.maximum(step.distances(block, panel), 0)) / table.units.scale
                    return
                observed = observed_sources(block, groups) if groups.present else table.observed[rows]
                with np.errstate(divide="ignore", invalid="ignore"):
                    scale = np.where(observed > 0, n_columns / observed, np.nan)
                out[rows] = np.sqrt(step.distances(block, panel) * scale[:, None]) / table.units.scale

            executor.map(measure, table.blocks)
            return out

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the loss of X with every row at its nearest center."""
        with self._fitted_table(X, sample_weight) as (table, executor):
            states, recall = nearest(table, executor, self._panel(table))
            loss = loss_of(table, executor, states, self._centers(table), recall)
            return -loss / table.units.scale / table.units.scale

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
                "impute does not accept sparse tables: the result would be dense. Look up the centers "
                "instead, cluster_centers_[predict(X)], or pass the rows you need as an array with NaN."
            )
        dask_tables.refuse(X, self, "impute")
        with self._fitted_table(X, here=True) as (table, executor):
            labels = self._labels(table, executor)
        values = validation.as_array(X, self)
        fill = np.vstack([self.cluster_centers_, self.column_means_]).astype(values.dtype)
        gaps = np.isnan(values)
        return validation.with_values(X, np.where(gaps, fill[labels], values), gaps.any(axis=0))

    def _validate(self, X: Any, executor: Executor, *, reset: bool) -> Any:
        """What the engine takes; the columns are those of the model, or become so."""
        if validation.is_dask(X):
            values: Any = dask_tables.DaskTable(X, executor)
            validate_data(self, values.header, reset=reset, skip_check_array=True)
            return values
        values = validation.as_table(X, self)
        validate_data(self, validation.named(X, values), reset=reset, skip_check_array=True)
        return values

    def _check_place(self, X: Any, executor: Executor) -> str:
        """The algorithm for a table in this place; refuses what needs the whole table in memory."""
        if not executor.remote and not validation.is_dask(X):
            return self.algorithm
        for name, wants in {
            "algorithm='mm'": self.algorithm == "mm",
            "init='mean-fill'": isinstance(self.init, str) and self.init == "mean-fill",
            "a callable init": callable(self.init),
            "probability=True": self.probability,
            "n_clusters='auto'": is_auto(self.n_clusters),
            "shrinkage='auto'": is_auto(self.shrinkage),
            "missingness='auto'": is_auto(self.missingness),
        }.items():
            if wants:
                raise ValueError(
                    f"{name} needs the whole table in memory; Dask tables and clusters are not supported. "
                    "Use it on a sample of the rows that fits into memory."
                )
        return "lloyd"

    def _n_threads(self) -> int:
        return available_threads() if self.n_threads is None else int(self.n_threads)

    def _units(self) -> Units:
        """The units of the fit, in which the same row gets the same label again."""
        # A model of version 0.1 has no units of its own.
        shift = np.asarray(getattr(self, "_shift", self.column_means_), np.float64)
        scale = float(getattr(self, "_scale", 1.0))
        if shift.shape != (self.n_features_in_,) or not 0 < scale < np.inf:
            raise ValueError("The model is damaged: its scales do not match its columns. Fit it again.")
        return Units(shift, scale)

    @contextmanager
    def _fitted_table(
        self, X: Any, sample_weight: Any = None, *, here: bool = False
    ) -> Iterator[tuple[Table, Executor]]:
        """Another table in the units of the fit, and what runs over it for as long as it is in use.

        That is threads of this process, if it has to be `here`.
        """
        check_is_fitted(self)
        n_threads = self._n_threads()
        with threads(n_threads) if here else dask_tables.executor_for(X, n_threads) as executor:
            values = self._validate(X, executor, reset=False)
            weights = validation.check_weights(sample_weight, values.shape[0])
            table = make_table(values, executor, weights=weights, units=self._units())
            validation.check_finite(table, getattr(self, "feature_names_in_", None))
            yield table, executor

    def _centers(self, table: Table) -> Floats:
        """The centers in the units of a table."""
        centers = np.asarray(self.cluster_centers_, np.float64)
        # Not `n_clusters`, which may have been set for the next fit.
        if centers.ndim != 2 or centers.shape != (len(self.counts_), table.n_columns):
            raise ValueError(
                f"The model is damaged: its centers have shape {centers.shape}, expected "
                f"{(len(self.counts_), table.n_columns)}. Fit it again."
            )
        return table.units.to(centers)

    def _labels(self, table: Table, executor: Executor) -> Labels:
        """The nearest center of each row; -1 where nothing is observed and gaps are ignored."""
        labels = nearest_labels(table, executor, self._panel(table))
        if self._gap_model(table) is None:
            labels[table.observed == 0] = -1
        return labels

    def _panel(self, table: Table) -> Panel:
        """What rows are compared with."""
        return panel_of(self._centers(table), self._gap_model(table))

    def _groups(self) -> ColumnGroups:
        """Which columns come from the same one; a model of version 0.1 knows of none."""
        source = getattr(self, "column_groups_", None)
        return ColumnGroups.none(self.n_features_in_) if source is None else ColumnGroups(np.asarray(source))

    def _gap_model(self, table: Table) -> GapModel | None:
        """What the gaps of a row say, in the units of a table."""
        if getattr(self, "missing_rates_", None) is None:
            return None
        rates, shares = (np.asarray(a, np.float64) for a in (self.missing_rates_, self.cluster_shares_))
        if rates.shape != (self.n_clusters_, table.n_columns) or shares.shape != (self.n_clusters_,):
            raise ValueError(
                "The model is damaged: its missing rates do not match its clusters. Fit it again."
            )
        rates = np.where(self._groups().first, rates, 0.0)  # of a group, the first column speaks for all
        return GapModel(rates, shares, float(self.noise_variance_) * table.units.scale * table.units.scale)

    def _check_parameters(self) -> None:
        for name, least in (("n_clusters", 1), ("max_iter", 1), ("n_threads", 1), ("verbose", 0)):
            value = getattr(self, name)
            if (name == "n_threads" and value is None) or (name == "n_clusters" and is_auto(value)):
                continue
            auto = "'auto' or " if name == "n_clusters" else ""
            check_integer(name, value, least, auto)
        for name, auto in (("tol", ""), ("shrinkage", "'auto' or ")):
            value = getattr(self, name)
            if not (auto and is_auto(value)) and not (isinstance(value, Real) and 0 <= float(value) < np.inf):
                raise ValueError(f"{name} must be {auto}a finite number of at least 0, got {value!r}.")
        if self.algorithm not in SOLVERS:
            raise ValueError(f"algorithm must be one of {sorted(SOLVERS)}, got {self.algorithm!r}.")
        if isinstance(self.init, str) and self.init not in SEEDINGS:
            raise ValueError(
                f"init must be one of {sorted(SEEDINGS)}, an array or a callable, got {self.init!r}."
            )
        chosen = [n for n in ("n_clusters", "shrinkage", "missingness") if is_auto(getattr(self, n))]
        if chosen and not isinstance(self.init, str):
            raise ValueError(
                f"{chosen[0]}='auto' also fits parts of the table, so init must be one of "
                f"{sorted(SEEDINGS)}, not an array or a callable."
            )
        if not is_auto(self.n_init) and (
            not isinstance(self.n_init, Integral) or isinstance(self.n_init, bool) or self.n_init < 1
        ):
            raise ValueError(f"n_init must be 'auto' or an integer of at least 1, got {self.n_init!r}.")
        if self.algorithm == "mm" and self.shrinkage != 0:
            raise ValueError("shrinkage is not supported with algorithm='mm'.")
        if not isinstance(self.missingness, str) or self.missingness not in MISSINGNESS:
            raise ValueError(f"missingness must be one of {list(MISSINGNESS)}, got {self.missingness!r}.")
        if self.algorithm == "mm" and self.missingness != "ignore":
            raise ValueError(
                f"missingness={self.missingness!r} is not supported with algorithm='mm', which fills gaps in."
            )

    def _fills_in(self) -> bool:
        return self.algorithm == "mm" or (isinstance(self.init, str) and self.init == "mean-fill")

    def _check_table(self, table: Table, names: Any) -> None:
        n_usable, n_empty = int(table.usable.sum()), int((table.observed == 0).sum())
        least = 1 if is_auto(self.n_clusters) else int(self.n_clusters)
        if not n_usable and is_auto(self.n_clusters):
            raise ValueError(f"X: no row (n_samples={table.n_rows}) has both an observed entry and a weight.")
        if least > n_usable:
            raise ValueError(
                f"n_samples={n_usable} should be >= n_clusters={least}: of {table.n_rows} rows, "
                f"{n_usable} have an observed entry and a positive weight. Ask for fewer clusters."
            )
        if n_empty and self.missingness == "ignore":
            warn_of_empty(n_empty, table)
        ignored = np.flatnonzero(~table.live)
        if len(ignored):
            warn(
                f"No observed entries in column {validation.name_columns(ignored, names)}: ignored, and "
                "NaN in the centers."
            )

    def _warn_of(self, solution: Solution, table: Table) -> None:
        if not solution.converged:
            warn(
                f"Not converged after {self.max_iter} iterations; the result is usable, and increasing "
                "max_iter or tol may help.",
                ConvergenceWarning,
            )
        k = len(solution.centers)
        n_distinct = int((sizes_of(solution.labels, table, k) > 0).sum())
        if n_distinct < k:
            warn(
                f"Number of distinct clusters ({n_distinct}) found smaller than n_clusters "
                f"({k}). Possibly due to duplicate points in X.",
                ConvergenceWarning,
            )

    def _attributes(self, solution: Solution, losses: list[float], table: Table) -> dict[str, Any]:
        """What a fit leaves behind, in the table's own units."""
        labels, scale, gaps = solution.labels, table.units.scale, solution.gaps
        objective = (Objective if gaps is None else GapObjective)(table, len(solution.centers))
        trace, ends = (objective.in_own_units(np.array(values)) for values in (solution.trace, losses))
        fitted: dict[str, Any] = {}
        if gaps is None:
            labels[table.observed == 0] = -1
        else:
            variance = gaps.variance / scale / scale
            if variance < np.finfo(np.float64).tiny:
                raise ValueError(
                    "missingness='informative' compares gaps with the variance of the entries of X, which is "
                    "too small to compute with. Use smaller units: multiply X, by 1e100 for instance."
                )
            fitted = {
                "missing_rates_": gaps.missing_rates[:, table.groups.starts[table.groups.source]],
                "cluster_shares_": gaps.shares,
                "noise_variance_": variance,
            }
        return fitted | {
            "labels_": labels,
            "cluster_centers_": table.units.back(solution.centers).astype(table.dtype),
            "counts_": solution.counts,
            "inertia_": solution.loss / scale / scale,
            "loss_curve_": np.array(solution.losses if gaps else solution.trace) / scale / scale,
            "losses_": ends,
            "objective_": float(trace[-1]),
            "objective_curve_": trace,
            "n_iter_": solution.n_iter,
            "converged_": solution.converged,
            "column_means_": table.column_means,
            "column_groups_": table.groups.source,
            "n_features_in_": table.n_columns,
            "_n_features_out": len(solution.centers),
            "_shift": table.units.shift,
            "_scale": scale,
        }

    def _mixture(
        self, values: Any, labels: Labels, weights: Floats | None, k: int, groups: ColumnGroups
    ) -> dict[str, Any]:
        """The mixture of round clusters behind the clustering."""
        found = soften(values, labels, k, weights, groups)
        return dict(zip(MIXTURE, (found.centers, found.shares, found.variance), strict=True))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = not self._fills_in()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def observed_sources(block: Block, groups: ColumnGroups) -> Floats:
    """How many columns each row of a block observes, the indicators of a category but once."""
    shares = np.where(np.isnan(block.units.shift), 0.0, groups.shares)
    parts = block.columns(np.arange(block.n_columns))
    return np.concatenate([~np.isnan(part) @ shares for part in parts])


def check_integer(name: str, value: Any, least: int, auto: str = "") -> None:
    if not isinstance(value, Integral) or (isinstance(value, bool) and name != "verbose") or value < least:
        raise ValueError(f"{name} must be {auto}an integer of at least {least}, got {value!r}.")
