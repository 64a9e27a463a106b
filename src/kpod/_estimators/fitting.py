"""What a fit does with a checked table: choose what was left open, draw the starts, keep the best.

The estimator is asked for its parameters, and left as it is.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.metadata import version
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from kpod._common.typing import Labels
from kpod._common.waiting import Wait, long_wait
from kpod._common.warnings import EmptyRowsWarning, warn
from kpod._common.words import counted
from kpod._engine.checkpoint import Checkpoint, fingerprint
from kpod._engine.executors import Executor
from kpod._engine.fit import best_of, drawn_starts, enough_starts
from kpod._engine.objective import GapObjective, Objective
from kpod._engine.seeding import fill_gaps
from kpod._engine.solvers.lloyd import Settings, Solution, Start
from kpod._engine.table import Table
from kpod._inputs import validation
from kpod._selection.informative import LEVEL, Fit, MissingnessDecision, decide_missingness
from kpod._selection.number import KChoice, conclusion, too_little
from kpod._selection.search import YOURSELF, Progress, Search, TooLittleError

if TYPE_CHECKING:
    from kpod._estimators.kpod import KPOD

GAP_STARTS = 4  # of each fit on which the choice between them rests


@dataclass(frozen=True)
class Chosen:
    """What was given or found before the fit."""

    n_clusters: int
    shrinkage: float
    choice: KChoice | None = None
    gaps: bool = False  # whether they count
    gap_choice: MissingnessDecision | None = None

    def attributes(self) -> dict[str, Any]:
        found: dict[str, Any] = {"shrinkage_": self.shrinkage}
        if self.choice is not None:
            found["choice_"] = self.choice
        if self.gap_choice is not None:
            found |= {"missingness_": str(self.gap_choice), "gap_choice_": self.gap_choice}
        return found


def is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def checkpoint_of(
    kpod: KPOD, table: Table, executor: Executor, numbers: Any
) -> AbstractContextManager[Checkpoint | None]:
    """Where to leave what is needed to go on, if anywhere; it is gone once the fit has ended."""
    if kpod.checkpoint is None:
        return nullcontext()
    seed, init = kpod.random_state, kpod.init
    if callable(init):
        init = getattr(init, "__qualname__", type(init).__qualname__)
    elif not isinstance(init, str):
        validation.refuse_dask(init, "init")
        init = np.asarray(validation.as_array(init, kpod), np.float64).tolist()
    return Checkpoint(
        kpod.checkpoint,
        {
            "kpod": version("scikit-kpod"),
            "n_clusters": kpod.n_clusters if is_auto(kpod.n_clusters) else int(kpod.n_clusters),
            "chosen from": None if numbers is None else str(numbers),
            "max_iter": int(kpod.max_iter),
            "tol": float(kpod.tol),
            "shrinkage": kpod.shrinkage if is_auto(kpod.shrinkage) else float(kpod.shrinkage),
            "missingness": kpod.missingness,
            "algorithm": kpod.algorithm,
            "n_init": kpod.n_init if isinstance(kpod.n_init, str) else int(kpod.n_init),
            "init": init,
            "random_state": int(seed) if isinstance(seed, Integral) else str(type(seed).__name__),
            "table": fingerprint(table, executor),
        },
    )


@dataclass(frozen=True)
class Fitting:
    """A fit of a table by an estimator, which is asked for its parameters and left as it is.

    Parameters
    ----------
    kpod : the estimator
    table : the table
    executor : where its blocks are worked on
    values : the entries as an array or CSR array, for mixtures and an `init` that is a function
    checkpoint : what an earlier fit left, and where this one leaves what is needed to go on
    """

    kpod: KPOD
    table: Table
    executor: Executor
    values: Any = None
    checkpoint: Checkpoint | None = None

    def choose(self, numbers: Any, progress: Progress | None) -> Chosen:
        """The number of clusters, the shrinkage and whether gaps count: as given, or chosen.

        Whether gaps count is decided for the number of clusters that is found when they do.
        """
        kpod, table = self.kpod, self.table
        announce = announcer(kpod, progress)
        search = partial(self._search, numbers, progress, None if announce is None else Wait(announce))
        if not is_auto(kpod.missingness):
            chosen = search(gaps=kpod.missingness == "informative" and table.has_gaps)
            if chosen.gaps:
                self._doubt_gaps(chosen)
            return chosen
        without = search(gaps=False)
        seed = self._drawn_seed()

        @cache
        def decision(n_clusters: int, shrinkage: float) -> MissingnessDecision:
            fit = self._labels_by_gaps(seed, {False: without.shrinkage, True: shrinkage})
            rng = np.random.default_rng(seed)
            return decide_missingness(
                self.values, table, self.executor, fit, n_clusters, rng, without.n_clusters
            )

        with_gaps = replace(without, gaps=True)
        if table.has_gaps and (is_auto(kpod.n_clusters) or is_auto(kpod.shrinkage)):
            # Gaps that have nothing to do with the clusters ask for one for each pattern of gaps, and so for
            # more and more of them.
            with_gaps = search(gaps=True, extend=lambda k: decision(k, without.shrinkage).p <= LEVEL)
        n_clusters = max(with_gaps.n_clusters, without.n_clusters if with_gaps.n_clusters == 1 else 1)
        found = decision(n_clusters, with_gaps.shrinkage)
        tell = progress_printer(kpod, 1)
        if tell is not None:
            tell(str(found))
        n_empty = int((table.observed == 0).sum())
        if n_empty and not found.use:
            warn_of_empty(n_empty, table)
        return replace(with_gaps if found.use else without, gap_choice=found)

    def _labels_by_gaps(self, seed: int, shrinkage: dict[bool, float]) -> Fit:
        """How tables are clustered by which the choice about gaps is made, without gaps and with them."""

        def labels(table: Table, executor: Executor, k: int, gaps: bool) -> Labels:
            part = Fitting(self.kpod, table, executor)
            chosen = Chosen(k, shrinkage[gaps], gaps=gaps)
            return part.solve(chosen, np.random.RandomState(seed), GAP_STARTS)[0].labels

        return labels

    def _doubt_gaps(self, chosen: Chosen) -> None:
        """Warn where gaps that are to count do not differ between the clusters of the values.

        That is the first question of "auto", on at most as many rows; the others take many fits. The seed is
        its own, so that the fit is the same with and without the question.
        """
        if hasattr(self.values, "blocks") or not isinstance(self.kpod.init, str):
            return
        fit = self._labels_by_gaps(0, {False: chosen.shrinkage})
        found = decide_missingness(
            self.values, self.table, self.executor, fit, chosen.n_clusters, np.random.default_rng(0),
            first_only=True,
        )  # fmt: skip
        if found.p > LEVEL:
            warn(
                "missingness='informative' uses the gaps, but clusters of the values alone do not differ in "
                f"which entries are missing (p = {found.p:.2f}): gaps that have nothing to do with the "
                "clusters make them worse. Use missingness='auto', which decides by the table, or 'ignore'."
            )

    def _search(
        self,
        numbers: Any,
        progress: Progress | None,
        wait: Wait | None,
        *,
        gaps: bool,
        extend: Callable[[int], bool] | None = None,
    ) -> Chosen:
        """The number of clusters and the shrinkage: as given, or by the error on hidden entries.

        Where both are chosen, the number comes first; shrinkage that helps makes more clusters
        affordable, so the number is then chosen once more. Where so many clusters are not enough, `extend`
        says whether to try more.
        """
        kpod = self.kpod
        auto_k, auto_shrinkage = is_auto(kpod.n_clusters), is_auto(kpod.shrinkage)
        shrinkage = 0.0 if auto_shrinkage else float(kpod.shrinkage)
        if not auto_k and not auto_shrinkage:
            return Chosen(int(kpod.n_clusters), shrinkage, gaps=gaps)
        rng = np.random.RandomState(self._drawn_seed())
        fitter = partial(self._fit_part, int(rng.randint(2**31 - 1)), gaps)
        progress = progress or search_callback(kpod)
        try:
            search = Search.of(
                self.values, self.table, self.executor, fitter, shrinkage, rng, progress,
                gaps=gaps, extend=extend, wait=wait,
            )  # fmt: skip
        except TooLittleError as error:
            if numbers is not None:
                raise
            choice = too_little(str(error)) if auto_k else None
            if auto_k:
                message = f"{error} One cluster is used."
            else:
                message = f"{str(error).removesuffix(YOURSELF)}No shrinkage is used."
            warn(message)
            return Chosen(int(kpod.n_clusters) if choice is None else 1, shrinkage, choice, gaps)
        if not auto_k:
            return Chosen(int(kpod.n_clusters), search.best_shrinkage(int(kpod.n_clusters)), gaps=gaps)
        choice = conclusion(search, search.try_all("auto" if numbers is None else numbers))
        if auto_shrinkage:
            shrinkage = search.best_shrinkage(choice.best_k_)
            if shrinkage > 0:
                search = search.with_shrinkage(shrinkage)
                choice = conclusion(search, search.try_all("auto" if numbers is None else numbers))
        tell = progress_printer(kpod, 1)
        if tell is not None:
            tell(choice.sentence_)
        return Chosen(choice.best_k_, shrinkage, choice, gaps)

    def _drawn_seed(self) -> int:
        """What choices begin with: drawn without a change to the estimator's generator, or kept."""
        seed = int(check_random_state(copy.deepcopy(self.kpod.random_state)).randint(2**31 - 1))
        if self.checkpoint is not None:
            seed = self.checkpoint.seed = seed if self.checkpoint.seed is None else self.checkpoint.seed
        return seed

    def _fit_part(
        self,
        seed: int,
        gaps: bool,
        table: Table,
        executor: Executor,
        n_clusters: int,
        shrinkage: float,
        n_starts: int | None,
    ) -> Solution:
        """A fit that a choice rests on, of a table with hidden entries; the same seed for all."""

        def solved() -> Solution:
            chosen = Chosen(n_clusters, shrinkage, gaps=gaps)
            return Fitting(self.kpod, table, executor).solve(chosen, np.random.RandomState(seed), n_starts)[0]

        if self.checkpoint is None:
            return solved()
        return self.checkpoint.solved(
            f"{n_clusters} {shrinkage!r} {n_starts} {gaps} {table.blocks[0].hidden}", solved
        )

    def solve(
        self,
        chosen: Chosen,
        random_state: np.random.RandomState,
        n_starts: int | None = None,
        *,
        algorithm: str | None = None,
        told: bool = False,
    ) -> tuple[Solution, list[float]]:
        """The best of several starts, and the losses of all."""
        kpod, table = self.kpod, self.table
        value = format_objective(table, chosen.n_clusters, gaps=chosen.gaps)
        settings = Settings(
            kpod.max_iter,
            kpod.tol,
            chosen.shrinkage,
            chosen.gaps,
            iteration_callback(kpod, value) if told else None,
        )
        algorithm = algorithm or kpod.algorithm
        starts = self._starts(chosen.n_clusters, n_starts, random_state, algorithm, settings)
        return best_of(
            starts,
            table,
            self.executor,
            algorithm,
            chosen.n_clusters,
            settings,
            start_callback(kpod, len(starts), value) if told else None,
            self.checkpoint,
        )

    def _starts(
        self,
        n_clusters: int,
        n_starts: int | None,
        random_state: np.random.RandomState,
        algorithm: str,
        settings: Settings,
    ) -> list[Callable[[], Start]]:
        """What to start from."""
        kpod, table = self.kpod, self.table
        if not isinstance(kpod.init, str) and not callable(kpod.init):
            if kpod.n_init not in ("auto", 1):
                warn(
                    f"init is an array, so a single start is run and n_init={kpod.n_init} is ignored.",
                    RuntimeWarning,
                )
            return [partial(start_at, kpod, kpod.init, table, n_clusters)]
        if n_starts is None and not is_auto(kpod.n_init):
            n_starts = int(kpod.n_init)
        if callable(kpod.init):
            centers = [
                kpod.init(self.values, n_clusters, random_state=random_state)
                for _ in range(n_starts or enough_starts(table))
            ]
            return [partial(start_at, kpod, of_start, table, n_clusters) for of_start in centers]
        return drawn_starts(
            table, self.executor, kpod.init, n_clusters, n_starts, random_state, algorithm, settings,
            self.checkpoint,
        )  # fmt: skip


