"""Tables that are not on this machine: from a URL to a file system and the files in it.

pyarrow's file systems come first, then those of fsspec; each finds credentials in its own way.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from kpod._columns.tables import SUFFIXES
from kpod._common.errors import InputError, printable
from kpod._common.sentences.formatting import kind_of, some
from kpod._files.atomic import is_url
from kpod._files.locations import hive, lakes
from kpod._files.locations.part import Part, naming_place, without_secrets

PATIENCE = 60
MAGIC = re.compile(r"[*\[]")  # not "?", with which the options of a URL begin


def local_path(path: str) -> str:
    """The path of a file:// URL; any other name as it is."""
    return unquote(urlsplit(path).path) if path.lower().startswith("file://") else path


def filesystem_of(url: str, filesystem: Any = None) -> tuple[Any, str]:
    """The file system that a URL is in, and the path there."""
    from pyarrow import ArrowInvalid, fs

    name = printable(without_secrets(url))
    if filesystem is not None:
        path = url.partition("://")[2].partition("?")[0] if is_url(url) else url
        return wrapped(filesystem), path.rstrip("/")
    with naming_place(name):
        try:
            found, path = fs.FileSystem.from_uri(with_patience(url))
            return found, path.rstrip("/")
        except ArrowInvalid as error:
            if "nrecognized filesystem" not in str(error):
                raise
    try:
        import fsspec
    except ModuleNotFoundError:
        raise InputError(
            f"{name}: pyarrow has no file system for {url.partition('://')[0]}://; install fsspec and its "
            "package for that one, or pass a file system."
        ) from None
    with naming_place(name):
        found, path = fsspec.core.url_to_fs(url)
        return wrapped(found), path.rstrip("/")


def with_patience(url: str) -> str:
    """A URL of Google's storage that gives up after a minute: without credentials, pyarrow tries for 15."""
    if not url.lower().startswith(("gs://", "gcs://")) or "retry_limit_seconds=" in url:
        return url
    return f"{url}{'&' if '?' in url else '?'}retry_limit_seconds={PATIENCE}"


def read_url(url: str) -> bytes:
    """All of a file that is not on this machine."""
    files, path = filesystem_of(url)
    with naming_place(printable(without_secrets(url))), files.open_input_stream(path) as file:
        return bytes(file.read())


def wrapped(filesystem: Any) -> Any:
    """A file system of pyarrow or fsspec as one of pyarrow."""
    from pyarrow import fs

    if isinstance(filesystem, fs.FileSystem):
        return filesystem
    if hasattr(filesystem, "url_to_fs") or hasattr(filesystem, "_strip_protocol"):
        return fs.PyFileSystem(fs.FSSpecHandler(filesystem))
    raise TypeError(f"filesystem must be one of pyarrow or fsspec, got {kind_of(filesystem)}.")


def remote_parts(url: str, suffixes: Sequence[str], others: Sequence[str], filesystem: Any) -> list[Part]:
    """The files of a URL: one, those of a folder, or those that match a pattern."""
    from pyarrow import fs

    bare, mark, options = url.partition("?")
    root, pattern = split_pattern(bare)
    files, base = filesystem_of(root + mark + options, filesystem)
    name = printable(without_secrets(url))
    with naming_place(name):
        info = files.get_file_info(base)
        if info.is_file:
            return [Part(base, files, url)]
        if info.type == fs.FileType.NotFound:
            raise InputError(f"{name}: does not exist; check the name.")
        listed = files.get_file_info(fs.FileSelector(base, recursive=True))
    found = {PurePosixPath(one.path).relative_to(base).as_posix(): one.path for one in listed if one.is_file}
    if any(path.startswith("_delta_log/") for path in found) and not pattern:
        if filesystem is None:
            return lakes.delta_parts(url, name)
        raise InputError(lakes.refusal(name, "_delta_log", "is"))
    check_no_lake(name, found, "is part of" if pattern else "is")
    visible = sorted(path for path in found if not any(part[0] in "._" for part in path.split("/")))
    if pattern:
        chosen = [path for path in visible if matches(path, pattern)]
        if not chosen:
            raise InputError(f"{name}: no matching files.")
    else:
        chosen = tables_in(name, visible, suffixes, others)
    check_formats(name, chosen)
    parts = [Part(found[path], files, f"{root.rstrip('/')}/{path}") for path in chosen]
    return hive.with_keys(parts, chosen)


def split_pattern(url: str) -> tuple[str, str]:
    """The folder before the first wildcard, and the pattern from there on."""
    found = MAGIC.search(url)
    if found is None:
        return url, ""
    at = url.rfind("/", 0, found.start())
    return url[: max(at, 0)], url[at + 1 :]


def matches(path: str, pattern: str) -> bool:
    """Whether a path matches a pattern; ** matches folders of any depth, including none."""
    here, _, rest = pattern.partition("/")
    first, _, below = path.partition("/")
    if here == "**":
        return matches(path, rest) or (bool(below) and matches(below, pattern))
    if not rest:
        return not below and fnmatch.fnmatchcase(first, here)
    return bool(below) and fnmatch.fnmatchcase(first, here) and matches(below, rest)


def tables_in(name: str, files: Sequence[str], suffixes: Sequence[str], others: Sequence[str]) -> list[str]:
    """The tables of a folder: those in it, or those in its partition folders."""
    tables = [path for path in files if PurePosixPath(path).suffix.lower() in (*suffixes, *others)]
    odd = [path for path in tables if PurePosixPath(path).suffix.lower() not in suffixes]
    if not tables:
        raise InputError(f"{name}: no files ending in one of {', '.join(suffixes)}.")
    if odd:
        raise InputError(
            f"{name}: {some([repr(printable(path)) for path in odd])} would be left out, since only files "
            f"ending in one of {', '.join(suffixes)} are read together; give a pattern for those meant."
        )
    folders = {PurePosixPath(path).parent.parts for path in tables}
    if len(folders) > 1 or folders != {()}:
        check_partitions(name, tables)
    return tables


def check_partitions(name: str, tables: Sequence[str]) -> None:
    """Refuse subfolders that are no partitions, and parts that are partitioned otherwise than the first."""
    keys = [tuple(hive.keys_in(path)) for path in tables]
    plain = next((p for p in tables if not all(map(hive.is_key, PurePosixPath(p).parts[:-1]))), None)
    if plain is not None:
        raise InputError(
            f"{name}: has tables in subfolders ('{printable(plain)}') that are not partitions such as "
            "year=2024; give the folders one by one, or a pattern such as '**/*.parquet' for all of them."
        )
    odd = next((path for path, one in zip(tables, keys, strict=True) if one != keys[0]), None)
    if odd is not None:
        raise InputError(
            f"{name}: '{printable(odd)}' is partitioned otherwise than '{printable(tables[0])}'; give a "
            "pattern for the files that are one table."
        )


def check_formats(given: str, paths: Sequence[str]) -> None:
    """Refuse a table that may be there twice, in two formats."""
    ends = [PurePosixPath(path).suffix.lower() for path in paths]
    kinds = {SUFFIXES.get(end, end): end for end in ends}
    if len(kinds) > 1:
        raise InputError(
            f"{given}: files in different formats ({', '.join(sorted(kinds.values()))}), so that rows may be "
            "there twice; give a pattern that matches one of them."
        )


def check_no_lake(name: str, files: Iterable[str], is_in: str) -> None:
    """Refuse a lake, by the files below its folder."""
    for path in files:
        for marker in lakes.LAKES:
            if fnmatch.fnmatchcase(path, marker) or path.startswith(f"{marker}/"):
                raise InputError(lakes.refusal(name, marker, is_in))
