"""kpod fit: from a table to its clusters."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from kpod._analysis.asides import asides
from kpod._analysis.prepare import Data, Encode, as_ratings, ratings_data, table_data, usable_rows
from kpod._common.errors import InputError, printable
from kpod.cli.options import (
    checkpoint,
    choosing,
    clusters,
    in_files,
    labelling,
    long_form,
    out_file,
    preparing,
    reading,
)
from kpod.cli.outputs import check_label, check_outputs, check_types, output_for, say, write_labels, written
from kpod.cli.summaries import noting, summary_of

if TYPE_CHECKING:
    from kpod._analysis.clustering import Clustering
    from kpod._analysis.stability import Stability
    from kpod._columns.tables import TableFile
    from kpod._columns.usage import ColumnUsage
    from kpod._estimators.kpod import KPOD
    from kpod._selection.number import KChoice
FEW_ROWS = 50_000
"""Up to which a report says how sure the rows are without being asked: probabilities take a second or two."""
QUICK_WORK = 300_000
"""Observed entries times clusters, up to which a report says how stable the clusters are: a second or two."""


@click.command(short_help="Cluster a table.")
@in_files("data")
@clusters("The number of clusters, a range to choose from such as 2-8, or auto.")
@labelling
@out_file(
    "--centers",
    help="Write the centers, in the original units, with the number of observed entries behind each value; "
    "of columns in --log, the mean of logarithms, taken back.",
)
@out_file("--model", help="Write the model, for kpod predict and kpod impute.")
@out_file("--report", help="Write a report, one HTML file to open, print or send.")
@choosing
@preparing
@long_form
@reading
@click.option(
    "--algorithm",
    type=click.Choice(["hartigan", "lloyd", "mm"]),
    default="hartigan",
    show_default=True,
    help="hartigan reaches the lowest loss; mm is the published algorithm.",
)
@click.option(
    "--starts",
    type=click.IntRange(min=1),
    help="Number of starts; the best is kept.  [default: 10, on a sample of the rows where more than a "
    "million entries are observed; 1 for ratings of that size]",
)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Random seed.")
@checkpoint
@click.option(
    "--missingness",
    type=click.Choice(["ignore", "informative", "auto"]),
    default="ignore",
    show_default=True,
    help="Whether gaps carry information about clusters: ignore them, use them, or let auto decide.",
)
@click.option(
    "--stability",
    "with_stability",
    is_flag=True,
    help="Also cluster 50 resampled tables and report which clusters are stable; takes as long as about "
    "15 fits. Always included in reports on small tables.",
)
def fit(
    data: tuple[str, ...],
    clusters: int | range | str,
    output: str | None,
    label: str,
    quiet: bool,
    as_json: bool,
    confidence: bool,
    centers: str | None,
    model: str | None,
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
    rows: str | None,
    items: str | None,
    values: str | None,
    algorithm: str,
    starts: int | None,
    seed: int,
    missingness: str,
    scratch: str | None,
    checkpoint: str | None,
    with_stability: bool,
    **read: Any,
) -> None:
    """Cluster the rows of DATA: CSV or other text, Excel, SPSS, Stata, SAS, JSON, Parquet or Arrow.

    Several files, a folder or a pattern are read as one table; all files need the same columns.

    Empty cells and NA, NaN, null, ? and the like count as missing; the markers found are reported.
    Numbers and yes/no columns are clustered; identifiers, dates, categories and text are not, but stay
    in the output. Columns are standardised over their observed entries unless --no-scale. Use - as DATA
    to read standard input.

    \b
    Examples:
      kpod fit data.csv > clusters.csv
      kpod fit data.csv -k 3 -o clusters.parquet --report report.html --model wine.kpod
      kpod fit survey.csv -k 5 --missing -9 --missing 999 --exclude weight --id person
      zcat data.csv.gz | kpod fit - -k 3 --json -o clusters.csv | jq .clusters
      kpod fit folder/ -k 20 --scratch /data/scratch --checkpoint /data/kept -o clusters.parquet
    """
    output = output_for(output, as_json)
    check_outputs({"data": data}, {"-o": output, "--centers": centers, "--model": model, "--report": report})
    from kpod._columns import usage
    from kpod._files import writing
    from kpod._files.large import LargeTable
    from kpod._models import archive
    from kpod.cli.progress import Progress
    from kpod.cli.tables import open_table

    with (
        Progress(quiet) as progress,
        open_table(
            data, scratch, progress, columns=columns, aside=(*exclude, *ids), weight=weight, **read
        ) as opened,
    ):
        table = opened
        weight = table.column(weight).name if weight else None
        sparse = None
        if rows or items or values:
            sparse = as_ratings(table, {"--rows": rows, "--items": items, "--values": values})
            table, choice = sparse.table, sparse.choice
        else:
            choice = usage.choose_columns(
                table, columns, exclude, ids, decided=decided, categories=categories, weight=weight
            )
        check_label(table, label, confidence)
        check_types(table, output, confidence)
        settings: dict[str, Any] = {
            "n_clusters": clusters,
            "algorithm": algorithm,
            "n_init": starts or "auto",
            "random_state": seed,
            "missingness": missingness,
            **({"shrinkage": shrinkage} if shrinkage is not None else {}),
            **({"checkpoint": checkpoint} if checkpoint is not None else {}),
        }
        encode = Encode("none" if no_scale else "robust" if robust else "standard", table.names(log), clip)
        clustered = ratings_data(sparse, encode) if sparse else table_data(table, choice, encode, weight)
        settings["probability"] = confidence or (bool(report) and table.n_rows <= FEW_ROWS)
        clustering, pipeline, notes, number = cluster(clustered, settings, progress)
        again, is_large = None, isinstance(table, LargeTable)
        if with_stability or (report and is_quick(clustering)):
            again = resampled(clustering.kpod if is_large else pipeline, clustered, seed, progress)
        notes = without_empty_rows(notes)
        if not sparse:
            notes = [*notes_on(table, choice, clustering), *notes]
        summary = summary_of(table, choice, clustering, notes, encode, number, again)
        progress.doing("writing")
        if centers:
            writing.write_table(centers_table(clustering, label), centers, table.dialect)
        if model:
            kinds = choice.kinds(table)
            archive.save(archive.Model(pipeline, choice.used, list(read["missing"]), kinds=kinds), model)
        if report:
            progress.doing("drawing the report")
            write_report(table, choice, clustering, summary, report, number, again)
        if output:  # last: what has gone down a pipe cannot be taken back
            write_labels(table, label, clustering.labels, output, clustering.sureness if confidence else None)
    say(summary, quiet, as_json, written(output, centers, model, report))


class Clustered(NamedTuple):
    """A clustering, the pipeline that made it, what its fit warned of, and why this number of clusters."""

    clustering: Clustering
    pipeline: Any
    notes: list[str]
    number: KChoice | None


def cluster(data: Data, settings: dict[str, Any], progress: Any) -> Clustered:
    """Choose what was left open and fit, once; keep what the fit warns of."""
    from sklearn.pipeline import Pipeline

    from kpod._analysis.clustering import Clustering
    from kpod._inputs.scanned import ScannedTable
    from kpod._models.save_load import without_names

    progress.doing("clustering")
    with noting() as notes:
        values = data.values
        for _, step in data.step:
            values = step.fit_transform(values)
        kpod, number = fitted(data, values, settings, progress)
    pipeline = Pipeline([*data.step, ("kpod", kpod)])
    if isinstance(data.values, ScannedTable):
        clustering = Clustering.of(kpod, data.values, data.names, is_fitted_table=True)
        scale = [] if data.values.scaler_ is None else [("scale", without_names(data.values.scaler_))]
        return Clustered(clustering, Pipeline([*scale, ("kpod", without_names(kpod))]), notes, number)
    clustering = Clustering.of(pipeline, data.values, data.names, is_fitted_table=True)
    return Clustered(clustering, pipeline, notes, number)


def without_empty_rows(notes: list[str]) -> list[str]:
    """The notes but the one on rows with nothing observed, of which a caution speaks."""
    return [note for note in notes if "nothing observed: " not in note]


def fitted(data: Data, values: Any, settings: dict[str, Any], progress: Any) -> tuple[KPOD, KChoice | None]:
    """The model; and why it has so many clusters, where that was left open.

    What Python gives for the same table: a KPOD, or the `model_` of `choose_k`.
    """
    from kpod._analysis.choose_k import choose_k
    from kpod._estimators.kpod import KPOD
    from kpod.cli.progress import Choosing

    numbers = settings["n_clusters"]
    kpod = KPOD(**{**settings, "n_clusters": numbers if isinstance(numbers, int) else "auto"})
    with progress.following(kpod):
        if not isinstance(numbers, int):
            try:
                told = Choosing(progress)
                number = choose_k(values, numbers, estimator=kpod, sample_weight=data.weights, progress=told)
            except ValueError as error:
                raise InputError(f"{data.source}: {error} On the command line, use -k.") from error
            return number.model_, number
        n_usable = usable_rows(data.values)
        if numbers > n_usable:
            raise InputError(
                f"{data.source}: -k {numbers} is more than the number of rows with observed entries "
                f"({n_usable:,}); ask for fewer clusters."
            )
        return kpod.fit(values, sample_weight=data.weights), None


def is_quick(c: Clustering) -> bool:
    """Whether clustering resampled tables takes no longer than drawing the report."""
    return c.k > 1 and int(c.values.by_column.sum()) * c.k <= QUICK_WORK


def resampled(pipeline: Any, data: Data, seed: int, progress: Any) -> Stability:
    """How stable the clusters are."""
    from kpod._analysis.stability import stability

    return stability(
        pipeline,
        data.values,
        sample_weight=data.weights,
        random_state=seed,
        progress=lambda done, total, _: progress.doing(f"clustering resampled tables, {done} of {total}"),
    )


def centers_table(c: Clustering, label: str) -> Any:
    """A row for each cluster: its rows, its centers, and the observed entries behind each."""
    import numpy as np
    import pyarrow as pa

    columns = {label: pa.array(range(c.k), pa.int32())}
    columns |= {name: pa.array(v, from_pandas=True) for name, v in zip(c.names, c.centers.T, strict=True)}
    counts = np.column_stack([c.sizes, c.counts]).astype(np.int64)
    for name, values in zip(["rows", *(f"observed {name}" for name in c.names)], counts.T, strict=True):
        while name in columns:  # a column of the user's has that name already
            name += "_"  # noqa: PLW2901
        columns[name] = pa.array(values)
    return pa.table(columns)


def notes_on(table: TableFile, choice: ColumnUsage, c: Clustering) -> list[str]:
    """What to know about the columns: those used, and those not used that the clusters follow."""
    from kpod._analysis.profiles import followed
    from kpod._columns import table_notes
    from kpod._files.large import LargeTable

    compared = table.n_rows <= FEW_ROWS and not isinstance(table, LargeTable)
    follow = followed(asides(table, choice), c.labels, c.k) if compared else []
    return [*table_notes.notes_on(table, choice), *follow]


def write_report(
    table: TableFile,
    choice: ColumnUsage,
    clustering: Clustering,
    summary: dict[str, Any],
    path: str,
    number: KChoice | None = None,
    again: Stability | None = None,
) -> None:
    from kpod import __version__
    from kpod._report.page import Report
    from kpod.cli.show import source_facts

    settings = {key: str(value) for key, value in summary["settings"].items()}
    Report(
        clustering,
        title=f"Clusters in {table.source}",
        settings={"command": command_line(), **settings, "kpod": __version__},
        source=source_facts(summary),
        row_names=choice.row_names(table),
        aside=asides(table, choice),
        notes=summary["notes"],
        choice=number,
        stability=again,
        auto="--missingness auto",
    ).save(path)


def command_line() -> str:
    import shlex

    return printable(shlex.join(["kpod", *sys.argv[1:]]))
