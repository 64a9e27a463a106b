"""Checkpoints: files from which a fit resumes after it was killed.

A start that is under way is kept as a snapshot that its solver makes after an iteration (`Settings.keep`)
and takes up again (`Settings.resume`); one that ended, as its solution. In Lloyd's iteration a snapshot
is a few centers and sums: labels are a cache, and made again. After single-row moves they are data.

A checkpoint is a safety net: what goes wrong with writing one is a warning, and the fit goes on. Only what
this version wrote is read: a format number and a digest of all arrays come first.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import time
import tokenize
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import IO, Any

import numpy as np

from kpod._common.system import HAS_LOCKS, lock, temporary_beside
from kpod._common.warnings import warn
from kpod._engine.executors import Executor
from kpod._engine.objective import GapModel
from kpod._engine.solvers.interface import Snapshot, Solution
from kpod._engine.table import Table, checksum

FILE = "fit.npz"
FORMAT = 2  # of the file; another number is refused
PART = ".fit.npz."  # what the name of a file begins with that is not complete yet
SECONDS = 5.0  # between two writes, at the least
SHARE = 0.05  # of the time that writing may take


class Checkpoint:
    """A directory in which a fit leaves what it needs to go on.

    Parameters
    ----------
    directory : made if it is not there
    about : parameters and table of the fit, as plain values: what is found must be of the same
    """

    def __init__(self, directory: str | os.PathLike[str], about: dict[str, Any]) -> None:
        self.directory = Path(directory)
        self.about = json.loads(json.dumps(about))
        self.state: dict[str, Any] | None = None  # of what the fit draws from
        self.done: dict[int, Snapshot] = {}
        self.running: dict[int, Snapshot] = {}
        self.found: dict[str, Snapshot] = {}  # solutions of parts of the work, by name
        self._lock = Lock()
        self._written = time.monotonic()
        self._took = 0.0
        self._warned = False
        self._descriptor = locked(self.directory)
        try:
            self._remove_parts()
            self._load()
        except BaseException:
            self.close()
            raise

    @property
    def path(self) -> Path:
        return self.directory / FILE

    def _load(self) -> None:
        try:
            with open_regular(self.path) as raw:
                kept = read_arrays(raw)
        except FileNotFoundError:
            return
        except (OSError, ValueError, MemoryError, zipfile.BadZipFile) as error:
            raise ValueError(
                f"{self.path}: damaged, or not a checkpoint of this version of kpod: "
                f"{' '.join(str(error).split()).rstrip('.')}. Delete it to start over."
            ) from error
        head = json.loads(str(kept.pop("head")))
        for name, value in self.about.items():
            if head["about"].get(name) != value:
                there = head["about"].get(name)
                what = (
                    "belongs to another table" if name == "table" else f"has {name}={there!r}, not {value!r}"
                )
                raise ValueError(
                    f"The checkpoint in {self.directory} {what}. Use another directory, or delete "
                    f"{self.path} to start over."
                )
        self.state = head["state"]
        for name, value in kept.items():
            kind, which, key = name.split("/")
            if kind == "found":
                self.found.setdefault(which, {})[key] = value
            else:
                (self.done if kind == "done" else self.running).setdefault(int(which), {})[key] = value

    def generator(self, random_state: np.random.RandomState) -> np.random.RandomState:
        """What the fit draws from: as given, or as the fit was given that left this checkpoint."""
        if self.state is None:
            self.state = plain(random_state.get_state(legacy=False))
        kept = np.random.RandomState(getattr(np.random, self.state["bit_generator"])())
        kept.set_state(self.state)
        return kept

    def is_due(self) -> bool:
        """Whether it is time to write again: a few seconds later, and seldom if it takes long."""
        return time.monotonic() - self._written >= max(SECONDS, self._took / SHARE)

    def keep(self, number: int, take: Callable[[], Snapshot]) -> None:
        """Keep a start that is under way, if it is time to."""
        with self._lock:
            if self.is_due():
                self.running[number] = take()
                self._write()

    def ended(self, number: int, solution: Solution) -> None:
        """Keep a start that ended; the labels of the best one only."""
        with self._lock:
            self.running.pop(number, None)
            self.done[number] = arrays_of(solution)
            best = min(self.done, key=lambda n: (float(self.done[n]["objective"]), n))
            for n, other in self.done.items():
                if n != best:
                    self.done[n] = {**other, "labels": np.empty(0, np.int32)}
            if self.is_due():
                self._write()

    def solution(self, number: int) -> Solution | None:
        """Of a start that ended already, without labels if it is not the best."""
        return solution_of(self.done[number]) if number in self.done else None

    def solved(self, name: str, solve: Callable[[], Solution]) -> Solution:
        """The solution of a part of the work, found before or now."""
        with self._lock:
            if name in self.found:
                return solution_of(self.found[name])
        solution = solve()
        with self._lock:
            self.found[name] = arrays_of(solution)
            if self.is_due():
                self._write()
        return solution

    def _write(self) -> None:
        began = time.monotonic()
        head = json.dumps({"about": self.about, "state": self.state})
        arrays: dict[str, Any] = {"head": np.array(head)}
        parts: dict[str, dict[Any, Snapshot]] = {
            "done": dict(self.done), "running": dict(self.running), "found": dict(self.found)
        }  # fmt: skip
        for kind, by_name in parts.items():
            for name, kept in by_name.items():
                arrays |= {f"{kind}/{name}/{key}": value for key, value in kept.items()}
        try:
            with temporary_beside(self.path, PART) as file:
                write_arrays(file, arrays)
        except OSError as error:
            self._warn(
                f"The checkpoint in {self.directory} could not be written: {error.strerror}. The fit goes on "
                "and tries again from time to time; until that succeeds, a crash would lose what was done "
                "since the last checkpoint."
            )
        self._written = time.monotonic()
        self._took = self._written - began

    def _warn(self, message: str) -> None:
        """Once: what one write ran into, the next will, too."""
        if not self._warned:
            self._warned = True
            warn(message, RuntimeWarning)

    def close(self) -> None:
        """Let others use the directory."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def remove(self) -> None:
        """After the fit: nothing to go on with is left."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            self._warn(f"{self.path} is no longer needed, but could not be deleted: {error.strerror}.")

    def _remove_parts(self) -> None:
        """Delete what was being written when a process was killed; no other process writes here."""
        for part in self.directory.glob(f"{PART}*.part"):
            with suppress(OSError):
                part.unlink()

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        try:
            if kind is None:
                self.remove()
        finally:
            self.close()


def plain(state: Any) -> Any:
    """The state of a generator as JSON has it."""
    if isinstance(state, dict):
        return {name: plain(value) for name, value in state.items()}
    return state.tolist() if isinstance(state, np.ndarray) else state


def arrays_of(solution: Solution) -> Snapshot:
    parts = vars(solution).copy()
    if (gaps := parts.pop("gaps")) is not None:
        parts |= {f"gaps_{name}": value for name, value in gaps._asdict().items()}
    return {name: np.asarray(value) for name, value in parts.items()}


def solution_of(kept: Snapshot) -> Solution:
    values = {name: value if value.ndim else value.item() for name, value in kept.items()}
    gaps = {name: values.pop(f"gaps_{name}", None) for name in GapModel._fields}
    for name in ("trace", "losses", "starts"):
        values[name] = values[name].tolist()
    return Solution(**values, gaps=None if gaps["shares"] is None else GapModel(**gaps))


def locked(directory: Path) -> int:
    """The directory, made and locked: for as long as this process lives, at the most."""
    if not HAS_LOCKS:
        raise ValueError("checkpoint needs file locks, which this operating system does not support.")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        if not os.access(directory, os.W_OK):
            os.close(descriptor)
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise ValueError(
            f"checkpoint={str(directory)!r}: cannot use this directory: {error.strerror}."
        ) from error
    try:
        lock(descriptor)
    except OSError as error:
        os.close(descriptor)
        raise ValueError(
            f"checkpoint={str(directory)!r}: in use by another fit; give each fit its own directory."
        ) from error
    return descriptor


def open_regular(path: Path) -> IO[bytes]:
    """A file, and nothing else of that name: no link is followed, no pipe waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    file = os.fdopen(descriptor, "rb")
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise ValueError("it is no regular file")
    return file


