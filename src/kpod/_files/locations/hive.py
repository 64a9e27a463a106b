"""Folders whose names are columns: year=2024/month=01/part-0.parquet, as Hive and Spark write them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

from kpod._files.locations.part import Part

NULL = "__HIVE_DEFAULT_PARTITION__"
KEY = re.compile(r"([^=]+)=(.*)")
WHOLE = re.compile(r"-?\d{1,18}")


def is_key(folder: str) -> bool:
    return KEY.fullmatch(folder) is not None


def keys_in(path: str) -> dict[str, str | None]:
    """The keys and values that the folders of a path (relative to that of the table) have for names."""
    found = (KEY.fullmatch(folder) for folder in PurePosixPath(path).parts[:-1])
    pairs = ((unquote(match[1]), unquote(match[2])) for match in found if match)
    return {key: None if value == NULL else value for key, value in pairs}


def with_keys(parts: Sequence[Part], relative: Sequence[str]) -> list[Part]:
    """Parts with their partition columns, if all have the same ones."""
    keys = [keys_in(path) for path in relative]
    if not keys or not keys[0] or any(one.keys() != keys[0].keys() for one in keys):
        return list(parts)
    kept = {name: numbers_of([one[name] for one in keys]) for name in keys[0]}
    return [
        replace(part, keys={name: values[i] for name, values in kept.items()}) for i, part in enumerate(parts)
    ]


def numbers_of(values: list[str | None]) -> list[Any]:
    """Whole numbers where all values are; text where one is not."""
    known = [value for value in values if value is not None]
    if not known or not all(WHOLE.fullmatch(value) for value in known):
        return list(values)
    return [None if value is None else int(value) for value in values]
