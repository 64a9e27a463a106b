"""The results file: a CSV that grows by one fit at a time and can be cut off at any moment.

Its first line, a comment, says with which protocol, seed, tables and versions what follows was made, and
so does a later one wherever versions changed. Another protocol, another seed or other tables are refused.
Versions concern each method by itself: what a method found counts as long as the packages that it rests on
(`Method.packages`) are the same, and is run again otherwise. A fit counts once all its lines are there,
each with its line break.
"""

from __future__ import annotations

import csv
import fcntl
import io
import json
import math
import os
import platform
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, Any

from paper import PROTOCOL
from paper.datasets import Cell
from paper.fingerprint import fingerprints
from paper.methods import methods
from paper.methods._r import r_versions
from paper.objective import FAILED, OK, OVER_TIME, UNAVAILABLE, Outcome

COLUMNS = [
    "table", "mechanism", "percent", "trial", "method",
    "status", "rand", "ari", "loss", "seconds", "limit", "reason",
]  # fmt: skip
LARGEST = 1.7e308
NUMBERS = {"rand": (0.0, 1.0), "ari": (-1.0, 1.0), "loss": (0.0, LARGEST), "seconds": (0.0, LARGEST)}
"""And between which values they lie; where there is no clustering there are none."""
PACKAGES = {"kpod": "scikit-kpod", "numpy": "numpy", "scikit-learn": "scikit-learn", "stepmix": "stepmix"}


Versions = Mapping[str, str | None]
"""Of each package; None for what is not installed."""


class ResultsError(ValueError):
    """A results file that cannot be used; the message says why and what to do."""


@dataclass(frozen=True)
class Record:
    """One line: a row of a table of the paper, in one trial."""

    cell: Cell
    trial: int
    row: str
    outcome: Outcome
    limit: int


def present_versions() -> dict[str, str | None]:
    """What would be run now."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for name, distribution in PACKAGES.items():
        try:
            found[name] = version(distribution)
        except PackageNotFoundError:
            found[name] = None
    return found | r_versions()


def heading(seed: int, versions: Versions) -> dict[str, Any]:
    return {"protocol": PROTOCOL, "seed": seed, "tables": fingerprints(seed), "versions": dict(versions)}


def read(path: Path) -> tuple[dict[str, Any], list[Record]]:
    """The last heading and the records that count; a line cut off at the end is left out.

    Of a method that was run again with other packages, what it found before does not count: not a mean
    in any table is one over two versions.
    """
    headings, found = read_all(path)
    packages = packages_of_rows()
    last: dict[tuple[str, str], Versions] = {}
    for versions, record in found:
        if record.outcome.status != UNAVAILABLE:
            last[record.cell.table, record.row] = versions
    records = [
        record
        for versions, record in found
        if not changes(packages.get(record.row, ()), versions, last.get((record.cell.table, record.row), {}))
    ]
    return headings[-1], records


def read_all(path: Path) -> tuple[list[dict[str, Any]], list[tuple[Versions, Record]]]:
    """The headings of a results file, and every record with the versions that it was made with."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise ResultsError(f"{path}: no such file; `python -m paper run` makes it.") from None
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read: {error.strerror}.") from error
    whole = text[: text.rfind(b"\n") + 1].decode("utf-8", errors="replace")
    first, _, rest = whole.partition("\n")
    headings: list[dict[str, Any]] = []
    records: list[tuple[Versions, Record]] = []
    for number, line in enumerate([first, *rest.splitlines()], 1):
        try:
            if line.startswith("#"):
                headings.append(parse_heading(line[1:]))
            elif not headings:
                raise ValueError
            elif line != ",".join(COLUMNS):
                records.append((headings[-1]["versions"], parse(line)))
        except (ValueError, KeyError, TypeError):
            raise ResultsError(
                f"{path}: line {number} is not one of a results file of this program; give another --results."
            ) from None
    if not headings:
        raise ResultsError(f"{path}: is empty; remove it, or give another --results.")
    return headings, records


def parse_heading(text: str) -> dict[str, Any]:
    found = {"tables": {}} | json.loads(text)
    if not isinstance(found["versions"], dict) or not isinstance(found["tables"], dict):
        raise TypeError
    return {key: found[key] for key in ("protocol", "seed", "tables", "versions")}


def packages_of_rows() -> dict[str, tuple[str, ...]]:
    return {row: method.packages for method in methods().values() for row in method.rows}


