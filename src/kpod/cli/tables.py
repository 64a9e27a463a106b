"""The table that a command reads: in memory, or in pieces where it would not fit."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kpod._columns.tables import TableFile


@contextmanager
def open_table(
    data: Sequence[str],
    scratch: str | None,
    progress: Any,
    *,
    columns: Sequence[str] = (),
    aside: Sequence[str] = (),
    weight: str | None = None,
    answers: Mapping[str, Collection[str]] | None = None,
    every_row: bool = False,
    **read: Any,
) -> Iterator[TableFile]:
    """The table in one or several files; what it needs on a disk is gone in the end."""
    progress.doing(f"reading {data[0]}")
    from kpod._files.pieces.large_table import LargeTable, files_of
    from kpod._files.reading import read_table

    paths, in_pieces = files_of(data, scratch)
    if not in_pieces:
        yield read_table(paths[0], answers=answers, every_row=every_row, **read)
        return
    only = [*columns, *([weight] if weight and columns else [])]
    table = LargeTable.read(
        paths,
        scratch,
        lambda done, total, text: progress.doing(f"{text}, {min(1.0, done / max(1, total)):.0%}"),
        leave_out=aside,
        only=only,
        every_row=every_row,
        **read,
    )
    try:
        yield table
    finally:
        table.close()
