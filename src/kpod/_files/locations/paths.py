"""The files that paths, folders and patterns match.

No row may get lost or count twice on the way from a name to files: a folder is taken only if all
tables in it are read, its subfolders if they are partitions, and a lake as its log says.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kpod._columns.tables import SUFFIXES
from kpod._common.errors import InputError, printable
from kpod._common.sentences.formatting import kind_of, some
from kpod._files.atomic import check_path, is_url
from kpod._files.locations.hive import is_key, with_keys
from kpod._files.locations.lakes import check_no_lake, delta_parts, is_delta
from kpod._files.locations.part import Part
from kpod._files.locations.remote import check_formats, local_path, remote_parts, split_pattern, tables_in

SCANNED = tuple(suffix for suffix, kind in SUFFIXES.items() if kind != "excel")
OTHER_TABLES = (
    ".gz", ".bz2", ".xz", ".zst", ".zip", ".xlsx", ".xlsm", ".xls", ".ods", ".sav", ".zsav", ".dta",
    ".sas7bdat", ".xpt", ".jsonl", ".ndjson", ".orc", ".avro", ".npy", ".npz",
)  # fmt: skip
"""Names of files that hold rows end in these, too, but a folder of such files is not read."""
TABLE_STARTS = (b"PAR1", b"ARROW1")
"""The first bytes of tables whatever their name: Hive writes Parquet files called 000000_0."""


def expand(paths: Any, suffixes: Sequence[str] = SCANNED, filesystem: Any = None) -> list[Part]:
    """The files that paths, folders and patterns match, those of a folder in the order of their names."""
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    if not isinstance(paths, Iterable):
        raise TypeError(f"The name of a file must be text or a path, got {kind_of(paths)}.")
    found: list[Part] = []
    for given in paths:
        check_path(given)
        path = local_path(os.fspath(given))
        found += (
            remote_parts(path, suffixes, OTHER_TABLES, filesystem)
            if filesystem is not None or is_url(path)
            else local_parts(path, suffixes)
        )
    if not found:
        raise InputError("no files were given.")
    check_once(found)
    return found


def local_parts(path: str, suffixes: Sequence[str]) -> list[Part]:
    if Path(path).is_dir():
        if is_delta(path):
            return delta_parts(path, printable(path))
        return partitioned(files_in(path, suffixes), path)
    if not Path(path).exists() and glob.has_magic(path):
        return partitioned(matches_of(path, suffixes), str(Path(split_pattern(path)[0])))
    return [Part(path)]


def partitioned(files: Sequence[str], root: str) -> list[Part]:
    """Files with the partition columns from the folders below the root."""
    return with_keys([Part(file) for file in files], [os.path.relpath(file, root) for file in files])


def files_in(folder: str, suffixes: Sequence[str]) -> list[str]:
    """The files of a folder, all of whose tables must be among them."""
    check_no_lake(folder, folder)
    visible = sorted(path for path in Path(folder).iterdir() if not is_hidden(path.name))
    inside = [path for path in visible if path.suffix.lower() in suffixes and not path.is_dir()]
    below = [path for path in visible if path.is_dir() and has_tables(path, (*suffixes, *OTHER_TABLES))]
    if below and not inside and all(is_key(path.name) for path in below):
        return partitions_in(folder, suffixes)
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
    check_formats(printable(folder), [path.name for path in inside])
    return [str(path) for path in inside]


def partitions_in(folder: str, suffixes: Sequence[str]) -> list[str]:
    """The files in partition folders such as year=2024."""
    tables = [
        path.relative_to(folder).as_posix() for path in tables_below(Path(folder), (*suffixes, *OTHER_TABLES))
    ]
    chosen = tables_in(printable(folder), tables, suffixes, OTHER_TABLES)
    check_formats(printable(folder), chosen)
    return [str(Path(folder) / path) for path in chosen]


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
    check_formats(printable(pattern), [path.name for path in files])
    return found


def is_hidden(name: str) -> bool:
    """Whether a name is that of a file without data: a hidden one, or one that Spark and Hadoop add."""
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


def check_once(parts: Sequence[Part]) -> None:
    """Refuse a file that is given twice, under whatever names."""
    seen: dict[Any, str] = {}
    for part in parts:
        key: Any = part.path
        if part.filesystem is None:
            try:
                about = Path(part.path).stat()
            except OSError:  # which reading it will say
                continue
            key = (about.st_dev, about.st_ino)
        if key in seen:
            first = "" if seen[key] == part.name else f", here and as {seen[key]}"
            raise InputError(f"{part.name}: given twice{first}; its rows would count twice.")
        seen[key] = part.name


def names_of(paths: Sequence[Path]) -> str:
    return some([f"'{printable(path.name)}'" for path in paths])
