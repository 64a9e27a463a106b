"""Several rows of one individual: a panel, visits, a row for each grade of each city."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from kpod._columns.preparing.column_values import codes_of, decoded
from kpod._columns.preparing.columns_in_use import ColumnUsage, can_name
from kpod._columns.rows.row_names import words
from kpod._columns.tables import TableFile
from kpod._common.notes import Note

LEAST_UNITS = 20
MOST_ROWS = 50
"""Of one individual, on average; what has more of them is a group."""
ALIKE = 0.5
"""Of the variance of the columns, the part between individuals, from which on their rows are alike."""
SAMPLE = 20_000
NAMED = 0.95
"""The share of different names from which every row is something with a name of its own."""


def repeated_units(table: TableFile, choice: ColumnUsage) -> list[Note]:
    """A note where several rows belong to one individual, and the table has no times."""
    keys = {}
    for name, role in choice.roles.items():
        if (
            role.role in ("category", "identifier", "text")
            and name in choice.unused
            and can_name(table, name)
        ):
            if table.column(name).missing:
                continue
            codes = codes_of(table, name)
            n_levels = len(np.unique(codes[codes >= 0]))
            if 1 < n_levels <= table.n_rows / 2 and (codes >= 0).all():
                keys[name] = codes, n_levels
    units = sorted((name for name in keys if keys[name][1] >= LEAST_UNITS), key=lambda name: -keys[name][1])
    for unit in units:
        for other, (_, n_others) in keys.items():
            crossed = keys[unit][1] * n_others
            if (
                other == unit
                or n_others >= keys[unit][1]
                or not table.n_rows <= crossed <= 1.5 * table.n_rows
            ):
                continue
            both = pa.table({"unit": decoded(table.raw[unit]), "other": decoded(table.raw[other])})
            if both.group_by(["unit", "other"]).aggregate([]).num_rows != table.n_rows:
                continue
            # Where combinations are absent, the unit may be a number that starts again in every group.
            if crossed == table.n_rows or share_between(table, choice, keys[unit][0]) >= ALIKE:
                return [Note("one row for each", (unit, other), {"n_units": keys[unit][1], "in_time": False})]
    if any(one.share >= NAMED for one in words(table, choice)):  # who or what the rows are, each for itself
        return []
    for unit in units:
        codes, n_units = keys[unit]
        length = float(np.median(np.bincount(codes)))
        if 1 < length <= MOST_ROWS and share_between(table, choice, codes) >= ALIKE:
            return [Note("repeated units", (unit,), {"n_units": n_units, "length": length})]
    return []


def share_between(table: TableFile, choice: ColumnUsage, codes: Any) -> float:
    """The share of variance between individuals beyond chance: the median over the columns used."""
    shares = []
    for name in choice.used:
        values = table.column(name).values
        if values is None or name in choice.categories:
            continue
        known = np.isfinite(values[:SAMPLE])
        x, at = values[:SAMPLE][known], codes[:SAMPLE][known]
        sizes = np.bincount(at)
        n, k = len(x), int((sizes > 0).sum())
        if n - k < LEAST_UNITS or np.ptp(x) == 0:
            continue
        means = np.bincount(at, weights=x) / np.maximum(sizes, 1)
        within = float(((x - means[at]) ** 2).sum()) / (n - k)
        shares.append(1 - within / float(x.var(ddof=1)))
    return float(np.median(shares)) if shares else 0.0
