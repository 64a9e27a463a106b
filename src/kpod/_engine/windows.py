"""The position of a mapped array in its file.

A block of a mapped array travels to another process, or to another machine with the same disk,
as such a window, and is opened there again. Pages of a file that were read are let go of after use:
all passes over a table would else add up to the whole of it in memory.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kpod._common.typing import AnyFloats

SCRATCH = ".scratch"  # how the names of scratch files end
STRETCH = 1 << 23  # bytes of a file that are looked at before they are let go of
LARGE_PAGE = 1 << 21
FAR_APART = 1 << 15  # bytes of a file for each row of it from which on rows are read, not mapped
CAN_RELEASE = hasattr(mmap, "MADV_DONTNEED")


class Window(NamedTuple):
    """A contiguous array in a file: small, picklable, and readable wherever the file is.

    `size` and `changed` are those of the file when the window was made (bytes, and nanoseconds
    since 1970): a file that has been replaced is refused, not misread. `inode` identifies the file on
    this machine has that name.
    """

    path: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    size: int
    changed: int
    inode: int

    @classmethod
    def of(cls, array: Any, *, private: bool = False) -> Window | None:
        """Of an array that is a contiguous part of a mapped file; None of any other.

        What was written to a private map is not in the file: the window of one is only good for watching it.
        """
        root = array
        while isinstance(root, np.ndarray) and isinstance(root.base, np.ndarray):
            root = root.base
        if not isinstance(root, np.memmap) or root.filename is None:
            return None
        if root.mode == "c" and not private:
            return None
        if not array.flags.c_contiguous or not array.size:
            return None
        path = os.fspath(root.filename)
        try:
            about = os.stat(path)  # noqa: PTH116
        except OSError:  # gone, though its pages are still here
            return None
        offset = root.offset + array.ctypes.data - root.ctypes.data
        stamp = about.st_size, about.st_mtime_ns, about.st_ino
        return cls(path, array.dtype.str, array.shape, offset, *stamp)

    def is_unchanged(self) -> bool:
        """Whether the file is unchanged; one that was deleted or replaced is still in the map."""
        try:
            about = os.stat(self.path)  # noqa: PTH116
        except OSError:
            return True
        stamp = about.st_size, about.st_mtime_ns
        return about.st_ino != self.inode or stamp == (self.size, self.changed)

    def rows(self, which: Any) -> AnyFloats:
        """Some rows, read from the file one by one."""
        width = int(np.prod(self.shape[1:], dtype=np.int64)) * np.dtype(self.dtype).itemsize
        with Path(self.path).open("rb") as file:
            starts = (self.offset + np.asarray(which) * width).tolist()
            data = bytearray().join([os.pread(file.fileno(), width, start) for start in starts])
        if len(data) != width * len(which):
            raise ValueError(f"{self.path}: changed since it was opened; start again.")
        return np.frombuffer(data, self.dtype).reshape(len(which), *self.shape[1:])

    def open(self) -> AnyFloats:
        """The array, mapped for reading."""
        try:
            about = os.stat(self.path)  # noqa: PTH116
            if (about.st_size, about.st_mtime_ns) != (self.size, self.changed):
                raise ValueError(f"{self.path}: changed since it was opened; start again.")
            return np.memmap(self.path, self.dtype, "r", self.offset, self.shape)
        except OSError as error:
            raise ValueError(
                f"{self.path}: part of a mapped table can no longer be read: {error.strerror}."
            ) from error


class Pages(NamedTuple):
    """The part of a mapped file in which an array lies."""

    file: mmap.mmap
    start: int
    length: int

    @classmethod
    def of(cls, array: Any) -> Pages | None:
        """Of an array that is part of a mapped file; None of any other, and of one that holds changes."""
        root: Any = array
        while isinstance(root, np.ndarray) and isinstance(root.base, np.ndarray):
            root = root.base
        if not isinstance(root, np.memmap) or root.mode == "c" or not array.size or not CAN_RELEASE:
            return None
        low, high = np.lib.array_utils.byte_bounds(array)
        file: mmap.mmap = vars(root)["_mmap"]
        # Systems may map large pages around what was touched, and those of neighbours with them.
        before = root.offset // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
        first = root.ctypes.data - root.offset % mmap.ALLOCATIONGRANULARITY - before
        start = max(before, (low - first) // LARGE_PAGE * LARGE_PAGE) - before
        stop = min(len(file), -(-(high - first) // LARGE_PAGE) * LARGE_PAGE - before)
        return cls(file, start, stop - start)

    def release(self) -> None:
        """Let go of them: the system still has them, but this process no longer counts as holding them."""
        self.file.madvise(mmap.MADV_DONTNEED, self.start, self.length)


def pages_of(*arrays: Any) -> tuple[Pages, ...]:
    """The pages of those arrays that are parts of mapped files."""
    return tuple(pages for array in arrays if (pages := Pages.of(array)) is not None)


def release(array: Any) -> None:
    """Let go of the pages of an array in a mapped file, which are mapped again when it is next read."""
    for pages in pages_of(array):
        pages.release()


def gathered(array: Any, rows: Any) -> AnyFloats:
    """Some rows of an array as a new one; of a mapped file, only stretches that hold any are touched.

    One stretch after the other, and each is let go of: the system maps what lies around a row as
    well, and rows from all over a file would bring in all of it. Of a scratch file, a few rows are read.
    """
    if Pages.of(array) is None:
        return np.ascontiguousarray(array[rows])
    window = Window.of(array) if len(rows) * FAR_APART < array.nbytes else None
    if window is not None and window.path.endswith(SCRATCH):  # any other may have been replaced since
        return window.rows(rows)
    out = np.empty((len(rows), *array.shape[1:]), array.dtype)
    step = max(1, STRETCH // max(1, abs(array.strides[0])))
    order = np.argsort(rows, kind="stable")
    stretches = np.flatnonzero(np.diff(rows[order] // step, prepend=-1))
    for here in np.split(order, stretches[1:]):
        out[here] = array[rows[here]]
        first = int(rows[here[0]]) // step * step
        release(array[first : first + step])
    return out


def opened(array: Any) -> Any:
    """An array, or what a window shows."""
    return array.open() if isinstance(array, Window) else array


def packed(array: Any) -> Any:
    """The window of a mapped array, else the array: what to pickle of it."""
    return Window.of(array) or array


def watched(array: Any) -> Window | None:
    """The window of a mapped array that others could write to, but do not: it is one of our scratch files."""
    window = Window.of(array, private=True)
    return None if window is None or window.path.endswith(SCRATCH) else window


def scratch_of(array: Any) -> str | None:
    """Where to put what belongs to a mapped array: beside its scratch file, or with temporary files."""
    window = Window.of(array)
    if window is None:
        return None
    return str(Path(window.path).parent) if window.path.endswith(SCRATCH) else tempfile.gettempdir()
