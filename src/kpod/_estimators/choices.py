"""Parameters set to "auto", chosen on the table: number of clusters, shrinkage, missingness."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from kpod._common.long_waits import Wait, long_wait
from kpod._common.progress import Progress
from kpod._common.sentences.formatting import counted
from kpod._common.typing import Floats, Labels
from kpod._common.warnings import EmptyRowsWarning, warn
from kpod._engine.checkpoint import Checkpoint
from kpod._engine.executors import Executor
from kpod._engine.fit import QUIET, Fit, FitPlan
from kpod._engine.sampling import rows_here
from kpod._engine.seeding import SharedSeeds
from kpod._engine.solvers.interface import Solution
from kpod._engine.solvers.nearest import nearest_labels
from kpod._engine.table import Table, make_table
from kpod._kernels.panel import Panel
from kpod._model_selection.informative_missingness import (
    LEVEL,
    UNCLEAR,
    MissingnessDecision,
    decide_missingness,
)
from kpod._model_selection.number_of_clusters import KChoice, Shapes, conclusion, too_little
from kpod._model_selection.number_search import FIRST_RANGE, STARTS, YOURSELF, Search, TooLittleError

GAP_STARTS = 4  # of each fit on which the choice between them rests


@dataclass(frozen=True)
class Decided:
    """A plan with nothing left open, and what was found on the way.

    Parameters
    ----------
    plan : the plan
    choice : why this number of clusters, if it was open
    missingness : why gaps count or not, if that was open
    solution : of the plan on the whole table, where the search for the number has it already
    """

    plan: FitPlan
    choice: KChoice | None = None
    missingness: MissingnessDecision | None = None
    solution: Solution | None = None


@dataclass(frozen=True)
class Choices:
    """The parameters set to "auto", chosen for a table.

    Parameters
    ----------
    fit : the plan and the table; with the entries as an array or CSR array
    numbers : of clusters to choose from, or None for "auto"
    progress : told how far the search for the number is
    shapes : whether what shape the clusters have is chosen later
    deadline : when the search for the number has to end with the best answer so far, by `trials.clock`
    """

    fit: Fit
    numbers: Any = None
    progress: Progress | None = None
    shapes: Shapes = "offered"
    deadline: float | None = None

    @property
    def plan(self) -> FitPlan:
        return self.fit.plan

    @property
    def table(self) -> Table:
        return self.fit.table

    @property
    def seed(self) -> int:
        """What choices are drawn by."""
        return int(self.plan.generator().randint(2**31 - 1))

    def decide(self) -> Decided:
        """Decide what is open.

        Whether gaps count is decided for the number of clusters that is found when they do.
        """
        plan, table = self.plan, self.table
        if plan.gaps is not None:
            decided = self.number_and_shrinkage(gaps=plan.gaps and table.has_gaps)
            if decided.plan.gaps:
                self.doubt_gaps(decided.plan)
            return decided
        without = self.number_and_shrinkage(gaps=False)
        decision = cache(partial(self.missingness, without.plan))
        with_gaps = replace(without, plan=replace(without.plan, gaps=True), solution=None)
        shrinkage, k_without = without.plan.shrinkage, without.plan.n_clusters
        found = None
        if table.has_gaps and (plan.n_clusters is None or plan.shrinkage is None):
            found = self.unrelated_gaps(without.plan)
            if found is None:
                # Gaps that have nothing to do with the clusters ask for one for each pattern of gaps, and so
                # for more and more of them.
                with_gaps = self.number_and_shrinkage(
                    gaps=True, extend=lambda k: decision(k, shrinkage).p <= LEVEL
                )
        if found is None:
            k = with_gaps.plan.n_clusters
            found = decision(k_without if k == 1 else k, with_gaps.plan.shrinkage)
        write = plan.lines.writer(1)
        if write is not None:
            write(str(found))
        n_empty = table.n_empty
        if n_empty and not found.use:
            warn_of_empty(n_empty, table)
        return replace(with_gaps if found.use else without, missingness=found)

    def unrelated_gaps(self, without: FitPlan) -> MissingnessDecision | None:
        """The decision to ignore gaps that have nothing to do with the values, or None if they may have.

        Clusters that use the gaps have to predict values better, which gaps that are the same in all parts of
        the values cannot do: the search for their number would be in vain. Asked of the clusters that would
        be taken, and of twice as many, as the gaps may belong to parts of them.
        """
        n_clusters = without.n_clusters
        assert n_clusters is not None
        assert without.shrinkage is not None
        for k in (max(2, n_clusters), 2 * max(2, n_clusters)):
            if not self.missingness(without, k, without.shrinkage, first_only=True).p > UNCLEAR:
                return None
        return self.missingness(without, n_clusters, without.shrinkage, first_only=True)

    def missingness(
        self, without: FitPlan, n_clusters: int, shrinkage: float, *, first_only: bool = False
    ) -> MissingnessDecision:
        """Whether gaps count for so many clusters, against the plan that ignores them."""
        plans = {gaps: replace(without, gaps=gaps) for gaps in (False, True)}
        plans[True] = replace(plans[True], shrinkage=shrinkage)
        return decide_missingness(
            self.fit.values,
            self.table,
            self.fit.executor,
            partial(labels_by_gaps, plans, self.seed),
            n_clusters,
            np.random.default_rng(self.seed),
            without.n_clusters,
            first_only=first_only,
        )

    def doubt_gaps(self, plan: FitPlan) -> None:
        """Warn where gaps that are to count do not differ between the clusters of the values.

        That is the first question of "auto", on at most as many rows; the others take many fits. The seed is
        its own, so that the fit is the same with and without the question.
        """
        values = self.fit.values
        if hasattr(values, "blocks") or not isinstance(plan.init, str):
            return
        assert plan.n_clusters is not None
        found = decide_missingness(
            values,
            self.table,
            self.fit.executor,
            partial(labels_by_gaps, {False: replace(plan, gaps=False)}, 0),
            plan.n_clusters,
            np.random.default_rng(0),
            first_only=True,
        )
        if found.p > LEVEL:
            warn(
                "missingness='informative' uses the gaps, but clusters of the values alone do not differ in "
                f"which entries are missing (p = {found.p:.2f}): gaps that have nothing to do with the "
                "clusters make them worse. Use missingness='auto', which decides by the table, or 'ignore'."
            )

    def number_and_shrinkage(self, *, gaps: bool, extend: Callable[[int], bool] | None = None) -> Decided:
        """The number of clusters and the shrinkage: as given, or by the error on hidden entries.

        Where so many clusters are not enough, `extend` says whether to try more.
        """
        plan = self.plan if gaps is self.plan.gaps else replace(self.plan, gaps=gaps)
        if plan.n_clusters is not None and plan.shrinkage is not None:
            return Decided(plan)
        try:
            search = self.search(plan, extend)
        except TooLittleError as error:
            if self.numbers is not None:
                raise
            return without_search(plan, error)
        if plan.n_clusters is not None:
            return Decided(replace(plan, shrinkage=search.best_shrinkage(plan.n_clusters)))
        return self.number(plan, search)

    def number(self, plan: FitPlan, search: Search) -> Decided:
        """The number of clusters, and the shrinkage if that is open, too.

        The number comes first then; shrinkage that helps makes more clusters affordable, so the number is
        chosen once more.
        """
        choice = conclusion(search, self.numbers, shapes=self.shapes)
        if plan.shrinkage is None:
            plan = replace(plan, shrinkage=search.best_shrinkage(choice.best_k_))
            if plan.shrinkage:
                search = search.with_shrinkage(plan.shrinkage)
                choice = conclusion(search, self.numbers, shapes=self.shapes)
        write = plan.lines.writer(1)
        if write is not None:
            write(choice.sentence_)
        solution = search.settle(choice.best_k_) if search.table is self.table else None
        return Decided(replace(plan, n_clusters=choice.best_k_), choice, solution=solution)

    @cached_property
    def wait(self) -> Wait | None:
        """Announces long waits, one for all searches."""
        announce = announcer(self.plan, self.progress)
        return None if announce is None else Wait(announce)

    def search(self, plan: FitPlan, extend: Callable[[int], bool] | None) -> Search:
        rng = np.random.RandomState(self.seed)
        seed = int(rng.randint(2**31 - 1))
        return Search.of(
            self.fit.values,
            self.table,
            self.fit.executor,
            partial(self.solve_part, replace(plan, lines=QUIET), seed),
            plan.shrinkage or 0.0,
            rng,
            self.progress or search_callback(plan),
            gaps=bool(plan.gaps),
            extend=extend,
            wait=self.wait,
            deadline=self.deadline,
        )

    def solve_part(
        self,
        plan: FitPlan,
        seed: int,
        table: Table,
        executor: Executor,
        n_clusters: int,
        shrinkage: float,
        n_starts: int | None,
        start: Floats | None = None,
    ) -> Solution:
        """A fit that a choice rests on; of the whole table with all its starts, it is the fit of the plan.

        Others begin with the same seed each, whatever they hide, or at a given start.
        """
        plan = replace(plan, n_clusters=n_clusters, shrinkage=shrinkage)
        if start is not None:
            plan = replace(plan, init=start)
        if n_starts is not None or table is not self.table:
            plan = plan.part(n_starts=n_starts or plan.n_starts, random_state=seed)
        seeds = None if n_starts is None or start is not None else self.latest_seeds.of(table, plan)
        solve = Fit(plan, table, executor, seeds=seeds).solve
        checkpoint: Checkpoint | None = self.fit.checkpoint
        if checkpoint is None:
            return solve()
        kind = n_starts if start is None else "given start"
        name = f"{n_clusters} {shrinkage!r} {kind} {plan.gaps} {table.blocks[0].hidden}"
        return checkpoint.solved(name, solve)

    @cached_property
    def latest_seeds(self) -> LatestSeeds:
        return LatestSeeds()


class LatestSeeds:
    """The starts of fits of one table with several numbers of clusters, until another table is fitted."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.table: Table | None = None
        self.gaps: bool | None = None
        self.seeds: SharedSeeds | None = None

    def of(self, table: Table, plan: FitPlan) -> SharedSeeds | None:
        """None where every fit draws its own."""
        with self.lock:
            if self.table is not table or self.gaps != plan.gaps:
                all_starts = replace(plan, n_clusters=FIRST_RANGE, n_starts=STARTS)
                self.seeds = Fit(all_starts, table, Executor()).shared_seeds()
                self.table, self.gaps = table, plan.gaps
            return self.seeds