def start_at(kpod: KPOD, centers: Any, table: Table, n_clusters: int) -> Start:
    validation.refuse_dask(centers, "init")
    centers = validation.as_array(centers, kpod)
    expected = (n_clusters, table.n_columns)
    if centers.shape != expected:
        raise ValueError(
            f"The initial centers have shape {centers.shape}, expected {expected}: one row per cluster."
        )
    if np.isinf(centers).any():
        raise ValueError("The initial centers contain infinity.")
    gaps = np.isnan(centers)
    return Start(fill_gaps(table, np.where(gaps, np.nan, table.units.to(centers))))


def progress_printer(kpod: KPOD, level: int) -> Callable[[str], None] | None:
    """The callback for lines on progress: the one that was set, or print if `verbose`."""
    return kpod._progress_line or (print if kpod.verbose >= level else None)


def format_objective(table: Table, n_clusters: int, *, gaps: bool = False) -> Callable[[float], str]:
    """What is minimised, in words: the loss in the units of the table, or the objective where gaps count."""
    if gaps:
        objective = GapObjective(table, n_clusters)
        return lambda value: f"objective {objective.in_own_units(value):.6g}"
    plain = Objective(table, n_clusters)
    return lambda value: f"loss {plain.in_own_units(value):.6g}"


def iteration_callback(kpod: KPOD, value: Callable[[float], str]) -> Callable[[str, int, float], None] | None:
    tell = progress_printer(kpod, 2)
    if tell is None:
        return None
    return lambda what, iteration, now: tell(f"  {what} {iteration}: {value(now)}")


