"""kpod predict: new rows to the clusters of a model."""

from __future__ import annotations

from typing import Any

import click

from kpod._common.errors import InputError, printable
from kpod.cli.applying import noted, open_model_and_table
from kpod.cli.options import in_file, in_files, labelling, long_form, reading
from kpod.cli.outputs import check_label, check_outputs, check_types, output_for, say, write_labels, written
from kpod.cli.summaries import summary_of_data


@click.command(short_help="Assign new rows to the clusters of a model.")
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
    as_json: bool,
    confidence: bool,
    rows: str | None,
    items: str | None,
    values: str | None,
    scratch: str | None,
    **read: Any,
) -> None:
    """Assign the rows of DATA, gaps and all, to the clusters of MODEL, made by kpod fit --model.

    Columns are matched by name; values given to kpod fit as --missing are missing here too.

    \b
    Examples:
      kpod predict wine.kpod new.csv > clusters.csv
      kpod predict wine.kpod - -o clusters.parquet < new.csv
      kpod predict films.kpod new.csv --rows user --items film --values stars -o clusters.csv
    """
    output = output_for(output, as_json)
    check_outputs({"data": data, "model": model}, {"-o": output})
    from kpod._common.words import counted
    from kpod.cli.progress import Progress

    ratings = {"--rows": rows, "--items": items, "--values": values}
    with (
        Progress(quiet) as progress,
        open_model_and_table(model, data, scratch, progress, ratings, read) as given,
    ):
        check_label(given.table, label, confidence)
        check_types(given.table, output, confidence)
        if confidence and not hasattr(given.kpod, "predict_proba"):
            raise InputError(
                f"{printable(model)}: no probabilities in this model; fit it again with "
                "kpod fit --confidence --model."
            )
        progress.doing("assigning rows")
        labels = given.predict()
        sure = None
        if confidence:
            from kpod._mixture.confidence import sureness

            with noted():
                chances = given.model.pipeline.predict_proba(given.values)
            sure = sureness(chances, labels)
        if output:
            progress.doing("writing")
            write_labels(given.table, label, labels, output, sure)
    sizes = [int((labels == c).sum()) for c in range(given.kpod.n_clusters_)]
    summary = {
        **summary_of_data(given.table, given.choice),
        "clusters": [
            {"cluster": c, "rows": n, "sentence": f"cluster {c}: {counted(n, 'row')}"}
            for c, n in enumerate(sizes)
        ],
        "unassigned": int((labels < 0).sum()),
        **({} if sure is None else {"confidence": {"another_more_probable": int(sure.elsewhere.sum())}}),
        "notes": given.notes,
    }
    say(summary, quiet, as_json, written(output))
