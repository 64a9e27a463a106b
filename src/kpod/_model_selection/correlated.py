"""Does correlation predict the hidden entries as well as more centers do? Mixtures with common factors."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from kpod._common.blas import one_thread
from kpod._common.column_groups import ColumnGroups, Contrasts
from kpod._common.typing import Floats, Labels, Positions
from kpod._engine.executors import Executor
from kpod._engine.table import Table
from kpod._mixture.em.chunks import centered
from kpod._mixture.em.mixture_parameters import Parameters
from kpod._model_selection import holdout
from kpod._model_selection.hidden_values import PLAIN, Covered, HiddenEntries
from kpod._model_selection.holdout import Errors, Fold, above, lowest, smallest_within
from kpod._model_selection.missingness_likelihood import missingness_deviance
from kpod._model_selection.race import extended, is_out
from kpod._model_selection.trials import NOISE, StepCounter, Trials, counted, work_of_fit

MOST_MIXTURE_ENTRIES = 200_000
MOST_GAP_CELLS = 5_000_000  # observed or not, of all folds that gaps are predicted in
FACTORS = (1, 2, 3, 4, 6, 8, 12, 16, 24)  # tried in turn for as long as more help
MOST_OWN_FACTORS = 4
FIRST_FOLDS = 2  # on one or two of which a number of clusters may turn out to be hopeless
STEPS_EXPECTED = 4  # of adding factors, to foresee how long they take
FIRST_CORRELATED = 10  # of more pieces than that, mixtures are tried at this number and below


# All in standard errors of the difference of two errors, paired:
CORRELATED_GAIN = 1.0  # fewer correlated groups must gain this over the number that centers ask for
OWN_GAIN = 3.0  # a correlation for each cluster must gain this over a common one to be believed,
OWN_DOUBT = 1.5  # and this to raise doubts
HOPELESS = 3.0  # above the best; after so many such numbers in a row, fewer clusters are not tried
HOPELESS_IN_A_ROW = 2


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
        return lowest([self.common, self.own])

    def extended(self, best: Errors, best_in_all: Errors) -> Correlated:
        """Of some folds, as it would be on all, by its distance from the best."""
        plain, common, own = (extended(e, best, best_in_all) for e in (self.plain, self.common, self.own))
        return Correlated(plain, common, self.n_common, own, self.n_own)


@dataclass
class NumberVerdict:
    """The number of clusters, and what it rests on.

    `curve` holds the errors that decided: of centers, or (`correlated`) of mixtures with a `common`
    correlation or one of each cluster's `own`. `doubt` says why the choice is not clear. `mixtures` holds the
    errors of the best mixture at each number tried.
    """

    k: int
    by_centers: int
    correlated: bool
    curve: dict[int, Errors]
    kind: str | None
    doubt: str
    mixtures: dict[int, Errors] = field(default_factory=dict)


def most_mixture_rows(table: Table) -> int:
    return max(200, int(MOST_MIXTURE_ENTRIES / max(1, table.n_entries / table.n_rows)))


class Path:
    """Mixtures of k clusters with a rising number of factors, cached by fold."""

    def __init__(self, mixtures: Mixtures, k: int) -> None:
        self.mixtures, self.k = mixtures, k
        self.fitted: dict[Any, list[Parameters]] = {}

    def plain(self, n_folds: int) -> list[Parameters]:
        """Without factors, from the labels of centers."""
        labels, rows = self.mixtures.fold_labels(self.k, n_folds), self.mixtures.rows

        def fit(number: int) -> Parameters:
            covered = self.mixtures.covered[number]
            return covered.settled(covered.from_labels(labels[number][rows], self.k), PLAIN)

        return self._fit("plain", fit, n_folds)

    def common(self, q: int, before: int, n_folds: int) -> list[Parameters]:
        """With so many factors in common, where so many were fitted before."""

        def fit(number: int) -> Parameters:
            fewer = self.fitted[before or "plain"][number]
            return self.mixtures.covered[number].with_factors(fewer, q - before)

        return self._fit(q, fit, n_folds)

    def own(self, q: int, n_folds: int) -> list[Parameters]:
        """With loadings of each cluster's own."""

        def fit(number: int) -> Parameters:
            return self.mixtures.covered[number].with_own_loadings(self.fitted[q][number])

        return self._fit(("own", q), fit, n_folds)

    def _fit(self, name: Any, fit: Callable[[int], Parameters], n_folds: int) -> list[Parameters]:
        """The folds that are missing, side by side."""
        found = self.fitted.setdefault(name, [])
        found += self.mixtures.executor.map(fit, range(len(found), n_folds))
        return found[:n_folds]


