"""A diagnosis of missing entries in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kpod._common.options import option
from kpod._common.sentences.formatting import counted, listed, percent, some
from kpod._common.typing import Floats
from kpod._missing.association import (
    IN_TURN,
    LEVEL,
    MATTERS,
    RELATED,
    STRONG,
    TOGETHER,
    UNCLEAR,
    UNEVEN,
    _largest,
    _p,
)
from kpod._missing.between_groups import GapTest
from kpod._missing.little import LittleTest

if TYPE_CHECKING:
    from kpod._missing.diagnosis import Diagnosis
MOST_SAID = 3


def sentences(found: Diagnosis) -> list[str]:
    """The findings in plain words."""
    items = [_how_much(found)]
    if not found.missing.any():
        return items
    parts = []
    if found.n_compared < found.n_rows:
        parts.append(f"{counted(found.n_compared, 'row')} drawn at random")
    if len(found.columns) < len(found.names):
        parts.append(f"the {counted(len(found.columns), 'column')} whose gaps vary most")
    if parts:
        items.append(f"The following is based on {listed(parts)}.")
    by_value = _value_sentences(found)
    items += [*_together_sentences(found), *by_value]
    if found.uneven_rows > UNEVEN:
        items.append(_uneven_sentence(found))
    items.append(_little_sentence(found.little, related=bool(by_value)))
    if found.group_test is not None:
        items.append(_group_sentence(found, found.group_test))
    return items


def _how_much(found: Diagnosis) -> str:
    n = int((found.missing > 0).sum())
    if n == 0:
        return f"Nothing is missing in {counted(found.n_rows, 'row')}."
    most = found.missing.max()
    even = most - found.missing[found.missing > 0].min() < 0.05 or n == 1
    which = some([found.names[j] for j in np.flatnonzero(found.missing == most)], most=MOST_SAID)
    where = "" if even else f", most in {which} ({percent(most)})"
    return (
        f"{percent(float(found.missing.mean()))} of the entries are missing, in {n:,} of "
        f"{counted(len(found.names), 'column')}{where}; {found.n_complete:,} of "
        f"{counted(found.n_rows, 'row')} {'is' if found.n_complete == 1 else 'are'} complete."
    )


def _together_sentences(found: Diagnosis) -> list[str]:
    names = [found.names[j] for j in found.columns]
    blocks = _blocks(found.together)
    parts = [
        f"{some([names[j] for j in block])} are nearly always missing together."
        for block in sorted(blocks, key=len, reverse=True)[:MOST_SAID]
        if len(block) > 1
    ]
    # What holds of a column holds of all that are missing with it.
    first = [block[0] for block in blocks]
    rest = np.triu(found.together[np.ix_(first, first)])
    for text, sign, least in (
        ("Columns often missing together (correlation of gaps)", 1, RELATED),
        ("Where one is missing, the other tends to be present (correlation of gaps)", -1, IN_TURN),
    ):
        pairs = [
            f"{names[first[i]]} and {names[first[j]]} ({rest[i, j]:+.2f})"
            for i, j in _largest(rest)
            if sign * rest[i, j] >= least
        ]
        if pairs:
            parts.append(f"{text}: {listed(pairs[:MOST_SAID])}.")
    return parts


def _blocks(together: Floats) -> list[list[int]]:
    """Columns that are missing together, every two of a block; the others by themselves."""
    blocks: list[list[int]] = []
    for j in range(len(together)):
        fits = (block for block in blocks if (together[j, block] > TOGETHER).all())
        block = next(fits, None)
        if block is None:
            blocks.append([j])
        else:
            block.append(j)
    return blocks


def _value_sentences(found: Diagnosis) -> list[str]:
    names = [found.names[j] for j in found.columns]
    parts = []
    for j, other in _largest(found.values)[:MOST_SAID]:
        difference = found.values[j, other]
        if abs(difference) < 2 * RELATED:
            break
        level = found.levels.get(int(found.columns[other]))
        if level is None:
            how = f"are {'higher' if difference > 0 else 'lower'} in {names[other]}"
        else:
            how = f"{'more' if difference > 0 else 'less'} often have {names[other]} {level}"
        parts.append(f"Rows that lack {names[j]} {how}, by {abs(difference):.1f} standard deviations.")
    return parts


def _little_sentence(little: LittleTest, *, related: bool) -> str:
    if little.reason:
        return (
            "Whether values are missing completely at random could not be tested (Little's test): "
            f"{little.reason}."
        )
    numbers = f"(Little's test: chi-square {little.statistic:.0f}, {little.df} df, p {_p(little.p)})"
    if little.p < LEVEL:
        return (
            "Values are not missing completely at random: rows with different columns missing differ in the "
            f"other columns {numbers}."
        )
    if related and little.p < UNCLEAR:
        return f"A single test of all such differences together is less clear {numbers}."
    if related:
        return f"A single test of all such differences together would not have noticed them {numbers}."
    return f"There is no evidence against values being missing completely at random {numbers}."


def _uneven_sentence(found: Diagnosis) -> str:
    """On rows with many gaps; how many there are is stated if there is one, or if nothing stands out."""
    who = {0: "", 1: "One row has far more gaps than the others: "}.get(
        found.n_uneven_rows, "Some rows have far more gaps than others: "
    )
    text = (
        f"{who}the number of gaps per row varies {found.uneven_rows:.1f} times as much as it would if gaps "
        "were independent."
    )
    return text[0].upper() + text[1:]


def _group_sentence(found: Diagnosis, test: GapTest) -> str:
    what = "clusters" if found.groups[0].startswith("cluster ") else "groups"
    if test.p > LEVEL:
        clearly = "clearly " if test.p <= UNCLEAR else ""
        return f"The {what} do not {clearly}differ in which values are missing."
    spread = found.by_group.max(axis=0) - found.by_group.min(axis=0)
    cells = []
    for j in np.argsort(-spread, kind="stable")[:MOST_SAID]:
        least, most = int(found.by_group[:, j].argmin()), int(found.by_group[:, j].argmax())
        low, high = (percent(found.by_group[group, j]) for group in (least, most))
        if low != high:
            cells.append(
                f"{found.names[found.columns[j]]} (missing in {low} of {found.groups[least]}, {high} of "
                f"{found.groups[most]})"
            )
    if not cells:
        return (
            f"The {what} differ in which values are missing, but by less than 1% of the rows in every column."
        )
    most_in = "" if len(found.columns) == 1 else "most in " if len(cells) > 1 else "above all in "
    return f"The {what} differ in which values are missing, {most_in}{listed(cells)}."


def suggestion(found: Diagnosis) -> str:
    """What to do about it; empty where the gaps are related to something, but too weakly to matter."""
    auto = option("--missingness", "auto")
    check = f"find out why these values are missing. {auto} checks whether the gaps should count."
    if not found.missing.any():
        return "There are no gaps to decide about."
    if found.group_test is not None and found.group_test.p <= LEVEL:
        spread = found.by_group.max(axis=0) - found.by_group.min(axis=0)
        return f"The gaps are related to the clusters: {check}" if spread.max() >= MATTERS else ""
    gaps = found.missing[found.columns] >= MATTERS
    if found.group_test is None and np.abs(found.values[gaps]).max(initial=0) >= STRONG:
        return f"The gaps are related to the values: {check}"
    if bool(found.values.any()) or found.little.p < LEVEL or found.uneven_rows > UNEVEN:
        return ""
    return "There is no sign that the gaps carry information; the observed values are enough."
