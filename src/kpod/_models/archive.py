"""Model files that are safe to open: skops archives with a version, never pickles.

A file is a zip archive as `skops.io` writes it, with one member more, `kpod.json`, that says
what it is before anything else is looked at. skops only writes: what is read is made here,
and nothing but the scalers and the KPOD of `ATTRIBUTES` is, each attribute of the shape and
type given there. Sizes are checked before anything is unpacked, so a file from elsewhere can
neither run code nor take more memory than it is long.
"""

from __future__ import annotations

import copy
import io
import json
import os
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from kpod import __version__
from kpod._common.errors import InputError, printable
from kpod._files.atomic import written_whole
from kpod._models.schema import (
    ATTRIBUTES,
    BY_COLUMN,
    DTYPES,
    KINDS,
    KPOD_CLASS,
    MAY_BE_LARGE,
    MAY_LACK,
    MIXTURE,
    MOST_THREADS,
    NOT_KEPT,
    NOT_NEGATIVE,
    OF_GAPS,
    PIPELINE_CLASS,
    POSITIVE,
    SCALER_CLASSES,
)

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

FORMAT = "kpod model"
VERSION = 2
"""1: a scaler and a KPOD; 2: or a TableEncoder and a KPOD, whose number of clusters may have been chosen. The
lowest that will do is written."""
HEADER = "kpod.json"
SCHEMA = "schema.json"
SMALL = 1 << 20
"""The most bytes of a header, of a trace, and of a schema but for what columns need."""
SCHEMA_PER_ARRAY = 32
"""Names take room in the schema, and each column takes room in several arrays."""


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
    """Of each column, one of `KINDS`; empty where nobody knows."""


class ForeignError(Exception):
    """Something that a kpod model never contains."""

    def __init__(self, what: object) -> None:
        super().__init__(printable(str(what)[:100]))


class NewerError(Exception):
    """The version that wrote a file in a newer format."""


def save(model: Model, path: str | os.PathLike[str]) -> None:
    import skops.io
    from sklearn.pipeline import Pipeline

    from kpod._columns.encoder import TableEncoder
    from kpod._models import encoder_json, number_json

    *before, (name, kpod) = model.pipeline.steps
    encoder = before[0][1] if len(before) == 1 and isinstance(before[0][1], TableEncoder) else None
    scalers = [] if encoder else [(step, bare(scaler)) for step, scaler in before]
    content = {
        "pipeline": Pipeline([*scalers, (name, bare(kpod))]),
        "columns": model.columns,
        "missing": model.missing,
        "kinds": model.kinds,
    }
    if encoder:
        content["encoder"] = encoder_json.to_json(encoder)
    chosen = kpod.n_clusters == "auto"
    if chosen and hasattr(kpod, "choice_"):
        content["choice"] = number_json.to_json(kpod.choice_)
    archive = io.BytesIO(skops.io.dumps(content))
    header = {
        "format": FORMAT,
        "version": VERSION if encoder or chosen else 1,
        "kpod": __version__,
        "named": model.named,
    }
    with zipfile.ZipFile(archive, "a") as members:
        members.writestr(HEADER, json.dumps(header))
    check_readable(archive)
    with written_whole(path) as file:
        file.write(archive.getbuffer())


def bare(estimator: Any) -> Any:
    """A copy with its parameters and what is fitted, and nothing that somebody else has set."""
    which = f"{type(estimator).__module__}.{type(estimator).__qualname__}"
    kept = {*estimator.get_params(), *ATTRIBUTES[which]} - NOT_KEPT
    out = copy.copy(estimator)
    for name in vars(estimator).keys() - kept:
        delattr(out, name)
    return out


def check_readable(archive: io.BytesIO) -> None:
    """See that what is about to be written will be opened."""
    try:
        with zipfile.ZipFile(archive) as members:
            read_archive(members)
    except (ForeignError, TypeError, ValueError) as error:
        raise ValueError(f"This model cannot be saved: {error}.") from error


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
    """The model in an archive, whose header says which version of the format it has."""
    members = Members(archive)
    header = members.json(HEADER, SMALL)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise zipfile.BadZipFile("not a kpod model")
    if not isinstance(header.get("version"), int) or header["version"] > VERSION:
        raise NewerError(printable(header.get("kpod")))
    model = read_model(members, str(header.get("kpod")))
    # Files before this was noted: names that may have been made up were taken for such.
    made_up = all(re.fullmatch(r"x\d+", name) for name in model.columns)
    model.named = bool(header.get("named", not made_up))
    return model


