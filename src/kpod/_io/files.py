"""Files appear whole or not at all, and what is wrong with one is said in one line."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


class InputError(ValueError):
    """Something the user gave cannot be used: one line that says what, where and what to do."""


def printable(text: object) -> str:
    """Text of the user's, with line breaks and control characters made visible."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(text))


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file that takes its name only once it is complete and on the disk.

    A link is followed, an existing file keeps its permissions, and what is not a regular
    file (a pipe, /dev/null) is written to directly.
    """
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        with target.open("wb") as file:
            yield file
        return
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        give_permissions(part, target)
        part.replace(target)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise


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
    target = Path(path).resolve()
    if target.is_dir():
        raise InputError(f"{printable(path)}: is a directory; give the name of a file to write.")
    if not target.parent.is_dir():
        raise InputError(
            f"{printable(path)}: there is no directory {printable(target.parent)}; make it first."
        )
    if not os.access(target.parent, os.W_OK):
        raise InputError(f"{printable(path)}: directory {printable(target.parent)} is not writable.")
