"""kpod choose-k: how many clusters."""

from __future__ import annotations

from typing import Any

import click

from kpod.cli.fit import draw
from kpod.cli.options import (
    analysis_options,
    checkpoint,
    choosing,
    clusters,
    in_files,
    log_json,
    max_seconds,
    opened,
    out_file,
    preparing,
    reading,
    shape,
)
from kpod.cli.outputs import check_outputs, check_stdout, echo_json


@click.command("choose-k")
@in_files("data")
@clusters("The numbers to choose from, such as 2-8, or auto.")
@out_file("--report", help="A report on the clusters chosen, in one HTML file.")
@choosing
@preparing
@reading
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Random seed.")
@shape
@max_seconds
@checkpoint
@log_json
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def choose_k(
    data: tuple[str, ...], report: str | None, log_json: bool, as_json: bool, **options: Any
) -> None:
    """Choose the number of clusters of DATA.

    Some observed entries are hidden and predicted from the others with one cluster, two, three and so
    on; the best number of clusters predicts them best. If there is no clear choice, the output says so.

    \b
    Examples:
      kpod choose-k data.csv
      kpod choose-k data.csv -k 2-8 --report report.html
    """
    if isinstance(options["clusters"], int):
        raise click.UsageError("-k needs numbers to choose from, such as 2-8, or auto")
    check_stdout()
    check_outputs({"data": data}, {"--report": report})
    from kpod._analysis.analyze import analyze
    from kpod.cli.progress import Progress
    from kpod.cli.show import show_choice

    with (
        Progress(False, log_json) as progress,
        opened(data, options, progress) as table,
    ):
        analysis = analyze(table, verdict=False, progress=progress, **analysis_options(options))
        if report:
            draw(analysis, progress).save(report)
        summary = analysis.to_dict()
    empty = [one for one in summary["cautions"] if one["kind"] == "rows with nothing observed"]
    summary["notes"] += empty
    if as_json:
        echo_json({**summary["choice"], "notes": summary["notes"]})
    else:
        show_choice(summary, report)
