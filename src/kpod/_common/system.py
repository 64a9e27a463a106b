"""Services of the operating system: locks, space on the disk, private memory, complete files."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows
    HAS_LOCKS = False
else:
    HAS_LOCKS = True


def lock(descriptor: int, *, wait: bool = False) -> None:
    """Lock a file or directory for as long as it is open; OSError where another process has it."""
    fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def allocate(descriptor: int, n_bytes: int) -> None:
    """Give a file this length; OSError if the system reports that the disk has no space for it."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, n_bytes)
    else:  # macOS and Windows
        os.ftruncate(descriptor, n_bytes)


def own_memory(n_bytes: int) -> mmap.mmap:
    """Zeros that go back to the system as soon as they are no longer used."""
    with memory_errors():
        if hasattr(mmap, "MAP_PRIVATE"):
            return mmap.mmap(-1, n_bytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        return mmap.mmap(-1, n_bytes)  # Windows


# As malloc.h of glibc has them; and the bytes that are kept, those of a few columns of a large table.
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
KEPT_BYTES = (1 << 28, 1 << 25)


def keep_freed_memory() -> None:
    """Use freed memory of this process again, up to 256 MB in one piece, instead of giving it back at once.

    The system hands out memory page by page and clears each: up to a fifth of the processor time of
    `kpod fit` on a large file. Older versions of glibc take no more than 32 MB; other libraries do as
    they please.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        kept = next((size for size in KEPT_BYTES if mallopt(MMAP_THRESHOLD, size)), None)
        if kept is not None:
            mallopt(TRIM_THRESHOLD, kept)


@contextmanager
def memory_errors() -> Iterator[None]:
    """Turn the OSError of a mapping that runs out of memory or addresses into a MemoryError."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOMEM:
            raise
        raise MemoryError(f"Not enough memory: {error.strerror}.") from error


@contextmanager
def temporary_beside(target: Path, prefix: str) -> Iterator[IO[bytes]]:
    """A binary file with a new name beside the target, which it replaces once it is whole and on the disk."""
    with tempfile.NamedTemporaryFile(
        "wb", prefix=prefix, suffix=".part", dir=target.parent, delete=False
    ) as file:
        part = Path(file.name)
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            file.close()
            part.replace(target)
        except BaseException:
            with suppress(OSError):
                file.close()
            with suppress(OSError):
                part.unlink()
            raise
