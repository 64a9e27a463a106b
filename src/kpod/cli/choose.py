"""kpod choose-k: how many clusters."""

from __future__ import annotations

from typing import Any

import click

from kpod.cli.fit import choose_number, cluster, write_report
from kpod.cli.options import choosing, clusters, in_file, out_file, reading
from kpod.cli.outputs import check_outputs, echo_json
from kpod.cli.summaries import summary_of, summary_of_choice


@click.command("choose-k", short_help="How many clusters does a table have?")
@in_file("data")
@clusters("The numbers to choose from, such as 2-8, or auto.")
@out_file("--report", help="A report on the clusters chosen, in one HTML file.")
@choosing
@click.option("--no-scale", is_flag=True, help="Do not standardise the columns: they share a unit.")
@reading
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Random seed.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def choose_k(
    data: str,
    clusters: int | range | str,
    report: str | None,
    columns: tuple[str, ...],
    exclude: tuple[str, ...],
    ids: tuple[str, ...],
    no_scale: bool,
    seed: int,
    as_json: bool,
    **read: Any,
) -> None:
    """Choose the number of clusters of DATA.

    Some observed entries are hidden and predicted from the others, with one cluster, two, three and
    so on: the best number predicts them best. Says so when there is no clear choice.

    \b
    Examples:
      kpod choose-k data.csv
      kpod choose-k data.csv -k 2-8 --report report.html
    """
    if isinstance(clusters, int):
        raise click.UsageError("-k needs numbers to choose from, such as 2-8, or auto")
    check_outputs(data, {"--report": report})
    from kpod._io import tables
    from kpod._io.reading import read_table
    from kpod.cli.progress import Progress
    from kpod.cli.show import show_choice

    settings = {"n_clusters": clusters, "random_state": seed}
    with Progress(quiet=False) as progress:
        progress.doing(f"reading {data}")
        table = read_table(data, **read)
        choice = tables.choose_columns(table, columns, exclude, ids)
        number = choose_number(table, choice, settings, not no_scale, progress)
        if report:
            progress.doing("drawing the report")
            settings["n_clusters"] = number.best_k_
            clustering, _, notes = cluster(table, choice, settings, not no_scale, progress)
            summary = summary_of(table, choice, clustering, notes, not no_scale, number)
            write_report(table, choice, clustering, summary, report, number)
    if as_json:
        echo_json(summary_of_choice(number))
    else:
        show_choice(summary_of_choice(number), report)
