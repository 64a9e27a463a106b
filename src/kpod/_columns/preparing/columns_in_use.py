"""Which columns are clustered, as what, and why the others are not.

Numbers and yes/no columns are used. Identifiers, dates, categories, constants and text are set
aside, each with its reason, unless the user decides otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpod._columns.check_boxes import make_check_box
from kpod._columns.column_inspection import gaps_of, is_text
from kpod._columns.notations import dates
from kpod._columns.preparing.column_values import words_of
from kpod._columns.relations.same_information import Same, same_information
from kpod._columns.relations.sums_of_columns import sums_of_columns
from kpod._columns.roles.column_facts import Role
from kpod._columns.tables import Column, TableFile, check_numeric, shown, two_ways
from kpod._common.errors import InputError, printable
from kpod._common.options import in_the_shell, option
from kpod._common.typing import Floats

DECIDED = ("number", "boolean", "category", "ordered", "date", "identifier", "text")
USED = ("number", "boolean")
ALL = "all"
LEAST_RUNS, LONG_RUN = 10, 5
"""Of rows that follow each other in time: how many runs, and how long on average, at the least."""
MOST_LEVELS = 200


@dataclass
class ColumnUsage:
    """The columns that are clustered, and those set aside with the reason."""

    used: list[str]
    unused: dict[str, str]
    roles: dict[str, Role] = field(default_factory=dict)
    """Of every column, as decided."""
    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Of the columns used as categories, their order if they have one."""
    weights: list[str] = field(default_factory=list)
    """Columns that were set aside because they may be weights of the rows."""
    same: list[Same] = field(default_factory=list)
    """Columns with the same information as another one."""
    sums: dict[str, list[str]] = field(default_factory=dict)
    """Columns that are sums of others, with these."""
    named: frozenset[str] = frozenset()
    """Columns about which the user decided."""
    columns_named: bool = False
    """Whether the user named the columns to use."""

    def reason(self, name: str) -> str:
        """Why a column is what it is, or what else it was set aside for."""
        role, why = self.roles[name], self.unused.get(name, "")
        return role.why if why in ("", role_text(role)) else why

    def kinds(self, table: TableFile) -> list[str]:
        """What the columns used are to a model: numbers, yes and no, dates or categories."""
        out = []
        for name in self.used:
            column = table.by_name.get(name)
            if name in self.categories:
                out.append("ordered" if self.categories[name] else "category")
            elif column is None:  # an item that was rated
                out.append("number")
            elif column.days:
                out.append("date")
            else:
                is_truth = column.kind in ("yes/no", "true/false") or column.role.role == "boolean"
                out.append("boolean" if is_truth else "number")
        return out

    def judged_for_scale(self, kinds: Sequence[str]) -> list[str]:
        """The numbers that may need logarithms or limits: neither dates nor coordinates."""
        numbers = (name for name, kind in zip(self.used, kinds, strict=True) if kind == "number")
        return [name for name in numbers if not has_note(self.roles[name], "coordinates")]

    def logs(self, table: TableFile, given: Sequence[str]) -> list[str]:
        """The columns to replace by their logarithms."""
        names = table.names([str(name) for name in given])
        absent = [name for name in names if name not in self.used or name in self.categories]
        if absent:
            given = option("--log", [printable(absent[0])])
            raise InputError(f"{given}: not among the columns clustered as numbers.")
        for name in names:
            check_has_logarithms(table, name)
        return names

    def column_weights(self, table: TableFile, given: Mapping[str, float]) -> Floats:
        """The weight of each column in use, 1 for those not named."""
        out = np.ones(len(self.used))
        for key, value in given.items():
            if not np.isfinite(value) or value <= 0:
                raise ValueError(
                    f"column_weights must be positive and finite, got {value!r} for {key!r}; leave a column "
                    "out instead of weighting it 0."
                )
            for name in table.names([str(key)]):
                if name in self.used:
                    out[self.used.index(name)] = value
        return out


def check_has_logarithms(table: TableFile, name: str) -> None:
    values = table.numbers(name)
    if values is None or not (values <= -1).any():
        return
    row = int(np.flatnonzero(values <= -1)[0])
    raise InputError(
        f"{table.source}: {table.where(row, name)}: column {shown(name)} holds {values[row]:g}, which has no "
        f"logarithm; leave it out of {option('--log')}."
    )


