"""kpod predict: new rows to the clusters of a model."""

from __future__ import annotations

from typing import Any

import click

from kpod._io.files import InputError
from kpod.cli.options import in_file, labelling, reading
from kpod.cli.outputs import check_label, check_outputs, check_types, output_for, say, write_labels, written
from kpod.cli.summaries import noting, summary_of_data


@click.command(short_help="Assign new rows to the clusters of a model.")
@in_file("model")
@in_file("data")
@labelling
@reading
def predict(
    model: str, data: str, output: str | None, label: str, quiet: bool, as_json: bool, **read: Any
) -> None:
    """Assign the rows of DATA, gaps and all, to the clusters of MODEL, made by kpod fit --model.

    Columns are matched by name; the marks of gaps given to kpod fit hold here too.

    \b
    Examples:
      kpod predict wine.kpod new.csv > clusters.csv
      kpod predict wine.kpod - -o clusters.parquet < new.csv
    """
    output = output_for(output, as_json)
    check_outputs({"data": data, "model": model}, {"-o": output})
    from kpod._io import modelfile, tables
    from kpod._io.choosing import Choice
    from kpod._io.reading import read_table
    from kpod.cli.progress import Progress

    with Progress(quiet) as progress:
        progress.doing(f"reading {data}")
        with noting() as notes:
            opened = modelfile.load(model)
        read["missing"] = [*opened.missing, *read["missing"]]
        table = read_table(data, **read)
        check_label(table, label)
        check_types(table, output)
        known = {column.name for column in table.columns}
        absent = [tables.shown(name) for name in opened.columns if name not in known]
        if absent:
            raise InputError(
                f"{table.source}: is missing columns the model needs: {', '.join(absent[:8])}; add them "
                "(empty where unknown), or fit a model without them."
            )
        aside = dict.fromkeys(sorted(known - set(opened.columns)), "not in the model")
        progress.doing("assigning rows")
        choice = Choice(opened.columns, aside, categories=categories_of(opened.pipeline))
        with_words = any(name == "encode" for name, _ in opened.pipeline.steps)
        values: Any = (
            choice.frame(table, all_missing=True) if with_words else choice.matrix(table, all_missing=True)
        )
        labels = opened.pipeline.predict(values)
        if output:
            progress.doing("writing")
            write_labels(table, label, labels, output)
    kpod = opened.pipeline[-1]
    sizes = [int((labels == c).sum()) for c in range(kpod.n_clusters_)]
    summary = {
        **summary_of_data(table, choice),
        "clusters": [
            {"cluster": c, "rows": n, "sentence": f"cluster {c}: {n:,} rows"} for c, n in enumerate(sizes)
        ],
        "unassigned": int((labels < 0).sum()),
        "notes": notes,
    }
    say(summary, quiet, as_json, written(output))


def categories_of(pipeline: Any) -> dict[str, tuple[str, ...]]:
    """The columns that a model takes as categories, with their order if they have one."""
    from kpod._encoder import NUMBER, ORDERED, TableEncoder

    encoder = pipeline[0]
    if not isinstance(encoder, TableEncoder):
        return {}
    columns = zip(encoder.feature_names_in_, encoder.kinds_, encoder.levels_, strict=True)
    return {
        str(name): tuple(levels) if kind == ORDERED else ()
        for name, kind, levels in columns
        if kind != NUMBER
    }
