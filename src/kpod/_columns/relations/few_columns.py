"""Tables of which few columns are clustered: one, or a small part of those that could be.

The clusters of a single column are its ranges. If there are categories, or the rows are lines of a long
table, there is more to use.
"""

from __future__ import annotations

from itertools import combinations

import pyarrow as pa
import pyarrow.compute as pc

from kpod._columns.preparing.column_values import decoded
from kpod._columns.preparing.columns_in_use import ColumnUsage, can_name
from kpod._columns.tables import TableFile
from kpod._common.notes import Note

SMALL = 0.25
"""Of the columns that could be clustered, so few are a small part."""
MOST_ITEMS = 200
LEAST_UNITS = 5
KEYS = ("category", "identifier", "date", "ordered", "text")


def few_columns(table: TableFile, choice: ColumnUsage) -> list[Note]:
    """A note where one column or a small part of the usable ones is clustered."""
    categories = [
        name
        for name, role in choice.roles.items()
        if name in choice.unused
        and role.role in ("category", "ordered")
        and not choice.unused[name].startswith("excl")
    ]
    n_usable = len(choice.used) + len(categories)
    if choice.columns_named or (len(choice.used) > 1 and len(choice.used) > SMALL * n_usable):
        return []
    values = {"n_usable": n_usable, "categories": categories if not table.in_pieces else []}
    key = long_table(table, choice) if len(choice.used) == 1 else None
    return [Note("few columns", tuple(choice.used), {**values, "long": list(key or ())})]


def long_table(table: TableFile, choice: ColumnUsage) -> tuple[str, str] | None:
    """The columns that name the rows and the columns of a table whose values are one to a line."""
    if table.in_pieces:
        return None
    keys = {}
    for name, role in choice.roles.items():
        if name in choice.unused and role.role in KEYS and can_name(table, name):
            n_levels = pc.count_distinct(decoded(table.raw[name]), mode="all").as_py()
            if 1 < n_levels <= table.n_rows / 2:
                keys[name] = n_levels
    for one, other in combinations(keys, 2):
        items, rows = sorted((one, other), key=lambda name: keys[name])
        if keys[items] > MOST_ITEMS or keys[rows] < LEAST_UNITS or keys[rows] * keys[items] < table.n_rows:
            continue
        both = pa.table({"rows": decoded(table.raw[rows]), "items": decoded(table.raw[items])})
        if both.group_by(["rows", "items"]).aggregate([]).num_rows == table.n_rows:
            return rows, items
    return None
