"""Which columns are clustered, as what, and why the others are not.

Numbers and yes/no columns are used. Identifiers, dates, categories, constants and text are set
aside, each with its reason, unless the user decides otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpod._columns.inspection import gaps_of, is_text
from kpod._columns.notations import dates
from kpod._columns.roles.facts import Role
from kpod._columns.roles.identifiers import ROW_NUMBERS
from kpod._columns.tables import Column, TableFile, check_numeric, matrix, shown, two_ways
from kpod._common.errors import InputError, printable
from kpod._common.typing import AnyFloats
from kpod._common.words import option

DECIDED = ("number", "boolean", "category", "ordered", "date", "identifier", "text")
USED = ("number", "boolean")
ALL = "all"
LEAST_RUNS, LONG_RUN = 10, 5
"""Of rows that follow each other in time: how many runs, and how long on average, at the least."""
LEAST_UNITS = 20
"""So many rows are enough to make groups of."""
WEIGHTS = "weights of the rows (--weight)"
MOST_LEVELS = 200
MOST_PAIRED = 2_000
"""Columns of which every two are compared; of more, that would take longer than the fit."""
LEAST_COMMON = 10
"""Rows in which two columns must be observed before they are called equal."""


@dataclass
class ColumnUsage:
    """The columns that are clustered, and those set aside with the reason."""

    used: list[str]
    aside: dict[str, str]
    roles: dict[str, Role] = field(default_factory=dict)
    """Of every column, as decided."""
    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Of the columns used as categories, their order if they have one."""

    def matrix(self, table: TableFile, *, all_missing: bool = False) -> AnyFloats:
        """The columns used, where all of them are numbers."""
        for name in self.used:
            count_days(table, table.column(name))
        return matrix(table, self.used, all_missing=all_missing)

    def frame(self, table: TableFile, *, all_missing: bool = False) -> pa.Table:
        """The columns used: numbers as floats, categories as text, null where missing."""
        numbers = [name for name in self.used if name not in self.categories]
        for name in numbers:
            count_days(table, table.column(name))
        values = matrix(table, numbers, all_missing=True) if numbers else np.empty((table.n_rows, 0))
        columns: list[Any] = []
        for name in self.used:
            if name in self.categories:
                columns.append(words_of(table, table.column(name)))
            else:
                columns.append(pa.array(values[:, numbers.index(name)], from_pandas=True))
        frame = pa.Table.from_arrays(columns, names=self.used)
        if not all_missing and all(column.null_count == table.n_rows for column in frame.columns):
            raise InputError(f"{table.source}: all entries of the columns to cluster are missing.")
        return frame

    def kinds(self, table: TableFile) -> list[str]:
        """What the columns used are to a model: numbers, yes and no, dates or categories."""
        out = []
        for name in self.used:
            column = table.by_name.get(name)
            if name in self.categories:
                out.append("category")
            elif column is None:  # an item that was rated
                out.append("number")
            elif column.days:
                out.append("date")
            else:
                is_truth = column.kind in ("yes/no", "true/false") or column.role.role == "boolean"
                out.append("boolean" if is_truth else "number")
        return out

    def row_names(self, table: TableFile) -> Any:
        """What to call the rows: an identifier that is different in each of them; None without one.

        Rather not their numbers, if they have names as well.
        """
        found = [
            (role.why == ROW_NUMBERS, table.raw[name])
            for name, role in self.roles.items()
            if role.role == "identifier" and name in self.aside and name in table.by_name
        ]
        for _, values in sorted(found, key=lambda one: one[0]):
            if not values.null_count and pc.count_distinct(decoded(values)).as_py() == table.n_rows:
                return whole_numbers(values)
        return None


def decoded(values: Any) -> Any:
    """A column as it is, or what it stands for where levels are numbered: not all of Arrow takes those."""
    return values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values


def words_of(table: TableFile, column: Column) -> Any:
    """The entries of a column as text, null where one is missing; whole numbers without a point."""
    raw = decoded(table.raw[column.name])
    if column.values is not None:
        gaps = np.isnan(column.values)
        if is_text(raw.type):
            text = pc.utf8_trim_whitespace(raw.cast(pa.string()))
            if column.kind == "integer":  # 2 and 2.0 are one level
                text = pc.replace_substring_regex(text, r"\.0*$", "")
        else:
            texts = [None if gap else f"{value:.15g}" for gap, value in zip(gaps, column.values, strict=True)]
            return pa.array(texts, pa.string())
    else:
        gaps = gaps_of(raw, list(column.marks))
        text = pc.utf8_trim_whitespace(raw.cast(pa.string())) if is_text(raw.type) else raw.cast(pa.string())
    return pc.if_else(pa.array(gaps), pa.scalar(None, pa.string()), text)


