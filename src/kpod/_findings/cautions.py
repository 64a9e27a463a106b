"""Cautions about a clustering, the most serious first.

A new caution is a `Note` that one of the functions here yields, and its sentence in
`_common/sentences/caution_sentences.py`; print, JSON and report take it from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from kpod._common.notes import Note, Notes
from kpod._common.sentences.formatting import MOST_LISTED
from kpod._findings.certainty import rows_elsewhere
from kpod._findings.fitted_clusters.clustering import Clustering
from kpod._findings.fitted_clusters.descriptions import FEW
from kpod._findings.fitted_clusters.entries import MappedEntries
from kpod._findings.fitted_clusters.mixture_spread import outlier_cells_of
from kpod._findings.fitted_clusters.models import is_mixture
from kpod._findings.stability import Stability, unstable

CONTRADICTED = 0.5
"""The share of a cluster's rows that belong more probably to others, from which it is not to be trusted."""
LITTLE = 0.25
UNDECIDED = 0.05
WORTH_SAYING = 0.01
"""The share of rows between two clusters from which that is a caution: between groups, a few always are."""
UNEVEN = 0.3
FAR_OUT = 5.0
EXTREME, LEAST_ENTRIES = 0.01, 20
"""The share of the values of a column that are a few of them, two at the least, and of how many."""
RARE = 0.005
"""The same for yes and no, of which either may be rare."""
MOST_CLIPPED = 0.25
NOT_FITTED_ON = "not the table the model was fitted on"
MOST_CELLS = 20
NEARLY_BEST = 1e-3
"""A loss higher than the best by no more is one of nearly the same clusters."""


def cautions(
    c: Clustering,
    row_names: Sequence[Any] | None = None,
    stability: Stability | None = None,
    *,
    mixture_refused: bool = False,
) -> Notes:
    """What to be careful about, the gravest first; `mixture_refused`: no Gaussian mixture fits the table."""
    return Notes([
        *probability_cautions(c, mixture_refused),
        *([] if stability is None else stability_cautions(stability)),
        *([] if c.converged else [caution("not converged", max_iter=int(c.kpod.max_iter))]),
        *([] if c.is_fitted_table else [caution(NOT_FITTED_ON)]),
        *start_cautions(c),
        *row_cautions(c, row_names),
        *cell_cautions(c, row_names),
        *center_cautions(c),
        *column_cautions(c),
    ])  # fmt: skip


def caution(kind: str, columns: Sequence[str] = (), **values: Any) -> Note:
    return Note(kind, tuple(columns), values, "caution")


def probability_cautions(c: Clustering, mixture_refused: bool) -> Iterator[Note]:
    """Clusters most of whose rows are in another by the probabilities: two notions of a group disagree."""
    moved = rows_elsewhere(c)
    for cluster in np.flatnonzero(moved > CONTRADICTED * c.sizes):
        assert c.sureness is not None
        to = np.bincount(c.sureness.second[c.sureness.elsewhere & (c.labels == cluster)], minlength=c.k)
        yield caution(
            "contradicted cluster",
            cluster=int(cluster),
            n=int(moved[cluster]),
            size=int(c.sizes[cluster]),
            other=int(to.argmax()),
            of_two=c.k == 2,
        )
    if c.roundness is not None and c.roundness.contradicted:
        yield caution("clusters that are not round", **c.roundness._asdict(), refused=mixture_refused)


def stability_cautions(stability: Stability) -> Iterator[Note]:
    """Clusters that do not come back when rows are resampled."""
    bad = unstable(stability.jaccard_)
    if len(bad):
        jaccard = [float(stability.jaccard_[cluster]) for cluster in bad]
        yield caution("unstable clusters", clusters=[int(cluster) for cluster in bad], jaccard=jaccard)


def start_cautions(c: Clustering) -> Iterator[Note]:
    """Starts that disagree: with another seed, other clusters may come out."""
    losses = np.asarray(getattr(c.kpod, "losses_", ()))
    if len(losses) < 2 or c.k == 1:
        return
    best, size = losses.min(), max(abs(losses.min()), 1e-300)
    if int((losses <= best + NEARLY_BEST * size).sum()) == 1:
        worse = (np.sort(losses)[1] - best) / size
        yield caution("starts disagree", starts=len(losses), worse=float(worse))


def row_cautions(c: Clustering, row_names: Sequence[Any] | None) -> Iterator[Note]:
    def rows(which: Any) -> dict[str, Any]:
        names = [str(i + 1 if row_names is None else row_names[int(i)]) for i in which[:MOST_LISTED]]
        return {"n": len(which), "rows": names, "named": row_names is not None}

    nothing = np.flatnonzero(c.labels < 0)
    if len(nothing):
        yield caution("rows with nothing observed", **rows(nothing))
    is_little = c.source.by_row <= LITTLE * len(c.sources)
    is_little[nothing] = False
    if is_little.any():
        yield caution("rows with little observed", clusters=c.k > 1, **rows(np.flatnonzero(is_little)))
    if c.k > 1:
        undecided = c.margins < UNDECIDED
        share = undecided.sum() / max(1, (c.sampled_labels >= 0).sum())
        if share >= WORTH_SAYING:
            n, sampled = int(undecided.sum()), c.sample is not None
            by = "probability" if is_mixture(c.kpod) else "distance"
            yield caution("rows between two clusters", n=n, share=float(share), sampled=sampled, by=by)


