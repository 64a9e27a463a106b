"""Atomic writing: files appear whole or not at all, and errors are one line."""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from kpod._common import system
from kpod._common.errors import InputError, printable

STREAMS = {f"/dev/{name}": f"/dev/fd/{number}" for number, name in enumerate(("stdin", "stdout", "stderr"))}


def is_url(path: str | os.PathLike[str]) -> bool:
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", os.fspath(path)) is not None


def descriptor_of(path: str | os.PathLike[str]) -> int | None:
    """The number of an open stream where the path is a name for one: /dev/stdout, or >(a command)."""
    text = os.fspath(path)
    found = re.fullmatch(r"/(?:dev|proc/self)/fd/(\d+)", STREAMS.get(text, text))
    return int(found[1]) if found else None


def check_path(path: Any) -> None:
    """Refuse what cannot be the name of a file."""
    if not isinstance(path, str | os.PathLike):
        from kpod._common.sentences.formatting import (
            kind_of,  # which loads NumPy, and `kpod --help` needs none
        )

        raise TypeError(f"The name of a file must be text or a path, got {kind_of(path)}.")
    if "\0" in os.fspath(path):
        raise InputError(f"{printable(path)}: a name cannot hold a null character.")


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Errors of the system, such as a full disk, with the name of the file."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = os.fspath(path)
        raise


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file that takes its name only once it is complete and on the disk.

    A link is followed, an existing file keeps its permissions, and what is not a regular
    file (a pipe, /dev/null) is written to directly.
    """
    with naming(path), temporary_beside(path) as file:
        yield file


@contextmanager
def temporary_beside(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """That, under another name until it is complete."""
    descriptor = descriptor_of(path)
    if descriptor is not None:
        if sys.stdout:
            sys.stdout.flush()
        with os.fdopen(os.dup(descriptor), "wb") as file:
            yield file
        return
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        with target.open("wb") as file:
            yield file
        return
    # The name is cut because a directory takes no longer ones, of 255 bytes as a rule.
    with system.temporary_beside(target, f".{target.name[:40]}.") as file:
        yield file
        give_permissions(Path(file.name), target)


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Whether an output is to be a folder: its name ends in a slash, or it is one already."""
    text = os.fspath(path)
    return text.endswith(("/", os.sep)) or (text != "-" and Path(text).is_dir())


@contextmanager
def written_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A folder that takes its name only once it is complete."""
    target = Path(os.path.realpath(path))
    part = Path(tempfile.mkdtemp(prefix=f".{target.name[:40]}.", dir=target.parent))
    try:
        with naming(path):
            yield part
            mask = os.umask(0)
            os.umask(mask)
            part.chmod(0o777 & ~mask)
            part.replace(target)  # an empty folder of that name is replaced
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def check_folder(path: str | os.PathLike[str]) -> None:
    """Refuse, before the work, a folder that holds something, or cannot be made."""
    name, target = printable(path), Path(os.path.realpath(path))
    if target.exists() and not target.is_dir():
        raise InputError(f"{name}: is a file; give the name of a folder, or one without a slash at its end.")
    if target.is_dir() and any(target.iterdir()):
        raise InputError(f"{name}: is not empty; give the name of a new folder.")
    if not target.parent.is_dir():
        raise InputError(f"{name}: there is no directory {printable(target.parent)}; create it first.")
    if not os.access(target.parent, os.W_OK):
        raise InputError(f"{name}: directory {printable(target.parent)} is not writable.")


def give_permissions(part: Path, target: Path) -> None:
    """Those of the file it replaces, else those any new file gets."""
    if target.exists():
        shutil.copymode(target, part)
    else:
        mask = os.umask(0)
        os.umask(mask)
        part.chmod(0o666 & ~mask)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse, before hours of work, a path that cannot be written."""
    name = printable(path)
    descriptor = descriptor_of(path)
    try:
        if descriptor is not None:
            import fcntl

            if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
                raise InputError(f"{name}: is open for reading only.")
            return
        mode = Path(path).stat().st_mode
    except FileNotFoundError:
        pass
    except OSError as error:  # a loop of links, a name too long, a stream that is closed
        raise InputError(f"{name}: cannot be written: {error.strerror}.") from error
    else:
        if stat.S_ISDIR(mode):
            raise InputError(f"{name}: is a directory; give the name of a file to write.")
        if not mode & 0o222 or not os.access(path, os.W_OK):
            raise InputError(f"{name}: is write-protected; give another name, or remove it first.")
        if not stat.S_ISREG(mode):
            return
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise InputError(f"{name}: there is no directory {printable(folder)}; create it first.")
    if not os.access(folder, os.W_OK):
        raise InputError(f"{name}: directory {printable(folder)} is not writable.")
