"""What differs between operating systems: locks on open files, room on the disk and memory of one's own."""

from __future__ import annotations

import mmap
import os

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
    """Make a file so long; where the system can say so beforehand, OSError if the disk has no room for it."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, n_bytes)
    else:  # macOS and Windows
        os.ftruncate(descriptor, n_bytes)


def own_memory(n_bytes: int) -> mmap.mmap:
    """Zeros that go back to the system as soon as they are no longer used."""
    if hasattr(mmap, "MAP_PRIVATE"):
        return mmap.mmap(-1, n_bytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return mmap.mmap(-1, n_bytes)  # Windows
