"""Objects that represent a table without its rows: queries, readers, and tables of lakes.

They are recognised by the names of their classes, so that none of their packages is imported to find out.
"""

from __future__ import annotations

from typing import Any

KINDS = {
    ("pyarrow", "Dataset"): "pyarrow Dataset",
    ("pyarrow", "RecordBatchReader"): "RecordBatchReader",
    ("polars", "LazyFrame"): "polars LazyFrame",
    ("duckdb", "DuckDBPyRelation"): "DuckDB relation",
    ("deltalake", "DeltaTable"): "Delta table",
    ("pyiceberg", "Table"): "Iceberg table",
    ("pyiceberg", "TableScan"): "Iceberg scan",
}


def lazy_kind(X: Any) -> str | None:
    """What kind of table without rows X is; None for anything else."""
    for base in type(X).__mro__:
        package = base.__module__.partition(".")[0].lstrip("_")
        if (package, base.__name__) in KINDS:
            return KINDS[package, base.__name__]
    return None


def scanned(X: Any, columns: Any = None) -> Any:
    """A lazy object as a table on disk, whose scratch file is removed with it; anything else as it is."""
    if lazy_kind(X) is None:
        return X
    import kpod  # `kpod.scan` stands above this module, and is looked up when it is needed

    table = kpod.scan(X, columns=columns)
    table.leave_with_rows()
    return table
