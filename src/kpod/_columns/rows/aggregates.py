"""Rows that are sums or means of other rows: World among countries, Total among departments.

Found by arithmetic, a row that is the sum of all others in nearly every column (and at every time, where the
table has times), and by names, which need something beside them: others like them, a code that all have but
they, or the arithmetic.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kpod._columns.preparing.column_values import codes_of, words_of
from kpod._columns.preparing.columns_in_use import ColumnUsage, can_name
from kpod._columns.tables import TableFile
from kpod._common.typing import Floats

SUM = re.compile(
    r"(?:(?:grand|sub)[- ]?)?totals?\b.*|.*\btotals?|all(?: .*)?|overall|combined|aggregate|world(?: .*)?|"
    r"global|national|insgesamt|gesamt.*|summe|ensemble|totale?|totaal|suma",
    re.IGNORECASE,
)
REGION = re.compile(
    r"africa|asia|europe|oceania|(?:north|south|latin|central)(?:ern)? america|americas|.*\bincome\b.*|"
    r".*\b(?:developing|developed|advanced|emerging)\b.*|european union.*|eu[- ]?\d+.*|euro area.*|oecd.*|"
    r"g-?(?:7|8|20)|.*sub-?saharan.*|arab world|.*middle east.*|.*caribbean\b.*|.*\bhipc\b.*|ibrd.*|ida .*|"
    r"(?:(?:north|south|east|west)ern|central|middle|east|west|south-?east(?:ern)?) (?:africa|asia|europe)\b"
    r".*|(?:north|south) asia\b.*",
    re.IGNORECASE,
)
MOST_WORDS = 6
"""Names of sums of everything, and of parts of the world; each is evidence, none is enough."""
ENOUGH = 2
CLOSE, EXACT = 5e-3, 1e-6
MOST_CELLS = 0.8
LEAST_OTHERS = 3
MOST_LEVELS = 20_000
LEAST_CELLS = 3
"""Numbers that have to be sums if the name is not that of a sum; one may be by accident."""
FEW_NAMES, NAMES_SHARE = 3, 0.02
"""Names that are company for one another: so many, and more than titles ("All About Eve") make by chance."""
COMES_BACK = 0.25
"""Of the times, those at which a sum is given; among a thousand rows, a few are sums of others by chance."""
MOST_SHARE = 0.34
"""Of the values of a column, at most as many are sums of the others."""


@dataclass(frozen=True)
class Aggregates:
    """Rows that are sums of others: the column that names them, their names, and which rows they are."""

    column: str
    levels: list[str]
    rows: Any
    by_arithmetic: list[str]


def aggregates(table: TableFile, choice: ColumnUsage) -> Aggregates | None:
    """Rows that are sums or means of others, by the column that names them; None without any."""
    numbers = [
        values
        for name in choice.used
        if name not in choice.categories and (values := table.column(name).values) is not None
    ]
    if not numbers or table.n_rows <= LEAST_OTHERS:
        return None
    X, times = np.column_stack(numbers), slices(table, choice)
    known = {times.tobytes(): sums_of_others(X, times)}
    found = None
    for name, role in choice.roles.items():
        if (
            role.role in ("category", "identifier", "text")
            and name in choice.unused
            and can_name(table, name)
        ):
            named = by_names(table, choice, name, X, times, known)
            if named and (found is None or len(named.by_arithmetic) > len(found.by_arithmetic)):
                found = named
    return found


def slices(table: TableFile, choice: ColumnUsage) -> Any:
    """The time of each row, by number, where the table has times that come back; else one for all."""
    out = np.zeros(table.n_rows, np.int64)
    for name, role in choice.roles.items():
        if role.role == "date" and name in choice.unused and can_name(table, name):
            codes = codes_of(table, name)
            out = np.unique(out * (codes.max() + 2) + codes + 1, return_inverse=True)[1]
    return out if out.max() + 1 <= table.n_rows / LEAST_OTHERS else np.zeros(table.n_rows, np.int64)


def sums_of_others(X: Floats, times: Any) -> tuple[Any, Any]:
    """Which rows are the sum of the others of their time in most columns: of all, or of all and their parts.

    Or their mean, exactly, in all of at least three columns. And in how many columns that could be seen.
    """
    known = np.isfinite(X)
    filled = np.where(known, X, 0.0)
    total, size, n_known = (
        np.column_stack([np.bincount(times, weights=column) for column in what.T])
        for what in (filled, filled != 0, known)
    )
    sums = total[times]
    others = size[times] - 1  # among zeros, two equal numbers are each other's sum
    usable = known & (others >= LEAST_OTHERS) & (filled != 0)
    cells = np.maximum(usable.sum(axis=1), 1)
    out = np.zeros(len(X), bool)
    for levels in (2, 3):  # 3: the sum of all, and of parts that are there as well
        near = usable & (np.abs(levels * filled - sums) <= CLOSE * np.abs(sums))
        out |= (near.sum(axis=1) >= MOST_CELLS * cells) & near.any(axis=1)
    if X.shape[1] >= 3:
        mean = (sums - filled) / np.maximum(n_known[times] - 1, 1)
        same = usable & (np.abs(filled - mean) <= EXACT * np.abs(mean))
        out |= same.sum(axis=1) == np.maximum(cells, 3)
    return out, usable.sum(axis=1)


def compared_within(table: TableFile, choice: ColumnUsage, codes: Any, times: Any) -> Any:
    """The groups of rows in which each value of a column occurs once: times, and a category if need be."""
    for name, role in choice.roles.items():
        if is_key(codes, times):
            break
        if role.role == "category" and name in choice.unused and can_name(table, name):
            kinds = codes_of(table, name)
            both = np.unique(times * (kinds.max() + 2) + kinds + 1, return_inverse=True)[1]
            if is_key(codes, both) and both.max() < len(codes) / LEAST_OTHERS:
                return both
    return times


def is_key(codes: Any, times: Any) -> bool:
    return len(np.unique(codes * np.int64(times.max() + 1) + times)) == len(codes)


def by_names(
    table: TableFile, choice: ColumnUsage, name: str, X: Floats, times: Any, seen: dict[bytes, Any]
) -> Aggregates | None:
    """The values of a column whose rows are sums, with enough evidence."""
    words = words_of(table, table.column(name))
    whole = words if isinstance(words, pa.Array) else words.combine_chunks()
    encoded = whole.dictionary_encode()
    levels = [str(level) for level in encoded.dictionary.to_pylist()]
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    if not LEAST_OTHERS < len(levels) <= MOST_LEVELS:
        return None
    within = compared_within(table, choice, codes, times)
    if within.tobytes() not in seen:
        seen[within.tobytes()] = sums_of_others(X, within)
    is_sum, cells = seen[within.tobytes()]
    known = codes >= 0
    n, n_sums, n_cells = (
        np.bincount(codes[known], weights=what[known], minlength=len(levels))
        for what in (np.ones(len(codes)), is_sum, cells)
    )
    sums = (n_sums >= 0.5 * n) & (n >= COMES_BACK * (within.max() + 1))
    named = np.array([is_name_of_sum(level) for level in levels])
    sums &= named | (n_cells >= LEAST_CELLS)
    # Regions of rows have many rows each, and among many titles a few sound like sums.
    company = named.sum() >= max(FEW_NAMES, NAMES_SHARE * len(levels)) and is_key(codes, within)
    coded = without_code(table, choice, name, codes, named)
    points = 2 * sums + named + (named & company) + (named & coded)
    found = np.flatnonzero(points >= ENOUGH)
    if not len(found) or len(found) > MOST_SHARE * len(levels):
        return None
    return Aggregates(
        name, [levels[at] for at in found], np.isin(codes, found), [levels[at] for at in found if sums[at]]
    )


def is_name_of_sum(level: str) -> bool:
    text = level.strip()
    return len(text.split()) <= MOST_WORDS and bool(SUM.fullmatch(text) or REGION.fullmatch(text))


def without_code(table: TableFile, choice: ColumnUsage, name: str, codes: Any, named: Any) -> Any:
    """Which values have no code where the others have one, if these are mostly names of sums.

    Among many titles with gaps beside them, one may sound like a sum by chance.
    """
    n_levels = len(named)
    out = np.zeros(n_levels, bool)
    for other, role in choice.roles.items():
        column = table.by_name.get(other)
        if (
            other == name
            or column is None
            or not column.missing
            or role.role not in ("category", "identifier")
        ):
            continue
        gaps = np.asarray(words_of(table, column).is_null())
        lacking = np.ones(n_levels, bool)
        lacking[codes[(codes >= 0) & ~gaps]] = False
        if 0 < lacking.sum() <= MOST_SHARE * n_levels and named[lacking].mean() >= MOST_SHARE:
            out |= lacking
    return out