def is_open(plan: FitPlan) -> bool:
    """Whether anything is left to be chosen."""
    return plan.n_clusters is None or plan.shrinkage is None or plan.gaps is None


def sampled(fit: Fit) -> Fit:
    """The fit of a sample of the rows, here, by which choices for a table on a cluster are made."""
    seed = int(fit.plan.generator().randint(2**31 - 1))
    values, weights, _ = rows_here(fit.table, fit.executor, np.random.default_rng(seed))
    here = Executor()
    table = make_table(values, here, weights=weights, groups=fit.table.groups)
    return Fit(replace(fit.plan, labels=True), table, here, values, fit.checkpoint)


def sampled_labels(fit: Fit, solution: Solution) -> tuple[Any, Labels, Floats | None]:
    """A sample of the rows, their clusters and their weights."""
    seed = int(fit.plan.generator().randint(2**31 - 1))
    values, weights, _ = rows_here(fit.table, fit.executor, np.random.default_rng(seed))
    table = make_table(values, Executor(), weights=weights, units=fit.table.units)
    return values, nearest_labels(table, Executor(), Panel(solution.centers)), weights


def labels_by_gaps(
    plans: dict[bool, FitPlan], seed: int, table: Table, executor: Executor, n_clusters: int, gaps: bool
) -> Labels:
    """How tables are clustered by which the choice about gaps is made, without gaps and with them."""
    plan = plans[gaps].part(n_clusters=n_clusters, n_starts=GAP_STARTS, random_state=seed)
    return Fit(plan, table, executor).solve().labels


