"""The search behind `choose_k`: what is tried, on which hidden entries, and which number that makes.

Every number of clusters is judged by the squared error on the same hidden entries; `Verdict` says what
follows. The constants were chosen on tables of other seeds than those of `python -m benchmarks choose`.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
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
MANY_ENTRIES = 20_000  # observed, beyond which half the folds tell as much as is needed
LEAST_HIDDEN = 20
FACTORS = (1, 2, 3, 4, 6, 8, 12, 16, 24)  # tried in turn for as long as more help
MOST_OWN_FACTORS = 4
MIXTURE_STEPS = 20
MIXTURE_TOL = 3e-3  # of log-likelihood a row
FIRST_CORRELATED = 10  # of more pieces than that, mixtures are tried at this number and below

# All in standard errors of the difference of two errors, paired:
NOISE = 1.0  # the smallest number of centers within this of the best is taken
CORRELATED_GAIN = 1.0  # fewer correlated groups must gain this over the number that centers ask for
OWN_GAIN = 3.0  # a correlation for each cluster must gain this over a common one to be believed,
OWN_DOUBT = 1.5  # and this to raise doubts
HOPELESS = 3.0  # above the best; after two such numbers in a row, fewer clusters are not tried

Progress = Callable[[int, int, str], None]


@dataclass
class Trial:
    """What is known about one number of clusters."""

    errors: Errors
    labels: list[Labels]  # of each fold
    model: KPOD  # on all rows that the choice rests on


@dataclass
class Correlated:
    """Mixtures with correlated columns at one number of clusters: the best of each kind.

    `common`: correlated in the same way in all clusters, or not at all; `own`: in each its own way.
    """

    plain: Errors
    common: Errors
    n_common: int
    own: Errors
    n_own: int

    @property
    def best(self) -> Errors:
        return min(self.common, self.own, key=lambda e: e.mean)


@dataclass
class Verdict:
    """The number of clusters, and what it rests on.

    `curve` holds the errors that decided: of centers, or (`correlated`) of mixtures with a `common`
    correlation or one of each cluster's `own`. `doubt` says why the choice is not clear.
    """

    k: int
    by_centers: int
    correlated: bool
    curve: dict[int, Errors]
    kind: str | None
    doubt: str


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
        if values.shape[1] == 1:
            raise ValueError(
                "X has one column: with its entry hidden, nothing is left of a row to predict it from. "
                "Give the number of clusters yourself."
            )
        seed = int(rng.randint(2**31 - 1))
        n_folds = _holdout.N_FOLDS if observed[rows].sum() <= MANY_ENTRIES else _holdout.N_FOLDS // 2
        folds = list(_holdout.folds(table, seed, n_folds=n_folds))
        hidden = sum(len(fold.rows) for fold in folds)
        if hidden < LEAST_HIDDEN or min(len(fold.rows) for fold in folds) == 0:
            raise ValueError(
                f"X has too few observed entries to hide some and predict them ({hidden} could be hidden, at "
                f"least {LEAST_HIDDEN} are needed): every row must keep one entry and every column two. "
                "Give the number of clusters yourself."
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
                model = self.fitted(fold.table, k, n_init=STARTS if k > 1 else 1)
                predicted = _holdout.center_predictions(fold, model.labels_, model.cluster_centers_)
                errors.append(fold.squared_errors(predicted))
                labels.append(model.labels_)
                self.tell(counted(k))
            model = self.fitted(self.X, k)
            self.tell(counted(k))
            self.centers[k] = Trial(
                _holdout.add_up(self.X.shape, self.folds, errors, self.weights), labels, model
            )

    def centers_choice(self) -> int:
        return smallest_within({k: trial.errors for k, trial in self.centers.items()}, NOISE)

    def mixture_rows(self) -> Any:
        """A sample of the rows where the table is too large for mixtures: evenly spaced."""
        n = self.X.shape[0]
        entries = self.X.nnz if sparse.issparse(self.X) else self.X.size
        most = max(200, int(MOST_MIXTURE_ENTRIES / max(1, entries / n)))
        return np.linspace(0, n - 1, min(n, most)).astype(np.intp)

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

    def agreement(self, verdict: Verdict) -> float:
        """Adjusted Rand index of the clusters and the groups of the mixture with correlated columns."""
        k, own = verdict.k, verdict.kind == "own"
        found, labels = self.correlated[k], self.centers[k].model.labels_
        rows = self.mixture_rows()
        entries = _mixture.Entries(self.X[rows], None if self.weights is None else self.weights[rows])
        m = settled(entries, _mixture.from_labels(entries, labels[rows], k, isotropic=False))
        for _ in range(found.n_own if own else found.n_common):
            m = settled(entries, _mixture.with_factor(entries, m))
        m = settled(entries, m.own()) if own else m
        return float(adjusted_rand_score(labels[rows], _mixture.posterior(entries, m).argmax(axis=1)))

    def verdict(self) -> Verdict:
        by_centers = self.centers_choice()
        if by_centers == 1:
            errors = {k: trial.errors for k, trial in self.centers.items()}
            return Verdict(1, 1, False, errors, None, "")
        return Mixtures(self, self.mixture_rows()).verdict(by_centers)


def counted(k: int) -> str:
    return "1 cluster" if k == 1 else f"{k} clusters"


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
        """With k clusters: no factors, then more at a time for as long as that helps.

        Not where the error is so large that it could not come down to the best so far, even if every
        further factor gained half as much as the last.
        """
        known = [c.best for c in self.search.correlated.values()]
        labels = self.search.centers[k].labels
        common = [
            settled(entries, _mixture.from_labels(entries, label[self.rows], k, isotropic=False))
            for entries, label in zip(self.entries, labels, strict=True)
        ]
        plain = self.errors(common)
        found = Correlated(plain, plain, 0, plain, 0)
        try_own = k > 1
        most = min(FACTORS[-1], self.search.X.shape[1] - 1)
        for before, q in itertools.pairwise([0, *FACTORS]):
            if before >= most:
                break
            q = min(q, most)  # noqa: PLW2901
            self.search.plan(1)
            self.search.tell(f"{counted(k)}, correlated")
            for _ in range(before, q):
                common = [
                    _mixture.with_factor(entries, m) for entries, m in zip(self.entries, common, strict=True)
                ]
            common = [settled(entries, m) for entries, m in zip(self.entries, common, strict=True)]
            errors = self.errors(common)
            gain = found.common.mean - errors.mean
            helped = gain > 0
            if helped:
                found.common, found.n_common = errors, q
            missing = found.common.mean - min((e.mean for e in known), default=np.inf)
            reach = gain / (q - before) * (most - q) / 2
            if missing > reach and above(found.common, lowest(known)) > HOPELESS:
                break
            # What clusters have of their own shows in common, too, if less clearly.
            try_own = try_own and q <= MOST_OWN_FACTORS
            if try_own and found.n_common:
                own = [settled(entries, m.own()) for entries, m in zip(self.entries, common, strict=True)]
                errors = self.errors(own)
                try_own = errors.mean < found.own.mean
                if try_own:
                    found.own, found.n_own = errors, q
            if not helped and (not try_own or not found.n_common):
                break
        return found

    def verdict(self, by_centers: int) -> Verdict:
        """Choose again, from the number that centers ask for downwards."""
        tried = self.search.correlated
        tried[by_centers] = self.at(by_centers)
        hopeless = 0
        for k in sorted((k for k in self.search.centers if k < by_centers), reverse=True):
            if k > FIRST_CORRELATED:
                continue
            tried[k] = self.at(k)
            best = lowest(c.best for c in tried.values())
            hopeless = hopeless + 1 if above(tried[k].best, best) > HOPELESS else 0
            if hopeless == 2:
                break
        common = {k: c.common for k, c in tried.items()}
        own = {k: c.best for k, c in tried.items()}
        with_common, with_own = (self.smallest(curve, by_centers) for curve in (common, own))
        gain = above(lowest(common.values()), lowest(own.values()))
        kind, curve, k = ("own", own, with_own) if gain > OWN_GAIN else ("common", common, with_common)
        doubt = ""
        if k < by_centers and above(curve[by_centers], curve[k]) <= CORRELATED_GAIN:
            doubt = as_well(k, by_centers)
            k = by_centers
        elif OWN_DOUBT < gain <= OWN_GAIN and with_own != k:
            doubt = as_well(with_own, k)
        elif k > 1 and 1 in curve and above(curve[1], lowest(curve.values())) <= NOISE:
            doubt = as_well(1, k)
        matters = k < by_centers or above(tried[k].plain, curve[k]) > NOISE
        if not matters:
            errors = {n: trial.errors for n, trial in self.search.centers.items()}
            return Verdict(k, by_centers, False, errors, None, doubt)
        # Would more clusters than centers ask for help, too? Then neither number is to be trusted.
        more = min((n for n in self.search.centers if n > by_centers), default=None)
        if k == by_centers and more is not None and not doubt:
            beyond = self.at(more)
            if above(curve[k], beyond.own if kind == "own" else beyond.common) > NOISE:
                tried[more] = beyond
                doubt = (
                    f"columns are correlated within clusters, and more clusters than the {k} that centers "
                    "ask for still help to trace that"
                )
        return Verdict(k, by_centers, True, curve, kind, doubt)

    @staticmethod
    def smallest(curve: dict[int, Errors], by_centers: int) -> int:
        """The number that centers ask for if it is the best here, too; else the smallest in the noise."""
        best = min(curve, key=lambda k: curve[k].mean)
        return by_centers if best == by_centers else smallest_within(curve, NOISE)


def as_well(fewer: int, more: int) -> str:
    one = "one correlated group predicts" if fewer == 1 else f"{fewer} correlated groups predict"
    return f"columns are correlated, and {one} hidden entries about as well as {more} clusters do"


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


def above(errors: Errors, other: Errors) -> float:
    """By how many standard errors the one lies above the other."""
    difference, error = errors.above(other)
    if difference == 0:
        return 0.0
    return difference / error if error > 0 else float(np.copysign(np.inf, difference))


def lowest(errors: Iterable[Errors]) -> Errors:
    return min(errors, key=lambda e: e.mean)


def smallest_within(curve: dict[int, Errors], noise: float) -> int:
    """The smallest number whose error is within so many standard errors of the smallest error."""
    best = lowest(curve.values())
    return min(k for k in curve if above(curve[k], best) <= noise)
