"""A scratch file: space for a table on disk, removed when its process ends.

The file is locked for as long as its process lives, and the kernel unlocks it however that ends.
So whoever finds one that is not locked may remove it: a run killed half-way leaves its scratch
file to the next run in the same directory.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from kpod._common.errors import InputError, printable
from kpod._common.sentences.formatting import size_text
from kpod._common.system import HAS_LOCKS, allocate, lock, memory_errors
from kpod._common.typing import AnyFloats
from kpod._engine.windows import SCRATCH

PREFIX, SUFFIX = "kpod-", SCRATCH
FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
IN_MEMORY = ("tmpfs", "ramfs")
AT_A_TIME = 1 << 18
"""Bytes of a write. For larger ones, Linux takes larger stretches of memory, which a virtual machine may have
to get from its host anew: that took ten times as long."""


def default_directory() -> str:
    """The directory for temporary files; /var/tmp where that one is kept in memory."""
    usual = tempfile.gettempdir()
    return "/var/tmp" if in_memory(usual) and os.access("/var/tmp", os.W_OK) else usual


def in_memory(directory: str) -> bool:
    """Whether a directory is on a file system in memory (tmpfs)."""
    found, kind = "", ""
    with suppress(OSError):
        for line in Path("/proc/mounts").read_text("utf-8", "replace").splitlines():
            _, mount, this = line.split()[:3]
            inside = os.path.realpath(directory) + "/"
            if inside.startswith(mount.rstrip("/") + "/") and len(mount) >= len(found):
                found, kind = mount, this
    return kind in IN_MEMORY


class Scratch:
    """A file of a given size, reserved on the disk and removed when its process ends."""

    def __init__(self, directory: str | os.PathLike[str] | None, n_bytes: int) -> None:
        if not HAS_LOCKS:
            raise InputError("scan needs file locks, which this operating system does not support.")
        self.directory = os.fspath(directory) if directory is not None else default_directory()
        if not Path(self.directory).is_dir():
            raise InputError(f"{printable(self.directory)}: the scratch directory does not exist.")
        sweep(self.directory)
        free = shutil.disk_usage(self.directory).free
        if n_bytes > free:
            raise InputError(
                f"{printable(self.directory)}: the scratch file needs {size_text(n_bytes)}, but only "
                f"{size_text(free)} is free; free some space, or choose another directory."
            )
        self.descriptor, self.path = locked_file(self.directory)
        try:
            self.reserve(n_bytes)
        except BaseException:
            self.remove()
            raise

    def reserve(self, n_bytes: int) -> None:
        """Give the file this length, and reserve the space for it on the disk."""
        with naming(self.directory):
            allocate(self.descriptor, max(1, n_bytes))

    def write(self, data: Any, offset: int) -> int:
        """Write bytes; returns where they end."""
        view = memoryview(data).cast("B")
        with naming(self.directory):
            while view:
                n = os.pwrite(self.descriptor, view[:AT_A_TIME], offset)
                view, offset = view[n:], offset + n
        return offset

    def read(self, dtype: Any, n: int, start: int) -> AnyFloats:
        """So many numbers, from the one of that number on: read, not mapped."""
        size = np.dtype(dtype).itemsize
        return np.frombuffer(os.pread(self.descriptor, n * size, start * size), dtype)

    def truncate(self, n_bytes: int) -> None:
        os.ftruncate(self.descriptor, n_bytes)

    def array(self, dtype: Any, shape: tuple[int, ...], *, offset: int = 0) -> AnyFloats:
        """A part of the file as an array."""
        with memory_errors():
            return np.memmap(self.path, dtype, "r", offset, shape)

    def remove(self) -> None:
        with suppress(OSError):
            os.unlink(self.path)  # noqa: PTH108
        with suppress(OSError):
            os.close(self.descriptor)


@contextmanager
def naming(directory: str) -> Iterator[None]:
    """Says which directory is full where writing to a file in it fails for that."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise InputError(
            f"{printable(directory)}: the scratch file does not fit: {error.strerror}; free some space, or "
            "choose another directory."
        ) from error


def locked_file(directory: str) -> tuple[int, str]:
    """A new file, locked: descriptor and path."""
    while True:
        try:
            descriptor, path = tempfile.mkstemp(SUFFIX, PREFIX, directory)
        except OSError as error:
            raise InputError(
                f"{printable(directory)}: cannot write scratch files there: {error.strerror}."
            ) from error
        lock(descriptor, wait=True)
        if same_file(descriptor, path):
            return descriptor, path
        os.close(descriptor)  # swept away between making and locking it


def same_file(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))  # noqa: PTH116
    except FileNotFoundError:
        return False


def sweep(directory: str) -> None:
    """Remove the scratch files of processes that are no more."""
    for path in Path(directory).glob(f"{PREFIX}*{SUFFIX}"):
        try:
            descriptor = os.open(path, os.O_RDWR)
        except OSError:  # gone already, or somebody else's
            continue
        try:
            lock(descriptor)
            path.unlink(missing_ok=True)
        except OSError:  # in use
            pass
        finally:
            os.close(descriptor)
