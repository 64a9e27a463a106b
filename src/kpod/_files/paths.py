"""The files that paths, folders and patterns stand for.

No row may get lost or count twice on the way from a name to files: a folder is taken only if all
tables in it are read, and a lake, whose log says which of its files count, is refused.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kpod._columns.tables import SUFFIXES
from kpod._common.errors import InputError, printable
from kpod._common.words import kind_of, some
from kpod._files.atomic import check_path

SCANNED = tuple(suffix for suffix, kind in SUFFIXES.items() if kind != "excel")
OTHER_TABLES = (
    ".gz", ".bz2", ".xz", ".zst", ".zip", ".xlsx", ".xlsm", ".xls", ".ods", ".sav", ".zsav", ".dta",
    ".sas7bdat", ".xpt", ".jsonl", ".ndjson", ".orc", ".avro", ".npy", ".npz",
)  # fmt: skip
"""Names of files that hold rows end in these, too, but a folder of such files is not read."""
TABLE_STARTS = (b"PAR1", b"ARROW1")
"""The first bytes of tables whatever their name: Hive writes Parquet files called 000000_0."""
LAKES = {
    "_delta_log": ("a Delta table", "deltalake (DeltaTable(folder).to_pyarrow_table())"),
    "metadata/*.metadata.json": ("an Iceberg table", "pyiceberg (table.scan().to_arrow())"),
    ".hoodie": ("a Hudi table", "Spark"),
    "_spark_metadata": ("the output of a Spark stream", "Spark"),
}
"""By what lies in a folder: what it is, and what reads it."""


def expand(paths: Any, suffixes: Sequence[str] = SCANNED) -> list[str]:
    """The files that paths, folders and patterns stand for, those of a folder in the order of their names."""
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    if not isinstance(paths, Iterable):
        raise TypeError(f"The name of a file must be text or a path, got {kind_of(paths)}.")
    found: list[str] = []
    for given in paths:
        check_path(given)
        path = os.fspath(given)
        if Path(path).is_dir():
            found += files_in(path, suffixes)
        elif not Path(path).exists() and glob.has_magic(path):
            found += matches_of(path, suffixes)
        else:
            found.append(path)
    if not found:
        raise InputError("no files were given.")
    check_once(found)
    return found


def files_in(folder: str, suffixes: Sequence[str]) -> list[str]:
    """The files of a folder, all of whose tables must be among them."""
    check_no_lake(folder, folder)
    visible = sorted(path for path in Path(folder).iterdir() if not is_hidden(path.name))
    inside = [path for path in visible if path.suffix.lower() in suffixes and not path.is_dir()]
    below = [path for path in visible if path.is_dir() and has_tables(path, (*suffixes, *OTHER_TABLES))]
    if below:
        ends = next(tables_below(below[0], (*suffixes, *OTHER_TABLES))).suffix
        pattern = printable(str(Path(folder) / "**" / f"*{ends}"))
        raise InputError(
            f"{printable(folder)}: has tables in subfolders ({names_of(below)}), which would be left out; "
            f"give the folders one by one, or a pattern such as '{pattern}' for all of them."
        )
    if not inside:
        raise InputError(f"{printable(folder)}: no files ending in one of {', '.join(suffixes)}.")
    others = [path for path in visible if path not in inside and not path.is_dir() and is_other_table(path)]
    if others:
        raise InputError(
            f"{printable(folder)}: {names_of(others)} would be left out, since only files ending in one of "
            f"{', '.join(suffixes)} are read together; give a pattern such as "
            f"'{printable(str(Path(folder) / f'*{inside[0].suffix}'))}' for the files that are meant."
        )
    check_one_format(folder, inside)
    return [str(path) for path in inside]


def matches_of(pattern: str, suffixes: Sequence[str]) -> list[str]:
    """The files that a pattern matches; of folders that it matches, their files.

    `**` stands for folders however deep, so with it, folders themselves are not matched.
    """
    deep = "**" in pattern
    matched = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207
    if not any(part.startswith("_") for part in Path(pattern).parts):
        known = set(Path(pattern).parts)
        matched = [path for path in matched if not any(map(is_hidden, set(Path(path).parts) - known))]
    for folder in {str(Path(path).parent) for path in matched if not Path(path).is_dir()}:
        check_no_lake(folder, pattern)
    files, found = [], []
    for path in map(Path, matched):
        if not path.is_dir():
            files.append(path)
            found.append(str(path))
        elif not deep and has_tables(path, (*suffixes, *OTHER_TABLES)):
            found += files_in(str(path), suffixes)
    if not found:
        raise InputError(f"{printable(pattern)}: no matching files.")
    check_one_format(pattern, files)
    return found


def is_hidden(name: str) -> bool:
    """Whether a name is one of what is no data: hidden files, and what Spark and Hadoop leave beside it."""
    return name.startswith((".", "_"))


def is_other_table(path: Path) -> bool:
    if path.suffix.lower() in OTHER_TABLES:
        return True
    try:
        with path.open("rb") as file:
            return file.read(6).startswith(TABLE_STARTS)
    except OSError:
        return False


def has_tables(folder: Path, suffixes: Sequence[str]) -> bool:
    return next(tables_below(folder, suffixes), None) is not None


def tables_below(folder: Path, suffixes: Sequence[str]) -> Iterator[Path]:
    """The tables in a folder and its subfolders, by their names; each folder once, whatever links to it."""
    seen: set[str] = set()
    for here, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(here)
        folders[:] = [] if real in seen else sorted(name for name in folders if not is_hidden(name))
        if real in seen:
            continue
        seen.add(real)
        for name in sorted(files):
            if not is_hidden(name) and Path(name).suffix.lower() in suffixes:
                yield Path(here) / name


def check_no_lake(folder: str, given: str) -> None:
    """Refuse a folder of a lake or within one: its files hold rows that were deleted or replaced since."""
    here = Path(folder).resolve()
    for place in (here, *here.parents):
        for marker, (what, reader) in LAKES.items():
            if next(place.glob(marker), None) is not None:
                is_in = "is" if place == here and folder == given else "is part of"
                raise InputError(
                    f"{printable(given)}: {is_in} {what}, whose files also hold rows that were deleted or "
                    f"replaced; read it with {reader}, and cluster that table or write it to a file first."
                )


def check_one_format(given: str, files: Sequence[Path]) -> None:
    """Refuse a table that may be there twice, in two formats."""
    kinds = {SUFFIXES.get(path.suffix.lower(), path.suffix.lower()): path.suffix for path in files}
    if len(kinds) > 1:
        raise InputError(
            f"{printable(given)}: files in different formats ({', '.join(sorted(kinds.values()))}), so that "
            "rows may be there twice; give a pattern that matches one of them."
        )


def check_once(paths: Sequence[str]) -> None:
    """Refuse a file that is given twice, under whatever names."""
    seen: dict[Any, str] = {}
    for path in paths:
        try:
            about = Path(path).stat()
        except OSError:  # which reading it will say
            continue
        key = (about.st_dev, about.st_ino)
        if key in seen:
            first = "" if seen[key] == path else f", here and as {printable(seen[key])}"
            raise InputError(f"{printable(path)}: given twice{first}; its rows would count twice.")
        seen[key] = path


def names_of(paths: Sequence[Path]) -> str:
    return some([f"'{printable(path.name)}'" for path in paths])
