"""Clusters numbered from the largest to the smallest."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    pass


def number_by_size(kpod: Any, predict: Callable[[], Any]) -> None:
    """Number the clusters from the largest to the smallest.

    A row that is as near to another center goes to the lower number of the two: where `predict` would
    assign rows otherwise, the cluster they are in keeps its place before the other.
    """
    import numpy as np

    from kpod._models.registry import by_cluster

    labels = np.asarray(kpod.labels_)
    sizes = np.bincount(labels[labels >= 0], minlength=kpod.n_clusters_)
    values_of = {name: getattr(kpod, name) for name in by_cluster(kpod)}
    before: set[tuple[int, int]] = set()
    while True:
        order = ordered_by_size(sizes, before)
        new = np.empty(len(order) + 1, labels.dtype)
        new[order], new[-1] = np.arange(len(order)), -1
        kpod.labels_ = new[labels]
        for name, values in values_of.items():
            setattr(kpod, name, np.ascontiguousarray(values[order]))
        found = np.asarray(predict())
        other = found != kpod.labels_
        ties = set(zip(labels[other].tolist(), order[found[other]].tolist(), strict=True)) - before
        if not ties:
            return
        before |= ties


def ordered_by_size(sizes: Any, before: set[tuple[int, int]]) -> Any:
    """The largest first, but none ahead of those that have to come before it."""
    import numpy as np

    left = np.argsort(-sizes, kind="stable").tolist()
    order: list[int] = []
    while left:
        free = (c for c in left if not any(second == c and first in left for first, second in before))
        order.append(next(free, left[0]))
        left.remove(order[-1])
    return np.array(order)
