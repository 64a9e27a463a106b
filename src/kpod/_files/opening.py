"""Open a table in files: in memory, or in pieces where it would not fit. And kpod.read."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw

from kpod._columns.preparing.frames import check_pyarrow
from kpod._common.errors import InputError, check_library
from kpod._common.options import option
from kpod._common.progress import Progress, no_progress

if TYPE_CHECKING:
    import pyarrow as pa

    from kpod._columns.tables import TableFile


WARNED = (
    "rows left out",
    "headings made unique",
    "several heading rows",
    "no headings",
    "short lines",
    "header again",
    "column without a name",
)


def open_table(
    data: Any,
    *,
    missing_values: Any = None,
    scratch: str | os.PathLike[str] | None = None,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
    weight: str | None = None,
    answers: Mapping[str, Collection[str]] | None = None,
    every_row: bool = False,
    header: int | None = None,
    strict: bool = False,
    progress: Progress = no_progress,
    **read: Any,
) -> TableFile:
    """The table in one or several files; `close` it when what it needs on a disk is needed no more."""
    check_pyarrow()
    from kpod._files.locations.part import without_secrets
    from kpod._files.pieces.large_table import LargeTable, files_of
    from kpod._files.several_files import open_parts

    several = isinstance(data, (list, tuple))
    given = [os.fspath(path) for path in (data if several else [data])]
    progress(0, 0, f"reading {without_secrets(given[0])}")
    parts, in_pieces = files_of(given, None if scratch is None else os.fspath(scratch))
    if not in_pieces:
        return open_parts(
            parts, answers=answers, progress=progress, missing=missing_values, every_row=every_row,
            header=header, strict=strict, **read,
        )  # fmt: skip
    if header is not None:
        raise InputError(
            f"{parts[0].name}: {option('--header')} does not apply to a table that is read in pieces, "
            "whose first line holds the column names."
        )
    return LargeTable.read(
        parts,
        scratch,
        lambda done, total, text: progress(done, total, f"{text}, {min(1.0, done / max(1, total)):.0%}"),
        leave_out=exclude,
        only=[*columns, *([weight] if weight and columns else [])],
        missing=missing_values,
        every_row=every_row,
        **read,
    )


def open_lazy(
    data: Any, scratch: str | os.PathLike[str] | None, progress: Progress, **choice: Any
) -> TableFile | pa.Table:
    """The rows of an object that represents a table, in memory if they fit; else a table in pieces."""
    check_pyarrow()
    from kpod._files.pieces.large_table import LargeTable
    from kpod._files.pieces.spool import loaded

    held, spooled = loaded(data, scratch, progress)
    if held is not None:
        return held
    table = LargeTable.read(data if spooled is None else [spooled.part], scratch, progress, **choice)
    if spooled is not None:
        table.spooled = spooled
    return table


def read(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    missing_values: Any = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    header: int | None = None,
    strict: bool = False,
    backend: str = "pandas",
) -> Any:
    r"""Read a table from a file, however untidy, with numbers as numbers and gaps as gaps.

    CSV and other text, Excel and OpenDocument, SPSS, Stata, SAS, JSON, Parquet, Feather and Arrow,
    compressed or not, are recognised by their first bytes. Delimiter, decimal mark and encoding are
    detected. Titles above the table, units under its header, and totals and remarks below it are left out;
    headings in two rows (question and option) are joined; "1,234", "12 %", "€ 5" and "1.2k" are numbers;
    empty cells, NA, null, ? and the like are gaps, and so are `missing_values`. The notes list what was
    done. For tables larger than memory, see `kpod.scan`.

    Parameters
    ----------
    path : path-like, URL or sequence of these
        A file; or a folder, a pattern or several files, as one table.
    missing_values : scalar, sequence or mapping, default=None
        Missing codes, for all columns, ``[-9]``, or by column, ``{"score": [99]}``.
    delimiter, decimal, encoding : str, default=None
        The format of a text file; detected by default.
    sheet : str, default=None
        The sheet of a workbook; by default, the first that holds a table.
    header : int, default=None
        The number of rows of headings in a text file or sheet, 0 for none; detected by default.
    strict : bool, default=False
        Refuse what is otherwise repaired, with a note: headings that are empty or occur twice, a file without
        headings, and entries that are not numbers in a numeric column, which are gaps if they are at
        most a fifth of it (or up to half, if they are a few repeated words).
    backend : {"pandas", "polars", "pyarrow"}, default="pandas"
        The library of the data frame to return.

    Returns
    -------
    dataframe
        A pandas data frame has the notes in ``attrs["notes"]``. Rows left out always give a warning.

    Examples
    --------
    >>> import pathlib, kpod
    >>> text = "name;score;late\nann;1,5;no\nbob;?;yes\ncai;2,5;no\n"
    >>> _ = pathlib.Path("scores.csv").write_text(text)
    >>> kpod.read("scores.csv")
      name  score late
    0  ann    1.5   no
    1  bob    NaN  yes
    2  cai    2.5   no
    """
    check_pyarrow()
    from kpod._common.warnings import warn

    if backend not in ("pandas", "polars", "pyarrow"):
        raise ValueError(f"backend must be 'pandas', 'polars' or 'pyarrow', got {backend!r}.")
    check_library(backend, f"kpod.read with backend={backend!r}")
    table = open_whole(
        path, missing=missing_values, delimiter=delimiter, decimal=decimal, encoding=encoding, sheet=sheet,
        header=header, strict=strict,
    )  # fmt: skip
    for note in table.notes:
        if note.kind in WARNED:
            warn(note.text if note.parts else f"{table.source}: {note.text}")
    return as_backend(table, backend)


def open_whole(path: Any, **how: Any) -> TableFile:
    """A table in memory, from one file or several; refused where several do not fit."""
    from kpod._files.locations.part import Part
    from kpod._files.locations.paths import expand
    from kpod._files.memory_limits import room
    from kpod._files.pieces.large_table import fit
    from kpod._files.several_files import open_parts

    if not isinstance(path, (list, tuple)):
        path = [path]
    given = [os.fspath(one) for one in path]
    parts = [Part("-")] if given == ["-"] else expand(given)
    if len(parts) > 1 and not fit(parts):
        raise InputError(
            f"{parts[0].name} and {len(parts) - 1} more: too large to be read whole{room()}; use kpod.scan, "
            "which reads a table in pieces."
        )
    return open_parts(parts, **how)


def as_backend(table: TableFile, backend: str) -> Any:
    from kpod._common.notes import Notes
    from kpod._files.output import as_read

    content = as_read(table)
    if backend == "polars":
        return nw.from_arrow(content, backend="polars").to_native()
    if backend == "pyarrow":
        return content
    frame = content.to_pandas()
    frame.attrs["notes"] = Notes(table.notes)
    return frame
