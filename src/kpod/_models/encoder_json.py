"""A TableEncoder as JSON inside a model file: levels and numbers, each checked before one is made of them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from kpod._columns.encoded_column import CATEGORY, NUMBER, ORDERED
from kpod._columns.encoder import SCALES, TableEncoder

ARRAYS = ("mean_", "scale_", "weights_", "offset_", "low_", "high_")
MAY_BE_ODD = {"offset_": "nan", "low_": "-inf", "high_": "inf"}
FRAMES = ("pandas", "polars", "pyarrow", "array")


def to_json(encoder: TableEncoder) -> str:
    arrays = {name: [repr(float(value)) for value in getattr(encoder, name)] for name in ARRAYS}
    names = [str(name) for name in getattr(encoder, "feature_names_in_", ())]
    return json.dumps({
        "kinds": encoder.kinds_, "levels": encoder.levels_, "names": names, "frame": encoder._frame,
        "scale": encoder.scale, "clip": encoder.clip, "dates": encoder.dates, "log": names_of_log(encoder),
        **arrays,
    })  # fmt: skip


def names_of_log(encoder: TableEncoder) -> list[int]:
    return [int(j) for j in np.flatnonzero(~np.isnan(encoder.offset_))]


def from_json(text: str) -> TableEncoder:
    """The encoder, or a ValueError on what is wrong with it."""
    content = json.loads(text)
    kinds, levels, names = content["kinds"], content["levels"], content["names"]
    if not (isinstance(kinds, list) and kinds and set(kinds) <= {NUMBER, CATEGORY, ORDERED}):
        raise ValueError("invalid kinds of columns")
    are_lists = isinstance(levels, list) and all(isinstance(level, list) for level in levels)
    if not are_lists or not all(isinstance(word, str) for level in levels for word in level):
        raise ValueError("levels are not text")
    if any(len(set(level)) < len(level) for level in levels):
        raise ValueError("levels appear twice")
    if len(levels) != len(kinds) or (names and len(names) != len(kinds)) or not all_text(names):
        raise ValueError("columns of the encoder do not match")
    if (
        content["scale"] not in SCALES
        or content["frame"] not in FRAMES
        or content["dates"] not in ("refuse", "number")
    ):
        raise ValueError("invalid settings of the encoder")
    ordered = {
        names[j] if names else j: level
        for j, (kind, level) in enumerate(zip(kinds, levels, strict=True))
        if kind == ORDERED
    }
    encoder = TableEncoder(
        categories=[names[j] if names else j for j, kind in enumerate(kinds) if kind == CATEGORY],
        ordered=ordered or None, scale=content["scale"], dates=content["dates"],
    )  # fmt: skip
    for name in ARRAYS:
        setattr(encoder, name, numbers(name, content[name], len(kinds)))
    encoder.log = [names[j] if names else j for j in names_of_log(encoder)]
    clip = content["clip"]
    if clip is not None and not (isinstance(clip, float) and 0 < clip < 0.5):
        raise ValueError("clip is not a share of the entries")
    if not (encoder.low_ <= encoder.high_).all():
        raise ValueError("low_ is above high_")
    encoder.clip = clip
    encoder.kinds_, encoder.levels_, encoder._frame = kinds, levels, content["frame"]
    encoder.n_features_in_ = len(kinds)
    if names:
        encoder.feature_names_in_ = np.asarray(names, dtype=object)
    encoder._n_features_out = sum(encoder._widths())
    return encoder


def all_text(names: Any) -> bool:
    return isinstance(names, list) and all(isinstance(name, str) for name in names)


def numbers(name: str, content: Any, n: int) -> Any:
    if not isinstance(content, list) or len(content) != n or not all_text(content):
        raise ValueError(f"{name} is not a list of numbers")
    out = np.array([float(text) for text in content])
    odd = [text for text, value in zip(content, out, strict=True) if not abs(value) < 1e150]
    if any(text != MAY_BE_ODD.get(name) for text in odd):
        raise ValueError(f"{name} holds {odd[0]}")
    if name in ("scale_", "weights_") and not (out > 0).all():
        raise ValueError(f"{name} is not positive")
    return out
