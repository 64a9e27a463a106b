"""Where an array lies in a file.

A block of a mapped array travels to another process, or to another machine with the same disk,
as such a window, and is opened there again.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kpod._typing import AnyFloats

SCRATCH = ".scratch"  # how the names of scratch files end


class Window(NamedTuple):
    """A contiguous array in a file: small, picklable, and readable wherever the file is.

    `size` and `changed` are those of the file when the window was made (bytes, and nanoseconds
    since 1970): a file that is another one by now is refused, not misread. `inode` says which file on
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
        """Whether nobody wrote to the file; one that was deleted or replaced lives on in the map."""
        try:
            about = os.stat(self.path)  # noqa: PTH116
        except OSError:
            return True
        stamp = about.st_size, about.st_mtime_ns
        return about.st_ino != self.inode or stamp == (self.size, self.changed)

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


def opened(array: Any) -> Any:
    """An array, or what a window shows."""
    return array.open() if isinstance(array, Window) else array


def packed(array: Any) -> Any:
    """The window of a mapped array, else the array: what to pickle of it."""
    return Window.of(array) or array


def watched(array: Any) -> Window | None:
    """The window of a mapped array that others may write to, which nobody does to our scratch files."""
    window = Window.of(array, private=True)
    return None if window is None or window.path.endswith(SCRATCH) else window


def scratch_of(array: Any) -> str | None:
    """Where to put what belongs to a mapped array: beside its scratch file, or with temporary files."""
    window = Window.of(array)
    if window is None:
        return None
    return str(Path(window.path).parent) if window.path.endswith(SCRATCH) else tempfile.gettempdir()
