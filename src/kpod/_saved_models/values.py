"""The values of a model as JSON and arrays, which restore them exactly.

JSON has null, truth values, text, lists, integers and finite numbers of its own. Everything else is an object
with one key for its type: {"tuple": [...]}, {"dict": [[key, value], ...]}, {"float": "nan"},
{"int64": 3}, {"array": "0.npy"}, {"KPOD": {"n_clusters": 3, ...}}. Nothing is imported or called by its name:
names are looked up here and in the registry.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from kpod._saved_models import saved_classes

SIZES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")
DTYPES = {name: np.dtype(name) for name in ("bool", *SIZES)}


def object_array(parts: Any) -> Any:
    """From a shape and the entries."""
    out = np.empty(len(parts[1]), dtype=object)
    out[:] = parts[1]
    return out.reshape(parts[0])


MAKERS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "dict": dict,
    "objects": object_array,
    **{name: dtype.type for name, dtype in DTYPES.items()},
}


def from_json(node: Any, read_array: Callable[[str], Any]) -> Any:
    """The value of a JSON node."""
    if isinstance(node, list):
        return [from_json(one, read_array) for one in node]
    if not isinstance(node, dict):
        return node
    ((kind, content),) = node.items()
    if kind == "array":
        return read_array(content)
    if kind in MAKERS:
        return MAKERS[kind](from_json(content, read_array))
    return saved_classes.make(kind, {key: from_json(one, read_array) for key, one in content.items()})


def to_json(value: Any, arrays: list[Any]) -> Any:
    """A value as `json` takes it; arrays of numbers, truth values or text are added to a list."""
    kind = type(value)
    if value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value)):
        return value
    if kind is list:
        return [to_json(one, arrays) for one in value]
    if kind in (tuple, set, frozenset):
        members = [to_json(one, arrays) for one in value]
        return {kind.__name__: members if kind is tuple else sorted(members, key=repr)}
    if kind is dict:
        return {"dict": [[to_json(key, arrays), to_json(one, arrays)] for key, one in value.items()]}
    name, content = parts_of(value, arrays)
    return {name: content}


def parts_of(value: Any, arrays: list[Any]) -> tuple[str, Any]:
    """The kind and the parts of a value that JSON cannot represent."""
    if type(value) is float:
        return "float", repr(value)
    if not isinstance(value, np.generic | np.ndarray):
        name, state = saved_classes.state_of(value)
        return name, {key: to_json(one, arrays) for key, one in state.items()}
    if value.dtype == object:
        return "objects", [list(value.shape), [to_json(one, arrays) for one in value.ravel()]]
    if value.dtype not in DTYPES.values() and (value.dtype.kind != "U" or isinstance(value, np.generic)):
        raise saved_classes.ForeignError(f"{value.dtype} of NumPy")
    if isinstance(value, np.generic):
        return value.dtype.name, to_json(value.item(), arrays)
    arrays.append(np.asarray(value, order="C"))
    return "array", f"{len(arrays) - 1}.npy"