def choose_columns(
    table: TableFile,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
    ids: Sequence[str] = (),
    *,
    decided: Sequence[str] = (),
    categories: Sequence[str] = (),
    weight: str | None = None,
) -> ColumnUsage:
    """Decide about every column: what the user said, else by its role."""
    wanted, excluded, identifiers = (table.names(asked) for asked in (columns, exclude, ids))
    roles = {column.name: column.role for column in table.columns}
    by_user = parse_decisions(table, decided)
    roles.update(by_user)
    for name in identifiers:
        roles[name] = Role("identifier", "--id")
    for name in wanted:
        if name in excluded or name in identifiers:
            raise InputError(
                f"column {shown(name)} is in --columns and also excluded; drop it from one of them."
            )
    use_all = ALL in categories and ALL not in table.by_name
    named = table.names([name for name in categories if not (use_all and name == ALL)])
    choice = ColumnUsage([], {}, roles)
    set_aside: dict[str | None, str] = {
        weight: WEIGHTS,
        **dict.fromkeys(excluded, "excluded (--exclude)"),
        **dict.fromkeys(identifiers, "identifier (--id)"),
    }
    for column in table.columns:
        name, role = column.name, roles[column.name]
        is_category = role.role in ("category", "ordered")
        why = set_aside.get(name)
        if why is None and wanted and name not in wanted and name not in named:
            why = "not in --columns"
        if why:
            choice.aside[name] = why
        elif name in named or (is_category and (name in by_user or (use_all and name not in wanted))):
            use_category(table, choice, column, role, asked=name in named or name in by_user)
        elif name in wanted or (name in by_user and role.role in USED):
            use_number(table, choice, column)
        else:
            use_by_role(table, choice, column, role)
    if wanted:
        choice.used.sort(key=lambda name: wanted.index(name) if name in wanted else len(wanted))
    if not choice.used:
        raise InputError(nothing_to_use(table, choice))
    return choice


def parse_decisions(table: TableFile, decided: Sequence[str]) -> dict[str, Role]:
    """--as COLUMN=ROLE; an order may follow: --as size=ordered:small,medium,large."""
    out: dict[str, Role] = {}
    for text in decided:
        columns, equals, role = text.rpartition("=")
        role, _, order = role.partition(":")
        role = role.strip().lower()
        if not equals or role not in DECIDED:
            raise InputError(
                f"--as {printable(text)}: expected COLUMN=ROLE, with a role of {', '.join(DECIDED)}."
            )
        levels = tuple(part.strip() for part in order.split(",") if part.strip())
        for name in table.names([columns]):
            known = table.column(name).role.order
            out[name] = Role(role, f"--as {role}", order=levels or known)
    return out


def use_category(table: TableFile, choice: ColumnUsage, column: Column, role: Role, *, asked: bool) -> None:
    if column.kind == "empty":
        choice.aside[column.name] = "nothing observed"
        return
    if table.in_pieces:
        raise InputError(
            f"{table.source}: column {shown(column.name)} cannot be used as a category: a table that is "
            "read in pieces needs plain numbers; leave it out with --exclude."
        )
    words = words_of(table, column)
    counted = pc.value_counts(pc.drop_null(words))
    levels = [str(level) for level in counted.field(0).to_pylist()]
    if len(levels) > MOST_LEVELS and not asked:
        choice.aside[column.name] = f"category: {len(levels):,} different values, too many to cluster by"
        return
    if len(levels) > MOST_LEVELS:
        raise InputError(
            f"{table.source}: column {shown(column.name)} has {len(levels):,} different values, too many for "
            f"categories (at most {MOST_LEVELS}); group them first, or set it aside with --exclude."
        )
    order = role.order if role.role == "ordered" else ()
    if role.role == "ordered" and not order and column.values is not None:
        use_number(table, choice, column)  # ranks of numbers are the numbers
        return
    if role.role == "ordered" and not order:
        given = option("--as", f"{column.name}=ordered:{','.join(levels[:3])}")
        raise InputError(
            f"--as {printable(column.name)}=ordered: the order of its values is unknown; specify it, as in "
            f"{given}."
        )
    odd = [level for level in levels if order and level not in order]
    if odd:
        raise InputError(
            f"--as {printable(column.name)}=ordered: the value '{printable(odd[0])}' is not in the order "
            f"given ({printable(', '.join(order))})."
        )
    choice.used.append(column.name)
    choice.categories[column.name] = order


