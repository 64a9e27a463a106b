"""A part of a table: one file, on this machine or in an object store, and its partition columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from kpod._common.errors import InputError, printable

DENIED = (
    "access_denied",
    "accessdenied",
    "forbidden",
    "credential",
    "signature",
    "invalidaccesskey",
    "access token",
    "403",
)
NOT_LOADED = ("libjvm", "libhdfs", "unable to load")
ABSENT = ("not found", "does not exist", "no such file", "nosuchbucket", "nosuchkey", "404")


class EmptyPartError(InputError):
    """A part holds no rows."""


@dataclass(frozen=True)
class Part:
    """One file of a table.

    Parameters
    ----------
    path : where it is in its file system
    filesystem : pyarrow.fs.FileSystem; None for files of this machine
    url : what the user calls it, if that is not the path
    keys : the values of the partition columns, which all its rows have
    schema : that of the table, where a lake or a dataset declares one; what the file lacks is null then
    row_groups : of a Parquet file, those that belong to the table; None for all of them
    """

    path: str
    filesystem: Any = None
    url: str = ""
    keys: Mapping[str, Any] = field(default_factory=dict)
    schema: Any = None
    row_groups: tuple[int, ...] | None = None

    @property
    def given(self) -> str:
        return self.url or self.path

    @property
    def name(self) -> str:
        return printable(without_secrets(self.given))

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.path).suffix.lower()

    def stamp(self) -> tuple[int, int, int]:
        """The identity of a file, its size and modification time, by which a change is detected."""
        if self.filesystem is None:
            try:
                about = Path(self.path).stat()
            except OSError as error:
                raise InputError(f"{self.name}: cannot be read: {error.strerror}.") from error
            return about.st_ino, about.st_size, about.st_mtime_ns
        with naming_place(self.name):
            info = self.filesystem.get_file_info(self.path)
        if not info.is_file:
            raise InputError(f"{self.name}: does not exist.")
        return 0, int(info.size or 0), int(info.mtime_ns or 0)

    def is_irregular(self) -> bool:
        """Whether it is there but no regular file: a pipe or a device."""
        local = Path(self.path) if self.filesystem is None else None
        return local is not None and local.exists() and not local.is_file()

    def open(self) -> Any:
        """The file, open for reading bytes from anywhere in it."""
        if self.filesystem is None:
            return Path(self.path).open("rb")
        with naming_place(self.name):
            return self.filesystem.open_input_file(self.path)


def without_secrets(url: str) -> str:
    """A URL without the keys and options that it may carry."""
    scheme, mark, rest = url.partition("://")
    if not mark:
        return url
    rest = rest.partition("?")[0]
    place, slash, path = rest.partition("/")
    return f"{scheme}://{place.rpartition('@')[2]}{slash}{path}"


@contextmanager
def naming_place(name: str) -> Iterator[None]:
    """The errors of a file system as one line with what to do."""
    try:
        yield
    except (InputError, ModuleNotFoundError, MemoryError):
        raise
    except Exception as error:
        raise InputError(f"{name}: {said_by_place(error)}") from error


def said_by_place(error: Exception) -> str:
    text = " ".join(str(error).split())
    low = f"{type(error).__name__} {text}".lower()
    if isinstance(error, PermissionError) or any(word in low for word in DENIED):
        return (
            "access denied; give credentials as the library for this place takes them (for S3 "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile), or pass a file system that has them "
            f"({printable(text)[:200]})."
        )
    loaded = not any(word in low for word in NOT_LOADED)
    if isinstance(error, FileNotFoundError) or (loaded and any(word in low for word in ABSENT)):
        return "does not exist; check the name."
    return f"cannot be read: {printable(text)[:300] or type(error).__name__}."
