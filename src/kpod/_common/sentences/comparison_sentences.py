"""What has changed since a model was fitted, in words."""

from __future__ import annotations

from typing import Any

from kpod._common.errors import printable
from kpod._common.sentences.formatting import counted, listed, number, percent, some

SAME = 0.8
"""The adjusted Rand index from which two clusterings are the same, as in the verdict."""
MOST_SHIFTS = 6
FARTHER = 1.25
"""How much farther from their centers rows lie, from which that is reported."""


def comparison_lines(found: Any) -> list[str]:
    """The verdict first; then sizes, means, distances and gaps."""
    moved = [one for one in found.clusters if one.changed]
    lines = [first_line(found, bool(moved))]
    lines += [share_line(one) for one in found.clusters]
    if found.shifts:
        parts = [
            f"{printable(one.column)} in cluster {one.cluster} ({one.before} before, {one.now} now)"
            for one in found.shifts[:MOST_SHIFTS]
        ]
        lines.append(f"Means that have moved: {some(parts, len(found.shifts), MOST_SHIFTS)}.")
    lines += filter(None, [distance_line(found)])
    if found.missing:
        parts = [
            f"{printable(name)} ({percent(before)} before, {percent(now)} now)"
            for name, before, now in found.missing
        ]
        lines.append(f"The share of missing entries differs in {some(parts)}.")
    lines += filter(None, [unassigned_line(found)])
    return lines


def distance_line(found: Any) -> str:
    """How much farther rows lie from their centers; empty if they do not."""
    if found.distance is None or found.distance <= FARTHER * found.distance_before:
        return ""
    times = number(found.distance / found.distance_before)
    return f"Rows lie farther from their centers: the mean squared distance is {times} times as large."


def unassigned_line(found: Any) -> str:
    rows = counted(found.unassigned, "row")
    return f"{rows} with nothing observed, in no cluster." if found.unassigned else ""


def share_line(one: Any) -> str:
    before, now = percent(one.share_before), percent(one.share)
    chance = "" if one.changed or before == now else ", which may be chance"
    rows = counted(one.n_rows, "row")
    return f"  cluster {one.cluster}: {before} of the rows before, {now} now ({rows}){chance}"


def first_line(found: Any, has_moved: bool) -> str:
    changes = [
        *(["shares of clusters"] if has_moved else []),
        *(["means of clusters"] if found.shifts else []),
    ]
    text = f"{listed(changes)} have changed" if changes else "shares and means of the clusters are as before"
    if found.agreement is None:
        return f"{text[0].upper()}{text[1:]}."
    again = f"clustered afresh, the rows fall into the same groups (agreement {found.agreement:.2f})"
    if found.agreement < SAME:
        again = f"clustered afresh, the rows fall into other groups (agreement {found.agreement:.2f})"
        return f"The clusters of the model are not found again in this table: {again}; {text}."
    return f"The clusters of the model hold in this table: {again}; {text}."