def choose_columns(  # noqa: PLR0912
    table: TableFile,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
    ids: Sequence[str] = (),
    *,
    roles: Mapping[str, str | Sequence[str]] | None = None,
    categories: str | Sequence[str] = (),
    weight: str | None = None,
) -> ColumnUsage:
    """Decide about every column: by the user's options, else by its role."""
    weight = table.column(weight).name if weight is not None else None
    categories = [categories] if isinstance(categories, str) else list(categories)
    wanted, excluded, identifiers = (table.names(given) for given in (columns, exclude, ids))
    by_user = decisions(table, roles or {})
    decided = {column.name: column.role for column in table.columns} | by_user
    for name in identifiers:
        decided[name] = Role("identifier", option("--id"))
    for name in wanted:
        if name in excluded or name in identifiers:
            raise InputError(
                f"column {shown(name)} is in {option('--columns')} and also excluded; drop it from one "
                "of them."
            )
    use_all = ALL in categories and ALL not in table.by_name
    named = table.names([name for name in categories if not (use_all and name == ALL)])
    choice = ColumnUsage([], {}, decided)
    set_aside: dict[str | None, str] = {
        weight: weights_reason(),
        **dict.fromkeys(excluded, f"excluded ({option('--exclude')})"),
        **dict.fromkeys(identifiers, f"identifier ({option('--id')})"),
    }
    for column in table.columns:
        name, role = column.name, decided[column.name]
        is_category = role.role in ("category", "ordered")
        why = set_aside.get(name)
        if why is None and wanted and name not in wanted and name not in named:
            why = f"not in {option('--columns')}"
        if why:
            choice.unused[name] = why
        elif name in named or (is_category and (name in by_user or (use_all and name not in wanted))):
            use_category(table, choice, column, role, is_named=name in named or name in by_user)
        elif name in wanted or (name in by_user and role.role in USED):
            if role.role == "boolean" and column.role.role == "constant" and column.missing:
                make_check_box(column, table.raw[name])
            use_number(table, choice, column)
        else:
            use_by_role(table, choice, column, role)
    choice.named, choice.columns_named = frozenset([*wanted, *named, *by_user]), bool(wanted)
    if not table.in_pieces:
        leave_out_weights(choice)
        count_once(table, choice, weight)
    if wanted:
        choice.used.sort(key=lambda name: wanted.index(name) if name in wanted else len(wanted))
    if not choice.used:
        raise InputError(nothing_to_use(table, choice))
    return choice


def decisions(table: TableFile, given: Mapping[str, str | Sequence[str]]) -> dict[str, Role]:
    """Roles of columns given by the user: a role, or the levels of an ordered category from low to high."""
    out: dict[str, Role] = {}
    for columns, role in given.items():
        order = () if isinstance(role, str) else tuple(map(str, role))
        name = role.strip().lower() if isinstance(role, str) else "ordered"
        if name not in DECIDED or (not isinstance(role, str) and not order):
            raise InputError(
                f"{option('--as', {printable(columns): role})}: expected "
                f"{option('--as', {'COLUMN': 'ROLE'})}, with a role of {', '.join(DECIDED)}."
            )
        for column in table.names([str(columns)]):
            why = option("--as", name) if in_the_shell() else "as given in `roles`"
            out[column] = Role(name, why, order=order or table.column(column).role.order)
    return out


def use_category(
    table: TableFile, choice: ColumnUsage, column: Column, role: Role, *, is_named: bool
) -> None:
    if column.kind == "empty":
        choice.unused[column.name] = "nothing observed"
        return
    if table.in_pieces:
        raise InputError(
            f"{table.source}: column {shown(column.name)} cannot be used as a category: a table that is "
            f"read in pieces needs plain numbers; leave it out with {option('--exclude')}."
        )
    words = words_of(table, column)
    counted = pc.value_counts(pc.drop_null(words))
    levels = [str(level) for level in counted.field(0).to_pylist()]
    if len(levels) > MOST_LEVELS and not is_named:
        choice.unused[column.name] = f"category: {len(levels):,} different values, too many to cluster by"
        return
    if len(levels) > MOST_LEVELS:
        raise InputError(
            f"{table.source}: column {shown(column.name)} has {len(levels):,} different values, too many for "
            f"categories (at most {MOST_LEVELS}); group them first, or set it aside with "
            f"{option('--exclude')}."
        )
    order = role.order if role.role == "ordered" else ()
    if role.role == "ordered" and not order and column.values is not None:
        use_number(table, choice, column)  # ranks of numbers are the numbers
        return
    if role.role == "ordered" and not order:
        raise InputError(
            f"{as_ordered(column.name)}: the order of its values is unknown; specify it, as in "
            f"{as_ordered(column.name, levels[:3])}."
        )
    odd = [level for level in levels if order and level not in order]
    if odd:
        raise InputError(
            f"{as_ordered(column.name)}: the value '{printable(odd[0])}' is not in the order "
            f"given ({printable(', '.join(order))}); add it, or treat it as missing with "
            f"{option('--missing', {column.name: odd[0]})}."
        )
    choice.used.append(column.name)
    choice.categories[column.name] = order


