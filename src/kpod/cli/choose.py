"""kpod choose-k: how many clusters."""

from __future__ import annotations

from typing import Any

import click

from kpod._analysis.prepare import Encode, table_data
from kpod.cli.fit import FEW_ROWS, cluster, notes_on, without_empty_rows, write_report
from kpod.cli.options import checkpoint, choosing, clusters, in_files, out_file, preparing, reading
from kpod.cli.outputs import check_outputs, check_stdout, echo_json
from kpod.cli.summaries import summary_of, summary_of_choice, summary_of_data


@click.command("choose-k", short_help="Choose the number of clusters.")
@in_files("data")
@clusters("The numbers to choose from, such as 2-8, or auto.")
@out_file("--report", help="A report on the clusters chosen, in one HTML file.")
@choosing
@preparing
@reading
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Random seed.")
@checkpoint
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def choose_k(
    data: tuple[str, ...],
    clusters: int | range | str,
    report: str | None,
    columns: tuple[str, ...],
    exclude: tuple[str, ...],
    ids: tuple[str, ...],
    decided: tuple[str, ...],
    categories: tuple[str, ...],
    weight: str | None,
    no_scale: bool,
    robust: bool,
    log: tuple[str, ...],
    clip: float | None,
    shrinkage: float | str | None,
    seed: int,
    as_json: bool,
    scratch: str | None,
    checkpoint: str | None,
    **read: Any,
) -> None:
    """Choose the number of clusters of DATA.

    Some observed entries are hidden and predicted from the others with one cluster, two, three and so
    on; the best number of clusters predicts them best. If there is no clear choice, the output says so.

    \b
    Examples:
      kpod choose-k data.csv
      kpod choose-k data.csv -k 2-8 --report report.html
    """
    if isinstance(clusters, int):
        raise click.UsageError("-k needs numbers to choose from, such as 2-8, or auto")
    check_stdout()
    check_outputs({"data": data}, {"--report": report})
    from kpod._columns import table_notes, usage
    from kpod.cli.progress import Progress
    from kpod.cli.show import show_choice
    from kpod.cli.tables import open_table

    settings: dict[str, Any] = {"n_clusters": clusters, "random_state": seed}
    if shrinkage is not None:
        settings["shrinkage"] = shrinkage
    if checkpoint is not None:
        settings["checkpoint"] = checkpoint
    with (
        Progress(quiet=False) as progress,
        open_table(
            data, scratch, progress, columns=columns, aside=(*exclude, *ids), weight=weight, **read
        ) as table,
    ):
        weight = table.column(weight).name if weight else None
        choice = usage.choose_columns(
            table, columns, exclude, ids, decided=decided, categories=categories, weight=weight
        )
        encode = Encode("none" if no_scale else "robust" if robust else "standard", table.names(log), clip)
        clustered = table_data(table, choice, encode, weight)
        settings["probability"] = bool(report) and table.n_rows <= FEW_ROWS
        clustering, _, warned, number = cluster(clustered, settings, progress)
        assert number is not None
        if report:
            progress.doing("drawing the report")
            notes = [*notes_on(table, choice, clustering), *without_empty_rows(warned)]
            summary = summary_of(table, choice, clustering, notes, encode, number)
            write_report(table, choice, clustering, summary, report, number)
        notes = [*table_notes.notes_on(table, choice), *warned]
    said = summary_of_choice(number)
    if as_json:
        echo_json({**said, "notes": notes})
    else:
        show_choice(summary_of_data(table, choice), said, notes, report)