def write_arrays(file: IO[bytes], arrays: dict[str, Any]) -> None:
    """An .npz file with a format number and a digest beside the arrays."""
    np.savez(file, format=np.array(FORMAT), digest=np.array(digest_of(arrays)), **arrays)


ODD = (EOFError, KeyError, NotImplementedError, RecursionError, TypeError, SyntaxError, tokenize.TokenError)
"""What NumPy and zipfile raise on damaged files besides a ValueError."""


def read_arrays(raw: IO[bytes]) -> dict[str, Any]:
    """What `write_arrays` wrote, to the bit; else a ValueError, or what NumPy and zipfile raise."""
    try:
        with np.load(raw, allow_pickle=False) as file:
            if not isinstance(file, np.lib.npyio.NpzFile) or "format" not in file.files:
                raise ValueError("it has no format number")
            number = np.asarray(file["format"])
            if number.shape or number != FORMAT:
                raise ValueError(f"it has format number {number}, and this version reads {FORMAT}")
            assert file.zip is not None
            if any(info.compress_type != zipfile.ZIP_STORED for info in file.zip.infolist()):
                raise ValueError("it is compressed")
            arrays = {name: file[name] for name in file.files if name != "format"}
    except ODD as error:
        raise ValueError(str(error) or type(error).__name__) from error
    if str(arrays.pop("digest", "")) != digest_of(arrays):
        raise ValueError("its contents are not what was written")
    return arrays


def digest_of(arrays: dict[str, Any]) -> str:
    """A checksum of the names, types, shapes and bytes of all arrays."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        value = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {value.dtype.str} {np.shape(arrays[name])}".encode())
        digest.update(value.view(np.uint8).data if value.size else b"")
    return digest.hexdigest()


def fingerprint(table: Table, executor: Executor) -> dict[str, Any]:
    """What identifies a table: shape, precision, and a checksum of every block and its weights."""
    return {
        "shape": [table.n_rows, table.n_columns],
        "dtype": str(table.dtype),
        "checksums": executor.map(checksum, table.blocks),
    }
