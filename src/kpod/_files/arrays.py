"""NumPy arrays and SciPy CSR tables in files, mapped in place if possible."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kpod._common.errors import InputError, printable
from kpod._common.progress import Progress
from kpod._common.sentences.formatting import size_text
from kpod._common.system import memory_errors
from kpod._common.typing import AnyFloats
from kpod._engine.blocks import csr_of
from kpod._estimators.observed_scaler import ObservedScaler
from kpod._files.locations.part import Part
from kpod._files.pieces.file_source import Source
from kpod._files.pieces.scanning import CHUNK_ENTRIES, Decoded, chunks, fitted_scaler
from kpod._files.pieces.scratch import Scratch
from kpod._files.pieces.table_parts import Sources
from kpod._inputs import conversion
from kpod._inputs.scanned import ScannedTable

ODD_CONTENTS = (
    zipfile.BadZipFile, zlib.error, KeyError, IndexError, OSError, ValueError, TypeError, EOFError,
    AttributeError, OverflowError, NotImplementedError, RuntimeError,
)  # fmt: skip
"""What reading an archive may end in that was damaged, or is of another kind."""


def scan_arrays(
    parts: list[Part],
    arrays: list[Part],
    columns: Sequence[str] | None,
    scale: bool | ObservedScaler,
    directory: str | os.PathLike[str] | None,
    progress: Progress,
) -> ScannedTable:
    """Arrays of NumPy, and one CSR table of SciPy."""
    if columns is not None:
        raise InputError(f"{arrays[0].name}: no column names to choose from.")
    odd = next((part for part in parts if part not in arrays), None)
    if odd is not None:
        raise InputError(f"{odd.name}: cannot be combined with arrays such as {arrays[0].name}.")
    elsewhere = next((part for part in parts if part.filesystem is not None), None)
    if elsewhere is not None:
        raise InputError(f"{elsewhere.name}: arrays are mapped, and must be on this machine; copy it first.")
    paths = [part.path for part in parts]
    if Path(paths[0]).suffix.lower() == ".npz":
        if len(paths) > 1:
            raise InputError(f"{printable(paths[1])}: a sparse table must be a single file.")
        return scan_sparse(paths[0], scale, directory, progress)
    files = [ArraySource(path) for path in paths]
    for other in files[1:]:
        if other.values.shape[1] != files[0].values.shape[1]:
            raise InputError(
                f"{other.name}: has {other.values.shape[1]} columns, {files[0].name} has "
                f"{files[0].values.shape[1]}; files of one table need the same columns."
            )
    first = files[0].values
    if len(files) == 1 and not scale and first.flags.c_contiguous and first.dtype in (np.float32, np.float64):
        return ScannedTable(first, None, paths, check=files[0].check_not_written_to)
    dtype = np.dtype(np.float32 if all(file.values.dtype == np.float32 for file in files) else np.float64)
    n_rows, n_columns = sum(len(file.values) for file in files), first.shape[1]
    scratch = Scratch(directory, n_rows * n_columns * dtype.itemsize)
    text = f"reading {files[0].name}, {size_text(n_rows * n_columns * dtype.itemsize)} of scratch"
    try:
        offset = done = 0
        for file in files:
            for rows in chunks(file.values):
                floats = floats_of(rows, file.name, lambda i, j, done=done: (done + i, str(j)))
                offset = scratch.write(np.ascontiguousarray(floats, dtype), offset)
                done += len(rows)
                progress(done, n_rows, text)
            file.check_same()
    except BaseException:
        scratch.remove()
        raise
    sources: Any = Sources(files)  # type: ignore[arg-type]
    names = [f"x{j}" for j in range(n_columns)]
    out = Decoded(sources, names, scratch, n_rows, dtype, []).table(scale)
    out.columns = None
    return out


def floats_of(values: Any, name: str, place: conversion.Place) -> AnyFloats:
    """Numbers of a file as floats; whole ones that would be rounded are refused."""
    try:
        return conversion.as_floats(values, place)
    except ValueError as error:
        raise InputError(f"{name}: {error}") from error


class ArraySource(Source):
    """A .npy file."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        try:
            with memory_errors():
                self.values = np.load(path, mmap_mode="r")
        except (ValueError, OSError, EOFError, TypeError, OverflowError, zipfile.BadZipFile) as error:
            raise InputError(f"{self.name}: not an array of numbers: {printable(error)}.") from error
        if not isinstance(self.values, np.ndarray):
            raise InputError(f"{self.name}: an archive of arrays; give it a name that ends in .npz.")
        if self.values.ndim != 2 or 0 in self.values.shape or self.values.dtype.kind not in "fiub":
            raise InputError(
                f"{self.name}: expected a two-dimensional array of numbers, got {self.values.dtype} of "
                f"shape {self.values.shape}."
            )