def use_number(table: TableFile, choice: ColumnUsage, column: Column) -> None:
    if column.kind == "empty":
        choice.aside[column.name] = "nothing observed"
        return
    count_days(table, column)
    if column.values is None and column.role.role in ("category", "ordered"):
        use = "" if table.in_pieces else f"use it with {option('--categories', column.name)}, or "
        raise InputError(
            f"{table.source}: column {shown(column.name)} holds categories, not numbers; "
            f"{use}leave it out of --columns."
        )
    check_ambiguous(table, column)
    check_numeric(table, column)
    choice.used.append(column.name)


def use_by_role(table: TableFile, choice: ColumnUsage, column: Column, role: Role) -> None:
    if role.role in USED or column.ambiguous:
        check_ambiguous(table, column)
        check_numeric(table, column)
        choice.used.append(column.name)
    else:
        choice.aside[column.name] = said(role)


def said(role: Role) -> str:
    """A role and its reason as one would say it."""
    if role.role in ("empty", "text"):
        return role.why or role.role
    name = "ordered category" if role.role == "ordered" else role.role
    return name if role.why in ("dates", "") else f"{name}: {role.why}"


def check_ambiguous(table: TableFile, column: Column) -> None:
    if column.ambiguous:
        said = two_ways(column, in_pieces=table.in_pieces)
        raise InputError(f"{table.source}: column {shown(column.name)}: {said}")


def count_days(table: TableFile, column: Column) -> None:
    """Make numbers of dates that are to be used, days since 1970."""
    if column.values is not None or column.role.role not in ("date", "constant"):
        return
    reading = days_of(table, column)
    if reading.ambiguous:
        raise InputError(
            f"{table.source}: column {shown(column.name)}: in '{printable(reading.ambiguous)}', day and "
            "month cannot be told apart; write dates as 2024-01-31, or leave the column out (--exclude)."
        )
    if reading.unread and column.role.role == "date":
        raise InputError(
            f"{table.source}: column {shown(column.name)}: cannot read '{printable(reading.unread)}' as a "
            "date; write dates as 2024-01-31, or leave the column out (--exclude)."
        )
    if not reading.unread:
        column.values, column.kind, column.days = reading.days, "number", True


def days_of(table: TableFile, column: Column) -> dates.Reading:
    """Days since 1970, of dates or of text that holds dates."""
    raw = table.raw[column.name]
    if is_text(raw.type):
        gaps = pa.array(gaps_of(raw, list(column.marks)))
        return dates.read(pc.if_else(gaps, pa.scalar(None, pa.string()), raw.cast(pa.string())))
    return dates.Reading(dates.as_days(raw))


def whole_numbers(values: Any) -> Any:
    """Whole numbers as such, where a file has none but floating-point numbers."""
    if not pa.types.is_floating(values.type):
        return values
    try:
        return pc.cast(values, pa.int64())
    except pa.ArrowInvalid:
        return values


def nothing_to_use(table: TableFile, choice: ColumnUsage) -> str:
    reasons = [f"{shown(name)} ({why})" for name, why in list(choice.aside.items())[:8]]
    categories = any(role.role in ("category", "ordered") for role in choice.roles.values())
    if table.in_pieces and not any(column.values is not None for column in table.columns):
        return (
            f"{table.source}: no numeric columns to cluster, only {', '.join(reasons)}, and a table that is "
            "read in pieces needs plain numbers; other columns can be used in a single file that fits into "
            "memory."
        )
    categories = categories and not table.in_pieces
    advice = "add --categories to cluster by categories" if categories else "choose columns with --columns"
    return (
        f"{table.source}: no numeric columns to cluster, only {', '.join(reasons)}; {advice}, or "
        "override a role with --as COLUMN=ROLE."
    )


def occurs(table: TableFile, names: Sequence[str], marks: str) -> bool:
    """Whether any of the marks is an ordinary value of these columns."""
    codes = [float(mark) for mark in marks.split(",")]
    values = [table.column(name).values for name in names]
    return any(np.isin(numbers, codes).any() for numbers in values if numbers is not None)


def typical(sizes: Any) -> str:
    """The size that all have, or about the one in the middle."""
    same = sizes.min() == sizes.max()
    return f"{sizes[0]:,}" if same else f"about {np.median(sizes):,.0f}"


def codes_of(table: TableFile, name: str) -> Any:
    """The values of a column by number; -1 where one is missing."""
    codes = pc.dictionary_encode(decoded(table.raw[name]).combine_chunks()).indices
    return pc.fill_null(codes, -1).to_numpy(zero_copy_only=False)
