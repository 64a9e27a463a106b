"""`mm`: the algorithm as published, k-means on a table filled in from its own centers, repeatedly."""

from __future__ import annotations

import numpy as np

from kpod._common.typing import Floats, Labels
from kpod._engine.blocks import Units
from kpod._engine.executors import Executor
from kpod._engine.objective import Objective
from kpod._engine.solvers.hartigan import Moves
from kpod._engine.solvers.interface import Settings, Solution, Start
from kpod._engine.solvers.lloyd import Descent, rounded
from kpod._engine.solvers.nearest import by_size, loss_of, nearest_labels, states_of
from kpod._engine.step import AddUp, Partial, Spaces
from kpod._engine.table import Table, make_table
from kpod._kernels.panel import Panel


def mm(table: Table, executor: Executor, start: Start, settings: Settings) -> Solution:
    """Algorithm 1 of the paper: fill the gaps from each row's center, run k-means, repeat.

    The k-means inside is Lloyd followed by single-row moves on the filled table, as R's
    `kmeans` (Hartigan-Wong), which the authors used, amounts to.
    """
    members = np.flatnonzero(table.observed > 0)
    entries = table.entries(members)
    gaps = np.isnan(entries)
    centers = start.centers
    kept = settings.resume
    labels = nearest_labels(table, executor, Panel(centers)) if start.labels is None else start.labels
    weights = None if table.weights is None else table.weights[members]
    trace: list[float] = []
    converged = False
    if kept is not None:
        centers, labels, trace = kept["centers"], kept["labels"], kept["trace"].tolist()
    while len(trace) < settings.max_iter and not converged:
        filled = np.where(gaps, centers[labels[members]], entries)
        inner = Descent(complete_table(table, filled, weights, executor), executor, centers)
        inner.lloyd()
        inner.settle_relabelled()
        Moves(inner).sweep_until_none()
        found = inner.labels()
        converged = np.array_equal(labels[members], found)
        labels = labels.copy()
        labels[members] = found
        centers = inner.centers
        trace.append(loss_of(table, executor, states_of(table, labels), centers))
        if settings.iteration_callback is not None:
            settings.iteration_callback("mm", len(trace), trace[-1])
        if settings.keep is not None and not converged:
            now = {"centers": centers, "labels": labels, "trace": np.array(trace)}
            settings.keep(now.copy)
    if settings.by_size:
        order = by_size(np.bincount(labels[members], minlength=len(centers)), centers)
        labels = np.argsort(order).astype(np.int32)[labels]
    return own_centers(table, executor, labels, len(centers), trace, converged)


def own_centers(
    table: Table, executor: Executor, labels: Labels, k: int, trace: list[float], converged: bool
) -> Solution:
    """The centers that are best for the labels, and the loss of that pair."""
    objective = Objective(table, k)
    states, partial = executor.accumulate(
        AddUp(Spaces()), table.blocks, states_of(table, labels), lambda: Partial(objective.empty_sums())
    )
    assert partial.sums is not None
    centers = rounded(objective.means(partial.sums).centers, table)
    loss = loss_of(table, executor, states, centers)
    counts = objective.counts(partial.sums)
    # Rounding the centers may cost more than the last iterations gained.
    trace = [*(max(value, loss) for value in trace[:-1]), loss]
    return Solution(labels, centers, counts, loss, loss, trace, len(trace), converged, trace)


def complete_table(table: Table, filled: Floats, weights: Floats | None, executor: Executor) -> Table:
    """A table without gaps, in the units it is filled in."""
    values = np.ascontiguousarray(filled, table.dtype)
    return make_table(values, executor, weights=weights, units=Units(np.zeros(table.n_columns), 1.0))
