"""KPOD: the scikit-learn estimator. Parameters, validation, conventions; results in the table's own units."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from scipy import sparse

from kpod._common.column_groups import ColumnGroups
from kpod._common.notes import Note
from kpod._common.progress import Progress
from kpod._common.sentences.formatting import starts_text
from kpod._common.typing import Floats, Labels, Positions
from kpod._common.warnings import RoundClustersWarning, warn
from kpod._engine.fit import Fit, FitPlan
from kpod._engine.table import Table, make_table, with_groups
from kpod._estimators.choices import Choices, is_open, sampled, sampled_labels, warn_of_empty
from kpod._estimators.fitted import column_names, fitted_attributes, store_fitted, warn_of
from kpod._estimators.nearest_center import MIXTURE, NearestCenter
from kpod._estimators.parameters import check_parameters, check_place, check_table, is_auto
from kpod._estimators.plan import checkpoint_of, drawn_from, init_of
from kpod._inputs import choose_executor, collections, validation
from kpod._inputs.scanned import ScannedTable
from kpod._mixture.confidence import soften
from kpod._mixture.roundness import roundness
from kpod._model_selection.informative_missingness import MissingnessDecision
from kpod._model_selection.number_of_clusters import KChoice, Shapes


class KPOD(NearestCenter):
    r"""k-means clustering of tables with missing values (NaN).

    Minimises the k-means loss over the observed entries only:

    .. math::

        \sum_i w_i \sum_{j\ \text{observed in row}\ i} (x_{ij} - c_{l(i) j})^2

    over the labels :math:`l(i)` and the centers :math:`c` [1]_. Nothing is imputed or
    deleted; on a complete table it is k-means. A row's nearest center is determined over the
    row's own observed columns; a center is the mean of the values observed in its cluster,
    or the column's mean if there are none. In a sparse table, entries that are not stored are
    missing, not zero.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        The number of clusters. "auto" chooses it by hiding observed entries and predicting them, from 1 to
        10, and up to 40 as long as more clusters predict better; see `kpod.choose_k`. That takes
        as long as several dozen fits; in a cross-validation or a grid search it is repeated on every
        training set. If there is too little to hide, it is one cluster, with a warning.

    init : {"k-means++", "mean-fill", "random"}, array or callable, default="k-means++"
        Where a fit starts. "k-means++" draws rows that are far apart by partial distances (from a
        sample of the rows if the table has more than two million entries), "random" draws any
        rows; "mean-fill", the start of the paper, runs k-means on the table with its gaps at
        the column means. An array of shape (n_clusters, n_features) gives the centers; NaN
        in it means the column's mean. A callable takes `X` (an array with NaN in the gaps, or a
        CSR array for a sparse table), `n_clusters` and `random_state` and returns such an array.

    n_init : "auto" or int, default="auto"
        The number of starts, the best of which is kept. "auto" is 1 if `init` is an array, otherwise
        10. If the table has more than a million observed entries, these are run on a sample of
        the rows with that many, and the best is continued on all rows; a sparse table of that size
        gets one start.

    algorithm : {"hartigan", "lloyd", "mm"}, default="hartigan"
        "lloyd" alternates between assigning rows and moving centers; if that takes more than 20 iterations
        on a table with gaps, centers get momentum as long as it lowers the loss. "hartigan" then
        moves single rows as long as that lowers the loss, and never ends higher.
        "mm" is the algorithm as published [1]_: k-means on a table filled in from its own centers,
        repeatedly. It is provided for comparison and reaches a higher loss than the other two.

    max_iter : int, default=300
        The maximum number of iterations of "lloyd", and then of sweeps of single-row moves of
        "hartigan"; or the maximum number of times that "mm" fills in the table.

    tol : float, default=1e-4
        "lloyd" stops when the centers move by no more than `tol` times the mean variance of
        the observed entries of a column (sum of squares, as in scikit-learn). "hartigan" then
        continues until no row moves, or a sweep of moves lowers the loss by no more than
        `tol` / 10 of it.

    shrinkage : float or "auto", default=0.0
        Pulls centers based on few observations toward the column's mean: it adds
        :math:`\lambda \sum_{lj} (c_{lj} - \bar x_j)^2` to the objective, as if every cluster had `shrinkage`
        more units of weight there. "auto" chooses it by hiding observed entries, among 0 and 0.5 to 32
        rows of mean weight. Worth trying on very sparse tables; not for "mm".

    missingness : {"ignore", "informative", "auto"}, default="ignore"
        Whether *which* entries are missing carries information about a row's cluster (MNAR). "ignore"
        minimises the loss above. "informative" minimises minus twice the classification log-likelihood

        .. math::

            F = \frac{\text{loss}}{\sigma^2} + (N - K) \ln \sigma^2
                - 2 \sum_i w_i \Bigl( \ln \pi_{l(i)} + \sum_j \ln P(o_{ij} \mid r_{l(i) j}) \Bigr)

        of a model in which column j is observed in each cluster with its own probability r [3]_;
        :math:`o_{ij}` is whether the entry is observed, :math:`\pi` the cluster proportions,
        :math:`\sigma^2` the variance, N the number of observed entries and K the degrees of freedom of the
        centers. Use it if gaps differ between the groups you look for (refusals, detection limits, tests
        not ordered); it is misleading if gaps come in modules or depend on how much a row answers at all.
        Rows with nothing observed are then assigned by their gaps. "auto" tests this on the table: gaps
        are used if clusters differ in which values are missing *and* clusters found with the gaps predict
        the values of left-out columns better, without losing what plain clusters explain of them;
        `missingness_decision_` has the reason. It takes as long as about twenty fits of at most 2,000 rows.
        With "informative", `fit` runs only the first of these tests, and warns if clusters of the values
        do not differ in which values are missing (not on Dask tables). Not for "mm".

    probability : bool, default=False
        Whether to enable `predict_proba`: after the clustering, the corresponding mixture of round clusters
        is fitted by EM to the observed entries (of at most 50,000 rows), which takes longer than
        the clustering itself on a small table. Probabilities are calibrated if clusters are round
        and have the same spread, whatever their sizes; `fit` warns if variances differ or columns are
        correlated within clusters. In that case, use `GaussianMixture`.

    random_state : int, RandomState instance or None, default=None
        Determines the starts. The same int gives bit-identical results on any number
        of threads.

    n_threads : int or None, default=None
        The number of threads; None means as many as there are processors available, or at most
        OMP_NUM_THREADS.

    checkpoint : str, path or None, default=None
        A directory in which a fit saves a checkpoint every few seconds. A fit that was killed
        resumes from there when `fit` is called again with the same table and parameters, and gives
        a bit-identical result. The checkpoint is deleted when the fit has ended; that of another
        fit is refused. If it cannot be written (a full disk), the fit warns and continues.

    verbose : int, default=0
        1 prints a line for each start, 2 for each iteration.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centers; NaN in a column with no observed entries. They are the means of the rows of each
        cluster (pulled by `shrinkage`), unless `tol` ended the fit before the last row stopped moving: then
        rows are assigned to the final centers once more, as in scikit-learn, and a few of them may leave the
        cluster whose mean they are part of. ``tol=0`` continues until none does.

    labels_ : ndarray of shape (n_samples,)
        The cluster of each row, -1 if nothing was observed (and gaps are ignored). They equal the result
        of `predict` on the same table, except with "mm", whose labels are those of the table as it filled it
        in. Clusters are numbered by size, the largest first (of equal ones, first the one
        whose center is lower in the first column in which they differ); those of an `init` array keep its
        order. A row at the same distance from two centers is in the first of them.

    inertia_ : float
        The loss.

    algorithm_ : str
        The algorithm that ran: `algorithm`, or "lloyd" on a Dask table or cluster, where rows do not
        move one by one.

    n_iter_ : int
        The number of iterations of the best start.

    converged_ : bool
        Whether the best start converged within `max_iter`.

    loss_curve_ : ndarray
        The loss (including the `shrinkage` term) after each iteration, then after each sweep of
        single-row moves.

    losses_ : ndarray of shape (n_init,)
        The final value of the objective for each start; see `objective_`.

    counts_ : ndarray of shape (n_clusters, n_features)
        The weight of the observed entries behind each entry of `cluster_centers_`.

    column_means_ : ndarray of shape (n_features,)
        The mean of the observed entries of each column.

    n_clusters_ : int
        The number of clusters: `n_clusters`, or the one chosen by "auto".

    choice_ : KChoice
        With `n_clusters="auto"`: why this number was chosen, see `kpod.choose_k`. `print(model.choice_)`
        shows it. `fit` warns if the choice is not clear.

    shrinkage_ : float
        `shrinkage`, or the value chosen by "auto".

    mixture_centers_ : ndarray of shape (n_clusters, n_features)
        With `probability`: the centers of the mixture. If clusters overlap, they are closer to the
        truth than `cluster_centers_`, which minimise the loss (see Notes).

    cluster_shares_ : ndarray of shape (n_clusters,)
        With `probability` or informative gaps: the cluster proportions.

    noise_variance_ : float
        With `probability` or informative gaps: the variance of an entry around its center.

    missing_rates_ : ndarray of shape (n_clusters, n_features)
        With informative gaps: the share of each column that is missing in each cluster (smoothed by
        one row at the column's own rate); all 0 if the column has no gaps.

    missingness_ : {"ignore", "informative"}
        `missingness`, or the decision of "auto"; "ignore" if nothing is missing.

    missingness_decision_ : MissingnessDecision
        With `missingness="auto"`: the reason. It prints as a sentence, and has the numbers behind it.

    objective_ : float
        The value that was minimised: the loss including the `shrinkage` term, or F with informative gaps.

    objective_curve_ : ndarray
        The objective after each iteration; it never rises. (`loss_curve_` may, with informative gaps.)

    column_groups_ : ndarray of shape (n_features,)
        The number of the original column that each column comes from, from 0. The indicators of a
        category share a number, see Notes; without categories it is 0, 1, 2, ...

    n_features_in_ : int
        Number of columns seen during `fit`.

    feature_names_in_ : ndarray of shape (n_features,)
        Names of those columns, if all were strings.

    Notes
    -----
    The loss approximates that of complete data only if there are few gaps: even when entries are
    missing completely at random, its minimiser is not consistent for the centers of the
    complete table [2]_, and if *which* entries are missing depends on the cluster, a lower loss
    need not mean a better clustering. It works best with many columns and few gaps in each.
    The scale of a column is its weight: standardise columns first unless they share a unit.

    A category is encoded as one column for each of its levels (by `TablePreparer`, `OneHotEncoder`, or
    `pandas.get_dummies` with its gaps restored). `fit` recognises such indicators by their values,
    whatever their scale: adjacent columns with two values each, missing in the same rows, exactly
    one of which has its higher value in every other row (of at least 10). They count as one column wherever
    columns are counted: they are hidden together when a number of clusters is chosen, their gaps are one
    gap, and two rows that share them share one column. Their weight in the loss is not changed. A set
    of indicators with one level dropped is not recognised: its columns are counted one by one.

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

    algorithm_: str
    choice_: KChoice
    column_groups_: Positions
    converged_: bool
    loss_curve_: Floats
    losses_: Floats
    missingness_: str
    missingness_decision_: MissingnessDecision
    objective_: float
    objective_curve_: Floats
    shrinkage_: float

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
            The weight of each row; a row of weight 0 gets a label but has no influence.

        Returns
        -------
        self
        """
        self._fit(X, sample_weight)
        choice = getattr(self, "choice_", None)
        if choice is not None and not choice.clear_ and choice.n_hidden_:  # too little to hide is warned of
            warn(choice.sentence_)
        return self

    def _fit(
        self,
        X: Any,
        sample_weight: Any,
        numbers: Any = None,
        progress: Progress | None = None,
        *,
        shapes: Shapes = "offered",
        deadline: float | None = None,
    ) -> KPOD:
        """Fit; `numbers` are those that `kpod.choose_k` chooses from, and `shapes` what it does about these.

        At the deadline, the best number so far is taken.
        """
        check_parameters(self)
        new = copy.copy(self)  # nothing of a fitted model changes before the new fit has succeeded
        algorithm = check_place(self, X)
        with new._opened(X, sample_weight, reset=True) as (values, weights, executor):
            if sparse.issparse(values) and self._fills_in():
                raise ValueError(
                    "algorithm='mm' and init='mean-fill' would make a sparse table dense. "
                    "Use algorithm='hartigan' or 'lloyd' with another init."
                )
            names = getattr(new, "feature_names_in_", None)
            table = make_table(values, executor, weights=weights, checked=True)
            validation.check_finite(table, names)
            if isinstance(X, ScannedTable) and weights is None:
                X.measured = table
            table = with_groups(table, executor)
            self._check_table(table, names)
            plan = replace(self._plan(), algorithm=algorithm, labels=not collections.is_collection(X))
            with checkpoint_of(self, plan, table, executor, numbers) as checkpoint:
                if checkpoint is not None:
                    plan = replace(plan, random_state=checkpoint.generator(plan.generator()))
                fit = Fit(plan, table, executor, values, checkpoint)
                spread = choose_executor.is_spread(X)
                near = sampled(fit) if spread and is_open(plan) else fit
                decided = Choices(near, numbers, progress, shapes, deadline).decide()
                known = decided.solution if near is fit else None
                if decided.plan is not plan:
                    fit = replace(fit, plan=replace(decided.plan, labels=plan.labels))
                solution = known or fit.solve()
                table.check_unchanged(executor)
                validation.check_unchanged(X)
                write = plan.lines.writer(1)
                if write is not None and len(solution.starts) > 1:
                    write(starts_text(solution.starts))
                warn_of(solution, table, self.max_iter)
                attributes = fitted_attributes(solution, decided, table)
                if self.probability and not decided.plan.gaps:
                    sample = sampled_labels(fit, solution) if spread else (values, solution.labels, weights)
                    attributes |= self._mixture(*sample, len(solution.centers), table.groups)
        store_fitted(self, attributes | column_names(new))
        if not plan.labels:
            self.labels_ = self.predict(collections.without(X, sample_weight))
        return self

    def _plan(self) -> FitPlan:
        """The parameters as a plan."""
        return FitPlan(
            n_clusters=None if is_auto(self.n_clusters) else int(self.n_clusters),
            init=init_of(self),
            n_starts=None if is_auto(self.n_init) else int(self.n_init),
            algorithm=self.algorithm,
            max_iter=int(self.max_iter),
            tol=float(self.tol),
            shrinkage=None if is_auto(self.shrinkage) else float(self.shrinkage),
            gaps=None if is_auto(self.missingness) else self.missingness == "informative",
            random_state=drawn_from(self.random_state),
            lines=self._lines(),
        )

    def _fitted_plan(self) -> FitPlan:
        return replace(super()._fitted_plan(), algorithm=self.algorithm, max_iter=self.max_iter, tol=self.tol)

    def _fills_in(self) -> bool:
        return self.algorithm == "mm" or super()._fills_in()

    def _check_table(self, table: Table, names: Any) -> None:
        check_table(table, names, None if is_auto(self.n_clusters) else int(self.n_clusters))
        n_empty = table.n_empty
        if n_empty and self.missingness == "ignore":
            warn_of_empty(n_empty, table)

    def _mixture(
        self, values: Any, labels: Labels, weights: Floats | None, k: int, groups: ColumnGroups
    ) -> dict[str, Any]:
        """The mixture of round clusters behind the clustering."""
        found = soften(values, labels, k, weights, groups)
        if k > 1 and not groups.present:
            about = roundness(values, labels, found.probabilities(values), weights)
            if about.contradicted:
                warn(Note("clusters that are not round", values=about._asdict()).text, RoundClustersWarning)
        return dict(zip(MIXTURE, (found.centers, found.shares, found.variance), strict=True))
