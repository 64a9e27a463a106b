"""kpod impute: a table with its gaps filled from the clusters of a model."""

from __future__ import annotations

from typing import Any

import click

from kpod.cli.options import in_file, new_rows_options, reading, table_output, telling
from kpod.cli.outputs import check_outputs, check_types, output_for, say, written


@click.command()
@in_file("model")
@in_file("data")
@table_output("with its gaps filled")
@telling
@reading
def impute(
    model: str, data: str, output: str | None, quiet: bool, log_json: bool, as_json: bool, **options: Any
) -> None:
    """Fill the gaps of DATA from the clusters of MODEL, made by kpod fit --model.

    A gap in a column of the model gets the mean of the row's cluster, or its most common category; if the
    cluster has no values in that column, that of the whole table, and a note says so. If the model was fitted
    with --log or --clip, it is the mean of the logarithms, transformed back, or of the clipped values. Other
    columns are left unchanged. Use the result to look at the data, or for tools that need a complete
    table. Filled values vary less than real ones: do not compute standard errors from them.

    \b
    Examples:
      kpod impute wine.kpod data.csv > filled.csv
      kpod impute survey.kpod survey.sav -o filled.xlsx
    """
    output = output_for(output, as_json)
    check_outputs({"data": data, "model": model}, {"-o": output})
    from kpod._analysis.applying import apply
    from kpod._analysis.filling import fill
    from kpod._analysis.summaries import summary_of_data
    from kpod._files.output import write_as_it_is
    from kpod.cli.progress import Progress

    with (
        Progress(quiet, log_json) as progress,
        apply(model, data, progress=progress, **new_rows_options(options)) as given,
    ):
        check_types(given.table, output)
        before = summary_of_data(given.table, given.usage)
        progress(0, 0, "filling gaps")
        filled, notes = fill(given)
        if output:
            progress(0, 0, "writing")
            write_as_it_is(given.table, output)
    summary = {
        **before,
        "filled": sum(filled.values()),
        "filled_by_column": filled,
        "clusters": [],
        "notes": [note.to_dict() for note in [*given.notes, *notes]],
    }
    say(summary, quiet, as_json, written(output))