def cell_cautions(c: Clustering, row_names: Sequence[Any] | None) -> Iterator[Note]:
    """Entries that a mixture counts as gaps, by name."""
    cells = outlier_cells_of(c)
    if cells:
        named = [
            (
                str(cell.row + 1 if row_names is None else row_names[cell.row]),
                c.label(cell.column),
                c.shown(cell.column, cell.value),
            )
            for cell in cells[:MOST_CELLS]
        ]
        names = list(dict.fromkeys(c.names[cell.column] for cell in cells))
        n, rows_named = len(cells), row_names is not None
        yield caution("values that no cluster expects", names, n=n, cells=named, named=rows_named)


def center_cautions(c: Clustering) -> Iterator[Note]:
    small = [cluster for cluster in range(c.k) if c.sizes[cluster] < FEW]
    if small:
        columns, far = outlying(c, small)
        remedies = remedy(c, columns, int(c.sizes[small].sum())) if columns else {}
        names = [c.names[j] for j in columns]
        yield caution("small clusters", names, clusters=small, least=FEW, far=far, **remedies)
    known = np.isfinite(c.centers)
    few = np.argwhere(((c.counts < FEW) & known & (c.sizes >= FEW)[:, None])[:, c.sources])
    if len(few):
        cells = [
            (c.source_names[j], int(cluster), float(c.counts[cluster, c.sources[j]])) for cluster, j in few
        ]
        names = list(dict.fromkeys(name for name, *_ in cells))
        yield caution("few observations behind a center", names, cells=cells, least=FEW)


def outlying(c: Clustering, small: Sequence[int]) -> tuple[list[int], list[float]]:
    """The columns in which small clusters are far from the mean, and by how many standard deviations."""
    far = np.abs(c.differences[list(small)]).max(axis=0)
    columns = [int(j) for j in np.argsort(-far, kind="stable") if far[j] >= FAR_OUT and c.levels[j] is None][
        :3
    ]
    return columns, [float(far[j]) for j in columns]


def remedy(c: Clustering, columns: Sequence[int], n_extreme: int) -> dict[str, Any]:
    """What can be done about extreme values: clip as many, or take logarithms where these are the largest."""
    if isinstance(c.table, MappedEntries):
        return {"n_extreme": n_extreme, "log": [], "clip": None, "in_memory": False}
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
    clip = share if share <= MOST_CLIPPED else None
    return {"n_extreme": n_extreme, "log": tailed, "clip": clip, "in_memory": True}


def dominated(c: Clustering) -> list[tuple[int, int, int]]:
    """Columns in which a few values hold most of the variance, and how few of how many."""
    found = []
    for j in range(len(c.names)):
        entries = c.expected_entries(c.values, j)[1].astype(np.float64)
        few = int(RARE * len(entries)) if c.is_yes_no[j] else max(2, int(EXTREME * len(entries)))
        if len(entries) < LEAST_ENTRIES or c.levels[j] is not None or not few:
            continue
        squares = (entries - entries.mean()) ** 2
        largest = np.sort(np.partition(squares, -few)[-few:])[::-1]
        if squares.sum() > 0 and largest.sum() > 0.5 * squares.sum():
            enough = largest[np.searchsorted(largest.cumsum(), 0.5 * squares.sum(), side="right")]
            few = int((squares >= enough).sum())  # and all that are as extreme
            found.append((j, few, len(entries)))
    return found


def column_cautions(c: Clustering) -> Iterator[Note]:
    few = dominated(c)
    if few:
        remedies = remedy(c, [j for j, _, _ in few], max(n for _, n, _ in few))
        pairs, sampled = [(n, total) for _, n, total in few], c.sample is not None
        names = [c.names[j] for j, _, _ in few]
        yield caution("a few values dominate", names, few=pairs, sampled=sampled, **remedies)
    pairs_ = zip(c.source_names, c.sources, strict=True)
    sparse = {name: float(c.missing_by_column[j]) for name, j in pairs_ if c.missing_by_column[j] > 0.5}
    if sparse:
        yield caution("columns mostly missing", list(sparse), shares=list(sparse.values()))
    uneven = uneven_gaps(c)
    if uneven:
        columns, least, most = zip(*uneven, strict=True)
        yield caution("gaps differ between clusters", columns, least=list(least), most=list(most))
    if is_mixture(c.kpod) and not c.kpod._shape().round:  # to which units do not matter
        return
    variance = np.nan_to_num(c.values.moments[1] ** 2)
    if (variance > 0).sum() > 2 and variance.max() > 0.5 * variance.sum():
        j = int(variance.argmax())
        share = float(variance[j] / variance.sum())
        yield caution("one column outweighs the others", [c.names[j]], share=share)


def uneven_gaps(c: Clustering) -> list[tuple[str, float, float]]:
    """Columns whose share missing differs by much between clusters of 20 rows and more: least and most."""
    large = [cluster for cluster in range(c.k) if c.sizes[cluster] >= 20]
    if len(large) < 2:
        return []
    shares = 1 - c.known[np.ix_(large, c.sources)]
    least, most = shares.min(axis=0), shares.max(axis=0)
    return [
        (c.source_names[j], float(least[j]), float(most[j]))
        for j in np.argsort(least - most, kind="stable")
        if most[j] - least[j] > UNEVEN
    ]
