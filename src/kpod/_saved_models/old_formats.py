"""Model files of format 1 and 2, written by way of skops: its schema read as what a file of today contains.

Only what such a file of kpod can hold is understood, and what comes out is checked as any other model is.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from kpod._saved_models.saved_classes import ForeignError, make

if TYPE_CHECKING:
    from kpod._saved_models.model_file_format import Members

SCHEMA = "schema.json"
CLASSES = {
    "kpod._estimator.KPOD": "KPOD",
    "kpod._estimators.kpod.KPOD": "KPOD",
    "kpod._scaler.ObservedScaler": "ObservedScaler",
    "kpod._estimators.observed_scaler.ObservedScaler": "ObservedScaler",
    "sklearn.preprocessing._data.StandardScaler": "StandardScaler",
}
NOT_KEPT = ("_sklearn_version", "checkpoint", "labels_")


def content_of(members: Members, header: dict[str, Any]) -> dict[str, Any]:
    """The steps of the model, its columns, and the like."""
    top = items(members.json(SCHEMA, members.json_limit))
    parts = {name: value(top[name], members) for name in top.keys() - {"pipeline"}}
    if class_of(top["pipeline"]) != "sklearn.pipeline.Pipeline":
        raise ForeignError(class_of(top["pipeline"]))
    pipeline = items(top["pipeline"]["content"])
    if value(pipeline["memory"], members) is not None:
        raise ForeignError("a pipeline with a memory")
    steps = value(pipeline["steps"], members)
    if "encoder" in parts:  # of a version that was never released
        raise ForeignError("a table encoder")
    if "choice" in parts:
        steps[-1][1].choice_ = choice(json.loads(parts.pop("choice")))
    # Files before this was noted: names that may have been made up were taken for such.
    made_up = all(re.fullmatch(r"x\d+", name) for name in parts["columns"])
    return {"steps": steps, "kinds": [], "named": bool(header.get("named", not made_up)), **parts}


def class_of(node: Any) -> str:
    return f"{node['__module__']}.{node['__class__']}"


def value(node: Any, members: Members) -> Any:
    """The value of a node."""
    loader, which = node["__loader__"], class_of(node)
    if loader == "JsonNode":
        return json.loads(node["content"])
    if loader == "NdArrayNode" and node["type"] == "numpy":
        array = members.array(node["file"])
        return array if array.ndim else array.item()
    if loader == "ObjectNode" and which in CLASSES:
        state = items(node["content"])
        return make(CLASSES[which], {k: value(v, members) for k, v in state.items() if k not in NOT_KEPT})
    if loader not in ("ListNode", "TupleNode"):
        raise ForeignError(which)
    return [value(one, members) for one in node["content"]]


def items(node: Any) -> dict[str, Any]:
    """The nodes in a dictionary."""
    if node["__loader__"] != "DictNode":
        raise ForeignError(class_of(node))
    return dict(node["content"])


def choice(kept: dict[str, Any]) -> Any:
    """Why there are so many clusters; numbers by k beside all others, None for NaN."""
    lists = {name: value for name, value in kept.items() if isinstance(value, list)}
    table = {name: np.array(value, int if name == "k" else float) for name, value in lists.items()}
    plain = {name: value for name, value in kept.items() if name not in lists}
    return make("KChoice", {**plain, "table_": table, "column_errors_": None})
