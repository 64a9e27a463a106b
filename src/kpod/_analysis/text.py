"""An analysis in lines of text: what `print` and `kpod fit` show."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from kpod._common.errors import printable
from kpod._common.notes import SAID_FIRST
from kpod._common.options import in_the_shell, option
from kpod._common.sentences.formatting import counted, listed, percent
from kpod._common.sentences.verdict_sentences import other_numbers

MOST_NAMES = 40
MOST_UNUSED = 12
LONGEST_LIST = 260
"""Letters of a list of columns on a terminal: two lines."""
MOST_CAUTIONS = 4
MOST_NOTES = 4
"""Of those without which the result can be read."""
MOST_TYPICAL = 2
MOST_ON_SHAPE = 2
ON_SHAPE = "shape of the clusters"
LONGEST_RULE = 200
LONGEST_NAME = 40


def divide_anyway() -> str:
    example = "kpod fit -k 3" if in_the_shell() else "n_clusters=3"
    return f"To divide the rows all the same, give the number of clusters, such as {example}."


def table_lines(summary: dict[str, Any]) -> list[str]:
    """What was read and is clustered; what has to be known about it, rows and weights first."""
    return [*about_data(summary).splitlines(), *note_lines(summary["notes"])]


def fit_lines(summary: dict[str, Any], introduced: dict[str, Any] | None = None) -> list[str]:
    """Findings, and notes on them; what was `introduced` before is not repeated."""
    is_fit = "converged" in summary
    out = [printable(summary["verdict"]["sentence"])] if "verdict" in summary else []
    notes = summary["notes"]
    if introduced is None:
        first = [note for note in notes if note["kind"] in SAID_FIRST]
        out += [about_data(summary), *note_lines(first)]
    else:
        first = introduced["notes"]
    out += choice_lines(summary)
    if "missingness" in summary:
        out.append(printable(summary["missingness"]))
    out += shape_lines(summary)
    out += filter(None, [summary.get("stability", {}).get("sentence", "")])
    out += summary.get("confidence", {}).get("sentences", ())
    if "filled" in summary:
        by_column = [f"{printable(name)} {n:,}" for name, n in summary["filled_by_column"].items()]
        out.append(f"filled: {summary['filled']:,}{': ' if by_column else ''}{names_text(by_column)}")
    if len(summary["clusters"]) > 1 or not is_fit:  # a single one that was fitted is the table
        out += ["  " + printable(cluster_line(cluster)) for cluster in summary["clusters"]]
    if summary.get("unassigned") and not is_fit:  # a fit has a caution on them
        out.append(f"  {counted(summary['unassigned'], 'row')} with nothing observed, in no cluster")
    out += beside_the_clusters(summary)
    cautions = [f"caution: {caution['text']}" for caution in summary.get("cautions", ())]
    out += shortened(cautions, MOST_CAUTIONS, "caution")
    rest = [note for note in notes if note not in first and note["kind"] != ON_SHAPE]
    return [*out, *note_lines(rest)]


def choice_lines(summary: dict[str, Any]) -> list[str]:
    """Why there are so many clusters: beside a verdict, what that rests on."""
    if "choice" not in summary:
        return []
    out = [summary["choice"]["why" if "verdict" in summary else "sentence"]]
    return [*out, divide_anyway()] if summary["choice"]["clusters"] == 1 else out


def shape_lines(summary: dict[str, Any]) -> list[str]:
    """Why clusters are round or not; and what only a mixture has."""
    why = [note["text"] for note in summary["notes"] if note["kind"] == ON_SHAPE]
    own = summary.get("shape", {}).get("sentences", ())
    parts = [printable(one) for one in own[len(why) :]]  # the first of them is part of the reason
    return [*why, *shortened(parts, MOST_ON_SHAPE, "sentence")]


def cluster_line(cluster: dict[str, Any]) -> str:
    """A cluster, and whom one could look at."""
    names = [shortened_name(name) for name in cluster.get("typical_names", ())[:MOST_TYPICAL]]
    return cluster["sentence"] + (f"; such as {listed(names)}" if names else "")


def shortened_name(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def beside_the_clusters(summary: dict[str, Any]) -> list[str]:
    """An outcome, other numbers of clusters, and the rule."""
    outcome = summary.get("outcome")
    numbers = other_numbers([one["sentence"] for one in summary.get("other_numbers", ())])
    rule = rule_line(summary["rule"]) if "rule" in summary else ""
    return [printable(line) for line in (outcome["sentence"] if outcome else "", numbers, rule) if line]


def rule_line(rule: dict[str, Any]) -> str:
    """The rule, in full if it is short, and its accuracy."""
    whole = "; ".join(rule["lines"])
    return f"Rule: {whole}. {rule['sentence']}" if len(whole) <= LONGEST_RULE else ""


def note_lines(notes: Sequence[dict[str, Any]]) -> list[str]:
    """Notes, of the lesser ones the first few."""
    first = [f"note: {note['text']}" for note in notes if note["kind"] in SAID_FIRST]
    rest = [f"note: {note['text']}" for note in notes if note["kind"] not in SAID_FIRST]
    return [*first, *shortened(rest, MOST_NOTES, "note")]


def shortened(lines: Sequence[str], most: int, what: str) -> list[str]:
    """The first few lines, and how many there are more; never one line to save one."""
    if len(lines) <= most + 1:
        return list(lines)
    where = "--report and --json list them" if in_the_shell() else "`report` and `to_dict` list them"
    return [*lines[:most], f"... and {counted(len(lines) - most, f'more {what}')}; {where}"]


def brief_names(names: Sequence[str]) -> str:
    """As many names as fit into two lines."""
    shown = [printable(name) or "(no name)" for name in names]
    lengths = list(itertools.accumulate(len(name) + 2 for name in shown))
    fitting = max(1, sum(length <= LONGEST_LIST for length in lengths))
    more = len(shown) - fitting
    return listed(shown if more <= 1 else [*shown[:fitting], f"{more:,} more"])


def names_text(names: Sequence[str]) -> str:
    """Names, the first of very many."""
    shown = [printable(name) or "(no name)" for name in names]
    more = len(shown) - MOST_NAMES
    return listed([*shown[:MOST_NAMES], *([f"{more:,} more"] if more > 0 else [])])


def missing_codes_text(codes: dict[str, int]) -> str:
    return ", ".join(f"{printable(code)} {n:,}" for code, n in codes.items())


def dialect_text(dialect: dict[str, str] | None) -> str:
    if not dialect:
        return ""
    delimiter = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}.get(dialect["delimiter"])
    text = f"; {delimiter or printable(dialect['delimiter'])}-separated, {dialect['encoding']}"
    return text + (", decimal comma" if dialect["decimal"] == "," else "")


def unused_text(unused: dict[str, str], *, in_pieces: bool) -> str:
    """What was not used and why; of many, those of one reason together."""
    return listed_unused(unused) + use_categories(unused, in_pieces=in_pieces)


def use_categories(unused: dict[str, str], *, in_pieces: bool) -> str:
    categories = any(why.startswith(("category", "ordered category")) for why in unused.values())
    offered = categories and not in_pieces  # where a table is read in pieces, they cannot be used
    use = option("--categories", None if in_the_shell() else "all")
    return f"; use {use} to cluster by categories too" if offered else ""


def brief_unused(summary: dict[str, Any]) -> str:
    """What was not used, by reason, without the evidence; `kpod describe` and the report have that."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in summary["set_aside"].items():
        by_reason.setdefault(reason.partition(":")[0], []).append(name)
    use = use_categories(summary["set_aside"], in_pieces=summary["in_pieces"])
    return "; ".join(f"{brief_names(names)} ({reason})" for reason, names in by_reason.items()) + use


