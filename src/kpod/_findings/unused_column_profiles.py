"""How clusters differ in columns that were not clustered: who is in them, where and when.

Association is measured so that small counts do not pass for differences: Cramer's V as
corrected by Bergsma (2013) for categories, the square root of the adjusted share of variance
explained for numbers; clusters of which fewer than five rows are known do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kpod._common.notes import Note
from kpod._common.sentences.formatting import number, percent
from kpod._common.typing import Floats, Labels
from kpod._findings.fitted_clusters.descriptions import ENOUGH, FEW
from kpod._findings.fitted_clusters.units import is_year
from kpod._findings.fitted_clusters.variance import explained_share

CLEAR = 0.1
VISIBLE = 0.05  # by which a share differs from that of the whole table
FOLLOWS = 0.7  # of the rows that the commonest level gets wrong, those that the clusters get right
BEATS = 0.1  # by which clusters must predict the level of more rows than the commonest level does
ROWS_A_LEVEL = 5
MOST_LEVELS = 200
LONGEST_LEVEL = 28


@dataclass(frozen=True)
class UnusedColumn:
    """A column that was not clustered: numbers, or codes of levels (-1 where missing)."""

    name: str
    values: Floats | None = None
    codes: Labels | None = None
    levels: Sequence[str] = ()
    unit: str = ""
    """"date" for days since 1970, "year" for years."""


def profile(unused: Sequence[UnusedColumn], labels: Labels, k: int) -> list[dict[str, Any]]:
    """What the clusters differ in most clearly, first; what they hardly differ in is left out."""
    found = []
    for column in unused:
        one = (
            profile_levels(column, labels, k) if column.values is None else profile_numbers(column, labels, k)
        )
        if one and one["strength"] >= CLEAR:
            found.append(one)
    return sorted(found, key=lambda one: -one["strength"])


def followed(unused: Sequence[UnusedColumn], labels: Labels, k: int) -> list[Note]:
    """The columns that clusters follow: a category, or the unit of repeated measurements.

    Measured by Goodman and Kruskal's lambda: by how much knowing the cluster makes guessing the level safer.
    """
    found = []
    for column in unused:
        counts = None if column.values is not None else cross_table(column, labels, k)
        if k == 1 or counts is None or counts.sum() < ROWS_A_LEVEL * counts.shape[1]:
            continue
        share, commonest = counts.max(axis=1).sum() / counts.sum(), counts.sum(axis=0).max() / counts.sum()
        if share - commonest >= BEATS and (share - commonest) / (1 - commonest) >= FOLLOWS:
            shares = {"share": float(share), "commonest": float(commonest)}
            found.append(Note("followed column", (column.name,), shares))
    return found


def cross_table(column: UnusedColumn, labels: Labels, k: int) -> Floats | None:
    """How many rows of each cluster have which level; None where there is nothing to compare."""
    assert column.codes is not None
    here = (labels >= 0) & (column.codes >= 0)
    r = len(column.levels)
    if not here.any() or not 2 <= r <= MOST_LEVELS:
        return None
    pairs = labels[here].astype(np.int64) * r + column.codes[here]
    return np.bincount(pairs, minlength=k * r).reshape(k, r).astype(float)


def profile_levels(column: UnusedColumn, labels: Labels, k: int) -> dict[str, Any] | None:
    counts = cross_table(column, labels, k)
    if counts is None:
        return None
    strength = cramers_v(counts[counts.sum(axis=1) >= FEW])
    overall = counts.sum(axis=0) / counts.sum()
    rows = counts.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = counts / rows[:, None]
    cells = []
    for m in range(k):
        top = np.argsort(-counts[m], kind="stable")[:3]
        parts = [f"{percent(shares[m, j])} {cut(column.levels[int(j)])}" for j in top if counts[m, j]]
        cells.append(parts or ["\N{EN DASH}"])
    sizes = np.bincount(labels[labels >= 0], minlength=k)
    sentence = clearest_level(column, counts, shares, overall, sizes)
    return (
        {"name": column.name, "strength": strength, "cells": cells, "sentence": sentence}
        if sentence
        else None
    )


def cramers_v(counts: Floats) -> float:
    """Cramer's V with Bergsma's correction for bias; 0 for independence, 1 if one decides the other."""
    counts = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    r, c = counts.shape
    n = counts.sum()
    if min(r, c) < 2 or n < 2:
        return 0.0
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / n
    phi = float((((counts - expected) ** 2) / expected).sum()) / n
    phi = max(0.0, phi - (r - 1) * (c - 1) / (n - 1))
    rows, columns = r - (r - 1) ** 2 / (n - 1), c - (c - 1) ** 2 / (n - 1)
    least = min(rows, columns) - 1
    return float(np.sqrt(min(1.0, phi / least))) if least > 0 else 0.0


def cut(level: str) -> str:
    return level if len(level) <= LONGEST_LEVEL else level[: LONGEST_LEVEL - 1] + "…"


def clearest_level(column: UnusedColumn, counts: Floats, shares: Floats, overall: Floats, sizes: Any) -> str:
    """The cluster and level that stand out most, in a sentence."""
    rows = counts.sum(axis=1)
    expected = np.outer(rows, overall)
    with np.errstate(divide="ignore", invalid="ignore"):
        surplus = np.where((counts >= FEW) & (counts > expected), (counts - expected) / np.sqrt(expected), 0)
    # A level of most rows of a cluster is preferred to one of some.
    m, j = np.unravel_index(int((surplus * np.nan_to_num(shares)).argmax()), surplus.shape)
    if surplus[m, j] <= 0 or shares[m, j] - overall[j] < VISIBLE:
        return ""
    few = rows[m] < max(20, ENOUGH * sizes[m]) and rows[m] < sizes[m]
    known = f"; known for {rows[m]:,.0f} of {sizes[m]:,}" if few else ""
    share, level = percent(shares[m, j]), column.levels[int(j)]
    if level.replace(".", "").replace("-", "").isdigit():
        return f"{share} of cluster {m} have the value {level} ({percent(overall[j])} overall{known})"
    return f"cluster {m} is {share} {level} ({percent(overall[j])} overall{known})"


def profile_numbers(column: UnusedColumn, labels: Labels, k: int) -> dict[str, Any] | None:
    assert column.values is not None
    here = (labels >= 0) & np.isfinite(column.values)
    entries, groups = column.values[here].astype(np.float64), labels[here]
    if len(entries) < FEW:
        return None
    counts = np.bincount(groups, minlength=k)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.bincount(groups, weights=entries, minlength=k) / counts
    enough = counts >= FEW
    if not enough.any():
        return None
    overall = float(entries.mean())
    in_years = column.unit == "year" or is_year(column.name, entries)
    in_time = in_years or column.unit == "date"

    def shown(value: float) -> str:
        if column.unit == "date" and np.isfinite(value):
            return str(np.datetime64(round(value), "D"))
        return f"{value:.0f}" if in_years and np.isfinite(value) else number(value)

    far = np.where(enough, np.abs(means - overall), -1.0)
    m = int(far.argmax())
    if shown(means[m]) == shown(overall):
        return None
    known = enough[groups]
    words = ("latest", "earliest") if in_time else ("highest", "lowest")
    word = words[0] if means[m] > overall else words[1]
    return {
        "name": column.name,
        "strength": float(np.sqrt(explained_share(entries[known], groups[known], k))),
        "cells": [[shown(mean)] for mean in means],
        "sentence": f"{word} in cluster {m}, {shown(means[m])} on average ({shown(overall)} overall)",
    }
