"""What a table holds and what came of it, as tables for a terminal."""

from __future__ import annotations

import sys
from typing import IO, Any

import numpy as np

from kpod import _columns, _summary, _tables
from kpod._files import printable
from kpod._summary import Clustering, counted, listed, number

PIPE_WIDTH = 140


def describe(table: _tables.TableFile, most_patterns: int) -> dict[str, Any]:
    """Columns, gaps and their patterns, as plain data."""
    missing = np.column_stack([missing_entries(table, column) for column in table.columns])
    numeric = [j for j, column in enumerate(table.columns) if column.values is not None]
    n_patterns, patterns = _summary.patterns_of_gaps(missing, most_patterns)
    nothing = missing[:, numeric].all(axis=1) if numeric else np.ones(table.n_rows, bool)
    return {
        "data": table.source,
        "rows": table.n_rows,
        "text_file": vars(table.dialect) if table.dialect else None,
        "missing_share": float(missing.mean()),
        "complete_rows": int((~missing.any(axis=1)).sum()),
        "rows_without_numbers": int(nothing.sum()),
        "columns": [about(column, missing[:, j]) for j, column in enumerate(table.columns)],
        "patterns": n_patterns,
        "commonest_patterns": [
            {"missing": [table.columns[j].name for j in columns], "rows": rows} for columns, rows in patterns
        ],
    }


def missing_entries(table: _tables.TableFile, column: _tables.Column) -> Any:
    if column.values is not None:
        return np.isnan(column.values)
    return _columns.gaps_of(table.raw[column.name], list(column.marks))


def about(column: _tables.Column, missing: Any) -> dict[str, Any]:
    low = high = None
    if column.values is not None and not missing.all():
        low, high = float(np.nanmin(column.values)), float(np.nanmax(column.values))
    kind = f"{column.kind} (identifier)" if column.looks_like_id else column.kind
    return {
        "name": column.name,
        "type": kind,
        "missing": int(missing.sum()),
        "missing_share": float(missing.mean()),
        "marks": dict(column.marks),
        "min": _summary.finite(low) if low is not None else None,
        "max": _summary.finite(high) if high is not None else None,
    }


def console(file: IO[str]) -> Any:
    """A console that takes text as it is; wide where nobody's window limits it."""
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


def marks_text(marks: dict[str, int]) -> str:
    return ", ".join(f"{printable(mark)} {n:,}" for mark, n in marks.items())


def dialect_text(dialect: dict[str, str] | None) -> str:
    if not dialect:
        return ""
    delimiter = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}.get(dialect["delimiter"])
    text = f"; {delimiter or printable(dialect['delimiter'])} between fields, {dialect['encoding']}"
    return text + (", decimal comma" if dialect["decimal"] == "," else "")


def show(described: dict[str, Any]) -> None:
    out = console(sys.stdout)
    out.print(
        f"{described['data']}: {counted(described['rows'], 'row')}, "
        f"{counted(len(described['columns']), 'column')}{dialect_text(described['text_file'])}"
    )
    out.print(
        f"{described['missing_share']:.1%} of the entries missing; "
        f"{counted(described['complete_rows'], 'row')} complete, "
        f"{counted(described['rows_without_numbers'], 'row')} without any number observed\n"
    )
    columns = grid("column", "type", "missing", "share", "min", "max", "marks", right=2)
    columns.columns[-1].justify = "left"
    for c in described["columns"]:
        ends = [number(c[end]) if c[end] is not None else "" for end in ("min", "max")]
        columns.add_row(
            printable(c["name"]),
            c["type"],
            f"{c['missing']:,}",
            f"{c['missing_share']:.1%}",
            *ends,
            marks_text(c["marks"]),
        )
    out.print(columns)
    out.print(f"\nCommonest patterns of gaps ({described['patterns']:,} in all)")
    patterns = grid("rows", "missing together")
    for pattern in described["commonest_patterns"]:
        names = [printable(name) for name in pattern["missing"]]
        patterns.add_row(f"{pattern['rows']:,}", listed(names) or "nothing")
    out.print(patterns)


def show_fit(summary: dict[str, Any], files: list[str]) -> None:
    """What was read, what was found, what was written; on standard error, where pipes do not look."""
    out = console(sys.stderr)
    out.print(about_data(summary))
    if "loss" in summary:
        ending = "" if summary["converged"] else ", not converged"
        out.print(f"loss {summary['loss']:.6g} after {counted(summary['iterations'], 'iteration')}{ending}")
    for cluster in summary["clusters"]:
        out.print("  " + printable(cluster["sentence"]))
    for note in summary["notes"]:
        out.print(f"note: {printable(note)}")
    if files:
        out.print("wrote " + listed([printable(file) for file in files]))


def report_source(summary: dict[str, Any]) -> dict[str, str]:
    """What was read, in the words that the terminal and the report share."""
    aside = [f"{printable(name) or '(no name)'} ({why})" for name, why in summary["set_aside"].items()]
    marks = f": {marks_text(summary['marks'])}" if summary["marks"] else ""
    return {
        "data": f"{summary['data']}: {counted(summary['rows'], 'row')}, "
        f"{counted(len(summary['columns']), 'column')} used{dialect_text(summary['text_file'])}",
        **({"set aside": ", ".join(aside)} if aside else {}),
        "gaps": f"{summary['missing']:,} ({summary['missing_share']:.1%} of the entries){marks}",
    }


def about_data(summary: dict[str, Any]) -> str:
    first, *rest = report_source(summary).items()
    return "\n".join([first[1], *(f"{what}: {text}" for what, text in rest)])


def show_demo(summary: dict[str, Any], c: Clustering, truth: Any, report: str) -> None:
    """The fit at length, for someone who sees it for the first time."""
    from sklearn.metrics import rand_score

    out = console(sys.stdout)
    out.print(about_data(summary))
    complete = int(c.observed.all(axis=1).sum())
    out.print(f"{counted(complete, 'row')} complete; columns standardised, best of 10 starts\n")
    for cluster in range(c.k):
        out.print(c.sentence(cluster))
    out.print("\nCenters in the original units (in brackets: observed entries behind each)")
    centers = grid("", *(f"cluster {cluster}" for cluster in range(c.k)), right=1)
    centers.add_row("rows", *(f"{size}      " for size in c.sizes))
    for j, name in enumerate(c.names):
        cells = [f"{number(c.centers[m, j])} {f'({c.counts[m, j]:.0f})':>5}" for m in range(c.k)]
        centers.add_row(name, *cells)
    out.print(centers)
    out.print("\nLoss over the observed entries, by iteration")
    for iteration, loss in enumerate(c.kpod.loss_curve_, 1):
        step = "lloyd" if iteration <= c.kpod.n_iter_ else "moves"
        out.print(f"  {iteration:>3} {step} {loss:10.3f}  {'#' * int(40 * loss / c.kpod.loss_curve_[0])}")
    out.print(f"\nRand score against the three cultivars: {rand_score(truth, c.labels):.3f}")
    out.print("\nReport written; open it in a browser:")
    out.print(f"  {report}", soft_wrap=True)