def scan_sparse(
    path: str, scale: bool | ObservedScaler, directory: str | os.PathLike[str] | None, progress: Progress
) -> ScannedTable:
    """A CSR table as scipy.sparse.save_npz writes it: its arrays mapped, or copied where they cannot be."""
    source, name = Source(path), printable(path)
    try:
        with zipfile.ZipFile(path) as archive:
            members = {Path(info.filename).stem: info for info in archive.infolist()}
            small = {key: read_member(archive, members[key]) for key in ("format", "shape")}
            kind = small["format"].item()
            if (kind.decode() if isinstance(kind, bytes) else kind) != "csr":
                raise InputError(f"{name}: the sparse table is not in CSR format; save it again as CSR.")
            shape = (int(small["shape"][0]), int(small["shape"][1]))
            parts = {key: Member(path, archive, members[key]) for key in ("data", "indices", "indptr")}
            for key, part in parts.items():
                if len(part.shape) != 1 or part.dtype.kind not in ("fiub" if key == "data" else "iu"):
                    raise InputError(
                        f"{name}: {key!r} is not a list of numbers; save it again with save_npz."
                    )
            wanted = {
                "data": np.dtype(np.float32 if parts["data"].dtype == np.float32 else np.float64),
                "indices": np.dtype(np.int32),
                "indptr": np.dtype(np.int64),
            }
            return sparse_table(source, archive, parts, wanted, shape, scale, directory, progress)
    except InputError:
        raise
    except ODD_CONTENTS as error:
        raise InputError(
            f"{name}: damaged, or not a CSR table as scipy.sparse.save_npz writes it ({reason(error)})."
        ) from error


def reason(error: Exception) -> str:
    """What is wrong with a file, from the message of the error."""
    if isinstance(error, KeyError):
        return f"it has no member {error}"
    in_words = isinstance(error, OSError | ValueError | zipfile.BadZipFile)
    return printable(error).rstrip(".") if in_words else "its arrays do not match"


