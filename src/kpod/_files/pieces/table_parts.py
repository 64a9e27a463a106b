"""The parts that hold the rows of one table between them, one after the other.

Columns are matched by name. Numbers of different types are promoted, a part without rows is passed over,
and a column that only later parts have is left out; each with a note. A column that a part lacks is an error,
unless the table declares it, as a lake does: then it is missing there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import pyarrow as pa

from kpod._columns import column_inspection as column_kinds
from kpod._columns.tables import Dialect, shown
from kpod._common.errors import InputError
from kpod._common.notes import Note
from kpod._common.options import option
from kpod._common.sentences.formatting import some
from kpod._files import foreign_formats, memory_limits
from kpod._files.locations.part import EmptyPartError, Part
from kpod._files.pieces.file_source import ArrowSource, ParquetSource, Source
from kpod._files.pieces.queries import QuerySource, parts_of
from kpod._files.pieces.text_source import TextOptions, TextSource
from kpod._files.text import delimited, headings
from kpod._inputs.lazy import lazy_kind


def first_bytes(part: Part) -> bytes:
    """The first bytes of a file that is one and holds something."""
    if part.is_irregular():
        raise InputError(
            f"{part.name}: is not a regular file, and cannot be read with others or in pieces; save it to a "
            "file first."
        )
    try:
        with part.open() as file:
            head: bytes = file.read(512)
    except OSError as error:
        raise InputError(f"{part.name}: cannot be read: {error.strerror}.") from error
    if not head.strip():
        refused = InputError if part.suffix in BINARY else EmptyPartError
        raise refused(f"{part.name}: is empty.")
    return head


def typed_source(part: Part, head: bytes, filters: Any = None) -> Source | None:
    """A file that says what its columns hold; None for any other."""
    if head[:4] == b"PAR1":
        return ParquetSource(part, filters)
    if head[:6] == b"ARROW1" or head[:4] == delimited.STREAM:
        return ArrowSource(part, filters)
    return None


def open_source(part: Part, options: TextOptions, filters: Any = None) -> Source:
    """The file, by its first bytes."""
    head = first_bytes(part)
    typed = typed_source(part, head, filters)
    if typed is not None:
        return typed
    if head[:4] == b"FEA1" or memory_limits.packing(head) or foreign_formats.kind_of(head):
        raise InputError(
            f"{part.name}: cannot be read in pieces; only CSV, Parquet, Arrow and Feather (version 2) files "
            "can."
        )
    if filters is not None:
        raise InputError(
            f"{part.name}: filters need columns with types, which text does not have; filter the table "
            "yourself, or write it as Parquet."
        )
    return TextSource(part, options)


BINARY = (".parquet", ".pq", ".feather", ".arrow", ".ipc")
"""A file of these kinds is damaged if it is empty; text has no rows then."""


@dataclass
class Sources:
    """Parts with the same columns, one after the other; in the order that the first has them in."""

    files: list[Source]
    starts: list[int] = field(default_factory=list)
    """The row with which each part begins; known once all were read."""
    notes: list[Note] = field(default_factory=list)
    asked: list[str] | None = None
    """The columns that are used; None for those of the first part."""

    @classmethod
    def of(
        cls, X: Any, options: TextOptions, filters: Any = None, columns: Sequence[str] | None = None
    ) -> Sources:
        """The parts of a table: files, or the batches of a lazy object."""
        kind = lazy_kind(X)
        parts = X if kind is None else parts_of(X, kind)
        if parts is None:
            assert kind is not None
            return cls.checked([QuerySource(X, kind, filters)], columns)
        if not parts:
            raise InputError(f"the {kind}: holds no rows.")
        return cls.open(parts, options, filters, columns)

    @classmethod
    def open(
        cls,
        parts: Sequence[Part],
        options: TextOptions,
        filters: Any = None,
        columns: Sequence[str] | None = None,
        opened: Callable[[Part, TextOptions, Any], Source] = open_source,
    ) -> Sources:
        files: list[Source] = []
        empty: list[str] = []
        last: InputError | None = None
        for part in parts:
            try:
                source = opened(part, options, filters)
                if not files and source.dialect is not None:  # which holds for all files
                    options = replace(
                        options, delimiter=source.dialect.delimiter, decimal=source.dialect.decimal
                    )
                if source.most_rows == 0:
                    none = delimited.NO_ROWS if filters is None else "no rows are left by the filters."
                    raise EmptyPartError(f"{source.name}: {none}")
                files.append(source)
            except EmptyPartError as error:
                empty.append(part.name)
                last = error
        if not files:
            assert last is not None
            if len(empty) > 1:
                none = "no rows are left by the filters." if filters is not None else "no part has any rows."
                raise InputError(f"{empty[0]} and {len(empty) - 1} more: {none}")
            raise last
        out = cls.checked(files, columns)
        if empty and filters is None:
            out.notes.insert(0, Note("empty parts", values={"parts": empty}))
        return out

    @classmethod
    def checked(cls, files: list[Source], columns: Sequence[str] | None = None) -> Sources:
        """Parts that go together in the columns that are used."""
        for source in files:
            headings.check_unique(source.schema.names, source.name)
            if not source.schema.names:
                raise InputError(f"{source.name}: no columns.")
        out = cls(files, asked=None if columns is None else checked_names(files[0], columns))
        for other in files[1:]:
            out.check_alike(other)
        return out

    @property
    def names(self) -> list[str]:
        return self.files[0].schema.names if self.asked is None else self.asked

    @property
    def name(self) -> str:
        first = self.files[0].name
        return first if len(self.files) == 1 else f"{first} and {len(self.files) - 1} more"

    @property
    def dialect(self) -> Dialect | None:
        return self.files[0].dialect

    @cached_property
    def schema(self) -> pa.Schema:
        """Names and types; of a column that has several types, the one that all of them fit into."""
        fields = []
        for name in self.names:
            kinds = [source.schema.field(name).type for source in self.files]
            kind = kinds[0]
            for source, other in zip(self.files, kinds, strict=True):
                common = promoted(kind, other)
                if common is None:
                    raise InputError(
                        f"{source.name}: column {shown(name)} holds {other} values here and {kind} "
                        f"values in {self.files[0].name}; parts of one table need types that go together: "
                        f"convert one of them, or leave the column out ({option('--columns')})."
                    )
                kind = common
            fields.append(pa.field(name, kind))
        return pa.schema(fields, self.files[0].schema.metadata)

    @property
    def most_rows(self) -> int | None:
        """An upper bound on the number of rows; None if it is not known."""
        known = [source.most_rows for source in self.files if source.most_rows is not None]
        return sum(known) if len(known) == len(self.files) else None

    def where(self, row: int) -> tuple[Source, int]:
        """The file in which a row is, and its number there, from 0."""
        for source, (start, stop) in zip(self.files, pairwise([*self.starts, row + 1]), strict=False):
            if row < stop or source is self.files[-1]:
                return source, row - start
        raise AssertionError

    def batches(self, names: Sequence[str]) -> Iterator[tuple[Source, int, pa.RecordBatch]]:
        """The rows of some columns: the file, the number of the first row in it, and the rows."""
        starts, total = [], 0
        for source in self.files:
            starts.append(total)
            row = 0
            for batch in source.batches(names):
                yield source, row, batch
                row += batch.num_rows
            if row == 0 and source.filters is None:
                raise InputError(f"{source.name}: {delimited.NO_ROWS}")
            total += row
        if total == 0:
            raise InputError(f"{self.name}: no rows are left by the filters.")
        self.starts = starts

    def check_same(self) -> None:
        for source in self.files:
            source.check_same()

    def column(self, name: str) -> pa.ChunkedArray:
        """One column of all files, in memory."""
        kind = self.schema.field(name).type
        chunks = [batch.column(0) for _, _, batch in self.batches([name])]
        return pa.chunked_array([chunk if chunk.type == kind else chunk.cast(kind) for chunk in chunks], kind)

    def check_alike(self, other: Source) -> None:
        """Refuse a part that lacks a column of the first; note those that only it has."""
        first = self.files[0]
        absent = [name for name in self.names if name not in other.schema.names]
        more = [name for name in other.schema.names if name not in first.schema.names]
        more = more if self.asked is None else []
        if absent:
            also = f" and has an extra column {shown(more[0])}" if more else ""
            raise InputError(
                f"{other.name}: has no column {shown(absent[0])}{also}, unlike {first.name}; parts of one "
                "table need the same columns: add it, or give the parts that have it."
            )
        if more:
            self.notes.append(Note("extra columns", tuple(more), {"part": other.name, "first": first.name}))


def checked_names(first: Source, columns: Sequence[str]) -> list[str]:
    names, there = list(columns), first.schema.names
    absent = [shown(name) for name in names if name not in there]
    if absent:
        raise InputError(
            f"{first.name}: there is no column {some(absent)}; there are "
            f"{some([shown(name) for name in there], most=8)}."
        )
    if len(set(names)) < len(names) or not names:
        raise InputError("columns must name at least one column, and none of them twice.")
    return names


def promoted(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The type that values of two types fit into without a change of meaning; None if there is none."""
    if one == other or pa.types.is_null(one) or pa.types.is_null(other):
        return other if pa.types.is_null(one) else one
    if column_kinds.is_number(one) and column_kinds.is_number(other):
        both = {one, other}
        if all(map(pa.types.is_integer, both)):
            return pa.uint64() if both == {pa.uint64()} else pa.int64()
        return pa.float32() if both <= {pa.float16(), pa.float32()} else pa.float64()
    values = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in (one, other)]
    if all(map(column_kinds.is_text, values)):
        return pa.large_string() if pa.large_string() in values else pa.string()
    try:
        schemas = [pa.schema([("", kind)]) for kind in (one, other)]
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except pa.ArrowTypeError:
        return None


def is_numeric(kind: pa.DataType) -> bool:
    """Whether a column of this type can be clustered as it is."""
    return bool(pa.types.is_boolean(kind) or pa.types.is_null(kind) or column_kinds.is_number(kind))
