"""The rows of a query, which may be readable only once: in memory if they fit, else in a file."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kpod._common.progress import Progress
from kpod._common.sentences.formatting import size_text
from kpod._files import memory_limits
from kpod._files.locations.part import Part
from kpod._files.pieces.queries import QuerySource
from kpod._files.pieces.scratch import Scratch, naming
from kpod._files.pieces.table_parts import Sources
from kpod._files.pieces.text_source import TextOptions


@dataclass
class Spooled:
    """A file of record batches that is removed when its process ends."""

    scratch: Scratch
    part: Part

    def __post_init__(self) -> None:
        weakref.finalize(self, self.scratch.remove)

    def remove(self) -> None:
        self.scratch.remove()


def loaded(
    data: Any, directory: str | os.PathLike[str] | None, progress: Progress
) -> tuple[pa.Table | None, Spooled | None]:
    """The rows in memory; or in a file; or neither, of files that can be read again where they are.

    With a directory for scratch files, nothing is kept in memory.
    """
    sources = Sources.of(data, TextOptions())
    query = isinstance(sources.files[0], QuerySource)
    names = sources.names
    if not query and not (
        directory is None and memory_limits.fits(8 * (sources.most_rows or 0) * len(names))
    ):
        return None, None
    batches = (batch.cast(sources.schema) for _, _, batch in sources.batches(names))
    held: list[pa.RecordBatch] = []
    n_bytes = n_rows = 0
    for batch in batches:
        held.append(batch)
        n_bytes += batch.nbytes
        n_rows += batch.num_rows
        progress(n_rows, 0, f"reading {sources.name}, {size_text(n_bytes)}")
        if query and (directory is not None or not memory_limits.fits(n_bytes)):
            return None, spooled(sources, held, batches, directory, progress)
    return pa.Table.from_batches(held, sources.schema), None


def spooled(
    sources: Sources,
    held: list[pa.RecordBatch],
    rest: Iterator[pa.RecordBatch],
    directory: str | os.PathLike[str] | None,
    progress: Progress,
) -> Spooled:
    """Write rows to a file as they come."""
    scratch = Scratch(directory, 0)
    try:
        with (
            naming(scratch.directory),
            pa.OSFile(scratch.path, "wb") as file,
            pa.ipc.new_file(file, sources.schema) as writer,
        ):
            while held:
                writer.write_batch(held.pop(0))
            for batch in rest:
                writer.write_batch(batch)
                progress(0, 0, f"reading {sources.name}, {size_text(file.tell())} of scratch")
    except BaseException:
        scratch.remove()
        raise
    return Spooled(scratch, Part(scratch.path, url=sources.name))
