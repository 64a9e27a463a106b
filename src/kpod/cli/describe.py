"""kpod describe: what a table holds, before anything is clustered."""

from __future__ import annotations

from typing import Any

import click

from kpod.cli.options import in_files, log_json, opened, reading
from kpod.cli.outputs import check_stdout, echo_json

MOST_PATTERNS = 8


@click.command()
@in_files("data")
@reading
@log_json
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def describe(data: tuple[str, ...], log_json: bool, as_json: bool, **options: Any) -> None:
    """Describe DATA: the role, missing entries and range of each column, and the patterns of gaps.

    Several files, a folder or a pattern are read as one table.

    \b
    Examples:
      kpod describe data.csv
      kpod describe survey.csv --missing -9 --json | jq .columns
      kpod describe folder/
    """
    check_stdout()
    from kpod._analysis.describe import describe as described_table
    from kpod.cli.progress import Progress
    from kpod.cli.show import show

    with (
        Progress(False, log_json) as progress,
        opened(data, options, progress) as table,
    ):
        table.read_text()
        described = described_table(table, MOST_PATTERNS)
    if as_json:
        echo_json(described)
    else:
        show(described)
