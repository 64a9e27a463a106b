"""Folders of lakes, whose logs list the current files: opened with a package, or refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kpod._common.errors import InputError, printable
from kpod._files.locations.part import Part, naming_place

LAKES = {
    "_delta_log": ("a Delta table", "pass kpod.scan or kpod.analyze a deltalake.DeltaTable"),
    "metadata/*.metadata.json": (
        "an Iceberg table",
        "load it from its catalog with pyiceberg, and pass kpod.scan or kpod.analyze that table",
    ),
    ".hoodie": ("a Hudi table", "read it with Spark, and write it to a folder first"),
    "_spark_metadata": ("the output of a Spark stream", "read it with Spark, and write it to a folder first"),
}
"""By what lies in a folder: what it is, and how to get at its rows."""


def refusal(given: str, marker: str, is_in: str, advice: str = "") -> str:
    what, usual = LAKES[marker]
    return (
        f"{given}: {is_in} {what}, whose files also hold rows that were deleted or replaced; "
        f"{advice or usual}."
    )


def check_no_lake(folder: str, given: str) -> None:
    """Refuse a folder within a lake: its files hold rows that were deleted or replaced since."""
    here = Path(folder).resolve()
    for place in (here, *here.parents):
        for marker in LAKES:
            if next(place.glob(marker), None) is not None:
                is_in = "is" if place == here and folder == given else "is part of"
                raise InputError(refusal(printable(given), marker, is_in))


def is_delta(folder: str) -> bool:
    return (Path(folder) / "_delta_log").is_dir()


def delta_parts(place: str, name: str) -> list[Part]:
    """The files of a Delta table that count at its present version."""
    if find_spec("deltalake") is None:
        install = "install deltalake to read it: pip install 'scikit-kpod[delta]'"
        raise InputError(refusal(name, "_delta_log", "is", install))
    import deltalake

    with opening_lake(name):
        return parts_of_delta(deltalake.DeltaTable(place), name)


@contextmanager
def opening_lake(name: str) -> Iterator[None]:
    """Errors of deltalake, which has classes of its own, in one line."""
    try:
        with naming_place(name):
            yield
    except InputError as error:
        text = str(error).removeprefix(f"{name}: ").replace("cannot be read: ", "")
        raise InputError(f"{name}: cannot be opened as a Delta table: {text}") from error


def parts_of_delta(table: Any, name: str) -> list[Part]:
    dataset = table.to_pyarrow_dataset()
    return parts_of_dataset(dataset, name, set(table.metadata().partition_columns))


def parts_of_dataset(dataset: Any, name: str, partitions: set[str] | None = None) -> list[Part]:
    """The Parquet files of a pyarrow dataset, with its partition columns."""
    import pyarrow.dataset as ds

    parts = []
    for fragment in dataset.get_fragments():
        keys = ds.get_partition_keys(fragment.partition_expression)
        keys = {key: value for key, value in keys.items() if partitions is None or key in partitions}
        with naming_place(printable(fragment.path)):
            groups = tuple(group.id for group in fragment.row_groups)
        url = f"{name}/{fragment.path}" if partitions is not None else fragment.path
        parts.append(Part(fragment.path, dataset.filesystem, url, keys, dataset.schema, groups))
    return parts
