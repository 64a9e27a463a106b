"""How an outcome differs between clusters, in words."""

from __future__ import annotations

from typing import Any

from kpod._common.errors import printable
from kpod._common.sentences.formatting import brief, counted, listed, percent

MOST_CLUSTERS = 4
"""Of more clusters, only the highest and the lowest are named."""


def outcome_sentence(outcome: Any) -> str:
    """Each cluster with its interval, then whether the highest and the lowest differ."""
    known = [one for one in outcome.clusters if one.value == one.value]
    what = printable(outcome.column) + (f" {printable(outcome.level)}" if outcome.level else "")
    if not known:
        return f"{what}: known for too few rows to compare clusters."
    ordered = sorted(known, key=lambda one: -one.value)
    shown = ordered if len(ordered) <= MOST_CLUSTERS else [ordered[0], ordered[-1]]
    parts = [
        f"{value_text(outcome, one.value)} in cluster {one.cluster} "
        f"({'95% interval ' if one is shown[0] else ''}{value_text(outcome, one.low)} to "
        f"{value_text(outcome, one.high)})"
        for one in shown
    ]
    between = "" if len(shown) == len(ordered) else f", and {counted(len(ordered) - 2, 'cluster')} in between"
    sentences = [f"{what}: {listed(parts)}{between}{difference_text(outcome, ordered)}."]
    if outcome.n_missing:
        sentences.append(f"It is not known for {counted(outcome.n_missing, 'row')}.")
    if outcome.repeated:
        sentences.append("There are several rows of the same individual, so the intervals are too narrow.")
    return " ".join(sentences)


def difference_text(outcome: Any, ordered: Any) -> str:
    if outcome.difference is None:
        return ""
    difference, low, high = outcome.difference
    first, last = ordered[0].cluster, ordered[-1].cluster
    if outcome.is_share:
        off, ends = f"{100 * difference:.0f} percentage points", (f"{100 * low:.0f}", f"{100 * high:.0f}")
    else:
        off, ends = brief(difference), (brief(low), brief(high))
    if low <= 0:
        return f"; no clear difference (clusters {first} and {last}: {off}, interval {ends[0]} to {ends[1]})"
    return f"; clusters {first} and {last} differ by {off} ({ends[0]} to {ends[1]})"


def value_text(outcome: Any, value: float) -> str:
    return percent(value) if outcome.is_share else brief(value)
