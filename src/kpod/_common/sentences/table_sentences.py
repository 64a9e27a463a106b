"""The sentences of notes on how a raw table was read, and which of its columns and rows are clustered."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from kpod._common.errors import printable
from kpod._common.notes import Note
from kpod._common.options import in_the_shell, option
from kpod._common.sentences.formatting import counted, listed, names_in, some


def quoted(texts: Sequence[str]) -> list[str]:
    return [f"'{printable(text)}'" for text in texts]


# Headings and cells


def headings_made_unique(_: Note, n_same: int, n_empty: int, examples: Sequence[str]) -> str:
    what = [
        *([f"{counted(n_same, 'heading')} that occurred before"] if n_same else []),
        *([f"{counted(n_empty, 'empty heading')}"] if n_empty else []),
    ]
    verb = "was" if n_same + n_empty == 1 else "were"
    return f"{listed(what)} {verb} made unique: {some(quoted(examples), n_same + n_empty, 3)}."


def several_heading_rows(_: Note, n: int, examples: Sequence[str]) -> str:
    return (
        f"the first {n} rows were read as headings ({some(quoted(examples))}); if they are not, use "
        f"{option('--header', 1)}."
    )


def no_headings(_: Note, first: Sequence[str]) -> str:
    start = printable(", ".join(first))
    what = "numbers" if all(re.match(r"[-+.\d]+$", name) for name in first) else "data"
    return (
        f"the first line holds {what} ({start}...), so the columns are called column 1, column 2 and so on; "
        f"if these are headings, use {option('--header', 1)}."
    )


def short_lines(_: Note, n: int, line: int) -> str:
    what = f"line {line:,} has" if n == 1 else f"{n:,} lines, the first of them line {line:,}, have"
    return (
        f"{what} fewer fields than there are columns, and what is absent counts as missing; "
        f"{option('--strict')} refuses {'it' if n == 1 else 'them'}."
    )


def column_without_a_name(_: Note, place: str) -> str:
    return f"every line has one field more than there are headings; the {place} column has no name."


def header_again(_: Note, n: int, where: str) -> str:
    more = f" and {counted(n - 1, 'more line')}" if n > 1 else ""
    hold, were = ("holds", "was") if n == 1 else ("hold", "were")
    return f"{where}{more} {hold} the headings again, and {were} left out."


def not_numbers(note: Note, n: int, entry: str, where: str, values: Sequence[str]) -> str:
    text = f"'{printable(entry)}' ({where})"
    rest = n - 1
    more = f" and {counted(rest, 'more entry') if rest == 1 else f'{rest:,} more entries'}" if rest else ""
    are = "are not numbers and were" if rest else "is not a number and was"
    kinds = f" ({some(quoted(values))})" if len(values) > 1 else ""
    return (
        f"{names_in(note)[0]}: {text}{more}{kinds} {are} taken as missing; {option('--strict')} refuses that."
    )


def check_boxes(note: Note, value: str) -> str:
    hold = f"hold{'s' if len(note.columns) == 1 else ''}"
    return (
        f"{some(names_in(note))} {hold} a value or nothing ('{printable(value)}' in {names_in(note)[0]}), "
        f"and count{'s' if len(note.columns) == 1 else ''} as yes or no."
    )


# Columns


def few_columns(note: Note, n_usable: int, categories: Sequence[str], long: Sequence[str]) -> str:
    n = len(note.columns)
    if n == 1:
        first = f"only one column is clustered, {names_in(note)[0]}: its clusters are ranges of that column"
    else:
        first = f"only {n} of {n_usable} columns that could be clustered are used ({some(names_in(note))})"
    ways = []
    if long:
        pivot = " ".join(
            [option("--rows", long[0]), option("--items", long[1]), option("--values", note.columns[0])]
            if in_the_shell()
            else [f"rows={long[0]!r}, items={long[1]!r}, values={note.columns[0]!r}"]
        )
        rows, items = map(printable, long)
        ways.append(f"to have a row for each {rows} and a column for each {items}, use {pivot}")
    if categories:
        use = option("--categories", "all" if not in_the_shell() else None)
        which = "category" if len(categories) == 1 else f"{len(categories):,} categories"
        ways.append(f"to cluster by the {which} as well, use {use}")
    return f"{'; '.join([first, *ways])}."


def same_information(note: Note, lines: Sequence[tuple[float, float] | None], used: bool) -> str:
    first, *others = names_in(note)
    parts = [as_line(name, first, line) for name, line in zip(others, lines, strict=True)]
    rest = list(note.columns[1:])
    if used:
        use = option("--exclude", rest)
        return f"{listed(parts)}, so they count more than once; use {use} to count them once."
    them = "it is" if len(rest) == 1 else "they are"
    use = option("--as", {rest[0]: "number"})
    return f"{listed(parts)}; {them} not used, so that this counts once (use {use} to count it again)."


def as_line(name: str, first: str, line: tuple[float, float] | None) -> str:
    if line is None:
        return f"{name} is equal to {first}"
    slope, intercept = line
    plus = f" {'plus' if intercept > 0 else 'minus'} {abs(intercept):.4g}" if abs(intercept) > 1e-6 else ""
    return (
        f"{name} is {first}{plus}" if f"{slope:.4g}" == "1" else f"{name} is {slope:.4g} times {first}{plus}"
    )


def sum_of_columns(note: Note) -> str:
    total, *parts = names_in(note)
    use = option("--exclude", note.columns[0])
    return f"{total} is the sum of {some(parts)}, so these count a second time; use {use} to count them once."


def nearly_the_same(_: Note, groups: Sequence[Sequence[str]]) -> str:
    rest = [name for group in groups for name in group[1:]]
    use = option("--exclude", rest) if len(rest) <= MOST_EXCLUDED else option("--exclude")
    shown = "; ".join(some([printable(name) for name in group], most=4) for group in groups[:MOST_GROUPS])
    more = len(groups) - MOST_GROUPS
    also = f"; and {counted(more, 'more group')}" if more > 0 else ""
    each = "this counts" if len(groups) == 1 else "each of these counts"
    return (
        "columns put the rows in nearly the same order, or its reverse (rank correlation of at least 0.99), "
        f"so {each} several times: {shown}{also}; use {use} to count once."
    )


def possible_weights(note: Note) -> str:
    use = option("--weight", note.columns[0] if len(note.columns) == 1 else None)
    one = "it is" if len(note.columns) == 1 else "they are"
    return (
        f"{some(names_in(note))}: may be the weights of a sample, so {one} not clustered; if so, use {use}, "
        f"otherwise {option('--as', {note.columns[0]: 'number'})}."
    )


MOST_GROUPS = 3
MOST_EXCLUDED = 5
"""Names in the option that leaves columns out."""

# Rows

LEAST_UNITS = 20
"""So many rows are enough to make groups of."""


def one_row_for_each(note: Note, n_units: int, in_time: bool = True, in_pieces: bool = False) -> str:
    unit, other = names_in(note)
    text = "single values of {unit} or periods" if in_time else "single values of {unit}"
    return f"there is one row for each {unit} and {other}. {alike(note, n_units, text, in_pieces)}"


def rows_in_time(note: Note, n_units: int, length: str, whole: bool, in_pieces: bool = False) -> str:
    unit = names_in(note)[0]
    about = (
        f"there are {length} rows for each {unit}, one after the other in time"
        if whole
        else f"rows of the same {unit} follow one another in time, in runs of {length} rows"
    )
    return f"{about}. {alike(note, n_units, 'single values of {unit} or periods', in_pieces)}"


def repeated_units(note: Note, n_units: int, length: float) -> str:
    unit = names_in(note)[0]
    text = alike(note, n_units, "single values of {unit}")
    return f"there are about {length:,.0f} rows for each {unit}. {text}"


def alike(note: Note, n_units: int, what: str, in_pieces: bool = False) -> str:
    unit = names_in(note)[0]
    text = f"If rows of the same {unit} are alike, clusters may be {what.format(unit=unit)}"
    if n_units < LEAST_UNITS or in_pieces:  # too few rows would be left, or rows are not combined
        return f"{text}."
    use = option("--one-row-per", note.columns[0])
    return f"{text}; to cluster one row for each {unit} ({n_units:,} rows), use {use}."


def duplicate_rows(_: Note, n: int) -> str:
    are = "row is a copy of another" if n == 1 else "rows are copies of others"
    return f"{n:,} {are} in all columns; leave such rows out with {option('--drop-rows', 'duplicates')}."


def aggregate_rows(note: Note, levels: Sequence[str], n: int, sums: Sequence[str]) -> str:
    column = names_in(note)[0]
    shown = [*sums, *(level for level in levels if level not in sums)]
    are = "is a sum" if len(levels) == 1 else "are sums"
    may = (
        f"{are} of other rows" if sums else f"may be {'a sum' if len(levels) == 1 else 'sums'} of other rows"
    )
    return (
        f"{some(quoted(shown))} in {column} ({counted(n, 'row')}) {may}; leave them out with "
        f"{option('--drop-rows', 'aggregates')}."
    )


def rows_dropped(note: Note, what: Any, n: int) -> str:
    were = "was" if n == 1 else "were"
    why = {"duplicates": "copies of others", "aggregates": "sums of others"}
    if isinstance(what, str):
        return f"{counted(n, 'row')} {were} dropped: {why[what]}."
    return f"{counted(n, 'row')} {were} dropped: {names_in(note)[0]} is {some(quoted(what))}."


def rows_combined(note: Note, how: str, n_rows: int, n_units: int, n_without: int) -> str:
    what = {
        "mean": "means over its rows",
        "last": "the last values of its rows",
        "change": "changes from the first to the last of its rows",
    }[how]
    unit = names_in(note)[0]
    left = f"; {counted(n_without, 'row')} without a value there were left out" if n_without else ""
    return f"{n_rows:,} rows were combined into {n_units:,}, one for each {unit}, with {what}{left}."


WORDS: dict[str, Callable[..., Any]] = {
    "headings made unique": headings_made_unique,
    "several heading rows": several_heading_rows,
    "no headings": no_headings,
    "short lines": short_lines,
    "header again": header_again,
    "column without a name": column_without_a_name,
    "not numbers": not_numbers,
    "check boxes": check_boxes,
    "few columns": few_columns,
    "same information": same_information,
    "sum of columns": sum_of_columns,
    "nearly the same": nearly_the_same,
    "possible weights": possible_weights,
    "one row for each": one_row_for_each,
    "rows in time": rows_in_time,
    "repeated units": repeated_units,
    "duplicate rows": duplicate_rows,
    "aggregate rows": aggregate_rows,
    "rows dropped": rows_dropped,
    "rows combined": rows_combined,
}