def use_number(table: TableFile, choice: ColumnUsage, column: Column) -> None:
    if column.kind == "empty":
        choice.unused[column.name] = "nothing observed"
        return
    count_days(table, column)
    if column.values is None and column.role.role in ("category", "ordered"):
        use = "" if table.in_pieces else f"use it with {option('--categories', [column.name])}, or "
        raise InputError(
            f"{table.source}: column {shown(column.name)} holds categories, not numbers; "
            f"{use}leave it out of {option('--columns')}."
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
        choice.unused[column.name] = role_text(role)


def leave_out_weights(choice: ColumnUsage) -> None:
    """Columns that may be the weights of a sample, which do not describe the rows."""
    for name in list(choice.used):
        if name not in choice.named and has_note(choice.roles[name], "possible weights"):
            choice.used.remove(name)
            choice.weights.append(name)
            choice.unused[name] = f"may be weights of the rows; if so, use {option('--weight', name)}"


def has_note(role: Role, kind: str) -> bool:
    return any(note.kind == kind for note in role.notes)


def count_once(table: TableFile, choice: ColumnUsage, weight: str | None) -> None:
    """Set aside columns with the same information as another one, unless the user named them.

    A copy of an unused time, identifier or column of weights is not used, either.
    """
    reference = [
        name
        for name, role in choice.roles.items()
        if name in choice.unused and (role.role in ("date", "identifier") or name == weight)
    ]
    numbers = [name for name in choice.used if name not in choice.categories]
    columns = {
        name: values
        for name in [*reference, *numbers]
        if name in table.by_name and (values := table.column(name).values) is not None
    }
    choice.same = same_information(columns, never=reference)
    for same in choice.same:
        if same.name not in choice.named:
            choice.used.remove(same.name)
            choice.unused[same.name] = f"the same as {same.of}{'' if same.is_equal else ', rescaled'}"
    choice.sums = sums_of_columns({name: columns[name] for name in numbers if name in choice.used})


def weights_reason() -> str:
    return f"weights of the rows ({option('--weight')})"


def as_ordered(name: str, levels: Sequence[str] = ()) -> str:
    """The decision that a column is ordered, as one makes it."""
    if in_the_shell():
        order = f":{','.join(levels)}" if levels else ""
        return option("--as", printable(f"{name}=ordered{order}"))
    return option("--as", {printable(name): list(levels) or "ordered"})


def role_text(role: Role) -> str:
    """A role and its reason as text."""
    if role.role in ("empty", "text"):
        return role.why or role.role
    name = "ordered category" if role.role == "ordered" else role.role
    return name if role.why in ("dates", "") else f"{name}: {role.why}"


def check_ambiguous(table: TableFile, column: Column) -> None:
    if column.ambiguous:
        text = two_ways(column, in_pieces=table.in_pieces)
        raise InputError(f"{table.source}: column {shown(column.name)}: {text}")


def count_days(table: TableFile, column: Column) -> None:
    """Make numbers of dates that are to be used, days since 1970."""
    if column.values is not None or column.role.role not in ("date", "constant"):
        return
    reading = days_of(table, column)
    if reading.ambiguous:
        raise InputError(
            f"{table.source}: column {shown(column.name)}: in '{printable(reading.ambiguous)}', day and "
            "month cannot be told apart; write dates as 2024-01-31, or leave the column out "
            f"({option('--exclude')})."
        )
    if reading.unread and column.role.role == "date":
        raise InputError(
            f"{table.source}: column {shown(column.name)}: cannot read '{printable(reading.unread)}' as a "
            f"date; write dates as 2024-01-31, or leave the column out ({option('--exclude')})."
        )
    if not reading.unread:
        column.values, column.kind, column.days = reading.days, "number", True


def days_of(table: TableFile, column: Column) -> dates.Reading:
    """Days since 1970, of dates or of text that holds dates."""
    raw = table.raw[column.name]
    if is_text(raw.type):
        gaps = pa.array(gaps_of(raw, list(column.missing_codes)))
        return dates.read(pc.if_else(gaps, pa.scalar(None, pa.string()), raw.cast(pa.string())))
    return dates.Reading(dates.as_days(raw))


def nothing_to_use(table: TableFile, choice: ColumnUsage) -> str:
    reasons = [f"{shown(name)} ({why})" for name, why in list(choice.unused.items())[:8]]
    categories = any(role.role in ("category", "ordered") for role in choice.roles.values())
    if table.in_pieces and not any(column.values is not None for column in table.columns):
        return (
            f"{table.source}: no numeric columns to cluster, only {', '.join(reasons)}, and a table that is "
            "read in pieces needs plain numbers; other columns can be used in a single file that fits into "
            "memory."
        )
    categories = categories and not table.in_pieces
    add, choose = option("--categories", None if in_the_shell() else "all"), option("--columns")
    advice = f"add {add} to cluster by categories" if categories else f"choose columns with {choose}"
    return (
        f"{table.source}: no numeric columns to cluster, only {', '.join(reasons)}; {advice}, or "
        f"override a role with {option('--as', {'COLUMN': 'ROLE'})}."
    )


def occurs(table: TableFile, names: Sequence[str], given: Sequence[str]) -> bool:
    """Whether any of these codes is an ordinary value of these columns."""
    codes = [float(code) for code in given]
    values = [table.column(name).values for name in names]
    return any(np.isin(numbers, codes).any() for numbers in values if numbers is not None)


def typical(sizes: Any) -> str:
    """The size that all have, or about the one in the middle."""
    same = sizes.min() == sizes.max()
    return f"{sizes[0]:,}" if same else f"about {np.median(sizes):,.0f}"


def can_name(table: TableFile, name: str) -> bool:
    """Whether the values of a column can name rows and be compared: text, numbers and dates, not lists."""
    kind = table.raw[name].type if name in table.by_name else None
    if kind is None:
        return False
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    comparable = pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return comparable or is_text(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind)
