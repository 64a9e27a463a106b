"""The rows of the picture with their names, clusters and values, for readers who ask who is in a cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from kpod._common.errors import printable
from kpod._common.typing import Floats, Labels, Positions
from kpod._findings.fitted_clusters.clustering import Clustering
from kpod._findings.unused_column_profiles import UnusedColumn

MOST_ENTRIES = 200_000
"""Of all rows and columns together; a page of two thousand rows has a hundred columns."""
MOST_UNUSED = 12
AT_ONCE = 400_000
LONGEST = 60


def members(
    c: Clustering, rows: Positions, row_names: Sequence[Any] | None, unused: Sequence[UnusedColumn]
) -> dict[str, Any]:
    """The rows, cluster by cluster, and the columns that separate most; then columns that were not clustered.

    The columns of a category are one, of its levels in words.
    """
    rows = rows[np.argsort(c.labels[rows], kind="stable")]
    shown = columns_shown(c, max(1, MOST_ENTRIES // max(1, len(rows))))
    values = entries(c, rows, sorted({j for group in shown for j in group}))
    columns = [column_of(c, group, values) for group in shown]
    columns += [as_member_column(column, rows) for column in unused[:MOST_UNUSED]]
    named = row_names if row_names is not None else range(1, len(c.labels) + 1)
    return {
        "n_rows": len(c.labels),
        "named": row_names is not None,
        "names": [brief(named[i]) for i in rows],
        "clusters": c.labels[rows].tolist(),
        "columns": columns,
    }


def columns_shown(c: Clustering, most: int) -> list[list[int]]:
    """Columns of the model by column of the table, those that separate most first."""
    groups: dict[Any, list[int]] = {}
    for j in c.by_separation:
        level = c.levels[j]
        groups.setdefault(j if level is None else level.column, []).append(j)
    return list(groups.values())[:most]


def entries(c: Clustering, rows: Positions, columns: Sequence[int]) -> dict[int, Floats]:
    """Some rows of some columns, in the units of the table."""
    at_once = max(1, len(rows) * c.table.shape[1] // AT_ONCE)
    values = np.concatenate([c.table.rows(some)[:, columns] for some in np.array_split(rows, at_once)])
    return dict(zip(columns, values.T, strict=True))


def column_of(c: Clustering, group: Sequence[int], values: dict[int, Floats]) -> dict[str, Any]:
    level = c.levels[group[0]]
    if level is None:
        (j,) = group
        kind = "year" if c.is_year[j] else "number"
        return {"name": printable(c.names[j]), "kind": kind, "values": [rounded(x) for x in values[j]]}
    return {"name": printable(level.column), "kind": "text", "values": list(words(c, group, values))}


def words(c: Clustering, group: Sequence[int], values: dict[int, Floats]) -> Iterator[str | None]:
    """The level that each row has."""
    for row in np.column_stack([values[j] for j in group]):
        level = c.levels[group[int(np.nanargmax(row))]] if not np.isnan(row).all() else None
        if level is None:
            yield None
        else:
            yield brief(level.name if np.nanmax(row) > 0.5 or level.other is None else level.other)


def as_member_column(column: UnusedColumn, rows: Positions) -> dict[str, Any]:
    if column.values is None:
        assert column.codes is not None
        codes: Labels = column.codes[rows]
        values: list[Any] = [brief(column.levels[code]) if code >= 0 else None for code in codes]
        kind = "text"
    elif column.unit == "date":
        days = column.values[rows]
        values = [None if np.isnan(day) else str(np.datetime64(int(day), "D")) for day in days]
        kind = "date"
    else:
        values = [rounded(x) for x in column.values[rows]]
        kind = column.unit or "number"
    return {"name": printable(column.name), "kind": kind, "values": values, "aside": True}


def rounded(value: float) -> float | int | None:
    """A number short enough for a page: whole, or with six digits; None where it is missing."""
    if not np.isfinite(value):
        return None
    return int(value) if value == int(value) and abs(value) < 1e15 else float(f"{value:.6g}")


def brief(value: Any) -> str:
    text = printable(str(value))
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def as_json(data: dict[str, Any]) -> str:
    """JSON for inside a script element, which nothing in it can close."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
