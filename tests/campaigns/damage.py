"""Damage files and open them with the command line: a process of its own, for it may die.

    python -m tests.campaigns.damage FIRST COUNT KIND...

prints the kind and number of each case before it is tried, then "refused", "accepted", or what is
wrong. A kind is a key of `WRITERS` or `MODELS`, or the path of any file that holds a table. The most that a
parser took is printed to standard error in the end.

The child process in which such files are parsed is forked here from one that has imported the parsers, with
the limits of the real one: thousands of files an hour. KPOD_SPAWN=1 starts it as a user's run does.
"""

import gzip
import io
import os
import resource
import sys
import time
import warnings
import zipfile
from contextlib import redirect_stderr, redirect_stdout
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pyreadstat
from pyarrow import feather

import kpod as package
from kpod._files.sandbox import parent
from kpod.cli import run
from tests.campaigns.fork_server import ForkServer

N_ROWS = 40
MOST_MEMORY = 1e9
MOST_SECONDS = 20


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
    from kpod._files.writing import Dialect, write_csv

    write_csv(table(), sink, Dialect())


def plain_frame():
    """What statistics packages store: numbers and text."""
    frame = table().select(["a", "b", "c", "name", "digits"]).to_pandas()
    return frame.assign(code=[1.0, 2, 3, 2] * (N_ROWS // 4))


def statistics(write, **options):
    """A writer of a package that takes a path instead of a file."""

    def writer(sink):
        with TemporaryDirectory() as folder:
            path = Path(folder) / "data"
            write(plain_frame(), str(path), **options)
            sink.write(path.read_bytes())

    return writer


LABELS = {"variable_value_labels": {"code": {1: "north", 2: "south", 3: "west"}}}


def calc(sink):
    """An OpenDocument spreadsheet: the table as LibreOffice Calc stores it."""
    names = 'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
    names += ' xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"'
    names += ' xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'

    def cell(value):
        if value is None:
            return "<table:table-cell/>"
        if isinstance(value, int | float) and not isinstance(value, bool):
            return f'<table:table-cell office:value-type="float" office:value="{value}"/>'
        return f'<table:table-cell office:value-type="string"><text:p>{value}</text:p></table:table-cell>'

    rows = [table().column_names, *(row.values() for row in table().to_pylist())]
    lines = [f"<table:table-row>{''.join(map(cell, row))}</table:table-row>" for row in rows]
    inside = (
        f'<office:spreadsheet><table:table table:name="t">{"".join(lines)}</table:table></office:spreadsheet>'
    )
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("mimetype", kind)
        archive.writestr(
            "META-INF/manifest.xml",
            '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
            f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/>'
            '<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/>'
            "</manifest:manifest>",
        )
        archive.writestr(
            "content.xml",
            f'<?xml version="1.0"?><office:document-content {names}><office:body>{inside}</office:body>'
            "</office:document-content>",
        )


def packed(pack):
    def writer(sink):
        inner = io.BytesIO()
        text(inner)
        sink.write(pack(inner.getvalue()))

    return writer


def blank_separated(sink):
    frame = table().select(["a", "b", "c", "truth"]).to_pandas()
    sink.write(frame.to_string(na_rep="NA").encode())


def ratings(sink):
    lines = ["who,what,how"]
    frame = table().select(["a", "b", "c"]).to_pydict()
    for name, cells in frame.items():
        lines += [f"{i},{name},{cell}" for i, cell in enumerate(cells) if cell is not None]
    sink.write("\n".join(lines).encode())


def json_of(lines):
    def writer(sink):
        frame = table().drop_columns(["day", "group"]).to_pandas()
        frame.to_json(sink, orient="records", lines=lines)

    return writer


WRITERS = {
    "arrow": arrow,
    "stream": stream,
    "feather": lambda sink: feather.write_feather(table(), sink),
    "zstd": lambda sink: feather.write_feather(table(), sink, compression="zstd"),
    "parquet": parquet,
    "csv": text,
    "xlsx": lambda sink: table().to_pandas().to_excel(sink, index=False),
    "ods": calc,
    "dta": statistics(pyreadstat.write_dta, **LABELS),
    "sav": statistics(pyreadstat.write_sav, **LABELS),
    "zsav": statistics(pyreadstat.write_sav, compress=True),
    "xpt": statistics(pyreadstat.write_xport),
    "jsonl": json_of(lines=True),
    "json": json_of(lines=False),
    "gz": packed(gzip.compress),
    "zst": packed(lambda data: pa.compress(data, "zstd", asbytes=True)),
    "blanks": blank_separated,
    "ratings": ratings,
}
CHECKSUMS = ("xlsx", "ods", "gz")
LONG = ("--rows", "who", "--items", "what", "--values", "how")
ENCODED = ("--categories", "group", "--robust", "--clip", 0.05)
MODELS = {"model": (), "encoder": ENCODED, "resealed": ENCODED}
"""Resealed: by somebody who damages a part and writes the checksum that it then has."""
KINDS = {
    "models": [*MODELS, "mixture"],
    "arrow": ["arrow", "stream", "feather", "zstd", "parquet"],
    "workbooks": ["xlsx", "ods"],
    "statistics": ["dta", "sav", "zsav", "xpt"],
    "text": ["csv", "jsonl", "json", "gz", "zst", "blanks", "ratings"],
}


def kpod(*args):
    """Exit code and both outputs."""
    out, err = io.TextIOWrapper(io.BytesIO()), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run([str(arg) for arg in args])
        out.flush()
    return code, out.buffer.getvalue().decode(), err.getvalue()


def damaged(whole, number):
    """Three in four with one bit flipped, or a few, the rest cut short."""
    rng = np.random.default_rng(number)
    data = bytearray(whole)
    if rng.random() < 0.25:
        return data[: rng.integers(len(data))]
    filled = np.flatnonzero(np.frombuffer(whole, np.uint8))  # some kinds are zeros for the most part
    for _ in range(rng.choice([1, 1, 2, 4])):
        data[rng.choice([rng.integers(len(data)), rng.choice(filled)])] ^= 1 << rng.integers(8)
    return data


def resealed(whole, number):
    """An archive with one part damaged, and checksums as they should be."""
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = np.random.default_rng(number).choice(list(parts))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for other, content in parts.items():
            archive.writestr(other, bytes(damaged(content, number)) if other == name else content)
    return file.getvalue()


def outcome(code, out, err, expected):
    if code == 0:
        if expected is not None and out != expected:
            return "another result, and not a word"
        return "accepted"
    ours = err.startswith("kpod: ") and not err.startswith("kpod: unexpected")
    return "refused" if code == 1 and out == "" and ours and err.count("\n") == 1 else f"{code} {err!r}"


def save_mixture(data, path):
    """A model with probabilities, in a pipeline; the command line makes none."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X = pa.csv.read_csv(data).select(["a", "b", "c"]).to_pandas()
    X = X[X.notna().any(axis=1)]
    kpod = package.KPOD(2, probability=True, random_state=0)
    package.save(make_pipeline(StandardScaler(), kpod).fit(X), path)


class Most:
    """The most memory and time that reading a file of a kind took."""

    def __init__(self):
        self.memory = self.seconds = 0

    def tried(self, command, expected):
        """What came of one case."""
        if FORK_SERVER:
            FORK_SERVER.peak = 0
        start = time.process_time() + (FORK_SERVER.seconds if FORK_SERVER else 0)
        found = outcome(*kpod(*command), expected)
        seconds = time.process_time() + (FORK_SERVER.seconds if FORK_SERVER else 0) - start
        memory = FORK_SERVER.peak if FORK_SERVER else 0
        self.memory, self.seconds = max(self.memory, memory), max(self.seconds, seconds)
        if memory > MOST_MEMORY:
            return f"took {memory} bytes"
        return f"took {seconds} s" if seconds > MOST_SECONDS else found

    def __str__(self):
        here = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        return (
            f"at most {self.memory / 1e6:.0f} MB in the child, {here:.0f} MB here, "
            f"{self.seconds:.1f} s of computing in both"
        )


FORK_SERVER = None


def main(kind, first, count):
    with TemporaryDirectory() as folder:
        path, data = Path(folder) / "damaged", Path(folder) / "table.csv"
        with data.open("wb") as file:
            text(file)
        expected, command = None, ("fit", path, "-k", 2, "--starts", 1, "-q")
        if kind in WRITERS or Path(kind).is_file():
            with path.open("wb") as file:
                WRITERS.get(kind, lambda file: file.write(Path(kind).read_bytes()))(file)
            command += LONG if kind == "ratings" else ()
            if kind.endswith(CHECKSUMS):
                _, expected, _ = kpod(*command)
        else:
            command = ("predict", path, data, "-q")
            if kind == "mixture":
                save_mixture(data, path)
            else:
                kpod("fit", data, "-k", 2, "-q", "--model", path, *MODELS[kind])
            _, expected, _ = kpod(*command)
        assert kpod(*command)[0] == 0, kpod(*command)
        expected = None if kind == "resealed" else expected  # a model may lie
        whole = path.read_bytes()
        most = Most()
        for number in range(first, first + count):
            print(kind, number, end=" ", flush=True)
            path.write_bytes((resealed if kind == "resealed" else damaged)(whole, number))
            print(most.tried(command, expected), flush=True)
        print(f"{kind}: {most}", file=sys.stderr)


if __name__ == "__main__":
    if not os.environ.get("KPOD_SPAWN"):
        FORK_SERVER = ForkServer()
        parent.exit_code = FORK_SERVER.exit_code
    warnings.simplefilter("error")
    for kind_ in sys.argv[3:]:
        main(kind_, int(sys.argv[1]), int(sys.argv[2]))
    if FORK_SERVER:
        FORK_SERVER.close()
