"""What to be careful about in a clustering, the gravest first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kpod._analysis.certainty import rows_elsewhere
from kpod._analysis.clustering import FEW, Clustering
from kpod._analysis.entries import MappedEntries
from kpod._analysis.stability import Stability, unstable
from kpod._common.words import MOST_LISTED, counted, listed, number, option, percent, some

CONTRADICTED = 0.5
"""The share of a cluster's rows that belong more probably to others, from which it is not to be trusted."""
LITTLE = 0.25
UNDECIDED = 0.05
UNEVEN = 0.3
FAR_OUT = 5.0
MOST_CLIPPED = 0.25
NEARLY_BEST = 1e-3
"""A loss higher than the best by no more is one of nearly the same clusters."""


def cautions(
    c: Clustering, row_names: Sequence[Any] | None = None, stability: Stability | None = None
) -> list[dict[str, str]]:
    """What to be careful about, the gravest first."""
    found: list[dict[str, str]] = []

    def add(title: str, text: str) -> None:
        found.append({"title": title, "text": text})

    probability_cautions(c, add)
    if stability is not None:
        stability_cautions(stability, add)
    if not c.converged:
        add(
            "Not converged",
            f"The fit was stopped at {c.kpod.max_iter} iterations while still improving. "
            "Allow more (max_iter) before relying on it.",
        )
    if not c.is_fitted_table:
        add(
            "Not the table the model was fitted on",
            "The rows shown were assigned to centers that were fitted on another table, or with row weights.",
        )
    start_cautions(c, add)
    row_cautions(c, row_names, add)
    center_cautions(c, add)
    column_cautions(c, add)
    return found


def probability_cautions(c: Clustering, add: Any) -> None:
    """Clusters most of whose rows are in another by the probabilities: two notions of a group disagree."""
    moved = rows_elsewhere(c)
    for cluster in np.flatnonzero(moved > CONTRADICTED * c.sizes):
        assert c.sureness is not None
        to = np.bincount(c.sureness.second[c.sureness.elsewhere & (c.labels == cluster)], minlength=c.k)
        other = f"cluster {to.argmax()}" if c.k == 2 else f"another cluster (mostly {to.argmax()})"
        belong = "belongs" if moved[cluster] == 1 else "belong"
        add(
            f"The probabilities contradict cluster {cluster}",
            f"{moved[cluster]:,} of the {counted(int(c.sizes[cluster]), 'row')} of cluster {cluster} "
            f"{belong} more probably to {other}. Do not use it as a group without checking.",
        )


def stability_cautions(stability: Stability, add: Any) -> None:
    """Clusters that do not come back when rows are resampled."""
    bad = unstable(stability.jaccard_)
    if len(bad):
        which = f"cluster{'' if len(bad) == 1 else 's'} {some([str(cluster) for cluster in bad])}"
        similarity = some([f"{stability.jaccard_[cluster]:.2f}" for cluster in bad])
        add(
            "Unstable clusters",
            f"Do not rely on {which} (mean Jaccard similarity {similarity} in resampled tables): another "
            "sample of rows would give other clusters there.",
        )


def start_cautions(c: Clustering, add: Any) -> None:
    """Starts that disagree: with another seed, other clusters may come out."""
    losses = np.asarray(getattr(c.kpod, "losses_", ()))
    if len(losses) < 2 or c.k == 1:
        return
    best, size = losses.min(), max(abs(losses.min()), 1e-300)
    if int((losses <= best + NEARLY_BEST * size).sum()) == 1:
        worse = (np.sort(losses)[1] - best) / size
        add(
            "Starts disagree",
            f"The best loss was found in 1 of {len(losses)} starts; the next is {percent(worse)} higher. "
            "Another seed may give different clusters: use more starts (--starts "
            f"{5 * len(losses)}) and compare.",
        )


def row_cautions(c: Clustering, row_names: Sequence[Any] | None, add: Any) -> None:
    def rows(mask: Any) -> str:
        which = np.flatnonzero(mask)
        names = [str(i + 1 if row_names is None else row_names[int(i)]) for i in which[:MOST_LISTED]]
        what = "" if row_names is not None else "row " if len(which) == 1 else "rows "
        return what + some(names, len(which))

    nothing = c.labels < 0
    if nothing.any():
        add(
            "Rows with nothing observed",
            f"{counted(int(nothing.sum()), 'row')} ({rows(nothing)}) with nothing observed could not be "
            "assigned (cluster -1).",
        )
    little = ~nothing & (c.source.by_row <= LITTLE * len(c.sources))
    if little.any():
        verb, rest = ("has", "its cluster rests") if little.sum() == 1 else ("have", "their clusters rest")
        so = f": {rest} on few values" if c.k > 1 else ""
        add(
            "Rows with little observed",
            f"{counted(int(little.sum()), 'row')} ({rows(little)}) {verb} at most a quarter of the columns "
            f"observed{so}.",
        )
    if c.k > 1:
        undecided = c.margins < UNDECIDED
        if undecided.any():
            share = undecided.sum() / max(1, (c.sampled_labels >= 0).sum())
            n = int(undecided.sum())
            who = (
                f"{counted(n, 'row')} ({percent(share, 1)})"
                if c.sample is None
                else f"Some {percent(share, 1)} of the rows"
            )
            verb, own = ("is", "its own") if n == 1 and c.sample is None else ("are", "their own")
            add("Rows between two clusters", f"{who} {verb} about as near to another center as to {own}.")


