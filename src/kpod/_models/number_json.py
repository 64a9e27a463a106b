"""Why a model has its number of clusters, as JSON inside a model file: checked before it is believed."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from kpod._common.words import finite
from kpod._selection.number import COLUMNS, KChoice

MOST_TRIED = 10_000
PLAIN = {
    "best_k_": int,
    "clear_": bool,
    "reason_": str,
    "sentence_": str,
    "centers_k_": int,
    "correlated_": bool,
    "n_hidden_": int,
    "n_rows_": int,
    "gaps_": bool,
}


def to_json(choice: KChoice) -> str:
    """Everything but the errors by column, which grow with the table."""
    table = {name: [finite(value) for value in choice.table_[name]] for name in COLUMNS}
    plain = {name: kind(getattr(choice, name)) for name, kind in PLAIN.items()}
    return json.dumps({**plain, "k": [int(k) for k in choice.table_["k"]], **table})


def from_json(text: str, k: int) -> KChoice:
    """The choice of a model with k clusters, or a ValueError on what is wrong with it."""
    content = {"gaps_": False, **json.loads(text)}  # before gaps were predicted, too
    plain = {name: content[name] for name in PLAIN}
    if any(type(plain[name]) is not kind for name, kind in PLAIN.items()) or plain["best_k_"] != k:
        raise ValueError("invalid choice of the number of clusters")
    tried = content["k"]
    if not isinstance(tried, list) or not 0 < len(tried) <= MOST_TRIED:
        raise ValueError("invalid numbers of clusters tried")
    if any(type(number) is not int or number < 1 for number in tried):
        raise ValueError("invalid numbers of clusters tried")
    table: dict[str, Any] = {"k": np.array(tried)}
    for name in COLUMNS:
        table[name] = numbers(name, content[name], len(tried))
    return KChoice(**plain, table_=table, column_errors_=None)


def numbers(name: str, content: Any, n: int) -> Any:
    """A list of n numbers, None for NaN."""
    if not isinstance(content, list) or len(content) != n:
        raise ValueError(f"{name} is not a list of numbers")
    if any(
        value is not None and (type(value) not in (int, float) or not math.isfinite(value))
        for value in content
    ):
        raise ValueError(f"{name} is not a list of numbers")
    return np.array([np.nan if value is None else float(value) for value in content])
