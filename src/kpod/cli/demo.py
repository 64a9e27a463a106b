"""kpod demo: everything at once, on a table that comes with the package."""

from __future__ import annotations

from pathlib import Path

import click

from kpod._analysis.prepare import Encode, table_data
from kpod.cli.fit import cluster, write_report
from kpod.cli.options import FILE
from kpod.cli.outputs import check_outputs, check_stdout
from kpod.cli.summaries import summary_of

DEMO_REPORT = "kpod-demo.html"


@click.command(short_help="Cluster a bundled table, end to end.")
@click.option(
    "--report",
    type=FILE,
    metavar="FILE",
    default=DEMO_REPORT,
    show_default=True,
    help="Where to write the report.",
)
def demo(report: str) -> None:
    """Cluster the bundled incomplete wine table, show what came out and write a report."""
    check_stdout()
    check_outputs({}, {"--report": report})
    from kpod._columns.usage import choose_columns
    from kpod._files.reading import read_table
    from kpod.cli.progress import Progress
    from kpod.cli.show import show_demo
    from kpod.datasets import load_incomplete_wine

    wine = load_incomplete_wine()
    with Progress(quiet=False) as progress:
        table = read_table(wine.filename)
        table.source = "the bundled wine table"
        choice = choose_columns(table)
        data = table_data(table, choice, Encode())
        clustering, _, notes, _ = cluster(data, {"n_clusters": 3, "random_state": 0}, progress)
        summary = summary_of(table, choice, clustering, notes, Encode())
        progress.doing("drawing the report")
        write_report(table, choice, clustering, summary, report)
    show_demo(summary, clustering, wine.target, str(Path(report).resolve()))
