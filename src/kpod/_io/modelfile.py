"""Model files that are safe to open: skops archives with a version, never pickles.

A file is a zip archive as `skops.io` writes it, with one member more, `kpod.json`, that says
what it is before anything else is looked at. Only the types listed here are ever made from
one, so a file from somewhere else cannot run code.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kpod import __version__
from kpod._io.files import InputError, printable, written_whole

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

FORMAT = "kpod model"
VERSION = 1
HEADER = "kpod.json"
TRUSTED = ["kpod._estimator.KPOD"]
LARGEST = 1 << 32


@dataclass
class Model:
    """A fitted pipeline (scaling, then KPOD) and what is needed to use it on another table."""

    pipeline: Pipeline
    columns: list[str]
    missing: list[str] = field(default_factory=list)
    kpod_version: str = __version__


def save(model: Model, path: str | os.PathLike[str]) -> None:
    import skops.io

    content = {"pipeline": model.pipeline, "columns": model.columns, "missing": model.missing}
    archive = io.BytesIO(skops.io.dumps(content))
    header = {"format": FORMAT, "version": VERSION, "kpod": __version__}
    with zipfile.ZipFile(archive, "a") as members:
        members.writestr(HEADER, json.dumps(header))
    with written_whole(path) as file:
        file.write(archive.getbuffer())


def load(path: str | os.PathLike[str]) -> Model:
    """The model in a file, or one line on why it is not opened."""
    name = printable(path)
    header = read_header(path, name)
    if header.get("format") != FORMAT or not isinstance(header.get("version"), int):
        raise InputError(f"{name}: is not a kpod model.")
    if header["version"] > VERSION:
        raise InputError(
            f"{name}: was written by a newer kpod ({printable(header.get('kpod'))}), this is {__version__}; "
            "upgrade scikit-kpod to open it."
        )
    import skops.io

    try:
        foreign = sorted(set(skops.io.get_untrusted_types(file=path)) - set(TRUSTED))
        if foreign:
            raise InputError(
                f"{name}: holds {printable(', '.join(foreign[:3]))}, which is no part of a kpod model; "
                "not opened."
            )
        model = checked(skops.io.load(path, trusted=TRUSTED), str(header.get("kpod")))
    except InputError:
        raise
    # Whatever a damaged archive trips over, in skops, NumPy or here, it is damaged.
    except Exception as error:
        raise InputError(
            f"{name}: is damaged ({type(error).__name__}); make the model again with kpod fit --model."
        ) from error
    return model


def read_header(path: str | os.PathLike[str], name: str) -> dict[str, Any]:
    try:
        with zipfile.ZipFile(path) as members:
            if sum(member.file_size for member in members.infolist()) > LARGEST:
                raise InputError(f"{name}: unpacks to more than {LARGEST >> 30} GB; not opened.")
            header = json.loads(members.read(HEADER))
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror}.") from error
    except (zipfile.BadZipFile, KeyError, ValueError, EOFError, RuntimeError, NotImplementedError) as error:
        raise InputError(
            f"{name}: is not a kpod model, or is damaged; kpod fit --model makes one."
        ) from error
    return header if isinstance(header, dict) else {}


def checked(content: Any, version: str) -> Model:
    """What fits together, from an archive whose parts are all of trusted types."""
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import check_is_fitted

    from kpod._estimator import KPOD

    model = Model(content["pipeline"], content["columns"], content["missing"], version)
    if not (isinstance(model.pipeline, Pipeline) and isinstance(model.pipeline[-1], KPOD)):
        raise TypeError("no KPOD in it")
    kpod = model.pipeline[-1]
    check_is_fitted(kpod)
    shape = (kpod.n_clusters, len(model.columns))
    if kpod.cluster_centers_.shape != shape or kpod.counts_.shape != shape:
        raise ValueError("centers and columns do not match")
    if not all(isinstance(text, str) for text in [*model.columns, *model.missing]):
        raise TypeError("names that are not text")
    return model
