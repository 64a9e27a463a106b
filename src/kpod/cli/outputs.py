"""Outputs: checks before the work, and writing."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from kpod._common.errors import InputError, printable

if TYPE_CHECKING:
    from kpod._columns.tables import TableFile


def output_for(output: str | None, as_json: bool) -> str | None:
    if as_json and output == "-":
        raise click.UsageError("--json and -o - cannot both use standard output")
    if as_json or output in (None, "-"):
        check_stdout("; give the name of a file with -o")
    return output if as_json else output or "-"


def check_stdout(advice: str = "") -> None:
    """Python has no standard output where the shell closed it, and writes to it are ignored."""
    if sys.stdout is None:
        raise InputError(f"standard output is closed{advice}.")


NOT_REPORTS = (".pdf", ".doc", ".docx", ".odt", ".rtf", ".md", ".png", ".svg", ".jpg", ".xlsx", ".pptx")


def check_outputs(inputs: dict[str, str | Sequence[str]], outputs: dict[str, str | None]) -> None:
    """Whatever can be known to go wrong with the outputs, before the work is done."""
    from kpod._files.atomic import check_folder, check_writable, is_folder, is_url

    named = {what: [given] if isinstance(given, str) else given for what, given in inputs.items()}
    taken = {
        os.path.realpath(path): f"the {what}"
        for what, given in named.items()
        for path in given
        if path != "-"
    }
    streams = [option for option, path in outputs.items() if path == "-"]
    if streams and streams != ["-o"]:
        raise click.UsageError(f"{streams[-1]} needs the name of a file, not -")
    for option, path in outputs.items():
        if path is None or path == "-":
            continue
        target = os.path.realpath(path)
        if target in taken:
            raise InputError(
                f"{option} {printable(path)} would overwrite {taken[target]}; choose another name."
            )
        taken[target] = option
        if is_url(path):
            raise InputError(
                f"{option} {printable(path)}: results are written to this machine; write a file or a folder "
                "here, and copy it."
            )
        if option == "-o" and is_folder(path):
            check_folder(path)
            continue
        check_writable(path)
        if option == "--report" and path.lower().endswith(NOT_REPORTS):
            raise InputError(
                f"--report {printable(path)}: a report is an HTML file; end its name in .html "
                "(a browser prints it to PDF)."
            )
        if option in ("-o", "--centers"):
            from kpod._files.writing import check_packages, format_of

            check_packages(format_of(path))


def check_label(table: TableFile, label: str, confidence: bool = False) -> None:
    from kpod._files.output import names_of_sure

    if not label.strip():
        raise InputError("--label needs a name for the column with the clusters.")
    taken = [column.name for column in table.columns]
    for name in (label, *(names_of_sure(label) if confidence else ())):
        if name in taken:
            raise InputError(
                f"{table.source}: already has a column '{printable(name)}'; choose another name with --label."
            )


def check_types(table: TableFile, output: str | None, confidence: bool = False) -> None:
    """Whether the output's format can hold what the columns of the input hold."""
    if output:
        from kpod._files.atomic import is_folder
        from kpod._files.writing import check_format, format_of

        if table.in_pieces and confidence:
            raise InputError(
                f"{table.source}: --confidence needs the whole table in memory{table.whole_size}; leave it "
                "out."
            )
        if is_folder(output):
            return  # of the formats of the parts
        if table.in_pieces and format_of(output) == "excel":
            raise InputError(
                f"-o {printable(output)}: workbooks cannot be written in pieces; write .csv or .parquet."
            )
        check_format(table, output)


def written(*paths: str | None) -> list[str]:
    return [printable(path) for path in paths if path and path != "-"]


def say(
    summary: dict[str, Any],
    quiet: bool,
    as_json: bool,
    files: list[str],
    introduced: dict[str, Any] | None = None,
) -> None:
    if as_json:
        echo_json({**summary, "written": files})
    elif not quiet:
        from kpod.cli.show import show_fit

        show_fit(summary, files, introduced)


def echo_json(content: Any) -> None:
    import json

    click.echo(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False))


def command_line() -> str:
    import shlex

    return printable(shlex.join(["kpod", *sys.argv[1:]]))
