"""How the columns of a table become columns of equal weight, and back.

A table of *values* has a column for each column of the user's: numbers as they are, levels by their place
in the list of levels, NaN in the gaps. *Encoded*, numbers are centred and scaled, and a category of more
than two levels has a column for each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np

from kpod._columns.preparing.transforms import TO_NORMAL, limits, log_offset
from kpod._common.options import option
from kpod._common.typing import AnyFloats, Floats
from kpod._engine.executors import Executor
from kpod._engine.table import make_table

NUMBER, CATEGORY, ORDERED = "number", "category", "ordered"
SCALES = ("auto", "standard", "robust", "none")
UNSEEN = -1.0
"""The place of a level that was not there when the levels were learnt: it is none of them."""


@dataclass(frozen=True)
class Encoding:
    """The fitted encoding of each column: kind, levels, and the values to subtract and divide by."""

    names: list[str]
    kinds: list[str]
    levels: list[list[str]]
    mean: Floats
    scale: Floats
    weights: Floats
    """The square roots of the weights of the columns."""
    offset: Floats
    """What is added before the logarithm is taken; NaN for none."""
    low: Floats
    high: Floats
    """What values are clipped at."""

    @classmethod
    def plain(cls, names: Sequence[str], mean: Any, scale: Any) -> Encoding:
        """Of numbers that are centred and scaled, and nothing else."""
        p = len(names)
        return cls(
            list(names), [NUMBER] * p, [[] for _ in names], np.asarray(mean), np.asarray(scale), np.ones(p),
            np.full(p, np.nan), np.full(p, -np.inf), np.full(p, np.inf),
        )  # fmt: skip

    def indicators(self, j: int) -> list[str]:
        """The levels of a column that get an indicator each; none if it is a single column of numbers."""
        levels = self.levels[j] if self.kinds[j] == CATEGORY else []
        return [] if len(levels) == 2 else levels

    @property
    def logs(self) -> list[str]:
        """The columns whose logarithms are taken."""
        return [self.names[j] for j in np.flatnonzero(np.isfinite(self.offset))]

    def limited(self, j: int) -> bool:
        """Whether values of a column beyond some limits count as these."""
        return bool(np.isfinite(self.low[j]) or np.isfinite(self.high[j]))

    @property
    def bent(self) -> Any:
        """Of each column, whether logarithms are taken or values clipped."""
        return np.isfinite(self.offset) | np.isfinite(self.low) | np.isfinite(self.high)

    @property
    def widths(self) -> list[int]:
        return [max(1, len(self.indicators(j))) for j in range(len(self.names))]

    @property
    def names_out(self) -> list[str]:
        """The names of the encoded columns: the column, or column=level; of two levels, the second."""
        out: list[str] = []
        for j, name in enumerate(self.names):
            levels = self.levels[j] if self.kinds[j] == CATEGORY else []
            shown = levels[1:] if len(levels) == 2 else levels
            out += [f"{name}={level}" for level in shown] or [name]
        return out

    def bend(self, values: AnyFloats) -> AnyFloats:
        """Take logarithms and clip, in place."""
        for j in np.flatnonzero(self.bent):
            column = values[:, j]
            if np.isfinite(self.offset[j]):
                column = logarithm(column, self.offset[j], self.names[j])
            values[:, j] = np.clip(column, self.low[j], self.high[j])
        return values

    def encode(self, values: AnyFloats) -> AnyFloats:
        """The encoded columns of values that were bent; in place where every column stays one."""
        if not any(self.indicators(j) for j in range(len(self.names))):
            for j in range(len(self.names)):
                values[:, j] = self.scaled(values[:, j], j)
            return values
        out = np.empty((len(values), sum(self.widths)), values.dtype)
        for j, block in enumerate(self.blocks(out)):
            levels = self.indicators(j)
            if not levels:
                block[:, 0] = self.scaled(values[:, j], j)
                continue
            block[:] = (values[:, [j]] == np.arange(len(levels))) * (self.weights[j] / self.scale[j])
            block[np.isnan(values[:, j])] = np.nan
        return out

    def scaled(self, column: AnyFloats, j: int) -> Floats:
        centred = (np.asarray(column, np.float64) - self.mean[j]) / self.scale[j]
        return centred if self.weights[j] == 1 else centred * self.weights[j]

    def blocks(self, encoded: Any) -> list[Any]:
        """The encoded columns of each column."""
        return [encoded[:, a:b] for a, b in pairwise(np.cumsum([0, *self.widths]))]

    def numbers_back(self, encoded: Floats, j: int) -> Floats:
        out = encoded * self.scale[j] / self.weights[j] + self.mean[j]
        return out if np.isnan(self.offset[j]) else np.exp(out) - self.offset[j]

    def level_shares(self, block: Floats, j: int) -> Floats:
        """Of the encoded columns of a category, the share of each of its levels."""
        shares = np.clip(block * self.scale[j] / self.weights[j] + self.mean[j], 0, 1)
        return np.hstack([1 - shares, shares]) if len(self.levels[j]) == 2 else shares

    def in_units(self, encoded: Floats) -> Floats:
        """Encoded values in units one can read: numbers as they were, ranks, shares of levels."""
        columns = []
        for j, block in enumerate(self.blocks(encoded)):
            if self.kinds[j] == CATEGORY:
                columns.append(self.level_shares(block, j)[:, -block.shape[1] :])
            else:
                columns.append(self.numbers_back(block[:, 0], j)[:, None])
        return np.hstack(columns) if columns else encoded

    def readable(self, values: AnyFloats) -> Floats:
        """A table of values in the columns of the encoding, but in units one can read."""
        if not any(self.indicators(j) for j in range(len(self.names))):
            return np.asarray(values, np.float64)
        out = np.empty((len(values), sum(self.widths)))
        for j, block in enumerate(self.blocks(out)):
            levels = self.indicators(j)
            block[:] = values[:, [j]] == np.arange(len(levels)) if levels else values[:, [j]]
            block[np.isnan(values[:, j])] = np.nan
        return out

    def decode(self, encoded: Floats) -> dict[str, Any]:
        """From encoded rows or centers back to the columns: numbers in their units, the commonest level."""
        data: dict[str, Any] = {}
        for j, (name, block) in enumerate(zip(self.names, self.blocks(encoded), strict=True)):
            if self.kinds[j] == CATEGORY:
                data[name] = most_common(self.level_shares(block, j), self.levels[j])
                continue
            values = self.numbers_back(block[:, 0], j)
            data[name] = of_rank(values, self.levels[j]) if self.kinds[j] == ORDERED else values
        return data


PLAIN = tuple(field.name for field in fields(Encoding))


def learn_encoding(
    names: Sequence[str],
    kinds: Sequence[str],
    levels: Sequence[Sequence[str]],
    values: AnyFloats,
    *,
    scale: str,
    log: Sequence[str],
    clip: float | None,
    column_weights: Floats,
    limited: Sequence[str] = (),
) -> Encoding:
    """Learn how to encode a table of values, which is bent on the way."""
    p = len(names)
    encoding = Encoding(
        list(names), list(kinds), [list(of_column) for of_column in levels], np.zeros(p), np.ones(p),
        np.sqrt(column_weights), np.full(p, np.nan), np.full(p, -np.inf), np.full(p, np.inf),
    )  # fmt: skip
    for j in range(p):
        learn_bend(encoding, values[:, j], j, log=names[j] in log, limited=names[j] in limited, clip=clip)
    encoding.bend(values)
    numbers = [j for j in range(p) if not encoding.indicators(j)]
    if scale in ("auto", "standard") and numbers:
        part = values if len(numbers) == p else np.ascontiguousarray(values[:, numbers])
        encoding.mean[numbers], encoding.scale[numbers] = means_and_spreads(part)
    for j in range(p):
        if encoding.indicators(j):
            encoding.scale[j] = scale_of_indicators(values[:, j], len(levels[j]), scale)
        elif scale == "robust":
            encoding.mean[j], encoding.scale[j] = median_and_range(values[:, j])
    return encoding


def learn_bend(
    encoding: Encoding, column: AnyFloats, j: int, *, log: bool, limited: bool, clip: float | None
) -> None:
    if encoding.kinds[j] == CATEGORY or not (log or limited or clip is not None):
        return
    values = np.asarray(column[~np.isnan(column)], np.float64)
    if log:
        encoding.offset[j] = log_offset(values)
        values = logarithm(values, encoding.offset[j], encoding.names[j])
    if clip is not None and len(values) and not is_binary(values):
        encoding.low[j], encoding.high[j] = np.quantile(values, [clip, 1 - clip])
    elif limited:
        encoding.low[j], encoding.high[j] = limits(values) or (-np.inf, np.inf)


def logarithm(values: AnyFloats, offset: float, name: str) -> Floats:
    with np.errstate(invalid="ignore"):
        low = values + offset <= 0
    if low.any():
        use = option("--log")
        raise ValueError(
            f"Column {name!r} holds {values[low][0]:g}, which has no logarithm; leave it out of {use}."
        )
    return np.log(np.asarray(values, np.float64) + offset)


def is_binary(values: Floats) -> bool:
    """Whether there are just two different values."""
    if not len(values):
        return False
    low, high = values.min(), values.max()
    return bool(low < high and ((values == low) | (values == high)).all())


def means_and_spreads(values: AnyFloats) -> tuple[Floats, Floats]:
    """Means and standard deviations over the observed entries; 0 and 1 where nothing is or nothing varies."""
    table = make_table(values, Executor())
    mean, spread = np.nan_to_num(table.column_means), np.nan_to_num(table.column_spreads)
    rounding = 10 * np.finfo(np.float64).eps * np.abs(mean)
    return mean, np.where(spread > rounding, spread, 1.0)


def median_and_range(column: AnyFloats) -> tuple[float, float]:
    """Median and interquartile range, in units of a normal standard deviation.

    Of two values, which have no outliers, mean and standard deviation.
    """
    values = np.asarray(column[~np.isnan(column)], np.float64)
    mean, spread = (float(one[0]) for one in means_and_spreads(np.ascontiguousarray(column[:, None])))
    if len(values) and not is_binary(values):
        low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
        mean = float(median)
        spread = float(high - low) / TO_NORMAL or spread  # where half of the values are equal
    return mean, spread


def scale_of_indicators(places: AnyFloats, n_levels: int, how: str) -> float:
    """What the indicators of a category are divided by."""
    if how == "none":
        return float(np.sqrt(2.0))
    counts = np.bincount(places[places >= 0].astype(np.int64), minlength=n_levels)
    shares = counts / max(1, counts.sum())
    return float(np.sqrt(max(0.0, 1 - float((shares**2).sum())))) or 1.0


def most_common(block: Floats, levels: Sequence[str]) -> Any:
    unknown = np.isnan(block).all(axis=1) if block.shape[1] else np.ones(len(block), bool)
    best = np.nan_to_num(block, nan=-1.0).argmax(axis=1) if block.shape[1] else np.zeros(len(block), int)
    return np.asarray([*levels, None], dtype=object)[np.where(unknown, len(levels), best)]


def of_rank(values: Floats, levels: Sequence[str]) -> Any:
    """The levels of an ordered category nearest to some ranks."""
    ranks = np.clip(np.nan_to_num(np.round(values)), 0, len(levels) - 1).astype(int)
    out = np.asarray(levels, dtype=object)[ranks]
    out[np.isnan(values)] = None
    return out
