"""Plain values sent by a child process: JSON, NumPy's and Arrow's own formats, never a pickle.

A frame is one letter for what it holds, its length, and so many bytes. Cells may be dates, which are objects
of one key in their JSON; JSON that comes from a file is kept apart from them, for it may hold the same.
"""

from __future__ import annotations

import io
import json
import os
import struct
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta
from typing import IO, Any

HEAD = struct.Struct("<cQ")
PLAIN, CELLS, ARRAY, ARROW, ERROR = b"j", b"c", b"n", b"a", b"e"
DATES: dict[str, Callable[[Any], Any]] = {
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "timedelta": lambda parts: timedelta(*parts),
}


class TooLargeError(Exception):
    """There is more to be sent than was agreed upon."""


class Writer:
    """Frames to a file, up to so many bytes in all."""

    def __init__(self, file: IO[bytes], most: int) -> None:
        self.file, self.left = file, most

    def plain(self, value: Any) -> None:
        """What JSON can hold."""
        self.write(PLAIN, json.dumps(value).encode("ascii"))

    def cells(self, value: Any) -> None:
        """What JSON can hold, and dates, times and NumPy's scalars."""
        self.write(CELLS, json.dumps(value, default=as_plain).encode("ascii"))

    def array(self, values: Any) -> None:
        """An array of numbers."""
        import numpy as np

        data = io.BytesIO()
        np.lib.format.write_array(data, values, allow_pickle=False)
        self.write(ARRAY, data.getbuffer())

    def arrow(self, table: Any) -> None:
        """An Arrow table."""
        import pyarrow as pa

        data = io.BytesIO()
        with pa.ipc.new_stream(data, table.schema) as writer:
            writer.write_table(table)
        self.write(ARROW, data.getbuffer())

    def error(self, text: str) -> None:
        """What is wrong with a file, as it follows the name of the file in a message."""
        self.left = max(self.left, 1 << 20)
        self.write(ERROR, json.dumps(text).encode("ascii"))

    def write(self, kind: bytes, payload: Any) -> None:
        self.left -= len(payload)
        if self.left < 0:
            raise TooLargeError
        self.file.write(HEAD.pack(kind, len(payload)))
        self.file.write(payload)
        self.file.flush()


def as_plain(value: Any) -> Any:
    if isinstance(value, datetime | date | time):
        kind = next(name for name in DATES if type(value).__name__ == name)
        return {kind: value.isoformat()}
    if isinstance(value, timedelta):
        return {"timedelta": [value.days, value.seconds, value.microseconds]}
    return value.item()


def as_date(value: dict[str, Any]) -> Any:
    ((kind, parts),) = value.items()
    return DATES[kind](parts)


def read(file: IO[bytes]) -> Iterator[tuple[bytes, Any]]:
    """What each frame of a file is, and the value in it."""
    end = file.seek(0, os.SEEK_END)
    file.seek(0)
    while head := file.read(HEAD.size):
        kind, length = HEAD.unpack(head)
        if length > end - file.tell():
            raise ValueError("a frame was cut short")
        yield kind, value_of(kind, file.read(length))


def value_of(kind: bytes, payload: bytes) -> Any:
    if kind == ARRAY:
        import numpy as np

        return np.lib.format.read_array(io.BytesIO(payload), allow_pickle=False)
    if kind == ARROW:
        import pyarrow as pa

        table = pa.ipc.open_stream(pa.BufferReader(payload)).read_all()
        table.validate(full=True)
        return table
    return json.loads(payload, object_hook=as_date if kind == CELLS else None)
