"""The spread, within-cluster correlation and outlying cells of a mixture.

Standard deviations and correlations are those of the model, which allow for gaps and for rows that belong to
several clusters; nothing is counted again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kpod._common.sentences.formatting import counted, number, some
from kpod._common.typing import Floats
from kpod._estimators.mixture.model import MixtureModel
from kpod._findings.fitted_clusters.clustering import Clustering
from kpod._findings.fitted_clusters.models import is_mixture

CORRELATED = 0.3
"""Smaller correlations are not listed."""
MOST_PAIRS = 3
MOST_CORRELATED_COLUMNS = 200
"""Of more columns, correlations are computed for those that separate the clusters most."""


class Pair(NamedTuple):
    """Two columns and their correlation within a cluster."""

    first: int
    second: int
    correlation: float


@dataclass(frozen=True)
class OutlierCell:
    """An entry that no cluster expects, given the rest of its row."""

    row: int
    column: int
    value: float


def shape_sentence(model: MixtureModel) -> str:
    """What the clusters have in common, in a sentence."""
    shape = model._shape()
    factors = "" if not shape.q else f", carried by {counted(shape.q, 'factor')}"
    return {
        "full": f"Each cluster has its own spread and its own correlations between columns{factors}.",
        "tied": "All clusters have the same spread and the same correlations between columns"
        f"{factors}; they differ in their means.",
        "diag": "Each cluster has its own spread in every column; "
        + (
            f"correlations within clusters are carried by {counted(shape.q, 'common factor')}."
            if shape.q
            else "within clusters, columns are not correlated."
        ),
        "tied_diag": "All clusters have the same spread, one for each column; within clusters, columns are "
        "not correlated.",
        "spherical": "The clusters are round, each with a spread of its own.",
        "tied_spherical": "The clusters are round and have the same spread.",
    }[shape.covariance_type]


def how_chosen(model: Any) -> str:
    """What the shape is called, and whether it was given or found."""
    named, n = str(model._shape()), len(model.shape_bics_)
    given = model.covariance_type != "auto" and (model.n_factors != "auto" or not model._shape().q)
    return f"{named}; given" if given else f"{named}; the best {f'of {n} ' if n > 1 else ''}by BIC"


def correlated_pairs(c: Clustering, cluster: int) -> list[Pair]:
    """The columns most correlated within a cluster, the strongest first."""
    assert is_mixture(c.kpod)
    columns = [j for j in c.by_separation[:MOST_CORRELATED_COLUMNS] if c.levels[j] is None]
    columns = sorted(j for j in columns if np.isfinite(c.centers[cluster, j]))
    matrix = c.kpod._covariance(cluster, np.array(columns, np.intp))
    spreads = np.sqrt(np.diag(matrix))
    correlations = matrix / spreads[:, None] / spreads
    found = [
        Pair(columns[i], columns[j], float(correlations[i, j]))
        for i, j in zip(*np.triu_indices(len(columns), 1), strict=True)
        if abs(correlations[i, j]) >= CORRELATED
    ]
    return sorted(found, key=lambda pair: -abs(pair.correlation))[:MOST_PAIRS]


def correlation_sentences(c: Clustering) -> list[str]:
    """What columns go together within clusters: once for all, or cluster by cluster."""
    if not is_mixture(c.kpod) or not (c.kpod._shape().whole or c.kpod._shape().q):
        return []
    common = c.kpod._shape() == c.kpod._shape().tied
    out = []
    for cluster in range(1 if common else c.k):
        where = "within clusters" if common else f"within cluster {cluster}"
        pairs = [
            f"{c.names[pair.first]} and {c.names[pair.second]} ({pair.correlation:.2f})"
            for pair in correlated_pairs(c, cluster)
        ]
        nothing = f"No two columns are clearly correlated {where}."
        out.append(f"Correlated {where}: {', '.join(pairs)}." if pairs else nothing)
    return out


def spreads(c: Clustering) -> Floats:
    """A standard deviation below and above each center (2, k, p), in the units of the table.

    NaN where there is no such thing: in a k-means model, and for the levels of a category.
    """
    if not is_mixture(c.kpod):
        return np.full((2, *c.centers.shape), np.nan)
    deviations, means = c.kpod._standard_deviations(), np.asarray(c.kpod.means_, np.float64)
    ends = [c.in_units(means + side * deviations) for side in (-1, 1)]
    known = np.isfinite(c.centers) & np.array([level is None for level in c.levels])
    return np.where(known, np.array(ends, np.float64), np.nan)


def spread_shown(c: Clustering, j: int, low: float, high: float) -> str:
    """A spread beside a center: ± where both sides are alike, else from where to where."""
    if not np.isfinite(low + high):
        return ""
    if c.means_of[j]:
        return f"{c.shown(j, low)} to {c.shown(j, high)}"
    return f"± {number(float(f'{(high - low) / 2:.2g}'))}"


def uninformative_columns(c: Clustering) -> list[int]:
    """Columns that have the same mean and spread in all clusters, because they are uninformative."""
    if not is_mixture(c.kpod):
        return []
    live = ~np.isnan(c.kpod.column_means_)
    return [int(j) for j in np.flatnonzero(live & ~c.kpod.selected_)]


def uninformative_sentence(c: Clustering) -> str:
    names = [c.label(j) for j in uninformative_columns(c)]
    if not names:
        return ""
    one = len(names) == 1
    return (
        f"{counted(len(names), 'column')} {'is' if one else 'are'} uninformative about the clusters, and "
        f"{'has' if one else 'have'} the same mean and spread in all of them: {some(names, most=12)}."
    )


def outlier_cells_of(c: Clustering) -> list[OutlierCell]:
    """The entries that count as gaps because no cluster expects them, in the units of the table."""
    cells = c.outlier_cells
    rows = np.unique(cells[:, 0])
    values = c.table.rows(rows) if len(rows) else np.empty((0, len(c.names)))
    at = np.searchsorted(rows, cells[:, 0])
    return [
        OutlierCell(int(row), int(column), float(values[i, column]))
        for (row, column), i in zip(cells, at, strict=True)
    ]
