"""kpod fit: from a table to its clusters."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from kpod import __version__
from kpod._io.files import InputError
from kpod.cli.options import choosing, clusters, in_file, labelling, out_file, reading
from kpod.cli.outputs import check_label, check_outputs, output_for, say, write_labels, written
from kpod.cli.summaries import noting, summary_of

if TYPE_CHECKING:
    from kpod._choose import KChoice
    from kpod._io.tables import Choice, TableFile
    from kpod._report.summary import Clustering


@click.command(short_help="Cluster a table.")
@in_file("data")
@clusters("The number of clusters, a range to choose from such as 2-8, or auto.")
@labelling
@out_file("--centers", help="The centers, in the original units, with the observed entries behind each.")
@out_file("--model", help="The model, for kpod predict.")
@out_file("--report", help="A report in one HTML file, to open, print or send.")
@choosing
@click.option("--no-scale", is_flag=True, help="Do not standardise the columns: they share a unit.")
@reading
@click.option(
    "--algorithm",
    type=click.Choice(["hartigan", "lloyd", "mm"]),
    default="hartigan",
    show_default=True,
    help="hartigan ends lowest; mm is the published one.",
)
@click.option(
    "--starts", type=click.IntRange(min=1), help="The best of so many.  [default: 10; 1 on large tables]"
)
@click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Decides the starts."
)
def fit(
    data: str,
    clusters: int | range | str,
    output: str | None,
    label: str,
    quiet: bool,
    as_json: bool,
    centers: str | None,
    model: str | None,
    report: str | None,
    columns: tuple[str, ...],
    exclude: tuple[str, ...],
    ids: tuple[str, ...],
    no_scale: bool,
    algorithm: str,
    starts: int | None,
    seed: int,
    **read: Any,
) -> None:
    """Cluster the rows of DATA: CSV, TSV, Parquet, Feather or Arrow; - is standard input.

    Cells that are empty or say NA, NaN, null, ? and the like are gaps; which were found is said.
    Columns of text and identifiers are set aside and carried through. Columns are standardised
    over their observed entries unless --no-scale.

    \b
    Examples:
      kpod fit data.csv > clusters.csv
      kpod fit data.csv -k 3 -o clusters.parquet --report report.html --model wine.kpod
      kpod fit survey.csv -k 5 --missing -9 --missing 999 --exclude weight --id person
      zcat data.csv.gz | kpod fit - -k 3 --json -o clusters.csv | jq .clusters
    """
    output = output_for(output, as_json)
    check_outputs(data, {"-o": output, "--centers": centers, "--model": model, "--report": report})
    from kpod._io import modelfile, tables, writing
    from kpod._io.reading import read_table
    from kpod.cli.progress import Progress

    with Progress(quiet) as progress:
        progress.doing(f"reading {data}")
        table = read_table(data, **read)
        check_label(table, label)
        choice = tables.choose_columns(table, columns, exclude, ids)
        settings: dict[str, Any] = {
            "n_clusters": clusters,
            "algorithm": algorithm,
            "n_init": starts or "auto",
            "random_state": seed,
        }
        number = None
        if not isinstance(clusters, int):
            number = choose_number(table, choice, settings, not no_scale, progress)
            settings["n_clusters"] = number.best_k_
        progress.doing("clustering")
        clustering, pipeline, notes = cluster(table, choice, settings, not no_scale, progress)
        summary = summary_of(table, choice, clustering, notes, not no_scale, number)
        progress.doing("writing")
        if centers:
            writing.write_table(centers_table(clustering, label), centers, table.dialect)
        if model:
            modelfile.save(modelfile.Model(pipeline, choice.used, list(read["missing"])), model)
        if report:
            progress.doing("drawing the report")
            write_report(table, choice, clustering, summary, report, number)
        if output:  # last: what has gone down a pipe cannot be taken back
            write_labels(table, label, clustering.labels, output)
    say(summary, quiet, as_json, written(output, centers, model, report))


def choose_number(
    table: TableFile, choice: Choice, settings: dict[str, Any], scale: bool, progress: Any
) -> KChoice:
    """The number of clusters, where it was left open; `settings["n_clusters"]` says among which."""
    import warnings

    from sklearn.preprocessing import StandardScaler

    from kpod._choose import choose_k
    from kpod._estimator import KPOD

    values = choice.matrix(table)
    numbers = settings["n_clusters"]
    rest = {key: value for key, value in settings.items() if key not in ("n_clusters", "random_state")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit that follows says the same
        try:
            return choose_k(
                StandardScaler().fit_transform(values) if scale else values,
                numbers,
                estimator=KPOD(**rest),
                random_state=settings["random_state"],
                progress=lambda done, total, text: progress.doing(
                    f"choosing the number of clusters, {done} of {total} ({text})"
                ),
            )
        except ValueError as error:
            raise InputError(f"{table.source}: {error} On the command line, that is -k.") from error


def cluster(
    table: TableFile, choice: Choice, settings: dict[str, Any], scale: bool, progress: Any
) -> tuple[Clustering, Any, list[str]]:
    """Fit, keeping what the fit warns of."""
    import numpy as np
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    from kpod._estimator import KPOD
    from kpod._report.summary import Clustering

    values = choice.matrix(table)
    n_usable = int((~np.isnan(values)).any(axis=1).sum())
    if settings["n_clusters"] > n_usable:
        raise InputError(
            f"{table.source}: -k {settings['n_clusters']} asks for more clusters than there are rows with "
            f"anything observed ({n_usable:,}); ask for fewer."
        )
    kpod = KPOD(**settings, verbose=2 if progress.visible else 0)
    steps: list[tuple[str, Any]] = [("scale", StandardScaler())] if scale else []
    with noting() as notes, progress.following():
        pipeline = Pipeline([*steps, ("kpod", kpod)]).fit(values)
    kpod.set_params(verbose=0)
    return Clustering.of(pipeline, values, choice.used), pipeline, notes


def centers_table(c: Clustering, label: str) -> Any:
    """A row for each cluster: its rows, its centers, and the observed entries behind each."""
    import pyarrow as pa

    table = pa.table({label: pa.array(range(c.k), pa.int32())})
    for name, values in zip(c.names, c.centers.T, strict=True):
        table = table.append_column(name, pa.array(values, from_pandas=True))
    counts = {f"observed {name}": values for name, values in zip(c.names, c.counts.T, strict=True)}
    for name, values in {"rows": c.sizes, **counts}.items():
        while name in table.column_names:  # a column of the user's has that name already
            name += "_"  # noqa: PLW2901
        table = table.append_column(name, pa.array(values).cast(pa.int64()))
    return table


def write_report(
    table: TableFile,
    choice: Choice,
    clustering: Clustering,
    summary: dict[str, Any],
    path: str,
    number: KChoice | None = None,
) -> None:
    from kpod._report.page import Report
    from kpod.cli.show import report_source

    ids = [name for name, why in choice.aside.items() if why.startswith("identifier")]
    settings = {key: str(value) for key, value in summary["settings"].items()}
    Report(
        clustering,
        title=f"Clusters in {table.source}",
        settings={"command": command_line(), **settings, "kpod": __version__},
        source=report_source(summary),
        row_names=table.raw[ids[0]] if ids else None,
        choice=number,
    ).save(path)


def command_line() -> str:
    import shlex

    return shlex.join(["kpod", *sys.argv[1:]])
