"""Tables that are not files: lazy frames, relations, readers and scans, as sources of batches.

Each is asked for the columns that are needed, and hands over batches; only a reader cannot do so twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import pyarrow as pa

from kpod._common.errors import InputError
from kpod._files.locations.lakes import opening_lake, parts_of_dataset, parts_of_delta
from kpod._files.locations.part import Part
from kpod._files.pieces import file_source
from kpod._files.pieces.file_source import Source
from kpod._files.text.delimited import one_line


def parts_of(X: Any, kind: str) -> list[Part] | None:
    """The files of an object that represents files; None for a query, which returns rows."""
    if kind == "Delta table":
        name = str(X.table_uri)
        with opening_lake(name):
            return parts_of_delta(X, name.removeprefix("file://").rstrip("/"))
    if kind != "pyarrow Dataset":
        return None
    import pyarrow.dataset as ds

    if not isinstance(X, ds.FileSystemDataset) or X.format.default_extname != "parquet":
        return None
    try:
        return parts_of_dataset(X, "")
    except ValueError:  # of a dataset with a filter, which does not hand out its files
        return None


class QuerySource(Source):
    """A source of batches: the rows of a lazy object."""

    def __init__(self, query: Any, kind: str, filters: Any = None) -> None:
        self.part, self.path = Part(""), ""
        self.query, self.kind, self.filters = query, kind, filters
        self.name = f"the {kind}"
        if filters is not None and kind != "pyarrow Dataset":
            raise InputError(f"{self.name}: filters are for files and datasets; filter it beforehand.")

    def check_same(self) -> None:
        """A query is what it is when it runs."""

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Errors of other packages, which have classes of their own, in one line that names the table."""
        try:
            yield
        except (InputError, MemoryError, ModuleNotFoundError):
            raise
        except Exception as error:
            raise InputError(f"{self.name}: cannot be read: {one_line(error)}") from error

    @cached_property
    def stored(self) -> pa.Schema:
        with self.naming():
            if self.kind in ("pyarrow Dataset", "RecordBatchReader"):
                return self.query.schema
            if self.kind == "polars LazyFrame":
                return self.query.head(0).collect().to_arrow().schema
            if self.kind == "DuckDB relation":
                return self.query.limit(0).to_arrow_table().schema
            from pyiceberg.io.pyarrow import schema_to_pyarrow

            return schema_to_pyarrow(self.scan.projection(), include_field_ids=False)

    @cached_property
    def scan(self) -> Any:
        """Of an Iceberg table, a scan of its present snapshot, which stays what it is."""
        if self.kind == "Iceberg scan":
            return self.query
        snapshot = self.query.current_snapshot()
        return self.query.scan(snapshot_id=None if snapshot is None else snapshot.snapshot_id)

    @cached_property
    def most_rows(self) -> int | None:
        return None

    def read(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        n_rows = 0
        for batch in self.rows(list(names), max(1, file_source.BATCH_ENTRIES // max(1, len(names)))):
            n_rows += batch.num_rows
            yield batch.select(list(names))
        if self.kind == "RecordBatchReader" and n_rows == 0:
            raise InputError(f"{self.name}: no rows, or they have been read already; give a new one.")

    def rows(self, names: list[str], length: int) -> Iterable[pa.RecordBatch]:
        """Batches that have these columns, of about so many rows."""
        if self.kind == "RecordBatchReader":
            return self.query
        if self.kind == "polars LazyFrame":
            return batches_of_lazy(self.query.select(names), length)
        if self.kind == "DuckDB relation":
            quoted = ", ".join('"{}"'.format(name.replace('"', '""')) for name in names)
            return self.query.project(quoted).to_arrow_reader(length)
        if self.kind == "pyarrow Dataset":
            return self.query.scanner(
                columns=names, filter=self.filters, batch_size=length, batch_readahead=1, fragment_readahead=1
            ).to_batches()
        return self.scan.select(*names).to_arrow_batch_reader()


def batches_of_lazy(frame: Any, length: int) -> Iterator[pa.RecordBatch]:
    """The rows of a lazy frame of polars, collected in batches."""
    if not hasattr(frame, "collect_batches"):
        raise InputError("the polars LazyFrame: needs polars 1.34 or later to be read in batches; update it.")
    for rows in frame.collect_batches(chunk_size=length, maintain_order=True, engine="streaming"):
        yield from rows.to_arrow().to_batches()
