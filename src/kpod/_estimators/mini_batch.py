"""MiniBatchKPOD: clusters of rows that come a batch at a time, or of tables too large for many passes."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from kpod._common.sentences.formatting import percent
from kpod._common.typing import Floats
from kpod._common.warnings import warn
from kpod._engine.blocks import Units, some_rows
from kpod._engine.executors import Executor, threads
from kpod._engine.fit import Fit, FitPlan, format_objective, iteration_callback, start_at
from kpod._engine.sizes import START_BATCHES, START_ROWS_PER_CLUSTER, STARTS_ON_SAMPLE
from kpod._engine.solvers.interface import Settings, Start
from kpod._engine.solvers.lloyd import MOST_ROUNDS, lloyd
from kpod._engine.solvers.minibatch import Pace, Running, batches, pools
from kpod._engine.solvers.nearest import by_size, labels_of, loss_of, nearest
from kpod._engine.solvers.order import Order
from kpod._engine.table import Table, make_table
from kpod._engine.windows import pages_of
from kpod._estimators.choices import warn_of_empty
from kpod._estimators.fitted import store_fitted
from kpod._estimators.parameters import check_integer, check_shared, check_table, is_auto
from kpod._estimators.plan import centers_of, init_of
from kpod._estimators.streams import NO_DASK, Buffer, NamedRows, StreamModel, generator_of, words_of
from kpod._inputs import collections, validation
from kpod._kernels.panel import Panel

MOST_LOSSES = 1_000


class MiniBatchKPOD(StreamModel):
    r"""k-means clustering of tables with missing values (NaN), in mini-batches.

    Minimises the loss of :class:`KPOD` over the observed entries,

    .. math::

        \sum_i w_i \sum_{j\ \text{observed in row}\ i} (x_{ij} - c_{l(i) j})^2,

    in steps of one batch of rows each. The rows of a batch are assigned to their nearest
    centers; then every entry of a center moves toward the mean :math:`m_{lj}` of the batch's observed
    values there, in proportion to the batch's share of all values observed there so far:

    .. math::

        c_{lj} \leftarrow c_{lj} + \frac{n_{lj}}{N_{lj} + n_{lj}} (m_{lj} - c_{lj}), \qquad
        N_{lj} \leftarrow N_{lj} + n_{lj}

    where n is the weight observed in the batch and N that before it, *for each center and column*: a
    column with many gaps takes longer steps than one with few. A column first observed in a later
    batch starts at its mean in every center. `partial_fit` takes one batch, and matches the columns of data
    frames and dicts by name; `fit` starts from the clusters of a sample and passes
    through the table in batches of random rows.

    Batches should be alike: if rows are sorted, by time or by group, the centers follow them and end
    far from those of all rows, and `partial_fit` warns once. Shuffle rows before cutting them into
    batches, or set `half_life` if the clusters themselves change.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.

    init : {"k-means++", "mean-fill", "random"}, array or callable, default="k-means++"
        Where the clustering of the sample (or of the first batch of `partial_fit`) starts, as in
        :class:`KPOD`. An array gives the initial centers; then no sample is clustered.

    n_init : "auto" or int, default="auto"
        The number of starts on the sample, the best of which is kept; "auto" is 3, or 1 for an array.

    batch_size : int, default=4096
        The number of rows in a batch of `fit`. Larger batches use more threads.

    n_epochs : int, default=2
        The number of passes of `fit` through the table.

    full_passes : int, default=0
        The maximum number of "lloyd" iterations over the whole table at the end of `fit`:
        each assigns every row and moves the centers to the means of their rows.

    half_life : float or None, default=None
        The number of rows after which past rows count half, for data that drift: before a
        batch of b rows, all N are multiplied by :math:`2^{-b / \text{half\_life}}`. None weights all
        rows equally, regardless of their age.

    reassignment_ratio : float, default=0.01
        A center that got less than this share of the mean weight of a cluster, over the last 100
        rows per cluster or more, is moved to a row of the batch, drawn with probability
        proportional to its loss. With 0, centers are never reassigned.

    random_state : int, RandomState instance or None, default=None
        Determines the sample, the order of the rows and the rows that centers are reassigned to.

    n_threads : int or None, default=None
        The number of threads; None means as many as there are processors available.

    verbose : int, default=0
        1 prints a line for each epoch, 2 for each batch.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centers; NaN in a column with no observed entries so far.

    labels_ : ndarray of shape (n_samples,)
        The result of `predict` on the table of the last `fit` or `partial_fit`. `fit` numbers the clusters
        from the largest to the smallest, unless `init` is an array; `partial_fit` keeps their numbers.

    inertia_ : float
        The loss of that table.

    counts_ : ndarray of shape (n_clusters, n_features)
        The weight behind each entry of `cluster_centers_`: N above.

    column_means_ : ndarray of shape (n_features,)
        The mean of the observed entries of each column, weighted by `half_life` like the centers.

    n_iter_ : int
        The number of passes of the last `fit` or `partial_fit` through its table.

    n_steps_ : int
        The number of batches so far.

    batch_losses_ : ndarray of shape (n_batches,)
        The loss of each of the last 1,000 batches per unit of weight, before it moved the centers (for the
        batch that `partial_fit` started from, after).

    drift_ : ndarray of shape (n_features,)
        How much the batches of `partial_fit` differ in each column: the share of its variance that lies
        between them (omega squared), near 0 if they are alike; NaN while there are too few to tell.

    n_buffered_ : int
        The number of rows of `partial_fit` that are buffered until there are enough to start.

    n_features_in_ : int
        Number of columns.

    feature_names_in_ : ndarray of shape (n_features,)
        Names of those columns, if all were strings.

    See Also
    --------
    KPOD : Uses all rows in every iteration and reaches a lower loss.

    References
    ----------
    .. [1] Sculley (2010). Web-scale k-means clustering. WWW.

    Examples
    --------
    >>> import numpy as np
    >>> from kpod import MiniBatchKPOD
    >>> rng = np.random.default_rng(0)
    >>> model = MiniBatchKPOD(2, random_state=0)
    >>> for hour in range(10):
    ...     X = rng.normal(size=(200, 3)) + 5 * rng.integers(2, size=(200, 1))
    ...     X[rng.random(X.shape) < 0.3] = np.nan
    ...     X[(~np.isnan(X)).sum(axis=1) == 0, 0] = 0
    ...     model = model.partial_fit(X)
    >>> np.sort(model.cluster_centers_.mean(axis=1)).round().astype(int)
    array([0, 5])
    """

    _shift: Floats
    _scale: float
    _order: Order
    _words: Any
    _has_warned: bool
    n_clusters: int
    batch_losses_: Floats
    drift_: Floats
    n_buffered_: int
    n_steps_: int

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: str | Any | Callable[..., Any] = "k-means++",
        n_init: str | int = "auto",
        batch_size: int = 4096,
        n_epochs: int = 2,
        full_passes: int = 0,
        half_life: float | None = None,
        reassignment_ratio: float = 0.01,
        random_state: Any = None,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.batch_size = batch_size
        self.n_epochs = n_epochs
        self.full_passes = full_passes
        self.half_life = half_life
        self.reassignment_ratio = reassignment_ratio
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MiniBatchKPOD:
        """Cluster the rows of X in `n_epochs` passes of mini-batches, from the start.

        Parameters
        ----------
        X : array-like, dataframe or sparse matrix of shape (n_samples, n_features)
            The table, as for `KPOD.fit`.
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None
            The weight of each row.

        Returns
        -------
        self
        """
        return self._learn(X, sample_weight, reset=True)

    def _learn(self, X: Any, sample_weight: Any, *, reset: bool, one_batch: bool = False) -> MiniBatchKPOD:
        self._check_parameters()
        if collections.is_collection(X):
            raise TypeError(NO_DASK)
        new = copy.copy(self)  # nothing of a fitted model changes before the new fit has succeeded
        if not reset:
            new._random = generator_of(self._words)
            new._running, new._order = self._running.copy(), copy.deepcopy(self._order)
            new._batch_losses = deque(getattr(self, "_batch_losses", self.batch_losses_), MOST_LOSSES)
            if isinstance(X, NamedRows) and hasattr(self, "feature_names_in_"):
                new._grow(X)
        with threads(self._n_threads()) as executor:
            values = new._validate(X, executor, reset=reset)
            if sparse.issparse(values) and self._fills_in():
                raise ValueError("init='mean-fill' would make a sparse table dense. Use another init.")
            weights = validation.check_weights(sample_weight, values.shape[0])
            table = make_table(values, executor, weights=weights)
            names = getattr(new, "feature_names_in_", None)
            validation.check_finite(table, names)
            if reset:
                self._check_table(table, names)
                random_state = check_random_state(self.random_state)
                new._random = np.random.default_rng(random_state.randint(1 << 31))
                new._shift, new._scale = table.units
                new._batch_losses, new.n_steps_ = deque(maxlen=MOST_LOSSES), 0
                new._order = Order.unknown(table.n_columns)
                new._running = new._started(values, weights, table, executor, random_state, whole=one_batch)
                new._buffer, new.n_buffered_, new._has_warned = Buffer(), 0, False
            new.n_iter_ = 1
            if not one_batch:
                new._run_epochs(values, weights, table, executor)
                new.n_iter_ = self.n_epochs
            elif table.n_usable:
                new._check_order(table, names)
                if not (reset and new._batch_losses):
                    new._learn_batch(table, executor)
            if not one_batch and self.full_passes:
                new._run_full_passes(table, executor)
            new._finish(values, weights, table, executor, one_batch=one_batch)
        store_fitted(self, vars(new))
        return self

    def _check_table(self, table: Table, names: Any) -> None:
        check_table(table, names, int(self.n_clusters))
        n_empty = table.n_empty
        if n_empty:
            warn_of_empty(n_empty, table)

    def _started(
        self,
        values: Any,
        weights: Floats | None,
        table: Table,
        executor: Executor,
        random_state: np.random.RandomState,
        *,
        whole: bool,
    ) -> Running:
        """Where the batches begin: at given centers, or at the clusters of a sample."""
        k = int(self.n_clusters)
        if not isinstance(self.init, str) and not callable(self.init):
            return Running.at(table.units.back(start_at(centers_of(self.init, self), table, k).centers))
        rows = np.flatnonzero(table.usable)
        size = max(START_BATCHES * self.batch_size, START_ROWS_PER_CLUSTER * k)
        if size < len(rows) and not whole:
            rows = np.sort(self._random.choice(rows, size, replace=False, shuffle=False))
            values, weights = some_rows(values, rows), None if weights is None else weights[rows]
            table = make_table(values, executor, weights=weights)
        n_starts = STARTS_ON_SAMPLE if is_auto(self.n_init) else int(self.n_init)
        plan = FitPlan(k, init_of(self), n_starts, random_state=random_state)
        solution = Fit(plan, table, executor, values).solve()
        known = np.where(solution.counts > 0, table.units.back(solution.centers), np.nan)
        running = Running.at(known, solution.counts)
        if whole:  # the first batch has been learnt by that
            running.learn_columns(table)
            self._note_loss(solution.loss / self._scale / self._scale, table)
        return running

    def _check_order(self, table: Table, names: Any) -> None:
        """Warn once of batches that differ by more than chance."""
        self._order.add(table)
        share, columns = self._order.shares()
        if not len(columns) or self._has_warned or self.half_life is not None:
            return
        most = columns[np.argmax(share[columns])]
        warn(
            f"The batches are not alike: {percent(share[most])} of the variance of column "
            f"{validation.name_columns([most], names)} lies between them, as if rows came sorted. Centers "
            "follow the order of the rows then; shuffle rows before they are cut into batches, or set "
            "half_life if the clusters themselves change. drift_ has all columns."
        )
        self._has_warned = True

    def _run_epochs(self, values: Any, weights: Floats | None, table: Table, executor: Executor) -> None:
        write = self._lines().writer(1)
        usable = np.flatnonzero(table.usable)
        for epoch in range(1, self.n_epochs + 1):
            losses = []
            for pool in pools(usable, self.batch_size, table.n_columns, self._random):
                held = some_rows(values, pool) if is_mapped(values) else None
                for at in batches(len(pool), self.batch_size, self._random):
                    rows = some_rows(values, pool[at]) if held is None else some_rows(held, at)
                    own = None if weights is None else weights[pool[at]]
                    batch = make_table(rows, executor, weights=own, units=table.units)
                    losses.append(self._learn_batch(batch, executor))
            if write is not None:
                write(f"epoch {epoch}/{self.n_epochs}: loss of a row {np.mean(losses):.6g}")

    def _learn_batch(self, table: Table, executor: Executor) -> float:
        """Move the centers; returns the loss of a row before."""
        pace = Pace(self.half_life, self.reassignment_ratio)
        loss = self._note_loss(self._running.learn(table, executor, pace, self._random), table)
        write = self._lines().writer(2)
        if write is not None:
            write(f"  batch {self.n_steps_}: loss of a row {loss:.6g}")
        return loss

    def _note_loss(self, loss: float, table: Table) -> float:
        usable = table.usable
        weight = usable.sum() if table.weights is None else table.weights[usable].sum()
        self._batch_losses.append(float(loss / weight))
        self.n_steps_ += 1
        return self._batch_losses[-1]

    def _run_full_passes(self, table: Table, executor: Executor) -> None:
        told = iteration_callback(self._lines(), lambda: format_objective(table, int(self.n_clusters)))
        settings = Settings(self.full_passes, FitPlan.tol, iteration_callback=told)
        solution = lloyd(table, executor, Start(table.units.to(self._running.filled)), settings)
        self.n_iter_ += solution.n_iter
        self._running.centers = table.units.back(solution.centers)
        self._running.counts = solution.counts

    def _finish(
        self, values: Any, weights: Floats | None, table: Table, executor: Executor, *, one_batch: bool
    ) -> None:
        """What a fit leaves behind: labels and loss are those of the centers as they are kept."""
        running = self._running
        # A column that was ignored so far has the shift of the first batch that observed it.
        self._shift = np.where(np.isnan(self._shift), table.units.shift, self._shift)
        self.n_features_in_, self._n_features_out = table.n_columns, self.n_clusters
        self.batch_losses_, self.drift_ = np.array(self._batch_losses), self._order.drift()
        self._words = words_of(self._random)
        self.counts_, self.column_means_ = running.counts, running.column_means.copy()
        if one_batch:
            table = make_table(values, executor, weights=weights, units=Units(self._shift, self._scale))
        # Clusters that batches have followed keep their numbers, and so do centers that were given.
        by_size_now = not one_batch and (isinstance(self.init, str) or callable(self.init))
        for _ in range(MOST_ROUNDS):
            self.cluster_centers_ = running.filled.astype(table.dtype)
            centers = self._centers(table.units)
            states, recall = nearest(table, executor, Panel(centers))
            self.labels_ = labels_of(table, executor, states, recall)
            sizes = np.bincount(self.labels_[table.observed > 0], minlength=len(centers))
            order = by_size(sizes, centers)
            if not by_size_now or np.array_equal(order, np.arange(len(order))):
                break
            running.renumber(order)
        self.counts_ = running.counts.copy()
        self.inertia_ = loss_of(table, executor, states, centers, recall) / self._scale / self._scale
        self.labels_[table.observed == 0] = -1

    def _check_parameters(self) -> None:
        check_shared(self)
        for name, least in (("batch_size", 1), ("n_epochs", 1), ("full_passes", 0)):
            check_integer(name, getattr(self, name), least)
        if self.half_life is not None and not 0 < number("half_life", self.half_life) < np.inf:
            raise ValueError(f"half_life must be a finite number above 0 or None, got {self.half_life!r}.")
        if not 0 <= number("reassignment_ratio", self.reassignment_ratio) <= 1:
            raise ValueError(f"reassignment_ratio must be from 0 to 1, got {self.reassignment_ratio!r}.")


def number(name: str, value: Any) -> float:
    if not isinstance(value, Real):
        raise ValueError(f"{name} must be a number, got {value!r}.")
    return float(value)


def is_mapped(values: Any) -> bool:
    return bool(pages_of(values.data if sparse.issparse(values) else values))
