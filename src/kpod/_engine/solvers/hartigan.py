"""`hartigan`: Lloyd until it converges, then single rows for as long as moving one lowers the loss."""

from __future__ import annotations

from functools import partial

import numpy as np

from kpod._engine import step
from kpod._engine.executors import Executor
from kpod._engine.sizes import CALL_WORK
from kpod._engine.solvers.interface import Settings, Snapshot, Solution, Start
from kpod._engine.solvers.lloyd import Descent
from kpod._engine.solvers.nearest import states_of
from kpod._engine.table import Table
from kpod._kernels import descent as kernel
from kpod._kernels import moves as kernels
from kpod._kernels.panel import Panel
from kpod._kernels.rows import Workspace

# Sweeps stop when one lowers the objective by this share of `tol` of it. Going on to the last move
# took 2.5 times as long on 200,000 x 50 at 70 % missing, for two millionths of the loss.
LITTLE = 0.1


class Moves:
    """Sweeps of single-row moves over a clustering that Lloyd left."""

    def __init__(self, descent: Descent, n_iter: int = 0, n_sweeps: int = 0) -> None:
        self.descent = descent
        self.n_iter = n_iter  # of Lloyd, before
        self.n_sweeps = n_sweeps
        self.sizes = np.zeros(descent.k, np.int64)  # rows of each cluster that can move
        for block, state in zip(descent.table.blocks, descent.states, strict=True):
            movable = np.ones(block.n_rows, bool) if block.weights is None else block.weights > 0
            if not descent.settings.gaps:  # where gaps count, a row with nothing observed can move as well
                movable &= descent.table.observed[block.first : block.first + block.n_rows] > 0
            self.sizes += np.bincount(state.labels[movable], minlength=descent.k)

    def sweep_until_none(self) -> bool:
        """Sweep until no move lowers the loss, or one lowers it by little; whether that came about."""
        descent = self.descent
        settings = descent.settings
        if descent.is_simple:
            return self.sweep_in_one_call()
        value = descent.value
        for sweep in range(self.n_sweeps + 1, settings.max_iter + 1):
            n_moves, lowered = self.sweep()
            if n_moves == 0:
                descent.labels_unchanged = True
                return True
            descent.loss -= lowered
            before, value = value, descent.value
            fall = max(before - value, 0.0) if settings.gaps else lowered
            descent.note("moves", sweep, fall)
            if fall <= descent.objective.little_fall(LITTLE * settings.tol, value):
                return True
            descent.keep(partial(self.snapshot, sweep))
        return False

    def sweep_in_one_call(self) -> bool:
        """The same of a single block, in compiled code."""
        descent, objective, table = self.descent, self.descent.objective, self.descent.table
        assert descent.panel is not None
        assert descent.means is not None
        (block,), (state,) = table.blocks, descent.states
        gaps = objective.gaps_moving(descent.totals, descent.loss)
        terms = () if gaps is None else (gaps.join_offsets, gaps.join)
        panel, live = Panel(descent.panel.centers.copy(), *terms), table.live.view(np.uint8)
        share, little_fall = (
            LITTLE * descent.settings.tol,
            objective.little_fall(LITTLE * descent.settings.tol, 0.0),
        )
        at_once = max(1, CALL_WORK // (descent.k * max(1, block.n_entries)))
        left, why = descent.settings.max_iter, kernel.GOING
        with block.rows() as rows, descent.spaces.of(rows, step.widest(panel), rows.chunk) as space:
            while why == kernel.GOING and left > 0:
                falls, losses = np.empty((2, min(at_once, left)))
                why, n, descent.loss = kernel.sweep(
                    rows, panel, gaps, objective.likelihood, descent.totals, objective.prior, table.fallback,
                    *descent.means, state.labels, state.upper, state.lower, self.sizes, objective.max_weight,
                    table.weighted, live, descent.loss, share, little_fall, falls, losses, space,
                )  # fmt: skip
                descent.falls += falls[:n].tolist()
                descent.losses += losses[:n].tolist()
                left -= n
        descent.panel, descent.centers = panel, descent.means.centers
        descent.labels_unchanged = why == kernel.UNCHANGED
        return why != kernel.GOING

    def snapshot(self, n_sweeps: int) -> Snapshot:
        """What the sweeps to come depend on beside the descent: labels, which are data by now."""
        return {"labels": self.descent.labels(), "sweeps": np.array([self.n_iter, n_sweeps])}

    def sweep(self) -> tuple[int, float]:
        """Try every row that a move may pay for, in order; returns the moves made and what they gained."""
        descent = self.descent
        means = descent.means
        assert means is not None
        factors = descent.objective.move_factors(means, descent.totals, descent.loss)
        panel = descent.objective.moving_panel(means, factors)
        screen = step.Screen(panel, descent.drift_to(panel), factors, descent.spaces)
        descent.states, found = descent.executor.accumulate(
            screen, descent.table.blocks, descent.states, step.Found
        )
        descent.panel = panel
        centers, counts = means.centers.copy(), means.counts.copy()
        n_moves, lowered = 0, 0.0
        for block, state in zip(descent.table.blocks, descent.states, strict=True):
            assert state is not None
            candidates = found.rows[block.first]
            labels = state.labels[candidates]
            length = max(1, CALL_WORK // (8 * descent.k * block.row_entries))  # one by one is slower
            with block.rows() as rows:
                space = Workspace(rows, 0, 1)
                for at in range(0, len(candidates), length):
                    n, gain = kernels.move(
                        rows, candidates[at : at + length], descent.objective.prior,
                        descent.table.fallback, state.labels, centers, counts, descent.totals,
                        self.sizes, factors.gaps, space,
                    )  # fmt: skip
                    n_moves += n
                    lowered += gain
            state.forget_bounds(candidates[state.labels[candidates] != labels])
        descent.means = descent.objective.means(descent.totals)
        descent.centers = descent.means.centers
        return n_moves, lowered


def hartigan(table: Table, executor: Executor, start: Start, settings: Settings) -> Solution:
    """Lloyd until it converges, then single rows for as long as moving one lowers the loss."""
    descent = Descent(table, executor, start.centers, settings, start.gaps)
    kept = settings.resume
    if kept is not None:
        descent.restore(kept)
    if kept is not None and "sweeps" in kept:
        descent.states = states_of(table, kept["labels"])
        n_iter, n_sweeps = kept["sweeps"].tolist()
    else:
        descent.lloyd()
        descent.labels_unchanged = False
        n_iter, n_sweeps = len(descent.falls), 0
        descent.settle_relabelled()
    converged = Moves(descent, n_iter, n_sweeps).sweep_until_none()
    return descent.finish(n_iter, converged)
