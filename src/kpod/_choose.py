"""How many clusters? Hide observed entries, and see with how many they are predicted best.

Two questions, asked of the same hidden entries:

1. With how many centers are they predicted best? The smallest number within one standard error of
   the best is taken (paired: the same entries for every number).
2. Would *correlation* predict them as well as more centers do? Columns that go up and down together
   within a cluster let many centers in a row trace a single elongated group. So at the number found,
   a Gaussian mixture whose clusters may be correlated (`kpod._mixture`) predicts the same entries;
   where that does better than the mixture without correlation, the number is chosen again among
   these mixtures, from what centers alone need downwards. One cluster with correlation is one of
   them: the null hypothesis of no groups, with the same gaps, and nothing to simulate.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import check_random_state

from kpod import _holdout, _mixture, _validation
from kpod._estimator import KPOD
from kpod._holdout import Errors, Fold
from kpod._typing import Floats, Labels
from kpod.metrics import silhouette_score

FIRST_RANGE = 10  # "auto" looks at 1 to 10 first,
LAST_RANGE = 40  # and at up to 40 while more clusters keep helping
MOST_ROWS = 20_000
MOST_MIXTURE_ENTRIES = 200_000
MOST_SILHOUETTE_ROWS = 2_000
STARTS = 3
LEAST_HIDDEN = 20
MOST_FACTORS = 12
MIXTURE_STEPS = 20
MIXTURE_TOL = 1e-3
FIRST_CORRELATED = 10  # of more pieces than that, mixtures are tried at this number and below
DISAGREEMENT = 0.8  # adjusted Rand index below which the sentence says that clusters and groups differ
HOPELESS = 3.0  # standard errors above the best at which fewer clusters are no longer tried

Progress = Callable[[int, int, str], None]


@dataclass
class KChoice:
    """What `choose_k` found.

    Attributes
    ----------
    best_k_ : int
        The number of clusters; the best guess where `clear_` is False.
    clear_ : bool
        Whether the choice is clear.
    reason_ : str
        Why it is not; empty if it is.
    sentence_ : str
        The finding in plain words.
    model_ : KPOD
        Fitted with `best_k_` clusters on the whole table.
    table_ : dict of ndarrays
        One entry for each number of clusters tried, `k`: `error`, the mean squared error of hidden
        entries predicted by the centers, and its standard error `error_se`; `above_best`, by how much
        it lies above the smallest, with the paired standard error `above_best_se`; `loss`, the loss
        for each observed entry; `silhouette`; `correlated_error`, the error of the best mixture with
        correlated columns, and its number of factors `factors` (NaN and -1 where it was not needed).
    column_errors_ : ndarray of shape (len(k), n_features)
        `error` by column; NaN where nothing of a column was hidden.
    centers_k_ : int
        The number that centers alone ask for. More than `best_k_` where columns are correlated within
        clusters.
    correlated_ : bool
        Whether columns are correlated within clusters by so much that it matters for the choice.
    n_hidden_ : int
        Number of entries that were hidden, over all folds.
    n_rows_ : int
        Number of rows that the choice rests on; fewer than the table has if it is large.
    """

    best_k_: int
    clear_: bool
    reason_: str
    sentence_: str
    model_: KPOD
    table_: dict[str, Any]
    column_errors_: Floats
    centers_k_: int
    correlated_: bool
    n_hidden_: int
    n_rows_: int

    def __str__(self) -> str:
        return f"{self.text_table()}\n\n{self.sentence_}"

    def text_table(self) -> str:
        """The table as text."""
        t = self.table_
        correlated = bool(np.isfinite(t["correlated_error"]).any())
        header = "  k   held-out error      above best          loss  silhouette"
        lines = [header + ("   correlated" if correlated else "")]
        for i, k in enumerate(t["k"]):
            line = (
                f"{k:3d}   {t['error'][i]:.4g} ± {t['error_se'][i]:<8.2g}  "
                f"{t['above_best'][i]:.2g} ± {t['above_best_se'][i]:<8.2g}  {t['loss'][i]:8.4g}  "
                f"{_number(t['silhouette'][i], '.3f'):>8}"
            )
            if correlated:
                line += f"  {_number(t['correlated_error'][i], '.4g'):>10}"
            lines.append(line + ("  <-" if k == self.best_k_ else ""))
        return "\n".join(lines)


def _number(value: float, form: str) -> str:
    return format(value, form) if np.isfinite(value) else ""


def choose_k(
    X: Any,
    k: Any = "auto",
    *,
    estimator: KPOD | None = None,
    sample_weight: Any = None,
    random_state: Any = None,
    progress: Progress | None = None,
) -> KChoice:
    r"""Choose the number of clusters by hiding observed entries and predicting them.

    Five times, a tenth of the observed entries is hidden, the table is clustered without them, and
    the entries are predicted by the centers of their rows:

    .. math:: e(k) = \frac{1}{|H|} \sum_{(i,j) \in H} (x_{ij} - c_{l(i)j})^2

    The smallest k whose error lies within one standard error of the smallest error is taken, the
    standard error being that of the difference (over rows). If columns are correlated *within* the
    clusters found, so that centers count pieces rather than groups, the number is chosen again among
    Gaussian mixtures that allow for correlation; one correlated group is among them.

    Parameters
    ----------
    X : array-like, dataframe or sparse matrix of shape (n_samples, n_features)
        The table. Columns count by their scale: standardise them first unless they share a unit.
    k : "auto" or iterable of int, default="auto"
        The numbers to choose from. "auto" is 1 to 10, and up to 40 for as long as more clusters
        predict better.
    estimator : KPOD, default=None
        How to cluster; `n_clusters` and `random_state` are set here.
    sample_weight : array-like of shape (n_samples,), default=None
        The weight of each row, in the clustering and in the errors.
    random_state : int, RandomState instance or None, default=None
        Determines what is hidden, and the starts.
    progress : callable, default=None
        Called as `progress(done, total, text)` while fits are run; `total` may grow.

    Returns
    -------
    KChoice
        `best_k_`, `sentence_`, `table_`, and the fitted `model_`; see there.

    Notes
    -----
    On more than 20,000 rows, the choice rests on a random sample of 20,000 (`n_rows_`); the model is
    fitted on all.

    Examples
    --------
    >>> from kpod import choose_k
    >>> from kpod.datasets import make_mixture
    >>> from kpod.missingness import mcar
    >>> X, _ = make_mixture(4, n_rows=200, n_columns=10, rng=0)
    >>> choice = choose_k(mcar(X, 0.3, rng=0), range(1, 7), random_state=0)
    >>> choice.best_k_, choice.clear_
    (4, True)
    >>> choice.model_.n_clusters
    4
    """
    search = Search.of(X, estimator, sample_weight, random_state, progress)
    ks, extendable = _numbers(k, search.usable)
    search.plan(len(ks) * (search.n_folds + 1))
    search.try_centers(ks)
    while extendable and search.centers_choice() == max(search.centers) and max(search.centers) < search.most:
        end = max(search.centers)
        more = range(end + 1, min(2 * end, LAST_RANGE, search.most) + 1)
        search.plan(len(more) * (search.n_folds + 1))
        search.try_centers(more)
    return search.conclude(extendable)


def _numbers(k: Any, usable: int) -> tuple[list[int], bool]:
    """The numbers of clusters to try, and whether more may be tried."""
    if isinstance(k, str):
        if k != "auto":
            raise ValueError(f"k must be 'auto' or the numbers of clusters to choose from, got {k!r}.")
        return list(range(1, min(FIRST_RANGE, max(1, usable // 2)) + 1)), True
    if isinstance(k, Integral) or not isinstance(k, Iterable):
        raise ValueError(
            f"k must be 'auto' or several numbers to choose from, such as range(1, 11); got {k!r}. "
            "For a fixed number use KPOD(n_clusters=...)."
        )
    given = list(k)
    for value in given:
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
            raise ValueError(f"k must hold whole numbers from 1 up, got {value!r}.")
    ks = sorted({int(value) for value in given})
    if not ks:
        raise ValueError("k is empty: give at least one number of clusters, such as range(1, 11).")
    if ks[-1] > usable:
        raise ValueError(
            f"k goes up to {ks[-1]}, but only {usable} rows of X have anything observed: "
            f"at most {usable} clusters can be asked for."
        )
    return ks, False


@dataclass
class Trial:
    """What is known about one number of clusters."""

    errors: Errors
    labels: list[Labels]  # of each fold
    model: KPOD  # on all rows that the choice rests on


@dataclass
class Correlated:
    """The best mixture with correlated columns at one number of clusters, and the one without."""

    plain: Errors
    best: Errors
    n_factors: int
    own: bool

    def matters(self) -> bool:
        """Whether correlation predicts hidden entries better than the mixture without it."""
        above, error = self.plain.above(self.best)
        return self.n_factors > 0 and above > error


@dataclass
class Search:
    """The state of a search: what was tried so far, on which folds."""

    X: Any  # the rows that the choice rests on
    whole: Any
    weights: Floats | None
    whole_weights: Any
    estimator: KPOD
    usable: int
    rng: np.random.RandomState
    progress: Progress | None
    folds: list[Fold]
    seed: int
    centers: dict[int, Trial] = field(default_factory=dict)
    correlated: dict[int, Correlated] = field(default_factory=dict)
    done: int = 0
    planned: int = 0

    @classmethod
    def of(
        cls, X: Any, estimator: KPOD | None, sample_weight: Any, random_state: Any, progress: Progress | None
    ) -> Search:
        estimator = KPOD() if estimator is None else estimator
        if not isinstance(estimator, KPOD):
            raise TypeError(f"estimator must be a KPOD, got {type(estimator).__name__}.")
        rng = check_random_state(random_state)
        values = _validation.as_table(X, None)
        data = values.data if sparse.issparse(values) else values
        if np.isinf(data).any():
            raise ValueError("X contains infinity. Replace it by NaN if it stands for a missing value.")
        weights = _validation.check_weights(sample_weight, values.shape[0])
        observed = np.diff(values.indptr) if sparse.issparse(values) else (~np.isnan(values)).sum(axis=1)
        usable = np.flatnonzero((observed > 0) & (True if weights is None else weights > 0))
        rows = usable
        if len(rows) > MOST_ROWS:
            rows = np.sort(rng.permutation(rows)[:MOST_ROWS])
        table = values if len(rows) == values.shape[0] else values[rows]
        if sparse.issparse(table):
            table = sparse.csr_array(table)
        seed = int(rng.randint(2**31 - 1))
        folds = list(_holdout.folds(table, seed))
        hidden = sum(len(fold.rows) for fold in folds)
        if hidden < LEAST_HIDDEN or min(len(fold.rows) for fold in folds) == 0:
            raise ValueError(
                f"X has too few observed entries to hide some and predict them ({hidden} could be hidden, at "
                f"least {LEAST_HIDDEN} are needed): every row must keep one entry and every column two. "
                "Choose the number of clusters yourself, with KPOD(n_clusters=...)."
            )
        return cls(
            table,
            X,
            None if weights is None else weights[rows],
            sample_weight,
            estimator,
            len(usable),
            rng,
            progress,
            folds,
            seed,
        )

    @property
    def n_folds(self) -> int:
        return len(self.folds)

    @property
    def most(self) -> int:
        """The most clusters that "auto" looks at."""
        return min(LAST_RANGE, max(1, self.usable // 2))

    def plan(self, more: int) -> None:
        self.planned += more

    def tell(self, text: str) -> None:
        self.done += 1
        if self.progress:
            self.progress(self.done, max(self.planned, self.done), text)

    def fitted(self, table: Any, k: int, **settings: Any) -> KPOD:
        """A fit whose warnings are for the model that is returned to give, once."""
        model = clone(self.estimator).set_params(n_clusters=k, random_state=self.seed, **settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(table, sample_weight=self.weights)

    def try_centers(self, ks: Iterable[int]) -> None:
        """Hold entries out and predict them by the centers, for each of some numbers of clusters."""
        for k in ks:
            errors, labels = [], []
            for fold in self.folds:
                model = self.fitted(fold.table, k, n_init=STARTS)
                predicted = _holdout.center_predictions(fold, model.labels_, model.cluster_centers_)
                errors.append(fold.squared_errors(predicted))
                labels.append(model.labels_)
                self.tell(f"{k} clusters")
            model = self.fitted(self.X, k)
            self.tell(f"{k} clusters")
            self.centers[k] = Trial(
                _holdout.add_up(self.X.shape, self.folds, errors, self.weights), labels, model
            )

    def centers_choice(self) -> int:
        return smallest_within_noise({k: trial.errors for k, trial in self.centers.items()})

    def mixture_rows(self) -> Any:
        """A sample of the rows where the table is too large for mixtures."""
        n = self.X.shape[0]
        entries = self.X.nnz if sparse.issparse(self.X) else self.X.size
        most = max(200, int(MOST_MIXTURE_ENTRIES / max(1, entries / n)))
        return np.arange(n) if n <= most else np.sort(self.rng.permutation(n)[:most])

    def loss(self, k: int) -> float:
        """The loss for each observed entry, on the same scale as the error."""
        model = self.centers[k].model
        return float(model.inertia_ / max(model.counts_.sum(), 1e-300))

    def silhouette(self, k: int) -> float:
        """NaN where there is none: one cluster, or as many as rows."""
        labels = self.centers[k].model.labels_
        most = MOST_SILHOUETTE_ROWS
        chosen = np.linspace(0, len(labels) - 1, min(most, len(labels))).astype(np.intp)
        labels = labels[chosen]
        n_clusters = len(np.unique(labels[labels >= 0]))
        if not 1 < n_clusters < (labels >= 0).sum():
            return np.nan
        return silhouette_score(self.X[chosen], labels)

    def agreement(self, k: int) -> float:
        """Adjusted Rand index of the clusters and the groups of the mixture with correlated columns."""
        found, labels = self.correlated[k], self.centers[k].model.labels_
        rows = self.mixture_rows()
        entries = _mixture.Entries(self.X[rows], None if self.weights is None else self.weights[rows])
        m = settled(entries, _mixture.from_labels(entries, labels[rows], k, isotropic=False))
        for _ in range(found.n_factors):
            m = settled(entries, _mixture.with_factor(entries, m))
        m = settled(entries, m.own()) if found.own else m
        return float(adjusted_rand_score(labels[rows], _mixture.posterior(entries, m).argmax(axis=1)))

    def conclude(self, extendable: bool) -> KChoice:
        by_centers = self.centers_choice()
        k = by_centers
        if by_centers > 1:
            mixtures = Mixtures(self, self.mixture_rows())
            k = mixtures.choose(by_centers)
        return conclusion(self, by_centers, k, extendable)


def settled(entries: _mixture.Entries, m: _mixture.Mixture) -> _mixture.Mixture:
    return _mixture.run(entries, m, isotropic=False, n_steps=MIXTURE_STEPS, tol=MIXTURE_TOL)


class Mixtures:
    """Mixtures with correlated columns, on the folds of a search."""

    def __init__(self, search: Search, rows: Any) -> None:
        self.search = search
        self.rows = rows
        self.folds = [_fold_of(fold, rows) for fold in search.folds]
        self.weights = None if search.weights is None else search.weights[rows]
        self.entries = [_mixture.Entries(fold.table, self.weights) for fold in self.folds]

    def errors(self, fitted: list[_mixture.Mixture]) -> Errors:
        squared = []
        for fold, entries, m in zip(self.folds, self.entries, fitted, strict=True):
            predicted = _mixture.predict_entries(entries, m, fold.rows, fold.columns)
            squared.append(fold.squared_errors(predicted))
        shape = (len(self.rows), self.search.X.shape[1])
        return _holdout.add_up(shape, self.folds, squared, self.weights)

    def at(self, k: int) -> Correlated:
        """With k clusters: no factors, then one more at a time for as long as that helps."""
        labels = self.search.centers[k].labels
        common = [
            settled(entries, _mixture.from_labels(entries, label[self.rows], k, isotropic=False))
            for entries, label in zip(self.entries, labels, strict=True)
        ]
        plain = self.errors(common)
        best = Correlated(plain, plain, 0, False)
        for q in range(1, min(MOST_FACTORS, self.search.X.shape[1] - 1) + 1):
            self.search.plan(1)
            self.search.tell(f"{k} clusters, {q} factors")
            common = [
                settled(entries, _mixture.with_factor(entries, m))
                for entries, m in zip(self.entries, common, strict=True)
            ]
            found = [Correlated(plain, self.errors(common), q, False)]
            if k > 1:
                own = [settled(entries, m.own()) for entries, m in zip(self.entries, common, strict=True)]
                found.append(Correlated(plain, self.errors(own), q, True))
            better = min(found, key=lambda c: c.best.mean)
            if better.best.mean >= best.best.mean:
                break
            best = better
        return best

    def choose(self, by_centers: int) -> int:
        """The number of clusters among mixtures with correlated columns, from above."""
        search = self.search
        tried = search.correlated
        tried[by_centers] = self.at(by_centers)
        hopeless = 0
        for k in sorted((k for k in search.centers if k < by_centers), reverse=True):
            if k > FIRST_CORRELATED:
                continue
            tried[k] = self.at(k)
            best = min((c.best for c in tried.values()), key=lambda e: e.mean)
            above, error = tried[k].best.above(best)
            hopeless = hopeless + 1 if above > HOPELESS * error else 0
            if hopeless == 2:
                break
        k = smallest_within_noise({k: c.best for k, c in tried.items()})
        # Do more clusters than centers ask for still help? Then neither number is to be trusted.
        more = min((n for n in search.centers if n > by_centers), default=None)
        if k == by_centers and more is not None:
            beyond = self.at(more)
            above, error = tried[k].best.above(beyond.best)
            if above > error:
                tried[more] = beyond
        return k


def _fold_of(fold: Fold, rows: Any) -> Fold:
    """A fold of some of the rows."""
    n = fold.table.shape[0]
    if len(rows) == n:
        return fold
    place = np.full(n, -1)
    place[rows] = np.arange(len(rows))
    inside = place[fold.rows] >= 0
    table = fold.table[rows]
    if sparse.issparse(table):
        table = sparse.csr_array(table)
    return Fold(table, place[fold.rows[inside]], fold.columns[inside], fold.values[inside])


def smallest_within_noise(errors: dict[int, Errors]) -> int:
    """The smallest number whose error is within one paired standard error of the smallest error."""
    best = min(errors, key=lambda k: errors[k].mean)
    for k in sorted(errors):
        above, error = errors[k].above(errors[best])
        if above <= error:
            return k
    return best


def conclusion(search: Search, by_centers: int, k: int, extendable: bool) -> KChoice:
    """The result, in numbers and in words."""
    numbers = sorted(search.centers)
    errors = {n: search.centers[n].errors for n in numbers}
    found = search.correlated.get(by_centers)
    correlated = found is not None and found.matters()
    curve = {n: c.best for n, c in search.correlated.items()} if correlated else errors
    reason = why_unclear(search, curve, by_centers, k, correlated, extendable)
    model = clone(search.estimator).set_params(n_clusters=k, random_state=search.seed)
    model.fit(search.whole, sample_weight=search.whole_weights)
    best = min(errors.values(), key=lambda e: e.mean)
    above = [errors[n].above(best) for n in numbers]
    nothing = Correlated(best, best, -1, False)
    mixtures = [search.correlated.get(n, nothing) for n in numbers]
    table = {
        "k": np.array(numbers),
        "error": np.array([errors[n].mean for n in numbers]),
        "error_se": np.array([errors[n].standard_error for n in numbers]),
        "above_best": np.array([mean for mean, _ in above]),
        "above_best_se": np.array([error for _, error in above]),
        "loss": np.array([search.loss(n) for n in numbers]),
        "silhouette": np.array([search.silhouette(n) for n in numbers]),
        "correlated_error": np.array([np.nan if m is nothing else m.best.mean for m in mixtures]),
        "factors": np.array([m.n_factors for m in mixtures]),
    }
    return KChoice(
        best_k_=k,
        clear_=not reason,
        reason_=reason,
        sentence_=in_words(search, curve, by_centers, k, correlated, reason),
        model_=model,
        table_=table,
        column_errors_=np.array([errors[n].column_means for n in numbers]),
        centers_k_=by_centers,
        correlated_=correlated,
        n_hidden_=sum(len(fold.rows) for fold in search.folds),
        n_rows_=search.X.shape[0],
    )


def why_unclear(
    search: Search, curve: dict[int, Errors], by_centers: int, k: int, correlated: bool, extendable: bool
) -> str:
    """The reason why the choice is not clear; empty if it is."""
    last = max(search.centers)
    best = min(curve, key=lambda n: curve[n].mean)
    if k == last and len(search.centers) > 1 and k > 1:
        most = "the most that were tried" if extendable else "the end of the range"
        return f"the error on hidden entries is still falling at {last} clusters, {most}"
    if correlated and k == by_centers and best > k:
        return (
            f"columns are correlated within clusters, and more clusters than the {k} that centers ask for "
            "still help to trace it"
        )
    between = [n for n in curve if k < n < best and beyond_noise(curve[n], curve[best])]
    if between:
        return f"{k} and {best} clusters predict hidden entries about equally well, and numbers between worse"
    return ""


def beyond_noise(errors: Errors, best: Errors) -> bool:
    above, error = errors.above(best)
    return above > 2 * error


def in_words(
    search: Search, curve: dict[int, Errors], by_centers: int, k: int, correlated: bool, reason: str
) -> str:
    """The finding as a reader without statistics would want it."""
    sentences = []
    if reason:
        sentences.append(f"No clear choice: {reason}. {clusters(k)} {'is' if k == 1 else 'are'} used.")
    elif k == 1 and not correlated:
        sentences.append(
            "One cluster: more centers do not predict hidden entries better, so there is no sign of groups."
        )
    elif k == 1:
        sentences.append(
            "One cluster: the columns are correlated, and a single correlated group predicts hidden entries "
            f"as well as several would. Centers alone would cut it into {by_centers} pieces."
        )
    else:
        gain = ""
        if 1 in curve and curve[1].mean > 0:
            gain = f", {1 - curve[k].mean / curve[1].mean:.0%} better than with one cluster"
        sentences.append(
            f"{clusters(k)}: hidden entries are predicted best with {k}{gain}; fewer do worse by more than "
            "the noise, more do not do better."
        )
    if correlated and k > 1:
        pieces = f"; centers alone would ask for {by_centers} pieces" if by_centers > k else ""
        sentences.append(f"Columns are correlated within clusters, which was allowed for{pieces}.")
        agreement = search.agreement(k)
        if agreement < DISAGREEMENT:
            sentences.append(
                "The round clusters of k-means match these groups only in part "
                f"(adjusted Rand index {agreement:.2f})."
            )
    if search.X.shape[0] < search.usable:
        sentences.append(f"The choice rests on a random sample of {search.X.shape[0]:,} rows.")
    return " ".join(sentences)


def clusters(k: int) -> str:
    return "One cluster" if k == 1 else f"{k} clusters"
