"""What sets a cluster apart: the columns in which it is high or low, and how it differs from its neighbour.

Everything here is values; `_common/sentences/cluster_sentences.py` words them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from kpod._common.sentences.formatting import brief_pair, number, percent
from kpod._findings.fitted_clusters.models import relative_spreads
from kpod._findings.fitted_clusters.units import SMALL

if TYPE_CHECKING:
    from kpod._findings.fitted_clusters.clustering import Clustering

FEW = 5
"""A mean of fewer observed entries than this is not spoken of."""
ENOUGH = 0.5
"""Where fewer of its rows have a value, a cluster is described by it last, with the count behind it."""
CLEAR = 0.5
"""A mean this many standard deviations off the column's mean is high or low."""
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
        The mean of its rows, and of the rows of all other clusters, as they are read.
    difference : float
        From the mean of the column, in standard deviations.
    known : tuple of (int, int) or None
        The rows that have a value, and all rows of the cluster, where few have one.
    means_of : str
        What the means are means of, "" for the values as they are.
    left_out : int
        Entries that no cluster of a mixture expects, which are in none of the means.
    """

    kind: Kind
    column: int
    name: str
    value: str
    others: str
    difference: float
    known: tuple[int, int] | None
    means_of: str = ""
    left_out: int = 0


@dataclass(frozen=True)
class Contrast:
    """The nearest other cluster, and the column in which the two differ most: the means of their rows."""

    cluster: int
    column: int
    name: str
    value: str
    there: str
    means_of: str = ""
    left_out: int = 0


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
    of = c.row_means
    difference = np.where(of.counts[cluster] >= FEW, of.differences[cluster], 0.0)
    found = []
    for j in map(int, np.flatnonzero(np.abs(difference) >= CLEAR)):
        if c.levels[j] is None:
            value, others = shown_pair(c, j, of.means[cluster, j], of.others[cluster, j])
            kind: Kind = "high" if difference[j] > 0 else "low"
            known = known_of(c, cluster, j)
            found.append(
                Trait(kind, j, c.names[j], value, others, float(difference[j]), known, *kind_of_mean(c, j))
            )
    return found


def kind_of_mean(c: Clustering, j: int) -> tuple[str, int]:
    """What the means of a column are means of, and how many entries they leave out."""
    return c.means_of[j], int(c.row_means.left_out[j])


def levels(c: Clustering, cluster: int) -> list[Trait]:
    """The levels of categories that are clearly more common in a cluster; a few of its rows have them."""
    found = []
    for j, level in enumerate(c.levels):
        if level is None:
            continue
        of = c.row_means
        share, difference = float(of.means[cluster, j]), float(of.differences[cluster, j])
        elsewhere = float(of.others[cluster, j])
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


def contrast(c: Clustering, cluster: int) -> Contrast | None:
    """The cluster whose means are nearest, over the columns that both have, and what sets it apart."""
    of = c.row_means
    enough = of.counts >= FEW
    both = enough & enough[cluster]
    off = np.where(both, of.differences - of.differences[cluster], 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        far = (off**2).sum(axis=1) / both.sum(axis=1)
    far[cluster] = np.nan
    if np.isnan(far).all():
        return None
    nearest = int(np.nanargmin(far))
    j = int(np.abs(off[nearest]).argmax())
    if off[nearest, j] == 0:
        return None
    value, there = shown_pair(c, j, of.means[cluster, j], of.means[nearest, j])
    return Contrast(nearest, j, c.label(j), value, there, *kind_of_mean(c, j))


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