def without_search(plan: FitPlan, error: TooLittleError) -> Decided:
    """What is used where there is too little to hide."""
    shrinkage = plan.shrinkage or 0.0
    if plan.n_clusters is None:
        warn(f"{error} One cluster is used.")
        return Decided(replace(plan, n_clusters=1, shrinkage=shrinkage), too_little(str(error)))
    warn(f"{str(error).removesuffix(YOURSELF)}No shrinkage is used.")
    return Decided(replace(plan, shrinkage=shrinkage))


def search_callback(plan: FitPlan) -> Progress | None:
    write = plan.lines.writer(2)
    if write is None:
        return None
    return lambda done, total, text: write(f"choosing, fit {done} of {total} ({text})")


def announcer(plan: FitPlan, progress: Progress | None) -> Callable[[float], None] | None:
    """The callback with the seconds that a choice will take, if these are many; None if there is none."""
    announce: Callable[[float], None] | None = getattr(progress, "announce", None)
    write = plan.lines.writer(1)
    if announce is not None or write is None:
        return announce
    return lambda seconds: write(long_wait(seconds, "n_clusters=3"))


def warn_of_empty(n_empty: int, table: Table) -> None:
    has, they, get, do = ("has", "it", "gets", "does") if n_empty == 1 else ("have", "they", "get", "do")
    warn(
        f"{n_empty:,} of {counted(table.n_rows, 'row')} {has} nothing observed: {they} {get} the label -1 "
        f"and {do} not influence the clustering.",
        EmptyRowsWarning,
    )
