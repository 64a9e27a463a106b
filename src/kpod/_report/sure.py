"""How sure a clustering is: row by row, start by start, and from one resampled table to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kpod._report.summary import Clustering
from kpod._words import counted, percent, some, starts_text

SURE, UNSURE = 0.9, 0.6
"""Of a row's likeliest cluster: sure from the one up; below the other the row cannot be placed."""


def how_sure(c: Clustering, row_names: Sequence[Any] | None = None) -> dict[str, Any] | None:
    """How sure the clusters of the rows are, as numbers and in words; None without probabilities."""
    if c.sureness is None:
        return None
    confidence, second, elsewhere, largest = c.sureness
    placed = c.labels >= 0
    unsure = np.flatnonzero(placed & (largest < UNSURE))
    unsure = unsure[np.argsort(largest[unsure], kind="stable")]
    n = max(1, int(placed.sum()))
    names = [str(i + 1 if row_names is None else row_names[int(i)]) for i in unsure]
    sure = int((confidence[placed] >= SURE).sum())
    sentences = [
        f"{counted(sure, 'row')} of {n:,} ({percent(sure / n)}) {'is' if sure == 1 else 'are'} in a cluster "
        f"with a probability of at least {SURE:.0%}."
    ]
    if len(unsure):
        told = [
            f"{name} (cluster {c.labels[i]} {percent(confidence[i])}, or {second[i]})"
            for name, i in zip(names[:5], unsure, strict=False)
        ]
        which = "row " if row_names is None and len(unsure) == 1 else "rows " if row_names is None else ""
        sentences.append(
            f"{counted(len(unsure), 'row')} nobody could place (no cluster with {UNSURE:.0%} or more): "
            f"{which}{some(told, len(unsure))}."
        )
    else:
        sentences.append(f"There is no row that nobody could place (no cluster with {UNSURE:.0%} or more).")
    moved = int(elsewhere.sum())
    if moved:
        sentences.append(
            f"For {counted(moved, 'row')} another cluster than the nearest is the most probable one: large "
            "clusters take more of the rows between two centers."
        )
    return {
        "mean": float(confidence[placed].mean()) if placed.any() else None,
        "sure": sure,
        "unplaceable": len(unsure),
        "unplaceable_rows": [int(i) + 1 for i in unsure[:20]],
        "another_more_probable": moved,
        "sentences": sentences,
    }


def starts_of(c: Clustering) -> str:
    """How often the best loss was found; a model from a file may not know."""
    return starts_text(list(getattr(c.kpod, "losses_", ())))
