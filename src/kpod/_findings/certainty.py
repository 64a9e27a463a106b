"""Certainty: of each row, across starts, and across resampled tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kpod._common.sentences.formatting import MOST_LISTED, counted, listed, percent, some, starts_text
from kpod._common.typing import Positions
from kpod._findings.fitted_clusters.clustering import Clustering
from kpod._findings.stability import Stability, unstable
from kpod._model_selection.number_of_clusters import KChoice

SURE, UNSURE = 0.9, 0.6
"""Probabilities of a row's likeliest cluster: certain from the first up, uncertain below the second."""
MOST_UNSURE = UNSURE - 0.006
"""59.7 % is not shown as 60 % to a reader who is told that it is less."""


def how_sure(c: Clustering, row_names: Sequence[Any] | None = None) -> dict[str, Any] | None:
    """How certain the clusters of the rows are, as numbers and in words; None if unknown."""
    if c.k == 1 or c.sureness is None:
        return None
    confidence, _, elsewhere, largest = c.sureness
    placed = c.labels >= 0
    unsure = np.flatnonzero(placed & (largest < UNSURE))
    unsure = unsure[np.argsort(largest[unsure], kind="stable")]
    n = max(1, int(placed.sum()))
    sure = int((confidence[placed] >= SURE).sum())
    sentences = [
        f"{sure:,} of {counted(n, 'row')} ({percent(sure / n)}) {'belongs' if sure == 1 else 'belong'} to "
        f"{'its' if sure == 1 else 'their'} cluster with a probability of at least {SURE:.0%}."
    ]
    moved = int(elsewhere.sum())
    if moved:
        verb, own = ("belongs", "its own") if moved == 1 else ("belong", "their own")
        by_cluster = rows_elsewhere(c)
        where = [
            f"{by_cluster[m]:,} of the {counted(int(c.sizes[m]), 'row')} of cluster {m}"
            for m in np.argsort(-by_cluster, kind="stable")
            if by_cluster[m]
        ]
        sentences.append(
            f"{counted(moved, 'row')} {verb} more probably to another cluster than to {own}, "
            f"which has the nearest center: {some(where)}."
        )
    if len(unsure):
        names = [str(i + 1 if row_names is None else row_names[int(i)]) for i in unsure[:MOST_LISTED]]
        told = [f"{name} ({candidates(c, int(i))})" for name, i in zip(names, unsure, strict=False)]
        which = "row " if row_names is None and len(unsure) == 1 else "rows " if row_names is None else ""
        sentences.append(
            f"{counted(len(unsure), 'row')} cannot be assigned with confidence (no cluster reaches "
            f"{UNSURE:.0%}): {which}{some(told, len(unsure))}."
        )
    else:
        every = "Every row" if placed.all() else "Every row with anything observed"
        sentences.append(f"{every} belongs to a cluster with a probability of at least {UNSURE:.0%}.")
    return {
        "mean": float(confidence[placed].mean()) if placed.any() else None,
        "sure": sure,
        "unplaceable": len(unsure),
        "unplaceable_rows": [int(i) + 1 for i in unsure[:20]],
        "another_more_probable": moved,
        "sentences": sentences,
    }


def candidates(c: Clustering, row: int) -> str:
    """The cluster of a row that could be in another, and that other."""
    assert c.sureness is not None
    confidence, second, _, largest = (of_rows[row] for of_rows in c.sureness)
    own, likeliest = shown(confidence), shown(largest)
    alike = own == likeliest
    other = f"or else cluster {second}" if alike else f"more likely cluster {second}, {likeliest}"
    return f"in cluster {c.labels[row]}, {own}; {other}"


def shown(probability: float) -> str:
    return percent(min(probability, MOST_UNSURE))


def rows_elsewhere(c: Clustering) -> Positions:
    """Of each cluster, how many of its rows belong more probably to another; 0 without probabilities."""
    if c.sureness is None:
        return np.zeros(c.k, np.int64)
    return np.bincount(c.labels[c.sureness.elsewhere], minlength=c.k)


def why_this_number(choice: KChoice, stability: Stability | None) -> str:
    """The finding of the search, and clusters that it found and resampling does not."""
    bad = [] if stability is None else [str(cluster) for cluster in unstable(stability.jaccard_)]
    if not bad:
        return choice.sentence_
    doubt = f"cluster {bad[0]} is not stable" if len(bad) == 1 else f"clusters {listed(bad)} are not stable"
    return f"{choice.sentence_} But {doubt}: see what to be careful about."


def starts_of(c: Clustering) -> str:
    """How often the best loss was found; a model from a file may not have it."""
    return starts_text(list(getattr(c.kpod, "losses_", ()))) if c.k > 1 else ""
