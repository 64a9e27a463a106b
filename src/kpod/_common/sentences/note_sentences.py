"""The sentence of each kind of note; those of cautions are in `caution_sentences.py`.

Remedies are worded with `option`, so that they can be pasted where they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kpod._common.errors import printable
from kpod._common.notes import Note
from kpod._common.options import option
from kpod._common.sentences import caution_sentences, table_sentences
from kpod._common.sentences.formatting import (
    MOST_LISTED,
    counted,
    listed,
    name_of,
    names_in,
    number,
    percent,
    some,
)
from kpod._common.sentences.shape_sentences import shape_of_clusters


def sentence(note: Note) -> str:
    """The wording of a note."""
    text = WORDS[note.kind](note, **note.values)
    return f"{printable(some(list(note.parts), most=3))}: {text}" if note.parts else text


# How a file was read


def rows_left_out(_: Note, what: str, where: str, unit: str, n: int, cells: Sequence[str]) -> str:
    was = "was" if n == 1 else "were"
    return f"{rows_that_hold(what, where, unit, n, cells)}, and {was} left out."


def rows_that_hold(what: str, where: str, unit: str, n: int, cells: Sequence[str]) -> str:
    """Rows that are not data, with the first words in them."""
    quoted = [f"'{cell if len(cell) <= 40 else cell[:39] + '…'}'" for cell in dict.fromkeys(cells)]
    which, verb = (unit, "holds") if n == 1 else (counted(n, unit), "hold")
    return printable(f"the {where} {which} ({some(quoted, most=3)}) {verb} {what}")


def empty_parts(_: Note, parts: Sequence[str]) -> str:
    have, were = ("has", "was") if len(parts) == 1 else ("have", "were")
    return f"{some(list(parts), most=3)} {have} no rows, and {were} skipped."


def likewise_in_others(_: Note, parts: Sequence[str]) -> str:
    return printable(f"{some(list(parts), most=3)} were read in the same way.")


def extra_columns(note: Note, part: str, first: str) -> str:
    return f"{part} has columns that are not in {first}, which were left out: {some(names_in(note))}."


def other_sheets(_: Note, sheet: str, others: Sequence[str]) -> str:
    return printable(
        f"only sheet '{sheet}' was read, not {some(others)}; choose another with {option('--sheet')}."
    )


def merged_cells(note: Note) -> str:
    return f"merged cells in {some(names_in(note))} count for every row they span."


def labelled_codes(note: Note, labels: dict[str, str]) -> str:
    words = ", ".join(f"{code} '{label}'" for code, label in list(labels.items())[:4])
    use = option("--missing", {note.columns[0]: list(labels)})
    return f"{name_of(note)}: {printable(words)} may stand for missing; if so, use {use}."


def taken_as_category(note: Note, found: Sequence[str], why: str) -> str:
    because = {
        "other codes": "because gaps elsewhere in the table are marked otherwise",
        "plus": "because the other values are '+'",
        "two letters": "because the other values are codes of two letters",
    }[why]
    add = option("--missing", {note.columns[0]: list(found)})
    first = printable(found[0])
    return f"{name_of(note)}: '{first}' is taken as a category, {because}; if it means missing, add {add}."


def absent_code(_: Note, code: str) -> str:
    column, equals, value = code.rpartition("=")
    given = option("--missing", {column: value} if equals else code)
    return f"{given}: this value does not occur in the table."


# Columns


def possible_code(note: Note, codes: Sequence[str], n: int = 0, everywhere: bool = True) -> str:
    return code_sentence(note, codes, n, everywhere, quoted=False)


def possible_no_answer(note: Note, codes: Sequence[str], n: int = 0, everywhere: bool = True) -> str:
    return code_sentence(note, codes, n, everywhere, quoted=True)


def code_sentence(note: Note, codes: Sequence[str], n: int, everywhere: bool, *, quoted: bool) -> str:
    parts = [printable(f"'{code}'" if quoted else code) for code in codes]
    if len(note.columns) == 1:
        times = "once" if n == 1 else f"{n:,} times"
        use = option("--missing", {note.columns[0]: list(codes)})
        which = listed(parts) if quoted else " and ".join(parts)
        return f"{name_of(note)}: {which} ({times}) may stand for missing; if so, use {use}."
    far = "" if quoted else ", far from the other values"
    use = option("--missing", list(codes) if everywhere else {"NAME": list(codes)})
    return f"{' and '.join(parts)} may stand for missing in {some(names_in(note))}{far}; if so, use {use}."


def plain_numbers(note: Note, what: str, about: str, shown: str = "") -> str:
    """On years and coordinates: when and where."""
    if len(note.columns) == 1:
        use = option("--exclude", list(note.columns))
        return (
            f"{name_of(note)}: {shown or what} are clustered as plain numbers; use {use} if {about} should "
            "not shape the clusters."
        )
    few = len(note.columns) <= MOST_LISTED
    use = option("--exclude", list(note.columns) if few else None)
    return f"{some(names_in(note))}: {what} are clustered as plain numbers; use {use} if they should not be."


def years(note: Note, low: int = 0, high: int = 0) -> str:
    return plain_numbers(note, "years", "time", f"years ({low} to {high})")


def coordinates(note: Note) -> str:
    return plain_numbers(note, "coordinates", "place")


def logarithms_chosen(note: Note) -> str:
    its, are = ("its logarithm is", "is") if len(note.columns) == 1 else ("their logarithms are", "are")
    return (
        f"{some(names_in(note))} {are} skewed: {its} used; {option('--scale', 'standard')} uses the "
        "values themselves."
    )


def values_limited(note: Note, n: Sequence[int], low: Sequence[float], high: Sequence[float]) -> str:
    """On values that held most of the variance of their column."""
    columns = zip(names_in(note), n, low, high, strict=True)
    text = some([f"{name} ({many:,} outside {number(a)} to {number(b)})" for name, many, a, b in columns])
    return (
        f"a few extreme values are moved to limits: {text}; {option('--scale', 'standard')} keeps them as "
        "they are."
    )


def number_format(note: Note, example: str) -> str:
    if len(note.columns) == 1:
        return f"{name_of(note)}: {printable(example)}."
    return f"numbers in {some(names_in(note))} were written as text: {printable(example)}."


def followed_column(note: Note, share: float, commonest: float) -> str:
    name = name_of(note)
    return (
        f"the clusters largely follow {name}, which was not clustered: {percent(share)} of the rows have the "
        f"{name} that is most common in their cluster ({percent(commonest)} have the one that is most common "
        "overall)."
    )


def two_readings(note: Note, what: str) -> str:
    return f"{name_of(note)}: {what}"


def not_a_number(note: Note, entry: str, where: str, treat: str) -> str:
    return (
        f"{name_of(note)}: '{printable(entry)}' ({where}) is not a number; correct it, or treat it as "
        f"missing{treat}."
    )


# New rows


def unseen_levels(note: Note, levels: Sequence[str], n: int, taken: str) -> str:
    which = some([f"'{printable(value)}'" for value in levels])
    are = "is" if len(levels) == 1 else "are"
    return (
        f"{name_of(note)}: {which} ({counted(n, 'row')}) {are} not among the categories the model was "
        f"fitted on, and taken as {taken}."
    )


def unknown_items(_: Note, items: Sequence[str]) -> str:
    are = "is" if len(items) == 1 else "are"
    names = [printable(item) for item in items]
    return f"{counted(len(items), 'item')} ({some(names)}) {are} not in the model, and ignored."


def dates_not_filled(note: Note) -> str:
    return f"{name_of(note)}: dates are not filled."


def filled_from_table(note: Note, n: int) -> str:
    return (
        f"{name_of(note)}: {counted(n, 'gap')} {'was' if n == 1 else 'were'} filled from the whole table, "
        "because the model knows no value from the row's cluster."
    )


def not_filled(note: Note) -> str:
    return f"{name_of(note)}: not filled; the model has never seen a value of this column."


def warning(_: Note, message: str) -> str:
    return printable(message)


WORDS: dict[str, Callable[..., str]] = {
    **table_sentences.WORDS,
    **caution_sentences.WORDS,
    "shape of the clusters": shape_of_clusters,
    "rows left out": rows_left_out,
    "empty parts": empty_parts,
    "extra columns": extra_columns,
    "likewise in others": likewise_in_others,
    "other sheets": other_sheets,
    "merged cells": merged_cells,
    "labelled codes": labelled_codes,
    "taken as a category": taken_as_category,
    "absent code": absent_code,
    "possible code": possible_code,
    "possible no answer": possible_no_answer,
    "years": years,
    "coordinates": coordinates,
    "logarithms chosen": logarithms_chosen,
    "values limited": values_limited,
    "number format": number_format,
    "followed column": followed_column,
    "two readings": two_readings,
    "not a number": not_a_number,
    "unseen levels": unseen_levels,
    "unknown items": unknown_items,
    "dates not filled": dates_not_filled,
    "filled from the table": filled_from_table,
    "not filled": not_filled,
    "warning": warning,
}
