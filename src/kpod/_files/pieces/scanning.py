"""Tables that do not fit into memory: decoded once, a batch at a time, into a mapped scratch file.

Standardising happens in the same file, over the rows as they were decoded, so that a scanned table
has the bits that `ObservedScaler` would give it in memory.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kpod._columns.tables import precision, shown
from kpod._columns.tally import Tally
from kpod._common.errors import InputError, printable
from kpod._common.notes import Notes
from kpod._common.progress import Progress
from kpod._common.sentences.formatting import size_text, some
from kpod._common.typing import AnyFloats, Floats
from kpod._engine.windows import release
from kpod._files.locations.paths import SCANNED, expand
from kpod._files.pieces.decoding import ColumnsToRows, Decoder
from kpod._files.pieces.scratch import Scratch
from kpod._files.pieces.table_parts import Sources, is_numeric
from kpod._files.pieces.text_source import TextOptions
from kpod._inputs.lazy import lazy_kind
from kpod._inputs.scanned import ScannedTable

if TYPE_CHECKING:
    from kpod._estimators.observed_scaler import ObservedScaler

ARRAYS = (".npy", ".npz")
CHUNK_ENTRIES = 1 << 20
PATIENCE = 2.0
BAR = 30


def scan(
    files: Any,
    *,
    columns: Sequence[str] | None = None,
    filters: Any = None,
    filesystem: Any = None,
    scale: bool | ObservedScaler = False,
    scratch: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> ScannedTable:
    """Open a table larger than memory, from files, buckets, lakes or queries, to cluster it from disk.

    Parquet, Arrow, Feather and CSV files are decoded once, a batch at a time, into a scratch file that is
    mapped into memory. A `.npy` file of floats is mapped directly, and so are the suitably aligned parts
    of a CSR table in an `.npz` file (`scipy.sparse.save_npz(..., compressed=False)`); other arrays are
    decoded.

    Parameters
    ----------
    files : str, path, sequence of these, or an object that represents a table
        A file, a folder, a pattern such as ``"folder/*.parquet"`` or ``"folder/**/*.parquet"`` (of any
        depth), a URL of any of these (``"s3://bucket/folder"``), or several. Parts must have the same
        columns, in any order; those of a folder or a pattern are taken in the order of their names. Numbers
        of different types are promoted; parts without rows, and columns that the first part does not
        have, are left out, and `notes` says so. Folders named ``year=2024`` become columns. A folder with
        tables that would not be read is refused; names that begin with ``.`` or ``_`` are ignored. The
        folder of a Delta table is read at its current version.

        Or a pyarrow `Dataset` or `RecordBatchReader`, a polars `LazyFrame`, a DuckDB relation, a Delta table
        (`deltalake`) or an Iceberg table or scan (`pyiceberg`), of which only the columns in use are read,
        batch by batch.
    columns : sequence of str, default=None
        The columns to use, in this order; by default all of them, which must then be numeric.
    filters : pyarrow expression or list of tuples, default=None
        Which rows to read, as `pyarrow.parquet.read_table` takes it: ``pyarrow.compute.field("year") > 2020``
        or ``[("year", ">", 2020)]``. Parts and row groups that contain none of them are skipped.
    filesystem : pyarrow or fsspec file system, default=None
        Where the files are, if their names do not say so; with its own credentials.
    scale : bool or ObservedScaler, default=False
        True standardises columns over their observed entries, bit-identical to
        ``ObservedScaler().fit_transform`` in memory; a fitted scaler (`scaler_` of another table) is
        applied.
    scratch : path, default=None
        The directory for the scratch file; by default that for temporary files, or /var/tmp if those are
        kept in memory. The file is removed with the table; that of a run that was killed, by the next
        scan with the same directory.
    progress : callable, default=None
        A callback, called as ``progress(done, total, text)`` with numbers of rows. By default, a progress bar
        appears on a terminal after two seconds, with the size of the scratch file.

    Returns
    -------
    ScannedTable
        Accepted by `KPOD.fit`, `predict`, `transform` and `score`, `choose_k` and `report`. float32 if all
        columns used are, else float64.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np, pyarrow as pa, pyarrow.parquet as pq
    >>> import kpod
    >>> folder = tempfile.TemporaryDirectory()
    >>> for part in range(2):
    ...     pq.write_table(pa.table({"a": [1.0, None, 9.0], "b": [2.0, 2.5, 8.0]}),
    ...                    os.path.join(folder.name, f"part-{part}.parquet"))
    >>> with kpod.scan(folder.name, scale=True) as table:
    ...     labels = kpod.KPOD(2, random_state=0).fit(table).labels_
    >>> labels == labels[0]
    array([ True,  True, False,  True,  True, False])
    >>> folder.cleanup()
    """
    if isinstance(columns, str):
        raise TypeError(f"columns must be a sequence of names, got {columns!r}; write [{columns!r}].")
    tell = Bar() if progress is None else progress
    try:
        table: Any = files
        if lazy_kind(files) is None:
            table = expand(files, (*SCANNED, *ARRAYS), filesystem)
            arrays = [part for part in table if part.suffix in ARRAYS]
            if arrays:
                from kpod._files.arrays import scan_arrays

                return scan_arrays(table, arrays, columns, scale, scratch, tell)
        sources = Sources.of(table, TextOptions(), as_expression(filters), columns)
        decoded = Decoded.of(sources, sources.names, scratch, tell)
        return decoded.table(scale)
    finally:
        if isinstance(tell, Bar):
            tell.end()


def as_expression(filters: Any) -> Any:
    """Filters as an expression of pyarrow; None for none."""
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    if filters is None or isinstance(filters, ds.Expression):
        return filters
    try:
        return pq.filters_to_expression(filters)
    except (ValueError, TypeError) as error:
        raise TypeError(
            "filters must be an expression of pyarrow or a list of tuples such as [('year', '>', 2020)], got "
            f"{filters!r}."
        ) from error


class Bar:
    """How far a scan is, on a terminal, once two seconds have passed."""

    def __init__(self) -> None:
        self.visible = bool(sys.stderr) and sys.stderr.isatty()
        self.began = time.monotonic()
        self.shown = 0.0

    def __call__(self, done: int, total: int, text: str) -> None:
        now = time.monotonic()
        if not self.visible or now - self.began < PATIENCE or now - self.shown < 0.1:
            return
        self.shown = now
        share = min(1.0, done / max(1, total))
        bar = "#" * round(BAR * share)
        sys.stderr.write(f"\r\033[K[{bar:{BAR}}] {share:4.0%} {text}")
        sys.stderr.flush()

    def end(self) -> None:
        if self.shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


@dataclass
class Decoded:
    """The rows of files as numbers, in a scratch file."""

    sources: Sources
    names: list[str]
    scratch: Scratch
    n_rows: int
    dtype: Any
    decoders: list[Decoder]

    @classmethod
    def of(
        cls,
        sources: Sources,
        names: Sequence[str],
        directory: str | os.PathLike[str] | None,
        tell: Progress,
        *,
        missing: Callable[[str], Sequence[str]] | None = None,
    ) -> Decoded:
        """Decode some columns of all files, whose size is computed beforehand.

        With the missing codes of each column, the numbers of all columns are counted meanwhile.
        """
        check_numeric(sources, names)
        dtype = np.dtype(precision(sources.schema, names))
        most = sources.most_rows or 0
        n_bytes = most * len(names) * dtype.itemsize
        decimal = sources.dialect.decimal if sources.dialect else "."
        decoders = [Decoder(name, decimal) for name in names]
        if missing is not None:
            decoders = [Decoder(name, decimal, missing(name), Tally(missing(name))) for name in names]
        as_rows = ColumnsToRows(decoders, dtype)
        scratch = Scratch(directory, n_bytes)
        room = size_text(n_bytes) if most else f"{8 * len(names)} bytes a row"
        text = f"reading {sources.name}, {room} of scratch in {printable(scratch.directory)}"
        offset = n_rows = 0
        try:
            tell(0, most, text)
            for source, row, batch in sources.batches(names):
                offset = scratch.write(as_rows(batch, source, row), offset)
                n_rows += batch.num_rows
                tell(n_rows, most, text)
            scratch.truncate(offset)
        except BaseException:
            scratch.remove()
            raise
        finally:
            pa.default_memory_pool().release_unused()
        return cls(sources, list(names), scratch, n_rows, dtype, decoders)

    def rows(self) -> AnyFloats:
        return self.scratch.array(self.dtype, (self.n_rows, len(self.names)))

    def column(self, name: str) -> Floats:
        """One column."""
        j = self.names.index(name)
        return np.concatenate([rows[:, j].astype(np.float64) for rows in chunks(self.rows())])

    def sample(self, most: int) -> Iterator[Floats]:
        """Of each column in turn, as many entries, evenly spread, or all if they are fewer."""
        at = (
            np.arange(self.n_rows)
            if self.n_rows <= most
            else np.linspace(0, self.n_rows - 1, most).astype(int)
        )
        step = max(1, CHUNK_ENTRIES // len(at))
        for first in range(0, len(self.names), step):
            width = min(step, len(self.names) - first)
            some = [
                self.scratch.read(self.dtype, width, row * len(self.names) + first) for row in at.tolist()
            ]
            yield from np.stack(some).T.astype(np.float64)

    def take_out_codes(self) -> None:
        """Replace missing codes by NaN, in place."""
        tallies = {j: one.tally for j, one in enumerate(self.decoders) if one.tally and one.tally.found}
        offset = 0
        for rows in chunks(self.rows()) if tallies else ():
            out = np.array(rows)
            for j, tally in tallies.items():
                out[:, j] = tally.without_codes(out[:, j].astype(np.float64))
            offset = self.scratch.write(out, offset)

    def keep(self, names: Sequence[str]) -> None:
        """Leave out all other columns, in place: rows move towards the beginning of the file."""
        dtype = np.dtype(precision(self.sources.schema, names))
        if list(names) == self.names and dtype == self.dtype:
            return
        which, offset = [self.names.index(name) for name in names], 0
        for rows in chunks(self.rows()):
            offset = self.scratch.write(np.ascontiguousarray(rows[:, which], dtype), offset)
        self.scratch.truncate(offset)
        self.decoders = [self.decoders[j] for j in which]
        self.names, self.dtype = list(names), dtype

    def table(self, scale: bool | ObservedScaler) -> ScannedTable:
        """The table, standardised if requested; it now owns the scratch file."""
        scratch = self.scratch
        try:
            raw = ScannedTable(self.rows(), self.names, [source.path for source in self.sources.files])
            scaler = fitted_scaler(scale, raw)
            if scaler is not None:
                offset, buffer = 0, np.empty((chunk_rows(raw.values), len(self.names)), self.dtype)
                for rows in chunks(raw.values):
                    offset = scratch.write(scaler._scaled(rows, buffer[: len(rows)]), offset)
            out = ScannedTable(self.rows(), self.names, raw.files, scaler, scratch.remove)
            out.notes = Notes(self.sources.notes)
            return out
        except BaseException:
            scratch.remove()
            raise


def chunks(values: AnyFloats) -> Iterator[AnyFloats]:
    """Chunks of rows; the pages of a mapped file are released before the next chunk."""
    step = chunk_rows(values)
    for start in range(0, values.shape[0], step):
        rows = values[start : start + step]
        yield rows
        release(rows)


def chunk_rows(values: AnyFloats) -> int:
    return max(1, CHUNK_ENTRIES // values.shape[1])


def fitted_scaler(scale: bool | ObservedScaler, table: ScannedTable) -> ObservedScaler | None:
    if scale is False:
        return None
    from kpod._estimators.observed_scaler import (
        ObservedScaler,  # with scikit-learn, which takes seconds to load
    )

    if isinstance(scale, ObservedScaler):
        if scale.n_features_in_ != table.shape[1]:
            raise InputError(
                f"the scaler was fitted on {scale.n_features_in_} columns, the files have {table.shape[1]}."
            )
        return scale
    return ObservedScaler().fit(table)


def check_numeric(sources: Sources, names: Sequence[str]) -> None:
    fields = [sources.schema.field(name) for name in names]
    odd = [
        f"{shown(one.name)} ({one.type})"
        for one in fields
        if not is_numeric(one.type) and sources.dialect is None
    ]
    if odd:
        raise InputError(
            f"{sources.name}: only numbers can be clustered, but these columns are not numeric: {some(odd)}; "
            "name the others in `columns`."
        )
