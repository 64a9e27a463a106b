"""kpod describe: what a table holds, before anything is clustered."""

from __future__ import annotations

from typing import Any

import click

from kpod.cli.options import in_file, reading
from kpod.cli.outputs import check_stdout, echo_json

MOST_PATTERNS = 8


@click.command(short_help="Show the columns of a table, their roles and what is missing.")
@in_file("data")
@reading
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def describe(data: str, as_json: bool, **read: Any) -> None:
    """Describe DATA: the role, missing entries and range of each column, and the patterns of gaps.

    \b
    Examples:
      kpod describe data.csv
      kpod describe survey.csv --missing -9 --json | jq .columns
    """
    check_stdout()
    from kpod._io.reading import read_table
    from kpod._report.describe import describe as described_table
    from kpod.cli.progress import Progress
    from kpod.cli.show import show

    with Progress(quiet=False) as progress:
        progress.doing(f"reading {data}")
        described = described_table(read_table(data, **read), MOST_PATTERNS)
    if as_json:
        echo_json(described)
    else:
        show(described)
