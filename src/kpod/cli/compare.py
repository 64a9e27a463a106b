"""kpod compare: what has changed since a model was fitted."""

from __future__ import annotations

from typing import Any

import click

from kpod.cli.options import in_file, in_files, log_json, out_file, reading, reading_options
from kpod.cli.outputs import check_outputs, check_stdout, command_line, echo_json, written


@click.command()
@in_file("model")
@in_files("data")
@reading
@log_json
@out_file("--report", help="Write a report, one HTML file to open, print or send.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def compare(
    model: str, data: tuple[str, ...], log_json: bool, report: str | None, as_json: bool, **options: Any
) -> None:
    """Compare the rows of DATA with the clusters of MODEL, made by kpod fit --model from an earlier table.

    The rows are assigned to the clusters of the model, and also clustered afresh. The output says whether
    both give the same groups, and how cluster proportions and means have changed.

    \b
    Examples:
      kpod compare january.kpod february.csv --report changes.html
      kpod compare january.kpod february.csv --json | jq .shifts
    """
    check_stdout()
    check_outputs({"model": model, "data": data}, {"--report": report})
    from kpod._analysis.comparing import compare as compared
    from kpod.cli.progress import Progress

    with Progress(False, log_json) as progress:
        found = compared(model, list(data), progress=progress, **reading_options(options))
        if report:
            found.report(settings={"command": command_line()}).save(report)
    if as_json:
        echo_json(found.to_dict())
    else:
        from kpod.cli.show import show_lines

        show_lines([*str(found).splitlines(), *(f"wrote {path}" for path in written(report))])