class Mixtures:
    """Mixtures with correlated columns, on the folds of a search.

    Parameters
    ----------
    values : the table of the search, an array with NaN or CSR
    rows : of it that mixtures are fitted to
    folds : of the table
    executor : what folds are shared out by
    trials : the same numbers of clusters with centers alone
    fold_labels : the labels of these, of a number of clusters and so many folds
    counter : advanced with every step
    """

    def __init__(
        self,
        values: Any,
        rows: Positions,
        folds: list[Fold],
        executor: Executor,
        trials: Trials,
        fold_labels: Callable[[int, int], list[Labels]],
        counter: StepCounter,
    ) -> None:
        self.rows, self.executor, self.trials, self.counter = rows, executor, trials, counter
        self.fold_labels = fold_labels
        table = trials.table
        self.weights = None if table.weights is None else table.weights[rows]
        self.reduced = Reduced.of(values if len(rows) == table.n_rows else values[rows], table.groups)
        self.groups = self.reduced.groups
        self.folds = [self.reduced.hidden(some_of(fold, rows)) for fold in folds]
        self.seen_rates = self.rates_of_columns() if trials.gaps else None
        self.covered = executor.map(self.without, self.folds)
        self.tried: dict[int, Correlated] = {}
        self.by_labels: dict[int, tuple[list[Floats], list[Floats]]] = {}

    def without(self, fold: HiddenEntries | None) -> Covered:
        """What mixtures are fitted to, but for what a fold hides."""
        return Covered.of(
            self.reduced.values, self.weights, fold, self.groups, self.seen_rates, self.executor
        )

    @cached_property
    def seen(self) -> Any:
        """The mask of the table."""
        return centered(self.reduced.values, np.zeros(len(self.groups.source)))[1]

    def rates_of_columns(self) -> Floats:
        """The share of rows that observe each column."""
        weights = np.ones(len(self.rows)) if self.weights is None else self.weights
        return np.asarray(self.seen.T @ weights / max(float(weights.sum()), 1e-300))

    def errors(self, fitted: list[Parameters]) -> Errors:
        """What mixtures fail to predict, of all folds or the first few: values, and gaps if they count."""
        on_values = self.errors_on_values(fitted)
        if not self.trials.gaps:
            return on_values
        deviances = self.deviances(fitted)

        def with_gaps(errors: Errors, n_folds: int) -> Errors:
            return self.trials.with_gaps(errors, np.mean(deviances[:n_folds], axis=0))

        first = tuple(with_gaps(errors, n) for n, errors in enumerate(on_values.first, 1))
        return replace(with_gaps(on_values, len(fitted)), first=first)

    def errors_on_values(self, fitted: list[Parameters]) -> Errors:
        """On all folds, or on the first few if only those are fitted."""
        squared = self.executor.map(
            lambda number: self.squared_errors(number, fitted[number]), range(len(fitted))
        )
        few = range(1, min(FIRST_FOLDS + 1, len(fitted)))
        return replace(self.add_up(squared), first=tuple(self.add_up(squared[:n]) for n in few))

    def squared_errors(self, number: int, fitted: Parameters) -> Floats:
        """Of the entries that a fold hides."""
        fold = self.folds[number]
        predicted = self.covered[number].predict(fitted, fold.rows, fold.columns)
        return np.asarray((fold.values - predicted) ** 2)

    def add_up(self, squared: list[Floats]) -> Errors:
        """The errors of the first folds."""
        shape = len(self.rows), len(self.groups.source)
        return holdout.add_up(shape, self.folds[: len(squared)], squared, self.weights, self.groups)

    def deviances(self, fitted: list[Parameters]) -> list[Floats]:
        """How unexpected the gaps of each row are, in some folds."""
        some = range(min(len(fitted), self.n_gap_folds))
        return self.executor.map(lambda number: self.deviance(number, fitted[number]), some)

    @cached_property
    def n_gap_folds(self) -> int:
        """In how many folds gaps are judged at the most."""
        return max(1, MOST_GAP_CELLS // (len(self.rows) * self.groups.n_sources))

    def deviance(self, number: int, fitted: Parameters) -> Floats:
        """How unexpected the gaps of each row are, in one fold."""
        weights = np.ones(len(self.rows)) if self.weights is None else self.weights
        rates = self.seen_rates
        assert rates is not None
        assert fitted.rates is not None
        informative = np.flatnonzero((rates > 0) & (rates < 1) & self.groups.first)
        return missingness_deviance(
            self.seen, self.covered[number].posterior(fitted), fitted.rates, weights, informative
        )

    def of_labels(self, labels: list[Labels], k: int) -> tuple[Errors, Floats]:
        """What k clusters with gaps of their own fail to predict on the first folds: values, and gaps.

        A row whose values leave its cluster open is predicted by all clusters that its gaps allow.
        """
        squared, deviances = self.by_labels.setdefault(k, ([], []))
        with one_thread():
            for number in range(len(squared), len(labels)):
                fitted = self.covered[number].round_from_labels(labels[number][self.rows], k)
                squared.append(self.squared_errors(number, fitted))
                if number < self.n_gap_folds:
                    deviances.append(self.deviance(number, fitted))
        return self.add_up(squared[: len(labels)]), np.mean(deviances[: len(labels)], axis=0)

    def at(self, k: int) -> Correlated:
        """With k clusters: on all folds, unless the first few show that another number is better by far."""
        path, known = Path(self, k), [c.best for c in self.tried.values()]
        best = lowest(known) if known else None
        for n_folds, on_few in enumerate(best.first if best else (), 1):
            few = self.along(path, n_folds, [on_few])
            if best and is_out(few.best, on_few, n_folds, len(self.folds)):
                self.waited_for(k, 0, all_steps=True)
                return few.extended(on_few, best)
        return self.along(path, len(self.folds), known)

    def along(self, path: Path, n_folds: int, known: list[Errors]) -> Correlated:
        """With no factors, then more at a time for as long as that helps.

        Not where the error is so large that it could not come down to the best so far, even if every
        further factor gained half as much as the last.
        """
        k, waited = path.k, 0
        plain = self.errors(path.plain(n_folds))
        found = Correlated(plain, plain, 0, plain, 0)
        try_own = k > 1
        most = min(FACTORS[-1], len(self.groups.source) - 1)
        for before, q in itertools.pairwise([0, *FACTORS]):
            if before >= most:
                break
            q = min(q, most)  # noqa: PLW2901
            self.counter.plan(1)
            self.counter.advance(f"{counted(k)}, correlated")
            errors = self.errors(path.common(q, before, n_folds))
            if n_folds == len(self.folds):
                waited += self.waited_for(k, waited)
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
                errors = self.errors(path.own(q, n_folds))
                try_own = errors.mean < found.own.mean
                if try_own:
                    found.own, found.n_own = errors, q
            if not helped and (not try_own or not found.n_common):
                break
        if n_folds == len(self.folds):
            self.waited_for(k, waited, all_steps=True)
        return found

    def waited_for(self, k: int, steps: int, *, all_steps: bool = False) -> int:
        """Count a step of the mixtures of k clusters, or all that are left, among those planned."""
        more = max(0, STEPS_EXPECTED - steps if all_steps else min(1, STEPS_EXPECTED - steps))
        self.counter.step(more * work_of_fit(k))
        return more

    def verdict(self, by_centers: int) -> NumberVerdict:
        """Choose again, from the number that centers favor downwards."""
        tried = self.tried
        fewer = sorted((k for k in self.trials.by_k if k < by_centers), reverse=True)
        fewer = [k for k in fewer if k <= FIRST_CORRELATED]
        self.counter.plan(0, STEPS_EXPECTED * sum(map(work_of_fit, [by_centers, *fewer])))
        tried[by_centers] = self.at(by_centers)
        hopeless = 0
        for at_once in (fewer[i : i + HOPELESS_IN_A_ROW] for i in range(0, len(fewer), HOPELESS_IN_A_ROW)):
            tried |= dict(zip(at_once, self.executor.map(self.at, at_once), strict=True))
            best = lowest(c.best for c in tried.values())
            for k in at_once:
                hopeless = hopeless + 1 if above(tried[k].best, best) > HOPELESS else 0
            if hopeless >= HOPELESS_IN_A_ROW or self.counter.is_late:
                break
        common = {k: c.common for k, c in tried.items()}
        own = {k: c.best for k, c in tried.items()}
        with_common, with_own = (self.smallest(curve, by_centers) for curve in (common, own))
        gain = above(lowest(common.values()), lowest(own.values()))
        kind, curve, k = ("own", own, with_own) if gain > OWN_GAIN else ("common", common, with_common)
        doubt = ""
        if k < by_centers and above(curve[by_centers], curve[k]) <= CORRELATED_GAIN:
            doubt = self.as_well(k, by_centers)
            k = by_centers
        elif OWN_DOUBT < gain <= OWN_GAIN and with_own != k:
            doubt = self.as_well(with_own, k)
        elif k > 1 and 1 in curve and above(curve[1], lowest(curve.values())) <= NOISE:
            doubt = self.as_well(1, k)
        matters = k < by_centers or above(tried[k].plain, curve[k]) > NOISE
        if not matters:
            return NumberVerdict(k, by_centers, False, self.trials.errors, None, doubt, self.best_errors)
        # Would more clusters than centers ask for help, too? Then neither number is to be trusted.
        more = min((n for n in self.trials.by_k if n > by_centers), default=None)
        if k == by_centers and more is not None and not doubt and not self.counter.is_late:
            beyond = self.at(more)
            if above(curve[k], beyond.own if kind == "own" else beyond.common) > NOISE:
                tried[more] = beyond
                doubt = (
                    f"columns are correlated within clusters, and more than {k} clusters still predict "
                    "better, perhaps only because they follow that correlation more closely"
                )
        return NumberVerdict(k, by_centers, True, curve, kind, doubt, self.best_errors)

    @property
    def best_errors(self) -> dict[int, Errors]:
        return {k: found.best for k, found in self.tried.items()}

    def agreement(self, verdict: NumberVerdict) -> float:
        """Adjusted Rand index of the clusters and the groups of the mixture with correlated columns."""
        k, own = verdict.k, verdict.kind == "own"
        found, labels = self.tried[k], self.trials.by_k[k].whole.labels[self.rows]
        whole = self.without(None)
        with one_thread():
            m = whole.settled(whole.from_labels(labels, k), PLAIN)
            for _ in range(found.n_own if own else found.n_common):
                m = whole.with_factors(m, 1)
            m = whole.with_own_loadings(m) if own else m
            groups = whole.posterior(m).argmax(axis=1)
        return float(adjusted_rand_score(labels, groups))

    def as_well(self, fewer: int, more: int) -> str:
        one = "one correlated group predicts" if fewer == 1 else f"{fewer} correlated groups predict"
        hidden = predicted(self.trials.gaps)
        return f"columns are correlated, and {one} {hidden} about as well as {more} clusters do"

    @staticmethod
    def smallest(curve: dict[int, Errors], by_centers: int) -> int:
        """The number that centers favor, if it is best here, too; else the smallest in the noise."""
        best = min(curve, key=lambda k: curve[k].mean)
        return by_centers if best == by_centers else smallest_within(curve, NOISE)


def predicted(gaps: bool) -> str:
    """What the compared numbers of clusters predict."""
    return "hidden values and gaps" if gaps else "hidden values"


@dataclass(frozen=True)
class Reduced:
    """A table as mixtures take it: a category of m levels has m - 1 columns, at the same distances."""

    values: Any
    groups: ColumnGroups
    contrasts: Contrasts | None = None

    @classmethod
    def of(cls, values: Any, groups: ColumnGroups) -> Reduced:
        if not groups.present:
            return cls(values, groups)
        contrasts = Contrasts.of_table(values, groups)
        return cls(contrasts.values(values), contrasts.groups, contrasts)

    def hidden(self, of: HiddenEntries) -> HiddenEntries:
        """The same hidden entries in these columns."""
        if self.contrasts is None:
            return of
        here = np.isin(of.columns, self.contrasts.kept)
        rows, columns = of.rows[here], np.searchsorted(self.contrasts.kept, of.columns[here])
        return HiddenEntries(rows, columns, np.asarray(self.values[rows, columns], np.float64).ravel())


def some_of(fold: Fold, rows: Any) -> HiddenEntries:
    """What a fold hides of some of the rows, numbered among these."""
    place = np.full(fold.table.n_rows, -1)
    place[rows] = np.arange(len(rows))
    inside = place[fold.rows] >= 0
    return HiddenEntries(place[fold.rows[inside]], fold.columns[inside], fold.values[inside])
