"""Tables for a terminal: the columns of a table, and the result of an analysis."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any

from kpod._analysis.text import (
    about_data,
    cluster_line,
    dialect_text,
    divide_anyway,
    fit_lines,
    missing_codes_text,
    table_lines,
)
from kpod._common.errors import printable
from kpod._common.sentences.formatting import counted, listed, number, percent

if TYPE_CHECKING:
    from kpod._analysis.analysis import Analysis

PIPE_WIDTH = 140
BAR = 40
MOST_LINES = 200
MOST_NOTES = 12


def console(file: IO[str]) -> Any:
    """A console that takes text as it is; wide where no window limits it."""
    from rich.console import Console

    width = None if file.isatty() else PIPE_WIDTH
    return Console(file=file, markup=False, highlight=False, emoji=False, width=width)


def grid(*headers: str, right: int = 0) -> Any:
    """A plain table; all but the first columns flush right from a given one on."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for j, header in enumerate(headers):
        table.add_column(header, justify="right" if right and j >= right else "left", overflow="fold")
    return table


def show(described: dict[str, Any]) -> None:
    out = console(sys.stdout)
    out.print(
        f"{described['data']}: {counted(described['rows'], 'row')}, "
        f"{counted(len(described['columns']), 'column')}{dialect_text(described['text_file'])}"
    )
    out.print(
        f"{percent(described['missing_share'], 1)} of the entries missing; "
        f"{counted(described['complete_rows'], 'row')} complete, "
        f"{counted(described['rows_without_numbers'], 'row')} with no numbers observed\n"
    )
    columns = grid("column", "role", "missing", "share", "min", "max", "codes", right=2)
    columns.columns[-1].justify = "left"
    for c in described["columns"][:MOST_LINES]:
        ends = [number(c[end]) if c[end] is not None else "" for end in ("min", "max")]
        columns.add_row(
            printable(c["name"]),
            role_text(c),
            f"{c['missing']:,}",
            percent(c["missing_share"], 1),
            *ends,
            missing_codes_text(c["marks"]),
        )
    out.print(columns)
    left = len(described["columns"]) - MOST_LINES
    if left > 0:
        out.print(f"... and {counted(left, 'more column')}; --json lists them all")
    for note in described["notes"]:
        out.print(f"note: {note['text']}")
    noted = [note for c in described["columns"] for note in c["notes"]]
    for note in noted[:MOST_NOTES]:
        out.print(f"note: {note['text']}")
    if len(noted) > MOST_NOTES:
        out.print(f"... and {counted(len(noted) - MOST_NOTES, 'more note')}; --json lists them all")
    _, *sentences = described["gaps"]["sentences"]  # the first says how much is missing, as above
    if sentences:
        out.print("\nWhat the gaps are related to")
        for sentence in filter(None, [*sentences, described["gaps"]["suggestion"]]):
            out.print(printable(sentence))
    out.print(f"\nMost common patterns of gaps ({described['patterns']:,} in all)")
    patterns = grid("rows", "missing together")
    for pattern in described["commonest_patterns"]:
        names = [printable(name) for name in pattern["missing"]]
        patterns.add_row(f"{pattern['rows']:,}", listed(names) or "nothing")
    out.print(patterns)


def show_lines(lines: Sequence[str]) -> None:
    """A result that is lines of text."""
    out = console(sys.stdout)
    for line in lines:
        out.print(line)


def show_table(summary: dict[str, Any]) -> None:
    """What is going to be clustered; on standard error, where pipes do not look."""
    out = console(sys.stderr)
    for line in table_lines(summary):
        out.print(line)


def show_fit(summary: dict[str, Any], files: list[str], introduced: dict[str, Any] | None = None) -> None:
    """What was found and written, and what was read, unless that was introduced before."""
    out = console(sys.stderr)
    for line in fit_lines(summary, introduced):
        out.print(line)
    if files:
        out.print("wrote " + listed([printable(file) for file in files]))


def show_choice(summary: dict[str, Any], report: str | None) -> None:
    """What was read; every number of clusters tried, with a bar for its error; then what follows."""
    out, choice = console(sys.stdout), summary["choice"]
    out.print(about_data(summary) + "\n")
    tried = choice["tried"]
    decides = "correlated_error" if choice["correlated"] else "error"
    largest = max(row[decides] or 0.0 for row in tried) or 1.0
    with_correlation = any(row["correlated_error"] is not None for row in tried)
    headers = ["clusters", "error", "above best", "silhouette", *(["correlated"] if with_correlation else [])]
    table = grid(*headers, "", right=1)
    table.columns[-1].justify = "left"
    for row in tried:
        above = f"{row['above_best']:.2g} ± {row['above_best_se']:.2g}" if row["above_best"] else ""
        cells = [f"{row['error']:.4g}", above, plain(row["silhouette"], ".2f")]
        if with_correlation:
            cells.append(plain(row["correlated_error"], ".4g"))
        mark = " <" if row["clusters"] == choice["clusters"] else ""
        bar = "" if row[decides] is None else "#" * max(1, round(BAR * row[decides] / largest))
        table.add_row(str(row["clusters"]), *cells, bar + mark)
    out.print(table)
    gaps = ", and what they do not foresee about gaps" if choice["gaps_predicted"] else ""
    legend = f"error: mean squared error of hidden values, predicted by the clusters{gaps}"
    if with_correlation:
        legend += "; correlated: the same for groups whose columns are correlated"
    if choice["correlated"]:
        legend += ", which is what the choice rests on and the bars show"
    out.print(legend + "\n")
    out.print(choice["sentence"])
    if choice["clusters"] == 1:
        out.print(divide_anyway())
    for note in summary["notes"]:
        out.print(f"note: {note['text']}")
    if report:
        out.print(f"wrote {printable(report)}")


def plain(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def role_text(column: dict[str, Any]) -> str:
    """The role, and the reason if it is not obvious."""
    plain = column["role"] in ("number", "boolean", "empty", "text")
    return column["role"] if plain else f"{column['role']}: {column['why']}"


def show_demo(analysis: Analysis, truth: Any, report: str) -> None:
    """The description of a table, a heading for each question, for someone who sees it first."""
    from rich.padding import Padding
    from sklearn.metrics import adjusted_rand_score

    summary, c = analysis.to_dict(), analysis._clustering
    facts = about_data(summary).splitlines()
    answers = {
        "The table": [*facts, f"{counted(c.table.n_complete, 'row')} complete"],
        "How many groups, and do they hold?": [summary["verdict"]["sentence"], summary["choice"]["sentence"]],
        "Are they round?": [summary["shape_choice"]["sentence"]],
        "What is missing, and does it matter?": c.diagnosis.sentence_.splitlines(),
        "The groups": [cluster_line(cluster) for cluster in summary["clusters"]],
        "Are they real?": [
            "The wines are from three cultivars, which are not in the table: "
            "adjusted Rand score against them "
            f"{adjusted_rand_score(truth, analysis.labels):.2f} (0 by chance, 1 if recovered exactly)."
        ],
        "What to check": [caution["text"] for caution in summary["cautions"]],
    }
    out = console(sys.stdout)
    for heading, lines in answers.items():
        if lines:
            out.print(heading, style="bold")
            for line in lines:
                out.print(Padding(printable(line), (0, 0, 0, 2), expand=False))
            out.print()
    out.print("The report", style="bold")
    out.print(f"  written; open it in a browser: {report}", soft_wrap=True)
