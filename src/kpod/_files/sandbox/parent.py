"""Workbooks, statistics files and JSON are parsed in a child process, which they may crash.

Their parsers are C, C++ and Rust, and a file that was damaged, by chance or on purpose, can make them crash,
compute without end or ask for any amount of memory. The child has limits on both and hands back plain
values; whatever ends it becomes one line with the name of the file.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
from typing import Any

import pyarrow as pa

from kpod._common.errors import InputError, printable
from kpod._common.sentences.formatting import size_text
from kpod._files import memory_limits
from kpod._files.sandbox import frames

LEAST_MEMORY = 768 << 20
"""Bytes that the child may take however small the file is; Python and the parsers take about 100 MB."""
MEMORY_PER_BYTE = 1000
"""A compressed SPSS file of mostly equal values comes close to that."""
OUTPUT_SHARE = 12
"""What comes back takes up to so many times its size here, where each cell is an object again."""
LEAST_SECONDS = 10
BYTES_PER_SECOND = 100_000
"""A hundredth of what the slowest parser reads on a slow machine."""
PATIENCE = 10
"""Seconds on the clock for each of computing, before a child that does nothing is given up."""
START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from kpod._files.sandbox.parsers import main; main()"
)
ALONE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "ARROW_IO_THREADS"), "1")
"""Each thread of an unused pool takes memory."""
ADVICE = "open it in the program that it comes from and save the table as CSV."


def limits(n_bytes: int) -> tuple[int, int]:
    """Bytes and seconds of computing that a file of this size, unpacked, may take to parse."""
    free = memory_limits.free_memory()
    most = MEMORY_PER_BYTE * n_bytes
    memory = max(LEAST_MEMORY, most if free is None else min(most, free))
    return memory, LEAST_SECONDS + n_bytes // BYTES_PER_SECOND


def parsed(data: Any, kind: str, source: str, **request: Any) -> list[Any]:
    """The result of the child process for a file: a list of plain values, arrays or Arrow tables."""
    if not sys.executable:
        raise InputError(f"{source}: cannot be parsed, for sys.executable does not say where Python is.")
    memory, seconds = limits(memory_limits.declared_size(pa.BufferReader(data)))
    request |= {"kind": kind, "memory": memory, "seconds": seconds, "most": memory // OUTPUT_SHARE}
    path = [os.path.abspath(place) for place in sys.path]  # noqa: PTH100
    command = [sys.executable, "-I", "-S", "-c", START, json.dumps(path), json.dumps(request)]
    try:
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as found:
            given.write(data)
            given.seek(0)
            code = exit_code(command, given, found, PATIENCE * seconds)
            values = values_in(found, source) if code == 0 else []
    except OSError as error:
        raise InputError(
            f"{source}: cannot be parsed in a process of its own: {printable(error.strerror)}."
        ) from error
    if code != 0:
        raise InputError(f"{source}: {what_ended(code, memory, seconds)}; {ADVICE}")
    return values


def exit_code(command: list[str], given: Any, found: Any, most_seconds: int) -> int | None:
    """How the child ended; None where it did not. Seconds in which this process was stopped do not count."""
    process = subprocess.Popen(
        command, stdin=given, stdout=found, stderr=subprocess.DEVNULL, env={**os.environ, **ALONE}
    )
    try:
        for _ in range(most_seconds):
            try:
                return process.wait(1)
            except subprocess.TimeoutExpired:
                continue
        return None
    finally:
        process.kill()
        process.wait()


def values_in(found: Any, source: str) -> list[Any]:
    """What the child wrote; an error, if that is one."""
    try:
        parts = list(frames.read(found))
    except (ValueError, TypeError, KeyError, struct.error, RecursionError, pa.ArrowException) as error:
        raise InputError(f"{source}: its parser sent what cannot be read; {ADVICE}") from error
    for kind, value in parts:
        if kind == frames.ERROR:
            raise InputError(f"{source}{value}")
    return [value for _, value in parts]


def what_ended(code: int | None, memory: int, seconds: int) -> str:
    """Why there is no table, by how the child ended."""
    if code is None or code == -getattr(signal, "SIGXCPU", 0):
        return f"took more than {seconds} seconds to parse, far too long for its size; it is damaged"
    name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return f"its parser crashed ({name}); it is damaged, or needs more than {size_text(memory)} of memory"
