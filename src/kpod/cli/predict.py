"""kpod predict: assigns new rows to the clusters of a model."""

from __future__ import annotations

from typing import Any

import click

from kpod._common.errors import InputError, printable
from kpod.cli.options import in_file, in_files, labelling, long_form, new_rows_options, reading
from kpod.cli.outputs import check_label, check_outputs, check_types, output_for, say, written


@click.command()
@in_file("model")
@in_files("data")
@labelling
@long_form
@reading
def predict(
    model: str,
    data: tuple[str, ...],
    output: str | None,
    label: str,
    quiet: bool,
    log_json: bool,
    as_json: bool,
    confidence: bool,
    **options: Any,
) -> None:
    """Assign the rows of DATA, which may have gaps, to the clusters of MODEL, made by kpod fit --model.

    Columns are matched by name; values given to kpod fit as --missing are missing here too.

    \b
    Examples:
      kpod predict wine.kpod new.csv > clusters.csv
      kpod predict wine.kpod - -o clusters.parquet < new.csv
      kpod predict films.kpod new.csv --rows user --items film --values stars -o clusters.csv
    """
    output = output_for(output, as_json)
    check_outputs({"data": data, "model": model}, {"-o": output})
    from kpod._analysis.applying import apply, summary_of_new_rows
    from kpod._files.output import write_labels
    from kpod.cli.progress import Progress

    with (
        Progress(quiet, log_json) as progress,
        apply(model, data, progress=progress, **new_rows_options(options)) as given,
    ):
        check_label(given.table, label, confidence)
        check_types(given.table, output, confidence)
        if confidence and not hasattr(given.kpod, "predict_proba"):
            raise InputError(
                f"{printable(model)}: no probabilities in this model; fit it again with "
                "kpod fit --confidence --model."
            )
        progress(0, 0, "assigning rows")
        labels, sure = given.labels, given.sureness if confidence else None
        if output:
            progress(0, 0, "writing")
            write_labels(given.table, label, labels, output, sure)
    say(summary_of_new_rows(given, sure), quiet, as_json, written(output))
