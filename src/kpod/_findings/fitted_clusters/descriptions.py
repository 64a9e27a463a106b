"""What sets a cluster apart: the columns in which it is high or low, and how it differs from its neighbour.

Everything here is values; `_common/sentences/cluster_sentences.py` words them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from kpod._common.sentences.formatting import brief_pair, number, percent
from kpod._common.typing import Floats
from kpod._findings.fitted_clusters.models import relative_spreads
from kpod._findings.fitted_clusters.units import SMALL

if TYPE_CHECKING:
    from kpod._findings.fitted_clusters.clustering import Clustering

FEW = 5
"""A center resting on fewer observed entries than this is not spoken of."""
ENOUGH = 0.5
"""Where fewer of its rows have a value, a cluster is described by it last, with the count behind it."""
CLEAR = 0.5
"""A center this many standard deviations off the column's mean is high or low."""
VARIED = 1.5
"""A standard deviation so many times that of the clusters on average is more varied."""
NEARLY_ALL = 0.8
MOST_TRAITS = 4
MOST_VARIED = 3

Kind = Literal["mostly", "more often", "high", "low"]


@dataclass(frozen=True)
class Trait:
    """A column in which a cluster is clearly high or low, or a level that its rows have more often.

    Attributes
    ----------
    kind : {"mostly", "more often", "high", "low"}
    column : int
        The column of the model.
    name : str
        Of the column, with the level of a category.
    value, others : str
        The center, and the mean of all other clusters, as they are read.
    difference : float
        From the mean of the column, in standard deviations.
    known : tuple of (int, int) or None
        The rows that have a value, and all rows of the cluster, where few have one.
    """

    kind: Kind
    column: int
    name: str
    value: str
    others: str
    difference: float
    known: tuple[int, int] | None


@dataclass(frozen=True)
class Contrast:
    """The nearest other cluster, and the column in which the two differ most."""

    cluster: int
    column: int
    name: str
    value: str
    there: str


@dataclass(frozen=True)
class Varied:
    """Columns in which a cluster of a mixture varies more, or less, than clusters do on average."""

    more: bool
    names: list[str]
    throughout: bool


def traits(c: Clustering, cluster: int) -> list[Trait]:
    """What a cluster is clearly high and low in, the clearest first; what few of its rows have, last."""
    if c.k == 1:
        return []
    found = [*numbers(c, cluster), *levels(c, cluster)]
    return sorted(found, key=lambda one: (one.known is not None, -abs(one.difference)))[:MOST_TRAITS]


def numbers(c: Clustering, cluster: int) -> list[Trait]:
    difference = np.where(c.counts[cluster] >= FEW, c.differences[cluster], 0.0)
    found = []
    for j in map(int, np.flatnonzero(np.abs(difference) >= CLEAR)):
        if c.levels[j] is None:
            value, others = shown_pair(c, j, c.centers[cluster, j], c.others[cluster, j])
            kind: Kind = "high" if difference[j] > 0 else "low"
            known = known_of(c, cluster, j)
            found.append(Trait(kind, j, c.names[j], value, others, float(difference[j]), known))
    return found


def levels(c: Clustering, cluster: int) -> list[Trait]:
    """The levels of categories that are clearly more common in a cluster; a few of its rows have them."""
    found = []
    for j, level in enumerate(c.levels):
        if level is None:
            continue
        share, difference = float(c.centers[cluster, j]), float(c.differences[cluster, j])
        elsewhere = float(c.others[cluster, j])
        sides = [(level.name, share, elsewhere, difference)]
        if level.other is not None:
            sides.append((level.other, 1 - share, 1 - elsewhere, -difference))
        for name, part, others, more_often in sides:
            if part * c.entries[cluster, j] >= FEW and more_often >= CLEAR:
                kind: Kind = "mostly" if part > 0.5 else "more often"
                texts = percent(part), percent(others)
                known = known_of(c, cluster, j)
                found.append(Trait(kind, j, f"{level.column} {name}", *texts, more_often, known))
    return found


def known_of(c: Clustering, cluster: int, j: int) -> tuple[int, int] | None:
    few = c.known[cluster, j] < ENOUGH
    return (int(c.entries[cluster, j]), int(c.sizes[cluster])) if few else None


def means_of_others(c: Clustering) -> Floats:
    """Of each cluster and column, the mean over the rows of all other clusters, in the units of the table.

    Taken as the model sees the columns, then brought to their units as centers are.
    """
    counts = np.asarray(c.kpod.counts_, dtype=np.float64)
    sums = counts * np.nan_to_num(np.asarray(c.kpod.cluster_centers_, dtype=np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        means = (sums.sum(axis=0) - sums) / (counts.sum(axis=0) - counts)
    return np.asarray(c.in_units(means), dtype=np.float64)


def contrast(c: Clustering, cluster: int) -> Contrast | None:
    """The cluster whose center is nearest, over the columns that both have, and what sets it apart."""
    enough = c.counts >= FEW
    both = enough & enough[cluster]
    off = np.where(both, c.differences - c.differences[cluster], 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        far = (off**2).sum(axis=1) / both.sum(axis=1)
    far[cluster] = np.nan
    if np.isnan(far).all():
        return None
    nearest = int(np.nanargmin(far))
    j = int(np.abs(off[nearest]).argmax())
    if off[nearest, j] == 0:
        return None
    value, there = shown_pair(c, j, c.centers[cluster, j], c.centers[nearest, j])
    return Contrast(nearest, j, c.label(j), value, there)


def shown_pair(c: Clustering, j: int, value: float, other: float) -> tuple[str, str]:
    """Two values of a column with as many digits as it takes to distinguish them."""
    if c.levels[j] is not None or c.is_yes_no[j]:
        return percent(value), percent(other)
    if c.is_year[j] and np.isfinite(value) and np.isfinite(other):
        digits = 0 if round(value) != round(other) else 1
        return f"{value:.{digits}f}", f"{other:.{digits}f}"
    small = SMALL * c.moments[1][j]
    value, other = (0.0 if abs(one) < small else one for one in (value, other))
    return (
        brief_pair(value, other)
        if np.isfinite(value) and np.isfinite(other)
        else (number(value), number(other))
    )


def spread(c: Clustering, cluster: int) -> list[Varied]:
    """What a cluster of a mixture varies in more, and less, than clusters do on average."""
    ratios = relative_spreads(c.kpod)
    if ratios is None or c.k == 1:
        return []
    enough = (c.counts[cluster] >= FEW) & np.array([level is None for level in c.levels])
    logs = np.where(enough, np.nan_to_num(np.log(ratios[cluster])), 0.0)
    found = []
    for more, by in ((True, logs), (False, -logs)):
        varied = [j for j in np.argsort(-by, kind="stable") if by[j] >= np.log(VARIED)]
        if varied:
            throughout = len(varied) > max(MOST_VARIED, NEARLY_ALL * enough.sum())
            found.append(Varied(more, [c.names[j] for j in varied[:MOST_VARIED]], throughout))
    return found