def center_cautions(c: Clustering, add: Any) -> None:
    small = [cluster for cluster in range(c.k) if c.sizes[cluster] < FEW]
    if small:
        names = some([str(cluster) for cluster in small])
        which = f"cluster {names}" if len(small) == 1 else f"clusters {names}"
        add(
            "Small clusters",
            f"Fewer than {FEW} rows in {which}: possibly outliers rather than a group{outlying(c, small)}.",
        )
    known = np.isfinite(c.centers)
    few = np.argwhere(((c.counts < FEW) & known & (c.sizes >= FEW)[:, None])[:, c.sources])
    if len(few):
        cells = [
            f"{c.source_names[j]} in cluster {cluster} ({number(c.counts[cluster, c.sources[j]])})"
            for cluster, j in few
        ]
        add(
            "Few observations behind a center",
            f"{counted(len(few), 'value')} of the centers {'rests' if len(few) == 1 else 'rest'} on fewer "
            f"than {FEW} observed entries: {some(cells)}.",
        )


def outlying(c: Clustering, small: Sequence[int]) -> str:
    """The columns in which small clusters lie far out, and what can be done about it."""
    far = np.abs(c.differences[list(small)]).max(axis=0)
    columns = [j for j in np.argsort(-far, kind="stable") if far[j] >= FAR_OUT and c.levels[j] is None][:3]
    if not columns:
        return ""
    said = listed([f"{c.names[j]} ({far[j]:.0f} standard deviations from the mean)" for j in columns])
    return f"; extreme in {said}. {remedy(c, columns, int(c.sizes[list(small)].sum()))}"


def remedy(c: Clustering, columns: Sequence[int], n_extreme: int) -> str:
    """What can be done about extreme values: clip as many, or take logarithms where these are the largest."""
    these = "this value" if n_extreme == 1 else "these values"
    if isinstance(c.table, MappedEntries):  # the options need the table in memory
        return f"Clip, or take logarithms, before clustering if {these} should not drive it"
    columns = columns[:3]
    entries = [c.table.column(j, c.sample)[1] for j in columns]
    tailed = [
        c.names[j]
        for j, e in zip(columns, entries, strict=True)
        if e.min() >= 0
        and e.max() - np.median(e) > np.median(e) - e.min()
        and "logarithms" not in c.means_of[j]
        and not ((e == e.min()) | (e == e.max())).all()
    ]
    # The quantile that leaves so many values beyond it.
    share = max(int(np.ceil(100 * n_extreme / max(1, len(e) - 1))) for e in entries) / 100
    ways = [
        *([f"take logarithms ({option('--log', ','.join(tailed))})"] if tailed else []),
        *([f"clip (--clip {share:g})"] if share <= MOST_CLIPPED else []),
    ]
    said = " or ".join(ways) or "look at them first"
    return f"{said[0].upper()}{said[1:]} if {these} should not drive the clustering"


def dominated(c: Clustering) -> list[tuple[int, int, int]]:
    """Columns in which a few values hold most of the variance, and how few of how many."""
    found = []
    for j in range(len(c.names)):
        entries = c.values.column(j, c.sample)[1].astype(np.float64)
        if len(entries) < 50 or c.levels[j] is not None:
            continue
        squares = (entries - entries.mean()) ** 2
        few = max(1, int(0.005 * len(entries)))
        largest = np.sort(np.partition(squares, -few)[-few:])[::-1]
        if squares.sum() > 0 and largest.sum() > 0.5 * squares.sum():
            enough = largest[np.searchsorted(largest.cumsum(), 0.5 * squares.sum(), side="right")]
            few = int((squares >= enough).sum())  # and all that are as extreme
            found.append((j, few, len(entries)))
    return found


def column_cautions(c: Clustering, add: Any) -> None:
    few = dominated(c)
    if few:
        sampled = " sampled" if c.sample is not None else ""
        said = some([f"{c.names[j]} ({n:,} of {total:,}{sampled})" for j, n, total in few])
        most = max(n for _, n, _ in few)
        who = "A few extreme values make" if most > 1 else "One extreme value makes"
        add(
            "A few values dominate",
            f"{who} up more than half of the variance of {said}. {remedy(c, [j for j, _, _ in few], most)}.",
        )
    sparse = [
        f"{name} ({percent(c.missing_by_column[j])})"
        for name, j in zip(c.source_names, c.sources, strict=True)
        if c.missing_by_column[j] > 0.5
    ]
    if sparse:
        add("Columns mostly missing", f"More than half of the entries are missing in {some(sparse)}.")
    uneven = uneven_gaps(c)
    if uneven:
        add(
            "Gaps differ between clusters",
            f"The share of missing entries differs between clusters in {some(uneven)}. If gaps depend on the "
            "cluster, a lower loss does not mean truer groups; find out why these values are missing.",
        )
    variance = np.nan_to_num(c.values.moments[1] ** 2)
    if (variance > 0).sum() > 2 and variance.max() > 0.5 * variance.sum():
        j = int(variance.argmax())
        add(
            "One column outweighs the others",
            f"{c.names[j]} accounts for {percent(variance[j] / variance.sum())} of the total variance, "
            "because columns are on different scales; standardise them unless they share a unit.",
        )


def uneven_gaps(c: Clustering) -> list[str]:
    """Columns whose share missing differs by much between clusters of 20 rows and more."""
    large = [cluster for cluster in range(c.k) if c.sizes[cluster] >= 20]
    if len(large) < 2:
        return []
    shares = 1 - c.known[np.ix_(large, c.sources)]
    spread = shares.max(axis=0) - shares.min(axis=0)
    return [
        f"{c.source_names[j]} ({percent(shares[:, j].min())} to {percent(shares[:, j].max())})"
        for j in np.argsort(-spread, kind="stable")
        if spread[j] > UNEVEN
    ]
