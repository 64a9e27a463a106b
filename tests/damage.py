"""Damage files and open them with the command line: a process of its own, for it may die.

    python -m tests.damage KIND FIRST COUNT

prints the number of each case before it is tried, then "refused", "accepted", or what is wrong.
"""

import io
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import feather

from kpod.cli import run

N_ROWS = 40


def table():
    """Numbers, text, truth, dates, categories, lists: with gaps, in two chunks."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(N_ROWS, 3)) + 5 * (np.arange(N_ROWS) % 2)[:, None]
    gaps = rng.random((N_ROWS, 3)) < 0.2
    whole = pa.table({
        "a": pa.array(numbers[:, 0], mask=gaps[:, 0]),
        "b": pa.array(numbers[:, 1].astype(np.float32), mask=gaps[:, 1]),
        "c": pa.array((100 * numbers[:, 2]).astype(np.int32), mask=gaps[:, 2]),
        "name": pa.array([f"näme {i}" if i % 5 else None for i in range(N_ROWS)]),
        "digits": pa.array([str(i % 7) for i in range(N_ROWS)]),
        "truth": pa.array([i % 2 == 0 for i in range(N_ROWS)]),
        "day": pa.array([date(2020, 1, 1 + i % 28) for i in range(N_ROWS)]),
        "group": pa.array(["x", "y"] * (N_ROWS // 2)).dictionary_encode(),
    })  # fmt: skip
    return pa.concat_tables([whole[:25], whole[25:]])


def arrow(sink, options=None):
    with pa.ipc.new_file(sink, table().schema, options=options) as writer:
        writer.write_table(table())


def stream(sink):
    with pa.ipc.new_stream(sink, table().schema) as writer:
        writer.write_table(table())


def parquet(sink):
    pq.write_table(table(), sink)


def text(sink):
    from kpod._io.writing import Dialect, write_csv

    write_csv(table(), sink, Dialect())


WRITERS = {
    "arrow": arrow,
    "stream": stream,
    "feather": lambda sink: feather.write_feather(table(), sink),
    "zstd": lambda sink: feather.write_feather(table(), sink, compression="zstd"),
    "parquet": parquet,
    "csv": text,
}
KINDS = ["model", *WRITERS]


def kpod(*args):
    """Exit code and both outputs."""
    out, err = io.TextIOWrapper(io.BytesIO()), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run([str(arg) for arg in args])
        out.flush()
    return code, out.buffer.getvalue().decode(), err.getvalue()


def damaged(whole, number):
    """Three in four with one bit flipped, the rest cut short."""
    rng = np.random.default_rng(number)
    data = bytearray(whole)
    if rng.random() < 0.25:
        return data[: rng.integers(len(data))]
    data[rng.integers(len(data))] ^= 1 << rng.integers(8)
    return data


def outcome(code, out, err, expected):
    if code == 0:
        if expected is not None and out != expected:
            return "another result, and not a word"
        return "accepted"
    ours = err.startswith("kpod: ") and not err.startswith("kpod: unexpected")
    return "refused" if code == 1 and out == "" and ours and err.count("\n") == 1 else f"{code} {err!r}"


def main(kind, first, count):
    with TemporaryDirectory() as folder:
        path, data = Path(folder) / "damaged", Path(folder) / "table.csv"
        if kind == "model":
            with data.open("wb") as file:
                text(file)
            _, expected, _ = kpod("fit", data, "-k", 2, "-q", "--model", path)
            command = ("predict", path, data, "-q")
        else:
            with path.open("wb") as file:
                WRITERS[kind](file)
            expected, command = None, ("fit", path, "-k", 2, "--starts", 1, "-q")
        assert kpod(*command)[0] == 0
        whole = path.read_bytes()
        for number in range(first, first + count):
            print(number, end=" ", flush=True)
            path.write_bytes(damaged(whole, number))
            print(outcome(*kpod(*command), expected), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("error")
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
