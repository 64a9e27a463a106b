"""Whether a table fits into memory, from the file's metadata, before any of it is unpacked.

A few kilobytes can unpack to more than any machine has. What would not fit is refused, or read in
pieces where its kind allows that.
"""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from kpod._common.errors import InputError, printable
from kpod._common.sentences.formatting import size_text

GZIP, ZSTD, ZIP = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04"
PACKED = {GZIP: "gzip", ZSTD: "zstd", b"\xfd7zXZ\0": "xz", b"BZh": "bzip2"}
BZIP2_BLOCK = b"1AY&SY"
IN_MEMORY = 6
"""Times its size that a table takes while it is read and clustered in memory."""
LEAST = 1 << 26  # bytes that are always unpacked
PIECE = 1 << 22


def free_memory() -> int | None:
    """Bytes that are free, for this container if it is in one; None where that is not known."""
    found = []
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        found.append(1024 * int(next(line for line in lines if line.startswith("MemAvailable")).split()[1]))
    with suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        most, used = (int((group / name).read_text("ascii")) for name in ("memory.max", "memory.current"))
        found.append(max(0, most - used))
    return min(found, default=None)


def fits(n_bytes: int, least: int = 0) -> bool:
    """Whether a table of this size takes less than half of the memory that is free."""
    free = free_memory()
    return free is None or n_bytes < max(least, free / 2 / IN_MEMORY)


def room() -> str:
    """How large a table may be to be read whole, in brackets; nothing where that is not known."""
    free = free_memory()
    return (
        ""
        if free is None
        else f" (up to about {size_text(free / 2 / IN_MEMORY)} of files, with what is free)"
    )


def declared_size(file: pa.NativeFile) -> int:
    """Bytes that a file unpacks to, by its metadata; without these, its own length."""
    n_bytes = file.size()
    with suppress(Exception):  # errors in a file are raised when it is read
        head = file.read(6)
        file.seek(0)
        if head[:4] == b"PAR1":
            import pyarrow.parquet as pq

            about = pq.read_metadata(file)
            n_bytes = max(n_bytes, 8 * about.num_rows * about.num_columns)
        elif head == b"ARROW1":
            reader = pa.ipc.open_file(file)
            n_bytes = max(n_bytes, 8 * reader.count_rows() * len(reader.schema))
        elif head[:4] == ZIP:
            with zipfile.ZipFile(file) as archive:
                n_bytes = max(n_bytes, sum(part.file_size for part in archive.infolist()))
    return int(n_bytes)


def check_room(n_bytes: int, source: str) -> None:
    """Refuse a file that unpacks to more than fits into memory."""
    if not fits(n_bytes, LEAST):
        raise InputError(
            f"{source}: unpacks to {size_text(n_bytes)} or more, too much for the memory that is free; "
            "unpack it to a .csv or .parquet file, which is read in pieces."
        )


def packing(data: bytes) -> str | None:
    """What a file is compressed with, by its first bytes."""
    found = next((name for start, name in PACKED.items() if data.startswith(start)), None)
    return None if found == "bzip2" and data[4:10] != BZIP2_BLOCK else found


def unpacked(data: bytes, source: str) -> bytes:
    """What a gzip or zstd file holds; anything else as it is."""
    packed = packing(data)
    try:
        if packed == "gzip":
            data = joined(gzip.GzipFile(fileobj=io.BytesIO(data)), source)
        elif packed == "zstd":
            data = joined(pa.CompressedInputStream(pa.BufferReader(data), "zstd"), source)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{source}: damaged compressed file: {printable(error)}.") from error
    if packed in ("xz", "bzip2"):
        raise InputError(f"{source}: is compressed with {packed}; decompress it first, or use gzip.")
    if packed and packing(data):
        raise InputError(f"{source}: is compressed twice; decompress it first.")
    return data


def joined(stream: Any, source: str) -> bytes:
    """All of a stream, for as long as it fits."""
    n_bytes = 0

    def pieces() -> Iterator[bytes]:
        nonlocal n_bytes
        while piece := stream.read(PIECE):
            n_bytes += len(piece)
            check_room(n_bytes, source)
            yield piece

    return b"".join(pieces())