class Members:
    """The members of an archive; nothing larger than allowed is unpacked."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self.archive = archive
        self.about = {member.filename: member for member in archive.infolist()}
        if HEADER not in self.about:
            raise zipfile.BadZipFile(f"no {HEADER}")
        if len(self.about) < len(archive.infolist()):
            raise ValueError("a part appears twice")
        # skops stores; what is packed may unpack to anything.
        if any(m.compress_type != zipfile.ZIP_STORED or m.compress_size != m.file_size for m in self):
            raise ValueError("its parts are compressed")

    def __iter__(self) -> Iterator[zipfile.ZipInfo]:
        return iter(self.about.values())

    @property
    def schema_limit(self) -> int:
        return SMALL + SCHEMA_PER_ARRAY * sum(m.file_size for m in self if m.filename.endswith(".npy"))

    def read(self, name: str, limit: int) -> bytes:
        if self.about[name].file_size > limit:
            raise ValueError(f"{name} is longer than {limit:,} bytes")
        return self.archive.read(name)

    def json(self, name: str, limit: int) -> Any:
        return json.loads(self.read(name, limit))

    def array(self, name: str, limit: int) -> np.ndarray[Any, Any]:
        """What a .npy file holds; `np.load` would make room for what its first bytes claim."""
        data = io.BytesIO(self.read(name, limit))
        if np.lib.format.read_magic(data) != (1, 0):
            raise ValueError("an array in a newer format")
        shape, by_column, dtype = np.lib.format.read_array_header_1_0(data)
        numbers = data.getbuffer()[data.tell() :]
        if dtype not in DTYPES:
            raise ValueError(f"an array of {dtype}")
        if int(np.prod(shape, dtype=object)) * dtype.itemsize != len(numbers):
            raise ValueError("an array whose length does not match its header")
        out = np.frombuffer(numbers, dtype).reshape(shape, order="F" if by_column else "C")
        return np.array(out, order="C")


def read_model(members: Members, version: str) -> Model:
    """Make the model, from the top of the schema down."""
    from sklearn.pipeline import Pipeline

    top = items(members.json(SCHEMA, members.schema_limit))
    columns, missing = strings(top["columns"]), strings(top["missing"])
    if len(set(columns)) < len(columns) or not columns:
        raise ValueError("column names are missing, or appear twice")
    kinds = strings(top["kinds"]) if "kinds" in top else []
    if kinds and (len(kinds) != len(columns) or not set(kinds) <= set(KINDS)):
        raise ValueError("kinds and columns do not match")
    pipeline = top["pipeline"]
    if class_of(pipeline) != PIPELINE_CLASS:
        raise ForeignError(class_of(pipeline))
    about = items(pipeline["content"])
    if plain(about["memory"]) is not None:
        raise ForeignError("a pipeline with a memory")
    steps = [elements(step, "tuple") for step in elements(about["steps"], "list")]
    *before, last = [(str(plain(name)), step) for name, step in steps]
    if len(before) > 1 or class_of(last[1]) != KPOD_CLASS:
        raise ForeignError(", ".join(class_of(step) for _, step in [*before, last]))
    about = items(last[1]["content"])
    k = plain(about["n_clusters"])
    if k == "auto":
        k = plain(about["_n_features_out"])
    if type(k) is not int or k < 1:
        raise ValueError("invalid n_clusters")
    encoder = None
    if "encoder" in top:
        from kpod._models import encoder_json

        encoder = encoder_json.from_json(str(plain(top["encoder"])))
        if before or encoder.n_features_in_ != len(columns):
            raise ValueError("encoder and columns do not match")
    maker = Maker(members, {"k": k, "p": encoder._n_features_out if encoder else len(columns)})
    kpod = maker.make(last[1], (KPOD_CLASS,))
    scalers = [(name, maker.make(step, SCALER_CLASSES)) for name, step in before]
    if "choice" in top:
        from kpod._models import number_json

        kpod.choice_ = number_json.from_json(str(plain(top["choice"])), k)
    check_values([kpod, *(scaler for _, scaler in scalers)], kpod)
    first = [("encode", encoder)] if encoder else scalers
    return Model(Pipeline([*first, (last[0], kpod)]), columns, missing, version, kinds=kinds)


class Maker:
    """Makes estimators of which every attribute is listed, for given numbers of clusters and columns."""

    def __init__(self, members: Members, sizes: dict[str, int]) -> None:
        self.members, self.sizes = members, sizes

    def make(self, node: Any, allowed: tuple[str, ...]) -> Any:
        """The estimator a node describes, its class one of those allowed."""
        which = class_of(node)
        if which not in allowed:
            raise ForeignError(which)
        estimator = new(which)
        parameters, known, state = estimator.get_params(), ATTRIBUTES[which], {}
        for name, value in items(node["content"]).items():
            if name in NOT_KEPT:
                continue
            if name in parameters:
                state[name] = plain(value)
            elif name in known:
                state[name] = self.attribute(name, value, *known[name])
            else:
                raise ForeignError(f"{which}.{name}")
        lacking = [name for name in [*parameters, *known] if name not in state and name not in MAY_LACK]
        if lacking:
            raise ValueError(f"{lacking[0]} is missing")
        threads = state.get("n_threads")
        if threads is not None and not (type(threads) is int and 1 <= threads <= MOST_THREADS):
            raise ValueError("invalid n_threads")
        if state["n_features_in_"] != self.sizes["p"]:
            raise ValueError("centers and columns do not match")
        estimator.__setstate__(state)
        return estimator

    def attribute(self, name: str, node: Any, shape: str, kinds: str) -> Any:
        """A number, a text or an array of the shape and kind it must have."""
        if node["__loader__"] == "JsonNode":
            value = plain(node)
            found: tuple[int, ...] = ()
            kind = {bool: "b", int: "i", float: "f", str: "U"}.get(type(value), "nothing")
        else:
            if node["__loader__"] != "NdArrayNode" or node["type"] != "numpy":
                raise ForeignError(f"{class_of(node)} as {name}")
            value = self.members.array(node["file"], self.limit(shape))
            found, kind = value.shape, value.dtype.kind
            value = value if found else value.item()
        expected = [tuple(self.sizes[axis] for axis in shape.split() if axis in self.sizes)]
        if shape == "p or one":
            expected.append(())
        if shape == "iterations":
            expected = [(len(value),)] if len(found) == 1 else []
        if found not in expected or kind not in kinds:
            raise ValueError(f"{name} has the wrong shape or type")
        return value

    def limit(self, shape: str) -> int:
        """Bytes: of the numbers, and of the preamble of a .npy file."""
        if shape == "iterations":
            return SMALL
        sizes = [self.sizes[axis] for axis in shape.split() if axis in self.sizes]
        return 1024 + 8 * int(np.prod(sizes, dtype=object))


def check_values(estimators: list[Any], kpod: Any) -> None:
    """Numbers that can be computed with; NaN only in a column of which nothing was observed."""
    from kpod._inputs.validation import largest

    unobserved = np.isnan(kpod.column_means_)
    if unobserved.all():
        raise ValueError("nothing observed in any column")
    most = largest(np.float64, len(unobserved))
    for estimator in estimators:
        for name, value in vars(estimator).items():
            if not isinstance(value, float | np.ndarray):
                continue
            numbers = np.asarray(value, dtype=np.float64)
            if numbers.ndim and name in BY_COLUMN:
                numbers = numbers[..., ~unobserved]
            wrong = ~(np.abs(numbers) < (np.inf if name in MAY_BE_LARGE else most))
            if name in POSITIVE:
                wrong |= numbers <= 0
            elif name in NOT_NEGATIVE:
                wrong |= numbers < 0
            if wrong.any():
                raise ValueError(f"{name} holds {numbers[wrong][0]:g}")
    if not kpod._groups().is_valid:
        raise ValueError("column_groups_ are not numbers from 0 in order")
    names = OF_GAPS if hasattr(kpod, "missing_rates_") else MIXTURE
    there = [name for name in names if hasattr(kpod, name)]
    if len(there) < (len(names) if there or kpod.probability else 0):
        raise ValueError(f"one of {', '.join(names)} is missing")
    if names is OF_GAPS and not (kpod.missing_rates_ <= 1).all():
        raise ValueError("missing_rates_ are above 1")
    if there and not np.isclose(kpod.cluster_shares_.sum(), 1):
        raise ValueError("cluster_shares_ do not add up to 1")


def new(which: str) -> Any:
    from sklearn.preprocessing import StandardScaler

    from kpod import KPOD, ObservedScaler

    return {KPOD_CLASS: KPOD, SCALER_CLASSES[0]: StandardScaler, SCALER_CLASSES[1]: ObservedScaler}[which]()


# The nodes of a skops schema
MOVED = {"kpod._estimator.KPOD": KPOD_CLASS, "kpod._scaler.ObservedScaler": SCALER_CLASSES[1]}
"""Where files of version 0.1 say that a class is."""


def class_of(node: Any) -> str:
    which = f"{node['__module__']}.{node['__class__']}"
    return MOVED.get(which, which)


def expect(node: Any, which: str, loader: str) -> Any:
    if class_of(node) != which or node["__loader__"] != loader:
        raise ForeignError(class_of(node))
    return node["content"]


def items(node: Any) -> dict[str, Any]:
    content = expect(node, "builtins.dict", "DictNode")
    if not isinstance(content, dict):
        raise TypeError("a part has the wrong type")
    return content


def elements(node: Any, which: str) -> list[Any]:
    content = expect(node, f"builtins.{which}", f"{which.capitalize()}Node")
    if not isinstance(content, list):
        raise TypeError("a part has the wrong type")
    return content


def plain(node: Any) -> Any:
    """A text, a number, a truth value or None."""
    if node["__loader__"] != "JsonNode":
        raise ForeignError(class_of(node))
    value = json.loads(node["content"])
    if not isinstance(value, str | int | float | bool | None):
        raise TypeError("a setting has the wrong type")
    return value


def strings(node: Any) -> list[str]:
    found = [plain(element) for element in elements(node, "list")]
    if not all(isinstance(text, str) for text in found):
        raise TypeError("names that are not text")
    return found