class Member:
    """An array in an .npz file."""

    def __init__(self, path: str, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
        self.path, self.info = path, info
        with archive.open(info) as file:
            version = np.lib.format.read_magic(file)
            read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
            self.shape, _, self.dtype = read[version](file)
            self.header = file.tell()

    @property
    def start(self) -> int:
        """Where the entries begin in the file of an array that is not compressed."""
        with Path(self.path).open("rb") as file:
            file.seek(self.info.header_offset + 26)
            lengths = np.frombuffer(file.read(4), "<u2")
        return int(self.info.header_offset + 30 + lengths.sum() + self.header)

    def mapped(self, dtype: np.dtype[Any]) -> AnyFloats | None:
        """The array mapped in place, if its alignment and type allow that."""
        stored = self.info.compress_type == zipfile.ZIP_STORED
        if self.dtype != dtype or not stored or self.start % dtype.itemsize or not self.shape[0]:
            return None
        with memory_errors():
            return np.memmap(self.path, dtype, "r", self.start, self.shape)

    def pieces(self, archive: zipfile.ZipFile, dtype: np.dtype[Any]) -> Any:
        """Some entries after the other."""
        with archive.open(self.info) as file:
            file.read(self.header)
            while data := file.read(CHUNK_ENTRIES * self.dtype.itemsize):
                yield np.frombuffer(data, self.dtype).astype(dtype)


def read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Any:
    with archive.open(info) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def sparse_table(
    source: Source,
    archive: zipfile.ZipFile,
    parts: dict[str, Member],
    wanted: dict[str, np.dtype[Any]],
    shape: tuple[int, int],
    scale: bool | ObservedScaler,
    directory: str | os.PathLike[str] | None,
    progress: Progress,
) -> ScannedTable:
    arrays = {key: part.mapped(wanted[key]) for key, part in parts.items()}
    copied = [key for key, array in arrays.items() if array is None]
    if scale and "data" not in copied:
        copied.append("data")
    sizes = {key: parts[key].shape[0] * wanted[key].itemsize for key in copied}
    n_bytes = sum(-(-size // 64) * 64 for size in sizes.values())
    scratch = Scratch(directory, n_bytes) if copied else None
    offset, done = 0, 0
    total = sum(parts[key].shape[0] for key in copied)
    try:
        starts = {}
        for key in copied:
            assert scratch is not None
            starts[key] = offset
            at = offset
            for piece in parts[key].pieces(archive, wanted[key]):
                at = scratch.write(piece, at)
                done += len(piece)
                progress(done, total, f"reading {source.name}, {size_text(n_bytes)} of scratch")
            if at - offset != sizes[key]:
                raise ValueError(f"{key} ends early")
            offset += -(-sizes[key] // 64) * 64
            arrays[key] = (
                scratch.array(wanted[key], parts[key].shape, offset=starts[key])
                if sizes[key]
                else np.empty(0, wanted[key])
            )
        check_csr(source, arrays, shape)
        source.check_same()
        table = csr_of(arrays["data"], arrays["indices"], arrays["indptr"], shape)  # type: ignore[arg-type]
        scaler = fitted_scaler(scale, ScannedTable(table, None, [source.path]))
        if scaler is not None and scratch is not None:
            at = starts["data"]
            for start in range(0, table.nnz, CHUNK_ENTRIES):
                some_ = slice(start, start + CHUNK_ENTRIES)
                columns = table.indices[some_]
                z = (table.data[some_].astype(np.float64) - scaler.mean_[columns]) / scaler.scale_[columns]
                at = scratch.write(z.astype(wanted["data"]), at)
        release = None if scratch is None else scratch.remove
        return ScannedTable(table, None, [source.path], scaler, release, source.check_not_written_to)
    except BaseException:
        if scratch is not None:
            scratch.remove()
        raise


def check_csr(source: Source, arrays: dict[str, Any], shape: tuple[int, int]) -> None:
    """Refuse invalid CSR arrays: row ends out of order, columns out of range or order."""
    data, indices, indptr = arrays["data"], arrays["indices"], arrays["indptr"]
    problem = ""
    if len(indptr) != shape[0] + 1 or indptr[0] != 0 or not indptr[-1] == len(data) == len(indices):
        problem = "its arrays do not match"
    elif (np.diff(indptr) < 0).any():
        problem = "its row pointers decrease"
    elif 0 in shape:
        problem = "it has no rows or no columns"
    first = 0
    while first < shape[0] and not problem:
        last = max(first + 1, int(np.searchsorted(indptr, indptr[first] + CHUNK_ENTRIES, "right")) - 1)
        some_ = indices[indptr[first] : indptr[last]]
        if len(some_) and (some_.min() < 0 or some_.max() >= shape[1]):
            problem = "a column number is out of range"
        rises = np.diff(some_) > 0
        ends = indptr[first + 1 : last] - indptr[first] - 1
        rises[ends[(ends >= 0) & (ends < len(rises))]] = True
        if not rises.all():
            problem = "the columns of a row are unsorted or repeated; call sum_duplicates() and save it again"
        first = last
    if problem:
        raise InputError(f"{source.name}: {problem}.")