def listed_unused(unused: dict[str, str]) -> str:
    if len(unused) <= MOST_UNUSED:
        return ", ".join(f"{printable(name) or '(no name)'} ({why})" for name, why in unused.items())
    by_reason: dict[str, list[str]] = {}
    for name, why in unused.items():
        by_reason.setdefault(why.partition(":")[0], []).append(name)
    return "; ".join(f"{names_text(names)} ({why})" for why, names in by_reason.items())


def source_facts(summary: dict[str, Any]) -> dict[str, str]:
    """What was read, in words that every display shares."""
    codes = f": {missing_codes_text(summary['marks'])}" if summary["marks"] else ""
    unused = unused_text(summary["set_aside"], in_pieces=summary["in_pieces"])
    return {
        "data": f"{summary['data']}: {counted(summary['rows'], 'row')}, "
        f"{counted(len(summary['columns']), 'column')} used{dialect_text(summary['text_file'])}",
        "used": names_text(summary["columns"]),
        **({"not used": unused} if summary["set_aside"] else {}),
        "gaps": f"{summary['missing']:,} ({percent(summary['missing_share'], 1)} of the entries){codes}"
        if summary["missing"]
        else "none",
    }


def about_data(summary: dict[str, Any]) -> str:
    """The same in a few lines."""
    facts = source_facts(summary) | {"used": brief_names(summary["columns"])}
    if summary["set_aside"]:
        facts["not used"] = brief_unused(summary)
    first, *rest = facts.items()
    return "\n".join([first[1], *(f"{what}: {text}" for what, text in rest)])
