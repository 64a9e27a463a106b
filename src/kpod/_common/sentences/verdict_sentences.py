"""The verdict in a line, why there are so many clusters, and the result with one more or less."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kpod._common.options import option
from kpod._common.sentences.formatting import counted, listed, percent, two_decimals

MOST_NAMED = 2


def verdict_sentence(groups: str, k: int, n_separate: int, others: Sequence[Any], sampled: int | None) -> str:
    """How many groups, whether they are separate, and under how many other choices they are the same."""
    text = {
        "separate": f"{k} separate groups",
        "partly separate": f"{k} clusters, but only {n_separate} separate groups",
        "continuum": f"{k} pieces of something continuous rather than separate groups",
        "unclear": "The best guess is one group, but the choice is not clear"
        if k == 1
        else f"The best guess is {k} groups, but the choice is not clear",
        "one": "No separate groups: the rows are one group",
        "given": f"{counted(k, 'cluster')}, as asked for",
    }[groups]
    if not others:
        return f"{text}."
    kept = sum(other.same for other in others)
    if kept == len(others):
        held = f"the same under all {len(others)} other choices" if kept > 1 else "the same with another seed"
    else:
        held = f"the same under {kept or 'none'} of {len(others)} other choices"
    changed = [difference(other, k) for other in others if not other.same]
    differences = f"; {differences_text(changed)}" if changed else ""
    on = f" (on a sample of {sampled:,} rows)" if sampled else ""
    return f"{text}; {held}{on}{differences}."


def differences_text(changed: list[str]) -> str:
    """The first few differences, and how many more choices there are that differ."""
    more = len(changed) - MOST_NAMED
    rest = [f"{more} more {'differs' if more == 1 else 'differ'}"] if more > 0 else []
    return "; ".join([*changed[:MOST_NAMED], *rest])


def difference(other: Any, k: int) -> str:
    """What another choice changes."""
    if other.n_clusters != k:
        return f"{other.text}, there {'is' if other.n_clusters == 1 else 'are'} {other.n_clusters}"
    return f"{other.text}, rows are grouped differently (agreement {two_decimals(other.agreement)})"


def why(choice: Any, *, is_confirmed: bool = True) -> str:
    """The reason for the number of clusters, beside a verdict with the number and how certain it is.

    A clear choice may be one that other choices do not confirm.
    """
    k, reason = choice.best_k_, choice.reason_.rstrip(".")
    hidden = "hidden values and the gaps" if choice.gaps_ else "hidden values"
    if reason:
        text = f"not clear, because {reason}"
    elif k == 1 and choice.correlated_:
        text = (
            f"one group with correlated columns predicts {hidden} as well as several clusters do; k-means "
            f"alone would cut it into {choice.centers_k_} pieces"
        )
    elif k == 1:
        text = f"more clusters do not predict {hidden} any better"
    else:
        what = "groups with correlated columns" if choice.correlated_ else "clusters"
        text = f"{k} {what} predict {hidden} best{gain(choice)}"
        if not is_confirmed:
            text += ", but other choices give other clusters, so the number is not certain"
    shape = ""
    if choice.correlated_ and k > 1 and choice.shape_ is None:
        shape = f" These groups need not be round; {option('--shape', 'auto')} compares shapes."
    return f"Why: {text}.{shape}"


def gain(choice: Any) -> str:
    """By how much the error is lower than with one cluster."""
    table = choice.table_
    errors = table["correlated_error"] if choice.correlated_ else table["error"]
    by_k = dict(zip((int(k) for k in table["k"]), errors, strict=True))
    one, here = by_k.get(1, 0.0), by_k.get(choice.best_k_, 0.0)
    return f" (error {percent(1 - here / one)} lower than with one)" if 0 < here < one else ""


def other_number(other: Any) -> str:
    """How the clusters change with one more or one less."""
    with_so_many = f"with {counted(other.n_clusters, 'cluster')}"
    if other.merged:
        return f"{with_so_many}, {listed([str(m) for m in other.merged])} become one"
    if other.split is not None:
        parts = listed([f"{n:,}" for n in other.into])
        of = f"of the {other.n_sampled:,} rows in a sample" if other.n_sampled else "rows"
        return f"{with_so_many}, cluster {other.split} is split into {parts} {of}"
    return f"{with_so_many}, rows are divided differently (agreement {two_decimals(other.agreement)})"


def other_numbers(others: Sequence[str]) -> str:
    text = "; ".join(others)
    return f"{text[0].upper()}{text[1:]}." if text else ""
