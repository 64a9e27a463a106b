"""The rule that assigns rows, in words."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from kpod._common.errors import printable
from kpod._common.sentences.formatting import either, listed, percent


def rule_sentence(rule: Any) -> str:
    """How often the rule is right, on rows it was not made from."""
    n_splits = len(rule.leaves) - 1
    return (
        f"{n_splits} split{'' if n_splits == 1 else 's'} assign{'s' if n_splits == 1 else ''} "
        f"{percent(rule.accuracy)} of {f'{rule.n_rows:,} sampled' if rule.sampled else 'the'} rows to their "
        f"cluster (always the largest: "
        f"{percent(rule.baseline)})."
    )


def rule_lines(rule: Any) -> list[str]:
    """A line for each cluster: the conditions under which a row is assigned to it."""
    by_cluster: dict[int, list[str]] = defaultdict(list)
    for leaf in rule.leaves:
        by_cluster[leaf.cluster].append(listed([condition_text(one) for one in leaf.conditions]))
    return [
        f"cluster {cluster} if {either(ways) if len(ways) == 1 else '; or '.join(ways)}"
        for cluster, ways in by_cluster.items()
    ]


def condition_text(one: Any) -> str:
    name = printable(one.column)
    if one.by_gap:
        return f"{name} is {'missing' if one.or_missing else 'known'}"
    missing = " (or missing)" if one.or_missing else ""
    if one.level:
        if one.below:
            text = (
                f"{name} is {printable(one.other)}" if one.other else f"{name} is not {printable(one.level)}"
            )
        else:
            text = f"{name} is {printable(one.level)}"
        return text + missing
    if one.is_yes_no:
        return f"{name} is {'0' if one.below else '1'}{missing}"
    return f"{name} {'below' if one.below else 'at least'} {one.value:,.10g}{missing}"
