"""Would correlation predict the hidden entries as well as more centers do? Mixtures with common factors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kpod._common.blas import one_thread
from kpod._common.column_groups import ColumnGroups, Contrasts
from kpod._common.typing import Floats, Labels, Positions
from kpod._engine.table import Table
from kpod._mixture import em
from kpod._selection import holdout
from kpod._selection.holdout import Errors, Fold, above, smallest_within

if TYPE_CHECKING:
    from kpod._selection.search import Search
MOST_MIXTURE_ENTRIES = 200_000
MOST_GAP_CELLS = 5_000_000  # observed or not, of all folds that gaps are predicted in
FACTORS = (1, 2, 3, 4, 6, 8, 12, 16, 24)  # tried in turn for as long as more help
MOST_OWN_FACTORS = 4
STEPS_EXPECTED = 4  # of adding factors, to foresee how long they take
MIXTURE_STEPS = 20
MIXTURE_TOL = 3e-3  # of log-likelihood a row
FIRST_CORRELATED = 10  # of more pieces than that, mixtures are tried at this number and below


# All in standard errors of the difference of two errors, paired:
NOISE = 1.0  # the smallest number of centers within this of the best is taken
CORRELATED_GAIN = 1.0  # fewer correlated groups must gain this over the number that centers ask for
OWN_GAIN = 3.0  # a correlation for each cluster must gain this over a common one to be believed,
OWN_DOUBT = 1.5  # and this to raise doubts
HOPELESS = 3.0  # above the best; after two such numbers in a row, fewer clusters are not tried


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


def most_mixture_rows(table: Table) -> int:
    return max(200, int(MOST_MIXTURE_ENTRIES / max(1, table.n_entries / table.n_rows)))


def work_of_fit(k: int) -> float:
    """The work of a fit with k clusters next to others: the time of one grows with them, from an offset."""
    return k + 2.0


def counted(k: int) -> str:
    return "1 cluster" if k == 1 else f"{k} clusters"


def settled(entries: em.Entries, m: em.Mixture) -> em.Mixture:
    return em.run(entries, m, isotropic=False, n_steps=MIXTURE_STEPS, tol=MIXTURE_TOL)


class Mixtures:
    """Mixtures with correlated columns, on the folds of a search."""

    def __init__(self, search: Search, rows: Any) -> None:
        self.search = search
        self.rows = rows
        self.weights = None if search.weights is None else search.weights[rows]
        values = search.values if len(rows) == search.table.n_rows else search.values[rows]
        reduced = Reduced.of(values, search.table.groups)
        self.groups = reduced.groups
        self.folds = [reduced.hidden(some_of(fold, rows)) for fold in search.folds]
        self.entries = [
            em.Entries(reduced.values, self.weights, hidden=(fold.rows, fold.columns), groups=reduced.groups)
            for fold in self.folds
        ]

    def each(self, change: Callable[[em.Entries, Any], em.Mixture], start: list[Any]) -> list[em.Mixture]:
        """Change the mixture of every fold and let it settle, the folds side by side."""

        def of_fold(number: int) -> em.Mixture:
            entries = self.entries[number]
            return settled(entries, change(entries, start[number]))

        return self.search.executor.map(of_fold, range(len(self.folds)))

    def errors(self, fitted: list[em.Mixture]) -> Errors:
        surprise = self.surprise(fitted) if self.search.gaps else None
        return self.search.with_gaps(self.errors_on_values(fitted), surprise)

    def errors_on_values(self, fitted: list[em.Mixture]) -> Errors:
        def of_fold(number: int) -> Floats:
            fold = self.folds[number]
            predicted = em.predict_entries(self.entries[number], fitted[number], fold.rows, fold.columns)
            return (fold.values - predicted) ** 2

        squared = self.search.executor.map(of_fold, range(len(self.folds)))
        return holdout.add_up(
            (len(self.rows), len(self.groups.source)), self.folds, squared, self.weights, self.groups
        )

    def surprise(self, fitted: list[em.Mixture]) -> Floats:
        """How unexpected the gaps of each row are, in the mean of some folds."""
        n_cells = len(self.rows) * self.groups.n_sources
        some = range(max(1, min(len(self.folds), MOST_GAP_CELLS // n_cells)))

        def of_fold(number: int) -> Floats:
            return em.surprise_of_gaps(self.entries[number], fitted[number])

        found: Floats = np.mean(self.search.executor.map(of_fold, some), axis=0)
        return found

    def of_labels(self, labels: list[Labels], k: int) -> tuple[Errors, Floats]:
        """What clusters with gaps of their own fail to predict: values, and gaps.

        A row whose values say little of its cluster is predicted by all clusters that its gaps allow.
        """
        fitted = [
            em.from_labels(entries, label[self.rows], k, isotropic=True, gaps=True)
            for entries, label in zip(self.entries, labels, strict=True)
        ]
        with one_thread():
            return self.errors_on_values(fitted), self.surprise(fitted)

    def at(self, k: int) -> Correlated:
        """With k clusters: no factors, then more at a time for as long as that helps.

        Not where the error is so large that it could not come down to the best so far, even if every
        further factor gained half as much as the last.
        """
        known = [c.best for c in self.search.correlated.values()]
        labels = self.search.centers[k].labels
        common = self.each(
            lambda entries, label: em.from_labels(
                entries, label[self.rows], k, isotropic=False, gaps=self.search.gaps
            ),
            labels,
        )
        plain = self.errors(common)
        found = Correlated(plain, plain, 0, plain, 0)
        try_own, waited = k > 1, 0
        most = min(FACTORS[-1], len(self.groups.source) - 1)
        for before, q in itertools.pairwise([0, *FACTORS]):
            if before >= most:
                break
            q = min(q, most)  # noqa: PLW2901
            self.search.plan(1)
            self.search.tell(f"{counted(k)}, correlated")
            common = self.each(partial(em.with_factors, number=q - before), common)
            errors = self.errors(common)
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
                own = self.each(lambda _, m: m.own(), common)
                errors = self.errors(own)
                try_own = errors.mean < found.own.mean
                if try_own:
                    found.own, found.n_own = errors, q
            if not helped and (not try_own or not found.n_common):
                break
        self.waited_for(k, waited, all_steps=True)
        return found

    def waited_for(self, k: int, steps: int, *, all_steps: bool = False) -> int:
        """Count a step of the mixtures of k clusters, or all that are left, among those planned."""
        more = max(0, STEPS_EXPECTED - steps if all_steps else min(1, STEPS_EXPECTED - steps))
        if self.search.wait and more:
            self.search.wait.step(more * work_of_fit(k))
        return more

    def verdict(self, by_centers: int) -> Verdict:
        """Choose again, from the number that centers ask for downwards."""
        tried = self.search.correlated
        fewer = sorted((k for k in self.search.centers if k < by_centers), reverse=True)
        fewer = [k for k in fewer if k <= FIRST_CORRELATED]
        if self.search.wait:
            self.search.wait.begin(STEPS_EXPECTED * sum(map(work_of_fit, [by_centers, *fewer])))
        tried[by_centers] = self.at(by_centers)
        hopeless = 0
        for k in fewer:
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
            doubt = self.as_well(k, by_centers)
            k = by_centers
        elif OWN_DOUBT < gain <= OWN_GAIN and with_own != k:
            doubt = self.as_well(with_own, k)
        elif k > 1 and 1 in curve and above(curve[1], lowest(curve.values())) <= NOISE:
            doubt = self.as_well(1, k)
        matters = k < by_centers or above(tried[k].plain, curve[k]) > NOISE
        if not matters:
            return Verdict(k, by_centers, False, self.search.by_centers, None, doubt)
        # Would more clusters than centers ask for help, too? Then neither number is to be trusted.
        more = min((n for n in self.search.centers if n > by_centers), default=None)
        if k == by_centers and more is not None and not doubt:
            beyond = self.at(more)
            if above(curve[k], beyond.own if kind == "own" else beyond.common) > NOISE:
                tried[more] = beyond
                doubt = (
                    f"columns are correlated within clusters, and more than {k} clusters still predict "
                    "better, perhaps only because they follow that correlation more closely"
                )
        return Verdict(k, by_centers, True, curve, kind, doubt)

    def as_well(self, fewer: int, more: int) -> str:
        one = "one correlated group predicts" if fewer == 1 else f"{fewer} correlated groups predict"
        hidden = predicted(self.search.gaps)
        return f"columns are correlated, and {one} {hidden} about as well as {more} clusters do"

    @staticmethod
    def smallest(curve: dict[int, Errors], by_centers: int) -> int:
        """The number that centers ask for if it is the best here, too; else the smallest in the noise."""
        best = min(curve, key=lambda k: curve[k].mean)
        return by_centers if best == by_centers else smallest_within(curve, NOISE)


def predicted(gaps: bool) -> str:
    """What numbers of clusters are compared by."""
    return "hidden values and gaps" if gaps else "hidden values"


class HiddenEntries(NamedTuple):
    """Entries that a fold hides, row by row."""

    rows: Positions
    columns: Positions
    values: Floats


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


def lowest(errors: Iterable[Errors]) -> Errors:
    return min(errors, key=lambda e: e.mean)
