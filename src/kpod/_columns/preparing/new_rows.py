"""A table as a fitted preparer takes it: the fitted columns, in their order, with the fitted levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpod._columns.check_boxes import make_check_box
from kpod._columns.preparing.column_values import CHECK_BOX, words_of
from kpod._columns.preparing.columns_in_use import count_days
from kpod._columns.preparing.encoding import CATEGORY, ORDERED, UNSEEN
from kpod._columns.tables import TableFile, check_numeric, matrix, shown
from kpod._common.errors import InputError, printable
from kpod._common.notes import Note
from kpod._common.options import option
from kpod._common.sentences.formatting import some
from kpod._common.typing import AnyFloats

TRUTHS = ("yes/no", "true/false")


def check_columns(table: TableFile, names: Sequence[str], advice: str = "") -> None:
    known = {column.name for column in table.columns}
    absent = [shown(name) for name in names if name not in known]
    if absent:
        raise InputError(
            f"{table.source}: is missing columns the model needs: {some(absent, most=8)}; add them (empty "
            f"where unknown), or fit a model without them{advice}."
        )


def check_kinds(table: TableFile, kinds: Mapping[str, str]) -> None:
    """Refuse dates, yes and no where the model has numbers."""
    for name, kind in kinds.items():
        column = table.column(name)
        if kind != "number" or column.missing == table.n_rows:
            continue
        check_numeric(table, column, may_leave_out=False)
        if column.kind in TRUTHS:
            raise InputError(
                f"{table.source}: column {shown(name)} holds {column.kind} values, which are not numbers; "
                "correct it, or fit the model again on values like these."
            )


def values_of(
    table: TableFile, names: Sequence[str], kinds: Sequence[str], levels: Sequence[Sequence[str]]
) -> tuple[AnyFloats, list[Note]]:
    """The values of some columns, levels by their places; and notes on levels that are none of them."""
    numbers = [name for name, kind in zip(names, kinds, strict=True) if kind not in (CATEGORY, ORDERED)]
    for name, of_column in zip(names, levels, strict=True):
        if name in numbers and list(of_column) == [CHECK_BOX]:
            make_check_box(table.column(name), table.raw[name])
    for name in numbers:
        count_days(table, table.column(name))
    if len(numbers) == len(names):
        return matrix(table, names, all_missing=True), []
    out = np.empty((table.n_rows, len(names)), np.float64)
    if numbers:
        out[:, [names.index(name) for name in numbers]] = matrix(table, numbers, all_missing=True)
    notes: list[Note] = []
    for j, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        if kind in (CATEGORY, ORDERED):
            words = words_of(table, table.column(name))
            out[:, j] = places_of(words, levels[j])
            notes += unseen(table, name, words, out[:, j], kind, levels[j])
            if kind == ORDERED or len(levels[j]) == 2:
                out[out[:, j] == UNSEEN, j] = np.nan
    return out, notes


def places_of(words: Any, levels: Sequence[str]) -> Any:
    """Where words stand among levels; NaN for gaps."""
    places = pc.fill_null(pc.index_in(words, value_set=pa.array(levels, pa.string())), int(UNSEEN))
    found = np.asarray(places.to_numpy(zero_copy_only=False) if isinstance(places, pa.Array) else places)
    return np.where(np.asarray(pc.is_null(words)), np.nan, found.astype(np.float64))


def unseen(
    table: TableFile, name: str, words: Any, places: AnyFloats, kind: str, levels: Sequence[str]
) -> list[Note]:
    odd = np.flatnonzero(places == UNSEEN)
    if not len(odd):
        return []
    found = list(dict.fromkeys(words[int(row)].as_py() for row in odd))
    if kind == ORDERED:
        raise InputError(
            f"{table.source}: {table.where(int(odd[0]), name)}, column {shown(name)}: "
            f"'{printable(found[0])}' has no place in the order of the model's levels "
            f"({some([printable(level) for level in levels])}); correct it, or treat it as missing with "
            f"{option('--missing', {name: found[0]})}."
        )
    taken = "missing" if len(levels) == 2 else "none of them"
    return [Note("unseen levels", (name,), {"levels": found, "n": len(odd), "taken": taken})]


def possible_codes(table: TableFile, names: Sequence[str]) -> list[Note]:
    """Numbers that may stand for missing."""
    roles = [table.column(name).role for name in names]
    return [note for role in roles for note in role.notes if note.kind == "possible code"]
