"""The sentences of notes on how a raw table was read, and which of its columns and rows are clustered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kpod._common.errors import printable
from kpod._common.notes import Note
from kpod._common.options import option
from kpod._common.words import counted, listed, some


def names_in(note: Note) -> list[str]:
    return [printable(name) for name in note.columns]


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
    return (
        f"the first line holds numbers ({start}...), so the columns are called column 1, column 2 and so on; "
        f"if these are headings, use {option('--header', 1)}."
    )


def not_numbers(note: Note, n: int, entry: str, where: str, values: Sequence[str]) -> str:
    said = f"'{printable(entry)}' ({where})"
    rest = n - 1
    more = f" and {counted(rest, 'more entry') if rest == 1 else f'{rest:,} more entries'}" if rest else ""
    are = "are not numbers and were" if rest else "is not a number and was"
    kinds = f" ({some(quoted(values))})" if len(values) > 1 else ""
    return (
        f"{names_in(note)[0]}: {said}{more}{kinds} {are} taken as missing; {option('--strict')} refuses that."
    )


def ticked(note: Note, value: str) -> str:
    hold = f"hold{'s' if len(note.columns) == 1 else ''}"
    return (
        f"{some(names_in(note))} {hold} a value or nothing ('{printable(value)}' in {names_in(note)[0]}), "
        "and count as yes or no."
    )


WORDS: dict[str, Callable[..., Any]] = {
    "headings made unique": headings_made_unique,
    "several heading rows": several_heading_rows,
    "no headings": no_headings,
    "not numbers": not_numbers,
    "ticked": ticked,
}
