"""What to be careful about in a clustering, the gravest first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kpod._report.summary import FEW, Clustering
from kpod._report.words import MOST_LISTED, counted, number, some

LITTLE = 0.25
UNDECIDED = 0.05
UNEVEN = 0.3


def cautions(c: Clustering, row_names: Sequence[Any] | None = None) -> list[dict[str, str]]:
    """What to be careful about, the gravest first."""
    found: list[dict[str, str]] = []

    def add(title: str, text: str) -> None:
        found.append({"title": title, "text": text})

    if not c.converged:
        add(
            "Not converged",
            f"The fit was stopped at {c.kpod.max_iter} iterations while still improving. "
            "Allow more (max_iter) before relying on it.",
        )
    if not c.is_fitted_table:
        add(
            "Not the table of the fit",
            "The rows shown were assigned to centers that were fitted on another table, or with row weights.",
        )
    careful_about_rows(c, row_names, add)
    careful_about_centers(c, add)
    careful_about_columns(c, add)
    return found


def careful_about_rows(c: Clustering, row_names: Sequence[Any] | None, add: Any) -> None:
    def rows(mask: Any) -> str:
        which = np.flatnonzero(mask)
        names = [str(i + 1 if row_names is None else row_names[i]) for i in which[:MOST_LISTED]]
        return some(names, len(which))

    nothing = c.labels < 0
    if nothing.any():
        add(
            "Rows with nothing observed",
            f"{counted(int(nothing.sum()), 'row')} (row {rows(nothing)}) could not be placed: cluster -1.",
        )
    little = ~nothing & (c.observed_by_row <= LITTLE * len(c.names))
    if little.any():
        add(
            "Rows with little observed",
            f"{counted(int(little.sum()), 'row')} (row {rows(little)}) had at most a quarter of the columns "
            "observed; where they belong rests on few values.",
        )
    if c.k > 1:
        undecided = c.margins < UNDECIDED
        if undecided.any():
            share = undecided.sum() / max(1, (~nothing).sum())
            add(
                "Rows between two clusters",
                f"{counted(int(undecided.sum()), 'row')} ({share:.1%}) are about as near to another center "
                "as to their own.",
            )


def careful_about_centers(c: Clustering, add: Any) -> None:
    small = [str(cluster) for cluster in range(c.k) if c.sizes[cluster] < FEW]
    if small:
        add(
            "Small clusters",
            f"Fewer than {FEW} rows in cluster {some(small)}: perhaps outliers, not a group.",
        )
    known = np.isfinite(c.centers)
    few = np.argwhere((c.counts < FEW) & known & (c.sizes >= FEW)[:, None])
    if len(few):
        cells = [f"{c.names[j]} in cluster {cluster} ({number(c.counts[cluster, j])})" for cluster, j in few]
        add(
            "Few observations behind a center",
            f"{counted(len(few), 'value')} of the centers {'rests' if len(few) == 1 else 'rest'} on fewer "
            f"than {FEW} observed entries: {some(cells)}.",
        )


def careful_about_columns(c: Clustering, add: Any) -> None:
    sparse = [
        f"{c.names[j]} ({c.missing_by_column[j]:.0%})" for j in np.flatnonzero(c.missing_by_column > 0.5)
    ]
    if sparse:
        add("Columns mostly missing", f"More than half is missing of {some(sparse)}.")
    uneven = uneven_gaps(c)
    if uneven:
        add(
            "Gaps that go with the clusters",
            f"How much is missing differs from cluster to cluster in {some(uneven)}. Where gaps depend on "
            "the cluster, a better fit need not be a truer grouping; ask why these values are missing.",
        )
    with np.errstate(invalid="ignore"):
        variance = np.array([np.nanvar(v) if np.isfinite(v).any() else 0.0 for v in c.values.T])
    if len(variance) > 2 and variance.sum() > 0 and variance.max() > 0.5 * variance.sum():
        j = int(variance.argmax())
        add(
            "One column outweighs the others",
            f"{c.names[j]} holds {variance[j] / variance.sum():.0%} of all variance, because columns count "
            "by their scale; standardise them unless they share a unit.",
        )


def uneven_gaps(c: Clustering) -> list[str]:
    """Columns whose share missing differs by much between clusters of 20 rows and more."""
    large = [cluster for cluster in range(c.k) if c.sizes[cluster] >= 20]
    if len(large) < 2:
        return []
    shares = np.array([1 - c.observed[c.labels == cluster].mean(axis=0) for cluster in large])
    spread = shares.max(axis=0) - shares.min(axis=0)
    return [
        f"{c.names[j]} ({shares[:, j].min():.0%} to {shares[:, j].max():.0%})"
        for j in np.argsort(-spread, kind="stable")
        if spread[j] > UNEVEN
    ]
