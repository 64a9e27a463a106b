"""What runs in the child process: one file from standard input, its cells to standard output.

See `parent.py` for why. Little is imported here, so that the child starts quickly.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from kpod._common.errors import printable
from kpod._files.sandbox.frames import TooLargeError, Writer

STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
DEEPEST = 50
"""Levels of objects and lists within one another; pyarrow takes time with their square, and then crashes."""
JSON_BLOCK = 1 << 20
LONGEST_INT = 2**63
READERS = {"stata": "read_dta", "spss": "read_sav", "sas": "read_sas7bdat", "xport": "read_xport"}
PROGRAMS = {"stata": "a Stata", "spss": "an SPSS", "sas": "a SAS", "xport": "a SAS transport"}


class UnreadableError(Exception):
    """What is wrong with the file, as it follows its name in a message."""


def main() -> None:
    """Parse one file, according to the second argument."""
    request = json.loads(sys.argv[2])
    limit(request.pop("memory"), request.pop("seconds"))
    parse(Writer(sys.stdout.buffer, request.pop("most")), **request)


def limit(memory: int, seconds: int) -> None:
    """Take no more than so many bytes and seconds of computing, where the system has such limits."""
    with suppress(ImportError):  # Windows
        import resource

        wanted = {"RLIMIT_DATA": memory, "RLIMIT_CPU": seconds, "RLIMIT_CORE": 0}
        for name, most in wanted.items():
            kind = getattr(resource, name)
            hard = resource.getrlimit(kind)[1]
            soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
            with suppress(OSError, ValueError):
                resource.setrlimit(kind, (soft, hard))


def parse(out: Writer, kind: str, **request: Any) -> None:
    """Write what a file holds, or what is wrong with it."""
    try:
        if kind == "workbook":
            from kpod._files.sandbox import sheets

            sheets.write_workbook(out, sys.stdin.buffer.read(), **request)
        elif kind in READERS:
            write_statistics(out, kind)
        else:
            write_json(out, kind, sys.stdin.buffer.read())
    except UnreadableError as error:
        out.error(str(error))
    except (MemoryError, TooLargeError):
        out.error(
            ": needs far more memory than a table of its size; it is damaged, or made to fill the memory."
        )
    except BaseException as error:  # a panic of Rust is no Exception
        out.error(f": damaged: {type(error).__name__}: {one_line(error)}.")


def one_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return printable(lines[0]) if lines else type(error).__name__


# JSON


def write_json(out: Writer, kind: str, data: bytes) -> None:
    """An Arrow table, if pyarrow reads it without loss; else the names of the columns, then the columns."""
    if is_deep(data):
        raise UnreadableError(f": not valid JSON: nested too deeply, more than {DEEPEST} levels.")
    table = table_of_lines(data) if kind == "lines" else None
    if table is not None:
        out.arrow(table)
        return
    try:
        if kind == "lines":
            lines = data.decode("utf-8-sig").split("\n")
            rows = [json.loads(line, object_pairs_hook=without_twins) for line in lines if line.strip()]
        else:
            rows = json.loads(data, object_pairs_hook=without_twins)
    except ValueError as error:
        raise UnreadableError(f": not valid JSON: {printable(error)}.") from error
    if not all(isinstance(row, dict) for row in rows):
        raise UnreadableError(": expected a list of objects, one for each row.")
    names = list(dict.fromkeys(name for row in rows for name in row))
    out.plain(names)
    for name in names:
        out.plain([row.get(name) for row in rows])


def is_deep(data: bytes) -> bool:
    """Whether objects and lists, which strings may look like, are within one another too often."""
    depth = 0
    for bracket in STRING.sub(b"", data).translate(None, NOT_BRACKETS):
        depth += 1 if bracket in b"[{" else -1
        if depth > DEEPEST:
            return True
    return False


def table_of_lines(data: bytes) -> Any:
    """The table as pyarrow reads it, which is quick; None where it would lose digits of whole numbers."""
    sys.modules.setdefault("pandas", None)  # type: ignore[arg-type]  # which pyarrow would import, to no use
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import json as pa_json

    def read(texts: Any = (), block: int = JSON_BLOCK) -> pa.Table:
        parse = pa_json.ParseOptions(explicit_schema=pa.schema([(name, pa.string()) for name in texts]))
        return pa_json.read_json(pa.BufferReader(data), pa_json.ReadOptions(block_size=block), parse)

    block = max(JSON_BLOCK, 1 + max(len(line) for line in data.split(b"\n")))
    try:
        table = read(block=block)
        times = [one.name for one in table.schema if pa.types.is_timestamp(one.type)]
        if times:  # as they are written, with their offsets from UTC
            table = read(times, block)
    except MemoryError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError, KeyError, NotImplementedError) as error:
        raise UnreadableError(
            f": damaged, or not in the format it claims to be in: {one_line(error)}"
        ) from error
    floats = [column for column in table.columns if pa.types.is_float64(column.type)]
    too_long = any((pc.max(pc.abs(column)).as_py() or 0) >= LONGEST_INT for column in floats)
    return None if too_long else table


def without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; of names that appear twice, one value would be lost."""
    out = dict(pairs)
    if len(out) < len(pairs):
        (name, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"{name!r} appears twice in a row")
    return out


# Stata, SPSS, SAS


@contextmanager
def input_path() -> Iterator[str]:
    """A name for standard input, which is a file; that of a copy, where the system has none."""
    if Path("/dev/stdin").exists():
        yield "/dev/stdin"
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data"
        with path.open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        yield str(path)


def write_statistics(out: Writer, kind: str) -> None:
    """For each column its name, the labels of its values and what it measures; then each column."""
    import pyreadstat

    with input_path() as path:
        try:
            columns, meta = getattr(pyreadstat, READERS[kind])(path, output_format="dict")
        except MemoryError:
            raise
        except Exception as error:
            raise UnreadableError(f": damaged, or not {PROGRAMS[kind]} file: {printable(error)}.") from error
    if not all(isinstance(name, str) for name in columns):
        raise UnreadableError(f": damaged, or not {PROGRAMS[kind]} file: a column has no name.")
    labels = getattr(meta, "variable_value_labels", {}) or {}
    measures = getattr(meta, "variable_measure", {}) or {}
    out.cells([
        (name, list(labels.get(name, {}).items()), measures.get(name, "unknown")) for name in columns
    ])  # fmt: skip
    for values in columns.values():
        if getattr(getattr(values, "dtype", None), "kind", "") in "biuf" and hasattr(values, "dtype"):
            out.array(values)
        else:
            out.cells([cell.item() if hasattr(cell, "item") else cell for cell in list(values)])
