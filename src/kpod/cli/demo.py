"""kpod demo: a whole analysis of the bundled table."""

from __future__ import annotations

import click

from kpod.cli.options import FILE
from kpod.cli.outputs import check_outputs, check_stdout

DEMO_REPORT = "kpod-demo.html"


@click.command()
@click.option(
    "--report",
    type=FILE,
    metavar="FILE",
    default=DEMO_REPORT,
    show_default=True,
    help="Where to write the report.",
)
def demo(report: str) -> None:
    """Cluster the bundled incomplete wine table, show the result and write a report.

    It chooses the number of clusters and their shape, and takes less than a minute.
    """
    check_stdout()
    check_outputs({}, {"--report": report})
    from pathlib import Path

    from kpod._analysis.analyze import analyze
    from kpod._files.opening import open_table
    from kpod.cli.fit import draw
    from kpod.cli.progress import Progress
    from kpod.cli.show import show_demo
    from kpod.datasets import load_incomplete_wine

    wine = load_incomplete_wine()
    with Progress(quiet=False) as progress:
        table = open_table(wine.filename)
        table.source = "the bundled wine table"
        analysis = analyze(table, shape="auto", progress=progress)
        draw(analysis, progress).save(report)
    show_demo(analysis, wine.target, str(Path(report).resolve()))