def start_callback(
    kpod: KPOD, n_starts: int, value: Callable[[float], str]
) -> Callable[[int, Solution], None] | None:
    tell = progress_printer(kpod, 1)
    if tell is None:
        return None
    return lambda number, solution: tell(f"start {number + 1}/{n_starts}: {value(solution.objective)}")


def search_callback(kpod: KPOD) -> Progress | None:
    tell = progress_printer(kpod, 2)
    if tell is None:
        return None
    return lambda done, total, text: tell(f"choosing, fit {done} of {total} ({text})")


def announcer(kpod: KPOD, progress: Progress | None) -> Callable[[float], None] | None:
    """What is called with the seconds that a choice takes, where these are many; None for nobody."""
    announce: Callable[[float], None] | None = getattr(progress, "announce", None)
    tell = progress_printer(kpod, 1)
    if announce is not None or tell is None:
        return announce
    return lambda seconds: tell(long_wait(seconds, "n_clusters=3"))


def warn_of_empty(n_empty: int, table: Table) -> None:
    has, they, get, do = ("has", "it", "gets", "does") if n_empty == 1 else ("have", "they", "get", "do")
    warn(
        f"{n_empty:,} of {counted(table.n_rows, 'row')} {has} nothing observed: {they} {get} the label -1 "
        f"and {do} not influence the clustering.",
        EmptyRowsWarning,
    )
