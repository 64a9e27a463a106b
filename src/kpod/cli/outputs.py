"""Where results go: what can be known to go wrong beforehand, and writing them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kpod._io.files import InputError, check_writable, printable

if TYPE_CHECKING:
    from kpod._io.tables import TableFile


def output_for(output: str | None, as_json: bool) -> str | None:
    if not as_json:
        return output or "-"
    if output == "-":
        raise click.UsageError("--json and -o - both want standard output")
    return output


def check_outputs(data: str, outputs: dict[str, str | None]) -> None:
    """Whatever can be known to go wrong with the outputs, before the work is done."""
    taken = {Path(data).resolve(): "the data"} if data and data != "-" else {}
    streams = [option for option, path in outputs.items() if path == "-"]
    if streams and streams != ["-o"]:
        raise click.UsageError(f"{streams[-1]} needs the name of a file, not -")
    for option, path in outputs.items():
        if path is None or path == "-":
            continue
        target = Path(path).resolve()
        if target in taken:
            raise InputError(
                f"{option} {printable(path)} would overwrite {taken[target]}; give another name."
            )
        taken[target] = option
        check_writable(path)
        if option in ("-o", "--centers"):
            from kpod._io.writing import format_of

            format_of(path)


def check_label(table: TableFile, label: str) -> None:
    if label in [column.name for column in table.columns]:
        raise InputError(
            f"{table.source}: already has a column '{printable(label)}'; name ours otherwise with --label."
        )


def write_labels(table: TableFile, label: str, labels: Any, output: str) -> None:
    from kpod._io import writing

    typed = writing.format_of(output) != "csv"
    writing.write_table(writing.with_labels(table, label, labels, typed=typed), output, table.dialect)


def written(*paths: str | None) -> list[str]:
    return [path for path in paths if path and path != "-"]


def say(summary: dict[str, Any], quiet: bool, as_json: bool, files: list[str]) -> None:
    if as_json:
        echo_json({**summary, "written": files})
    elif not quiet:
        from kpod.cli.show import show_fit

        show_fit(summary, files)


def echo_json(content: Any) -> None:
    import json

    click.echo(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False))