def changes(packages: Iterable[str], before: Versions, now: Versions) -> list[str]:
    """Which of the packages are others than before; one that is not installed, then or now, is not."""
    pairs = {name: (before.get(name), now.get(name)) for name in packages}
    return [f"{name} {old}, now {new}" for name, (old, new) in pairs.items() if old and new and old != new]


def parse(line: str) -> Record:
    values = dict(zip(COLUMNS, next(csv.reader([line])), strict=True))
    numbers = {name: float(values[name]) if values[name] else math.nan for name in NUMBERS}
    if values["status"] not in (OK, FAILED, OVER_TIME, UNAVAILABLE):
        raise ValueError
    for name, (least, most) in NUMBERS.items():
        scored = values["status"] == OK
        if bool(values[name]) != scored or (scored and not least <= numbers[name] <= most):
            raise ValueError
    return Record(
        Cell(values["table"], values["mechanism"], int(values["percent"])),
        int(values["trial"]),
        values["method"],
        Outcome(values["status"], values["reason"], **numbers),
        int(values["limit"]),
    )


def format_lines(records: Iterable[Record]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for record in records:
        values = asdict(record.cell) | asdict(record.outcome)
        values |= {"trial": record.trial, "method": record.row, "limit": record.limit}
        values["reason"] = " ".join(str(values["reason"]).split())
        values |= {n: "" if math.isnan(values[n]) else f"{values[n]:.{digits(n)}g}" for n in NUMBERS}
        writer.writerow([values[name] for name in COLUMNS])
    return out.getvalue()


def digits(name: str) -> int:
    return 4 if name == "seconds" else 8


def differences(found: Mapping[str, Any], present: Mapping[str, Any]) -> list[str]:
    """What keeps results of now out of a file."""
    said = [
        f"{name} {found[name]}, now {present[name]}"
        for name in ("protocol", "seed")
        if found[name] != present[name]
    ]
    before, now = found["tables"], present["tables"]
    if not said:  # either changes the tables
        said += [f"other tables of {name}" for name in now if before.get(name) != now[name]]
    return said


class Results:
    """A results file open for more: what it holds that need not be run again, and `append`."""

    def __init__(self, file: IO[bytes], records: list[Record], heading: str = "") -> None:
        self.file = file
        self.records = records
        self.heading = heading  # to be written before the next line

    def append(self, records: Iterable[Record]) -> None:
        """Add the lines of one fit, at once, and see them to the disk."""
        records = list(records)
        put(self.file, self.heading + format_lines(records))
        self.heading = ""
        self.records += records


def put(file: IO[bytes], text: str) -> None:
    """Write all of it, or take back what was written."""
    end, data = os.fstat(file.fileno()).st_size, text.encode()
    try:
        while data:
            data = data[os.write(file.fileno(), data) :]
        os.fsync(file.fileno())
    except OSError as error:
        os.truncate(file.fileno(), end)
        raise ResultsError(
            f"{file.name}: cannot be written: {error.strerror}. What it holds is whole; make room, and the "
            "same command goes on from there."
        ) from error


def is_cut_heading(text: bytes) -> bool:
    """Whether a file holds nothing yet: no byte, or the beginning of its two first lines."""
    begins = b'# {"protocol"'
    return text.count(b"\n") < 2 and text[: len(begins)] == begins[: len(text)]


@contextmanager
def opened(path: Path, seed: int) -> Iterator[Results]:
    """The results file at `path`, made if need be, for this process alone."""
    present = heading(seed, present_versions())
    try:
        file = path.open("ab+", buffering=0)
    except OSError as error:
        raise ResultsError(f"{path}: cannot be written: {error.strerror}.") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ResultsError(
                f"{path}: another run is writing to it; wait, or give another --results."
            ) from None
        if is_cut_heading(path.read_bytes()):
            os.truncate(path, 0)
            put(file, f"# {json.dumps(present)}\n{','.join(COLUMNS)}\n")
        headings, found = read_all(path)
        said = differences(headings[-1], present)
        if said:
            raise ResultsError(
                f"{path}: made with {'; '.join(said)}. Results are not mixed: "
                "give another --results, or the --seed and version it was made with."
            )
        end = path.read_bytes().rfind(b"\n") + 1
        os.truncate(path, end)  # a line cut off by a crash would spoil the next one
        new = headings[-1] != present
        yield Results(
            file, up_to_date(found, present["versions"]), f"# {json.dumps(present)}\n" if new else ""
        )


def up_to_date(found: Iterable[tuple[Versions, Record]], now: Versions) -> list[Record]:
    """The records whose methods rest on packages as they are now."""
    packages = packages_of_rows()
    return [record for before, record in found if not changes(packages.get(record.row, ()), before, now)]
