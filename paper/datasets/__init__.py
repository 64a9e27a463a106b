"""The paper's three data sets, and how one trial's table is made from them.

A trial is decided by the seed, the table, the mechanism, the percentage and its own number,
and by nothing else: neither the order of the trials, nor who runs them, nor which methods do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from kpod.missingness import mar, mcar, nmar

Make = Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Design:
    """A data set, and the percentages of it that each mechanism removes."""

    name: str
    title: str
    n_clusters: int
    make: Make
    percents: Mapping[str, tuple[int, ...]]
    numbers: tuple[int, int]  # of the paper's tables of Rand scores and of seconds
    mar_columns: tuple[int, ...] = ()


@dataclass(frozen=True, order=True)
class Cell:
    """One scenario of the paper: a table, a mechanism and a percentage."""

    table: str
    mechanism: str
    percent: int

    def __str__(self) -> str:
        return f"{self.table} {self.mechanism} {self.percent} %"


@dataclass(frozen=True)
class Problem:
    """What a method gets: a scaled table with NaN in its gaps, a seed, and so many processor seconds.

    `complete`, the same table without gaps, is for the ceiling alone.
    """

    X: np.ndarray
    complete: np.ndarray
    n_clusters: int
    seed: int
    limit: int


def generator(seed: int, purpose: str, trial: int) -> np.random.Generator:
    return np.random.default_rng([seed, crc32(purpose.encode()), trial])


def make_problem(
    design: Design, cell: Cell, trial: int, seed: int, limit: int = 120
) -> tuple[Problem, np.ndarray]:
    """The table of one trial, and the truth about its rows, which no method sees.

    The complete data are the same at every percentage of a mechanism, as in the paper.
    """
    scenario = f"{cell.table}/{cell.mechanism}"
    complete, truth = design.make(generator(seed, scenario, trial))
    rng = generator(seed, f"{scenario}/{cell.percent}", trial)
    share = cell.percent / 100
    if cell.mechanism == "MCAR":
        X = mcar(complete, share, rng)
    elif cell.mechanism == "MAR":
        X = mar(complete, share, rng, columns=design.mar_columns)
    else:
        X = nmar(complete, share, rng)
    fit_seed = int(generator(seed, f"{scenario}/{cell.percent}/fit", trial).integers(2**31 - 1))
    return Problem(scale(X), scale(complete), design.n_clusters, fit_seed, limit), truth


def scale(X: np.ndarray) -> np.ndarray:
    """R's `scale`: each column less its mean over its standard deviation (n - 1), as observed."""
    return (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0, ddof=1)


def designs() -> dict[str, Design]:
    from paper.datasets import mixtures, wine

    return {design.name: design for design in (wine.WINE, *mixtures.MIXTURES)}
