"""What an analysis says, in lines of text: what `print` and `kpod fit` show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kpod._common.errors import printable
from kpod._common.options import in_the_shell, option
from kpod._common.sentences.formatting import counted, listed, percent

MOST_NAMES = 40
MOST_ASIDE = 12
SAID_FIRST = ("few columns",)
"""Notes without which the rest is misread."""


def divide_anyway() -> str:
    example = "kpod fit -k 3" if in_the_shell() else "n_clusters=3"
    return f"To divide the rows all the same, give the number of clusters, such as {example}."


def fit_lines(summary: dict[str, Any]) -> list[str]:
    """What was read, what was found, and what to know about it."""
    first = [note for note in summary["notes"] if note["kind"] in SAID_FIRST]
    out = [printable(summary["verdict"]["sentence"])] if "verdict" in summary else []
    out += [about_data(summary), *(f"note: {note['text']}" for note in first)]
    if "choice" in summary:
        out.append(summary["choice"]["sentence"])
        if summary["choice"]["clusters"] == 1:
            out.append(divide_anyway())
    if "missingness" in summary:
        out.append(printable(summary["missingness"]))
    is_fit = "converged" in summary
    if is_fit:
        ending = "" if summary["converged"] else ", not converged"
        iterations = counted(summary["iterations"], "iteration")
        out.append(f"{how_well(summary)} after {iterations}{ending}")
        out += [printable(one) for one in summary.get("shape", {}).get("sentences", ())]
        said = [
            summary.get("starts", {}).get("sentence", ""),
            summary.get("stability", {}).get("sentence", ""),
        ]
        out += filter(None, [*said, *summary.get("confidence", {}).get("sentences", ())])
    if "filled" in summary:
        by_column = [f"{printable(name)} {n:,}" for name, n in summary["filled_by_column"].items()]
        out.append(f"filled: {summary['filled']:,}{': ' if by_column else ''}{names_text(by_column)}")
    if len(summary["clusters"]) > 1 or not is_fit:  # a single one that was fitted is the table
        out += ["  " + printable(cluster["sentence"]) for cluster in summary["clusters"]]
    if summary.get("unassigned") and not is_fit:  # a fit has a caution on them
        out.append(f"  {counted(summary['unassigned'], 'row')} with nothing observed, in no cluster")
    out += [f"caution: {caution['text']}" for caution in summary.get("cautions", ())]
    out += [f"note: {note['text']}" for note in summary["notes"] if note not in first]
    return out


def how_well(summary: dict[str, Any]) -> str:
    """The loss, or the likelihood of a mixture."""
    if "loss" in summary:
        return f"loss {summary['loss']:.6g}"
    return f"log-likelihood of a row {summary['log_likelihood']:.6g}"


def names_text(names: Sequence[str]) -> str:
    """Names, the first of very many."""
    shown = [printable(name) or "(no name)" for name in names]
    more = len(shown) - MOST_NAMES
    return listed([*shown[:MOST_NAMES], *([f"{more:,} more"] if more > 0 else [])])


def marks_text(marks: dict[str, int]) -> str:
    return ", ".join(f"{printable(mark)} {n:,}" for mark, n in marks.items())


def dialect_text(dialect: dict[str, str] | None) -> str:
    if not dialect:
        return ""
    delimiter = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}.get(dialect["delimiter"])
    text = f"; {delimiter or printable(dialect['delimiter'])}-separated, {dialect['encoding']}"
    return text + (", decimal comma" if dialect["decimal"] == "," else "")


def aside_text(aside: dict[str, str], *, in_pieces: bool) -> str:
    """What was not used and why; of many, those of one reason together."""
    categories = any(why.startswith(("category", "ordered category")) for why in aside.values())
    offered = categories and not in_pieces  # where a table is read in pieces, they cannot be used
    use = option("--categories", None if in_the_shell() else "all")
    return listed_aside(aside) + (f"; use {use} to cluster by categories too" if offered else "")


def listed_aside(aside: dict[str, str]) -> str:
    if len(aside) <= MOST_ASIDE:
        return ", ".join(f"{printable(name) or '(no name)'} ({why})" for name, why in aside.items())
    by_reason: dict[str, list[str]] = {}
    for name, why in aside.items():
        by_reason.setdefault(why.partition(":")[0], []).append(name)
    return "; ".join(f"{names_text(names)} ({why})" for why, names in by_reason.items())


def source_facts(summary: dict[str, Any]) -> dict[str, str]:
    """What was read, in the words that all who show it share."""
    marks = f": {marks_text(summary['marks'])}" if summary["marks"] else ""
    aside = aside_text(summary["set_aside"], in_pieces=summary["in_pieces"])
    return {
        "data": f"{summary['data']}: {counted(summary['rows'], 'row')}, "
        f"{counted(len(summary['columns']), 'column')} used{dialect_text(summary['text_file'])}",
        "used": names_text(summary["columns"]),
        **({"not used": aside} if summary["set_aside"] else {}),
        "gaps": f"{summary['missing']:,} ({percent(summary['missing_share'], 1)} of the entries){marks}",
    }


def about_data(summary: dict[str, Any]) -> str:
    first, *rest = source_facts(summary).items()
    return "\n".join([first[1], *(f"{what}: {text}" for what, text in rest)])
