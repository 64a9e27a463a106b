"""The nearest center of every row: labels, loss, and the order of clusters by size."""

from __future__ import annotations

from typing import Any

import numpy as np

from kpod._common.typing import Floats, Labels, Positions
from kpod._engine import step
from kpod._engine.blocks import Block
from kpod._engine.executors import Executor
from kpod._engine.step import Assign, Drift, Partial, Recall, State
from kpod._engine.table import Table
from kpod._kernels.panel import Panel


def loss_of(
    table: Table, executor: Executor, states: list[Any], centers: Floats, recall: Recall | None = None
) -> float:
    """The sum of weight * squared partial distance of every row to its own center."""
    loss = step.Loss(centers, recall or Recall())
    return executor.accumulate(loss, table.blocks, states, step.LossSum)[1].total


def nearest(table: Table, executor: Executor, panel: Panel) -> tuple[list[Any], Recall]:
    """States with the label of every row's nearest center, and what they can be made again from."""
    none: list[State | None] = [None] * len(table.blocks)
    states, _ = executor.accumulate(
        Assign(panel, Drift.none(panel.k)),
        table.blocks,
        none,
        Partial.empty,
    )
    return states, Recall(panel)


def labels_of(table: Table, executor: Executor, states: list[Any], recall: Recall) -> Labels:
    """The labels of all rows, in order."""
    found = executor.accumulate(step.Label(recall), table.blocks, states, step.Found)[1]
    return np.concatenate([found.rows[block.first] for block in table.blocks])


def nearest_labels(table: Table, executor: Executor, panel: Panel) -> Labels:
    """The first of the nearest centers of every row."""
    return labels_of(table, executor, *nearest(table, executor, panel))


def labels_of_block(block: Block, panel: Panel) -> Labels:
    """The first of the nearest centers of the rows of one block."""
    return Assign(panel, Drift.none(panel.k))(block, None, Partial.empty()).labels


def states_of(table: Table, labels: Labels) -> list[State]:
    """States with these labels."""
    return [
        State.unknown(block.n_rows, labels[block.first : block.first + block.n_rows], block.scratch)
        for block in table.blocks
    ]


def sizes_of(labels: Labels, table: Table, k: int) -> Positions:
    """The number of rows with anything observed in each cluster."""
    out = np.zeros(k, np.intp)
    for block in table.blocks:
        rows = slice(block.first, block.first + block.n_rows)
        out += np.bincount(labels[rows][table.observed[rows] > 0], minlength=k)
    return out


def by_size(sizes: Any, centers: Floats) -> Positions:
    """The order of clusters from the largest to the smallest.

    Of clusters of the same size, the one whose center is lower in the first column comes first; or in the
    second, where the first is equal, and so on.
    """
    each = sizes.tolist()
    if len(set(each)) < len(each):
        return np.lexsort((*centers.T[::-1], -sizes))
    return np.array(sorted(range(len(each)), key=each.__getitem__, reverse=True))
