"""The methods compared, one small file each.

A method takes a `Problem` and returns one `Clustering` for each of its rows in the tables: filling
in a table takes long, so k-means with one start and with ten share it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import TypeVar

import numpy as np

from paper.datasets import Problem

Result = TypeVar("Result")


class MethodError(Exception):
    """The method gave no clustering; the message says why."""


class OverTimeError(MethodError):
    """It used up its time."""


@dataclass(frozen=True)
class Clustering:
    """The labels found, and the seconds it took to find them."""

    labels: np.ndarray
    seconds: float


def timed(function: Callable[[], Result]) -> tuple[Result, float]:
    """A result and the seconds it took: by the clock, whose ticks are fine enough for short ones;
    beyond one second, of the processor, so that what else the machine does, does not count.
    """
    began, spent = perf_counter(), process_time()
    result = function()
    elapsed, processor = perf_counter() - began, process_time() - spent
    return result, elapsed if elapsed < 1 else min(elapsed, processor)


RESTS_ON_SKLEARN = ("python", "numpy", "scikit-learn")
RESTS_ON_KPOD = ("kpod", *RESTS_ON_SKLEARN)


@dataclass(frozen=True)
class Method:
    """A way to cluster an incomplete table.

    Attributes
    ----------
    name : as on the command line
    rows : name and title of each of its rows in the tables
    fit : takes a problem, returns a clustering for each row, in order
    packages : those that its results rest on; with another version of one, they are run again
    missing : says what is not installed, or returns None
    mechanisms : those it can be used under; None for all
    published : whether the paper has it
    """

    name: str
    rows: dict[str, str]
    fit: Callable[[Problem], list[Clustering]]
    packages: tuple[str, ...]
    missing: Callable[[], str | None] = lambda: None
    mechanisms: tuple[str, ...] | None = None
    published: bool = False


def methods() -> dict[str, Method]:
    from paper.methods import (
        amelia,
        auto,
        complete,
        default,
        deletion,
        informative,
        iterative,
        mean,
        mi,
        mice,
        neighbours,
        published,
        shapes,
        soft,
        stepmix,
    )

    modules = (
        published, default, informative, auto, shapes, amelia, mi, mice, deletion, soft, mean, neighbours,
        iterative, stepmix, complete,
    )  # fmt: skip
    return {module.METHOD.name: module.METHOD for module in modules}


def titles() -> dict[str, str]:
    """The rows of the tables, in order."""
    return {row: title for method in methods().values() for row, title in method.rows.items()}
