"""Model files that are safe to open: JSON and arrays in a zip archive, never pickles.

`kpod.json` identifies the file before anything else is looked at, `model.json` holds the model as plain
values (values.py), and its arrays lie beside it in NumPy's own format. The same model gives the same bytes.
Nothing but the classes of saved_classes.py is made from a file. Nothing in it is compressed, and sizes are
checked before anything is read: a file from elsewhere can neither run code nor, if small, fill the memory.
"""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from kpod import __version__
from kpod._common.errors import InputError, printable
from kpod._files.atomic import written_whole
from kpod._saved_models.checks import KINDS
from kpod._saved_models.saved_classes import ForeignError, are_steps
from kpod._saved_models.values import DTYPES, from_json, to_json

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

FORMAT = "kpod model"
VERSION = 3
"""1 and 2 were written by way of skops, and are read by old_formats.py."""
HEADER = "kpod.json"
CONTENT = "model.json"
SMALL = 1 << 20
"""The most bytes of a header, and of JSON but for what columns need."""
JSON_PER_ARRAY = 32
"""Names take room in JSON, and each column takes room in several arrays."""


@dataclass
class Model:
    """A fitted pipeline (scaling, then KPOD) and what is needed to use it on another table."""

    pipeline: Pipeline
    columns: list[str]
    missing: list[str] = field(default_factory=list)
    kpod_version: str = __version__
    named: bool = True
    """Whether the columns had names; those of an array are made up."""
    kinds: list[str] = field(default_factory=list)
    """Of each column, one of `KINDS`; empty if unknown."""


class NewerError(Exception):
    """The version that wrote a file in a newer format."""


