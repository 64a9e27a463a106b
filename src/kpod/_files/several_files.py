"""Several files that fit in memory together: one table, read as tolerantly as a single file.

Each file is read as it would be by itself: titles, units, totals, headings and encodings are its own. Then
they are one table, whose columns are matched by name as in pieces, and inspected together.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from kpod._columns.tables import Dialect, TableFile
from kpod._common.notes import Note
from kpod._common.progress import Progress, no_progress
from kpod._common.typing import Labels, Positions
from kpod._files.locations.part import Part, naming_place
from kpod._files.pieces.file_source import Source
from kpod._files.pieces.table_parts import Sources, first_bytes, typed_source
from kpod._files.pieces.text_source import TextOptions
from kpod._files.reading import RawTable, ReadOptions, inspected, naming_damage, raw_table, read_table
from kpod._files.text.delimited import read_bytes

MOST_ALIKE = 2
"""Notes of one kind, on files that differ in what was mended; the others are only listed."""


class WholeFile(Source):
    """A file that was read whole, with what is mended in a single one."""

    def __init__(self, part: Part, how: ReadOptions) -> None:
        super().__init__(part)
        self.whole = raw_table(bytes_of(part), self.name, how)
        self.dialect = self.whole.dialect

    @cached_property
    def stored(self) -> pa.Schema:
        return self.whole.rows.schema

    @cached_property
    def most_rows(self) -> int:
        return int(self.whole.rows.num_rows)

    def read(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        yield from self.whole.rows.select(list(names)).to_batches()


def bytes_of(part: Part) -> bytes:
    if part.filesystem is None:
        return read_bytes(part.path, part.name)
    with naming_place(part.name), part.open() as file:
        return bytes(file.read())


@dataclass(frozen=True)
class Parts:
    """The files of a table, and which of them each row is from."""

    files: Sequence[Source]
    of_row: Labels

    def of(self, rows: Positions) -> Parts:
        """Of some of the rows."""
        return Parts(self.files, self.of_row[rows])

    def names(self) -> pa.Array:
        """The name of the file of each row."""
        return pa.array([file.name for file in self.files], pa.string()).take(pa.array(self.of_row))


@dataclass(frozen=True)
class Places:
    """Where rows are: in which file, and where there."""

    files: Sequence[Source]
    starts: Sequence[int]

    def of(self, _: Any, row: int, name: str) -> str:
        at = int(np.searchsorted(self.starts, row, side="right")) - 1
        file, row = self.files[at], row - self.starts[at]
        if isinstance(file, WholeFile) and file.whole.place is not None:
            return f"{file.name}, {file.whole.place.of(file.whole.rows, row, name)}"
        return f"{file.name}, row {row + 1}"


def open_parts(
    parts: Sequence[Part],
    *,
    answers: Mapping[str, Collection[str]] | None = None,
    progress: Progress = no_progress,
    **options: Any,
) -> TableFile:
    """The table in a file, or in several; the options are those of `ReadOptions`."""
    one = parts[0]
    if len(parts) == 1 and not one.keys and one.schema is None:
        return read_table(one.given, answers=answers, **options)
    return read_parts(parts, ReadOptions(**options), answers, progress)


def read_parts(
    parts: Sequence[Part],
    how: ReadOptions,
    answers: Mapping[str, Collection[str]] | None = None,
    progress: Progress = no_progress,
) -> TableFile:
    """The table that several files hold between them."""

    def opened(part: Part, *_: Any) -> Source:
        return typed_source(part, first_bytes(part)) or WholeFile(part, how)

    sources = Sources.open(parts, TextOptions(), opened=opened)
    files, schema, batches = sources.files, sources.schema, []
    n_rows, most = 0, sources.most_rows or 0
    for source, _, batch in sources.batches(schema.names):
        with naming_damage(source.name):
            batches.append(batch.cast(schema))
        n_rows += batch.num_rows
        progress(n_rows, most, f"reading {sources.name}, {n_rows / max(1, most):.0%}")
    rows = pa.Table.from_batches(batches, schema)
    notes = [*sources.notes, *notes_of(files, schema.names)]
    read = RawTable(rows, dialect_of(files), Places(files, sources.starts), notes)
    table = inspected(sources.name, read, how, answers)
    if len(files) > 1:
        lengths = np.diff([*sources.starts, rows.num_rows])
        table.parts = Parts(files, np.repeat(np.arange(len(files), dtype=np.int32), lengths))
    return table


def dialect_of(files: Sequence[Source]) -> Dialect | None:
    """How the first file writes numbers; with a decimal comma only if no file looks different."""
    dialects = [file.dialect for file in files if file.dialect is not None]
    if not dialects:
        return None
    commas = all(dialect.decimal == "," for dialect in dialects)
    return replace(dialects[0], decimal="," if commas else ".")


def notes_of(files: Sequence[Source], names: Collection[str]) -> list[Note]:
    """What was mended, each with the files in which it was."""
    found: dict[str, tuple[Note, list[str]]] = {}
    for file in files:
        for note in file.whole.notes if isinstance(file, WholeFile) else ():
            if set(note.columns) <= set(names):
                found.setdefault(repr(note), (note, []))[1].append(file.name)
    by_kind: dict[Any, list[tuple[Note, list[str]]]] = {}
    for note, where in found.values():
        by_kind.setdefault((note.kind, note.columns, note.values.get("what")), []).append((note, where))
    notes = []
    for alike in by_kind.values():
        notes += [replace(note, parts=tuple(where)) for note, where in alike[:MOST_ALIKE]]
        if len(alike) > MOST_ALIKE:
            others = [name for _, where in alike[MOST_ALIKE:] for name in where]
            notes.append(Note("likewise in others", alike[0][0].columns, {"parts": others}))
    return notes
