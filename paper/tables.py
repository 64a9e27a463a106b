"""The six tables of the paper, as text, Markdown, CSV or LaTeX.

Rows are methods within a mechanism, columns the percentage missing, entries mean and standard
error. An entry is empty where the method failed in any trial or ran out of time; why is said below.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from paper.datasets import Cell, designs
from paper.methods import titles
from paper.summary import Summary, contestants

SCORES = {
    "rand": "Rand score",
    "ari": "Adjusted Rand score",
    "loss": "Loss over observed entries",
    "seconds": "Seconds",
}
OTHER_WAY = {"loss", "seconds"}  # less is better


@dataclass(frozen=True)
class Block:
    """One mechanism of one table."""

    mechanism: str
    cells: list[Cell]
    rows: list[str]


@dataclass(frozen=True)
class Sheet:
    """One table of the paper, or one of a score that the paper does not have."""

    title: str
    score: str
    blocks: list[Block]


def make_sheets(summary: Summary, tables: list[str], scores: list[str]) -> list[Sheet]:
    found = []
    for table in tables:
        design = designs()[table]
        blocks = []
        for mechanism in design.percents:
            cells = summary.cells(table, mechanism)
            rows = [row for row in titles() if any(summary.at(cell, row).outcomes for cell in cells)]
            blocks.append(Block(mechanism, cells, rows))
        for score in scores:
            number = {"rand": design.numbers[0], "seconds": design.numbers[1]}.get(score)
            numbered = f"Table {number}. " if number else f"Beside table {design.numbers[0]}. "
            found.append(Sheet(f"{numbered}{SCORES[score]}, {design.title}", score, blocks))
    return found


def number(value: float, score: str) -> str:
    if score in ("rand", "ari"):
        return f"{value:.3f}"
    return f"{value:.0f}" if value >= 100 else f"{value:.2g}" if value < 10 else f"{value:.1f}"


def entry_text(summary: Summary, cell: Cell, row: str, score: str, plus_minus: str = " ± ") -> str:
    entry = summary.at(cell, row)
    if not entry.complete:
        return ""
    if len(entry.outcomes) == 1:
        return number(entry.mean(score), score)
    return f"{number(entry.mean(score), score)}{plus_minus}{number(entry.error(score), score)}"


def is_best(summary: Summary, cell: Cell, row: str, score: str) -> bool:
    """No other method is ahead of it by more than one standard error; one trial has none."""
    rows, entry = contestants(), summary.at(cell, row)
    if row not in rows or score in OTHER_WAY or not entry.complete or len(entry.outcomes) < 2:
        return False
    return not summary.behind(cell, row, rows, score)


def trials_text(summary: Summary, block: Block, row: str) -> str:
    counts = {len(summary.at(cell, row).outcomes) for cell in block.cells} - {0}
    return "-".join(str(n) for n in sorted({min(counts), max(counts)})) if counts else ""


def grid(summary: Summary, sheet: Sheet, block: Block, mark: Callable[[str], str]) -> Iterator[list[str]]:
    yield [block.mechanism, *(f"{cell.percent} %" for cell in block.cells), "trials"]
    for row in block.rows:
        texts = [entry_text(summary, cell, row, sheet.score) for cell in block.cells]
        marked = [
            mark(text) if text and is_best(summary, cell, row, sheet.score) else text
            for cell, text in zip(block.cells, texts, strict=True)
        ]
        yield [titles()[row], *marked, trials_text(summary, block, row)]


def empty_cells(summary: Summary, sheet: Sheet) -> list[str]:
    """A line for each method with empty cells that says which, and why."""
    found = []
    for block in sheet.blocks:
        for row in block.rows:
            reasons: dict[str, list[str]] = {}
            for cell in block.cells:
                entry = summary.at(cell, row)
                if not entry.complete:
                    reasons.setdefault(entry.why_empty, []).append(f"{cell.percent} %")
            found += [
                f"{titles()[row]}, {block.mechanism} {', '.join(at)}: {why}" for why, at in reasons.items()
            ]
    return found


NOTE = "best of its column, or within one standard error of it (the complete table aside)"


def as_text(summary: Summary, sheets: list[Sheet]) -> str:
    lines = []
    for sheet in sheets:
        lines += [sheet.title, ""]
        for block in sheet.blocks:
            rows = list(grid(summary, sheet, block, lambda text: f"{text} *"))
            widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
            for row in rows:
                cells = [row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]
                lines.append("  ".join(cells).rstrip())
            lines.append("")
        if sheet.score not in OTHER_WAY:
            lines += [f"* {NOTE}", ""]
        lines += [*(f"empty: {line}" for line in empty_cells(summary, sheet)), ""]
    return "\n".join(lines).rstrip() + "\n"


def as_markdown(summary: Summary, sheets: list[Sheet]) -> str:
    lines = []
    for sheet in sheets:
        lines += [f"### {sheet.title}", ""]
        for block in sheet.blocks:
            rows = list(grid(summary, sheet, block, lambda text: f"**{text}**"))
            lines += ["| " + " | ".join(rows[0]) + " |", "|" + "---|" * len(rows[0])]
            lines += ["| " + " | ".join(row) + " |" for row in rows[1:]]
            lines.append("")
        if sheet.score not in OTHER_WAY:
            lines += [f"Bold: {NOTE}.", ""]
        reasons = empty_cells(summary, sheet)
        if reasons:
            lines += ["Empty cells:", "", *(f"- {escape_markdown(line)}" for line in reasons), ""]
    return "\n".join(lines).rstrip() + "\n"


def escape_markdown(text: str) -> str:
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>|#" else c for c in text)


CSV_COLUMNS = [
    "table", "mechanism", "percent", "method", "score", "mean", "standard_error", "trials", "empty",
]  # fmt: skip


def as_csv(summary: Summary, sheets: list[Sheet]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for sheet in sheets:
        for block in sheet.blocks:
            for row in block.rows:
                for cell in block.cells:
                    entry = summary.at(cell, row)
                    values = ["", ""]
                    if entry.complete:
                        error = entry.error(sheet.score) if len(entry.outcomes) > 1 else None
                        values = [f"{entry.mean(sheet.score):.6g}", "" if error is None else f"{error:.3g}"]
                    writer.writerow(
                        [cell.table, cell.mechanism, cell.percent, row, sheet.score, *values,
                         len(entry.outcomes), "" if entry.complete else entry.why_empty]
                    )  # fmt: skip
    return out.getvalue()


def as_latex(summary: Summary, sheets: list[Sheet]) -> str:
    lines = []
    for sheet in sheets:
        width = max(len(block.cells) for block in sheet.blocks)
        lines += [r"\begin{table}", rf"\caption{{{escape_latex(sheet.title)}}}", r"\centering"]
        lines += [rf"\begin{{tabular}}{{l{'c' * width}r}}", r"\toprule"]
        for at, block in enumerate(sheet.blocks):
            lines += [r"\midrule"] if at else []
            for first, row in enumerate(grid(summary, sheet, block, lambda text: f"<b>{text}")):
                cells = [escape_latex(row[0]), *map(latex_cell, row[1:-1])]
                cells += [""] * (width - len(block.cells)) + [row[-1]]
                lines.append(" & ".join(cells) + r" \\")
                lines += [] if first else [r"\midrule"]
        lines += [r"\bottomrule", r"\end{tabular}", r"\end{table}", ""]
    return "\n".join(lines)


def latex_cell(text: str) -> str:
    if text.startswith("<b>"):
        return rf"\textbf{{{latex_cell(text[3:])}}}"
    return escape_latex(text).replace("±", r"$\pm$")


def escape_latex(text: str) -> str:
    return "".join(f"\\{c}" if c in "%&_#$" else c for c in text)


FORMATS = {"text": as_text, "markdown": as_markdown, "csv": as_csv, "latex": as_latex}