def save(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model, if it is one that can be opened again."""
    try:
        data = written(model)
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            read_archive(archive)
    except (ForeignError, TypeError, ValueError) as error:
        raise ValueError(f"This model cannot be saved: {error}.") from error
    with written_whole(path) as file:
        file.write(data)


def written(model: Model) -> bytes:
    """The bytes of a file, which depend on nothing but the model and the version of kpod."""
    arrays: list[Any] = []
    content = {
        "steps": [list(step) for step in model.pipeline.steps],
        "columns": model.columns,
        "missing": model.missing,
        "kinds": model.kinds,
        "named": model.named,
    }
    content = {name: to_json(value, arrays) for name, value in content.items()}
    header = {"format": FORMAT, "version": VERSION, "kpod": __version__}
    members = {HEADER: json.dumps(header), CONTENT: json.dumps(content, allow_nan=False)}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, text in members.items():
            archive.writestr(member(name), text)
        for number, array in enumerate(arrays):
            data = io.BytesIO()
            np.lib.format.write_array(data, array, (1, 0), allow_pickle=False)
            archive.writestr(member(f"{number}.npy"), data.getbuffer())
    return file.getvalue()


def member(name: str) -> zipfile.ZipInfo:
    """With no date and no system of its own."""
    out = zipfile.ZipInfo(name)
    out.create_system = 3
    return out


def load(path: str | os.PathLike[str]) -> Model:
    """The model in a file, or one line on why it is not opened."""
    name = printable(path)
    try:
        with zipfile.ZipFile(path) as archive:
            return read_archive(archive)
    except NewerError as error:
        raise InputError(
            f"{name}: written by a newer version of kpod ({error}; this is {__version__}); upgrade "
            "scikit-kpod to open it."
        ) from error
    except ForeignError as error:
        raise InputError(f"{name}: holds {error}, which a kpod model never contains; not opened.") from error
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror or printable(error)}.") from error
    except zipfile.BadZipFile as error:
        raise InputError(
            f"{name}: not a kpod model, or damaged; create one with kpod fit --model."
        ) from error
    # Whatever a damaged archive trips over, in zipfile, json, NumPy or here, it is damaged.
    except Exception as error:
        why = printable(str(error)[:100]) if isinstance(error, ValueError) else type(error).__name__
        raise InputError(f"{name}: damaged ({why}); fit the model again with kpod fit --model.") from error


def read_archive(archive: zipfile.ZipFile) -> Model:
    """The model in an archive, whose header has the version of the format."""
    from sklearn.pipeline import Pipeline

    members = Members(archive)
    header = members.json(HEADER, SMALL)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise zipfile.BadZipFile("not a kpod model")
    version = header.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise NewerError(printable(header.get("kpod")))
    if version < VERSION:
        from kpod._saved_models.old_formats import content_of

        content = content_of(members, header)
    else:
        encoded = members.json(CONTENT, members.json_limit)
        content = {name: from_json(node, members.array) for name, node in encoded.items()}
    steps = content.pop("steps")
    check_columns(content["columns"], content["kinds"], content["missing"])
    check_steps([step for _, step in steps], len(content["columns"]))
    pipeline = Pipeline([(str(name), step) for name, step in steps])
    return Model(pipeline, kpod_version=str(header.get("kpod")), **content)


def check_columns(columns: Any, kinds: Any, missing: Any) -> None:
    lists = (columns, kinds, missing)
    if not all(isinstance(one, list) and all(isinstance(text, str) for text in one) for one in lists):
        raise TypeError("names that are not text")
    if len(set(columns)) < len(columns) or not columns:
        raise ValueError("column names are missing, or appear twice")
    if kinds and (len(kinds) != len(columns) or not set(kinds) <= set(KINDS)):
        raise ValueError("kinds and columns do not match")


def check_steps(steps: list[Any], n_columns: int) -> None:
    """Refuse steps that do not belong together: each takes what the one before gives."""
    if not are_steps(steps):
        raise ForeignError(", ".join(type(step).__name__ for step in steps))
    for step in steps:
        if step.n_features_in_ != n_columns:
            raise ValueError("centers and columns do not match")
        n_columns = getattr(step, "_n_features_out", n_columns)
    means, of_last = getattr(steps[0], "mean_", None), getattr(steps[-1], "column_means_", np.nan)
    if means is not None and np.isnan(means).any() and (np.isnan(means) & ~np.isnan(of_last)).any():
        raise ValueError("mean_ holds nan")


class Members:
    """The members of an archive; nothing larger than allowed is read."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self.archive = archive
        self.about = {member.filename: member for member in archive.infolist()}
        if HEADER not in self.about:
            raise zipfile.BadZipFile(f"no {HEADER}")
        if len(self.about) < len(archive.infolist()):
            raise ValueError("a part appears twice")
        # What is packed may unpack to anything.
        if any(m.compress_size != m.file_size for m in self.about.values()):
            raise ValueError("its parts are compressed")

    @property
    def json_limit(self) -> int:
        arrays = (m.file_size for m in self.about.values() if m.filename.endswith(".npy"))
        return SMALL + JSON_PER_ARRAY * sum(arrays)

    def json(self, name: str, limit: int) -> Any:
        if self.about[name].file_size > limit:
            raise ValueError(f"{name} is longer than {limit:,} bytes")
        return json.loads(self.archive.read(name), parse_float=finite, parse_constant=finite)

    def array(self, name: str) -> np.ndarray[Any, Any]:
        """The array in a .npy file; `np.load` would allocate the size that its header claims."""
        data = io.BytesIO(self.archive.read(name))
        if np.lib.format.read_magic(data) != (1, 0):
            raise ValueError("an array in a newer format")
        shape, by_column, dtype = np.lib.format.read_array_header_1_0(data)
        numbers = data.getbuffer()[data.tell() :]
        if dtype not in DTYPES.values() and dtype.kind != "U":
            raise ValueError(f"an array of {dtype}")
        if math.prod(shape) * dtype.itemsize != len(numbers):
            raise ValueError("an array whose length does not match its header")
        out = np.frombuffer(numbers, dtype).reshape(shape, order="F" if by_column else "C")
        return np.array(out, order="C")


def finite(text: str) -> float:
    """A number of JSON, in which Python would take words for NaN and infinity as well."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a number")
    return value
