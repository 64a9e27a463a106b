"""kpod fit: from a table to its clusters."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import click

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
    from kpod._columns.usage import Choice
    from kpod._estimators.kpod import KPOD
    from kpod._files.ratings import Ratings
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


@dataclass(frozen=True)
class Encode:
    """How columns are brought to one scale."""

    scale: str = "standard"
    log: Sequence[str] = ()
    clip: float | None = None

    def step(self, choice: Choice) -> list[tuple[str, Any]]:
        """The first step of the pipeline: a scaler where that is all, else a TableEncoder."""
        from kpod._columns.encoder import TableEncoder

        absent = [name for name in self.log if name not in choice.used or name in choice.categories]
        if absent:
            raise InputError(f"--log {printable(absent[0])}: not among the columns clustered as numbers.")
        if not (choice.categories or self.log or self.clip or self.scale == "robust"):
            from kpod._estimators.scaler import ObservedScaler

            return [("scale", ObservedScaler())] if self.scale == "standard" else []
        ordered = {name: list(order) for name, order in choice.categories.items() if order}
        encoder = TableEncoder(ordered=ordered or None, scale=self.scale, log=list(self.log), clip=self.clip)
        return [("encode", encoder)]


@dataclass(frozen=True)
class Data:
    """What is clustered: values, the step that brings them to one scale, and what columns are called."""

    source: str
    values: Any
    step: list[tuple[str, Any]]
    names: list[str] | None
    weights: Any = None


def table_data(table: TableFile, choice: Choice, encode: Encode, weight: str | None = None) -> Data:
    """The columns of a table that were chosen."""
    from kpod._files.large import LargeTable

    step = encode.step(choice)
    weights = None if weight is None else weights_of(table, weight)
    if isinstance(table, LargeTable):
        if encode.scale == "robust" or encode.log or encode.clip:
            raise InputError(
                f"{table.source}: --robust, --log and --clip need the whole table in memory; leave them out."
            )
        return Data(table.source, table.scanned(choice, bool(step)), [], choice.used, weights)
    encoded = bool(step) and step[0][0] == "encode"
    values: Any = choice.frame(table) if encoded else choice.matrix(table)
    return Data(table.source, values, step, None if encoded else choice.used, weights)


def ratings_data(ratings: Ratings, encode: Encode) -> Data:
    """The sparse table that ratings are: what is not there is missing."""
    from kpod._estimators.scaler import ObservedScaler

    step = [] if encode.scale == "none" else [("scale", ObservedScaler())]
    return Data(ratings.table.source, ratings.values, step, ratings.items)


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
    with noting():
        number_by_size(kpod, lambda: pipeline.predict(data.values))
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


def as_ratings(table: TableFile, columns: dict[str, str | None]) -> Ratings:
    """The sparse table that lines of ratings are."""
    from kpod._files.large import LargeTable
    from kpod._files.ratings import pivot

    if isinstance(table, LargeTable):
        raise InputError(f"{table.source}: ratings need the whole table in memory; give one file.")
    absent = [option for option, name in columns.items() if name is None]
    if absent:
        raise InputError(f"ratings need --rows, --items and --values; {absent[0]} is missing.")
    return pivot(table, *(table.column(str(name)).name for name in columns.values()))


def usable_rows(values: Any) -> int:
    """Rows with anything observed."""
    import numpy as np
    from scipy import sparse

    from kpod._files.scanning import chunks
    from kpod._inputs.scanned import ScannedTable

    if isinstance(values, ScannedTable):
        return sum(usable_rows(np.asarray(rows)) for rows in chunks(values.values))
    if sparse.issparse(values):
        return int((np.diff(values.tocsr().indptr) > 0).sum())
    if isinstance(values, np.ndarray):
        return int((~np.isnan(values)).any(axis=1).sum())
    observed = np.zeros(values.num_rows, bool)
    for column in values.columns:
        observed |= column.is_valid().to_numpy()
    return int(observed.sum())


def weights_of(table: TableFile, name: str) -> Any:
    """Weights of the rows out of a column: a number for every row, none of them negative."""
    import numpy as np

    from kpod._columns.tables import check_numeric

    column = table.column(name)
    check_numeric(table, column)
    weights = np.array(column.values)
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise InputError(
            f"{table.source}: {table.where(int(bad[0]), name)}, column '{name}': every row needs a weight, "
            "0 or more."
        )
    return weights


def number_by_size(kpod: Any, predict: Callable[[], Any]) -> None:
    """Number the clusters from the largest to the smallest.

    A row that is as near to another center goes to the lower number of the two: where `predict` would
    assign rows otherwise, the cluster they are in keeps its place before the other.
    """
    import numpy as np

    from kpod._models.archive import ATTRIBUTES, KPOD_CLASS

    labels = np.asarray(kpod.labels_)
    sizes = np.bincount(labels[labels >= 0], minlength=kpod.n_clusters_)
    # Everything that a model file keeps by cluster.
    by_cluster = {
        name: getattr(kpod, name)
        for name, (shape, _) in ATTRIBUTES[KPOD_CLASS].items()
        if shape.split()[:1] == ["k"] and hasattr(kpod, name)
    }
    before: set[tuple[int, int]] = set()
    while True:
        order = ordered_by_size(sizes, before)
        new = np.empty(len(order) + 1, labels.dtype)
        new[order], new[-1] = np.arange(len(order)), -1
        kpod.labels_ = new[labels]
        for name, values in by_cluster.items():
            setattr(kpod, name, np.ascontiguousarray(values[order]))
        found = np.asarray(predict())
        other = found != kpod.labels_
        ties = set(zip(labels[other].tolist(), order[found[other]].tolist(), strict=True)) - before
        if not ties:
            return
        before |= ties


def ordered_by_size(sizes: Any, before: set[tuple[int, int]]) -> Any:
    """The largest first, but none ahead of those that have to come before it."""
    import numpy as np

    left = np.argsort(-sizes, kind="stable").tolist()
    order: list[int] = []
    while left:
        free = (c for c in left if not any(second == c and first in left for first, second in before))
        order.append(next(free, left[0]))
        left.remove(order[-1])
    return np.array(order)


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


def notes_on(table: TableFile, choice: Choice, c: Clustering) -> list[str]:
    """What to know about the columns: those used, and those not used that the clusters follow."""
    from kpod._analysis.profiles import followed
    from kpod._columns import usage
    from kpod._files.large import LargeTable

    compared = table.n_rows <= FEW_ROWS and not isinstance(table, LargeTable)
    follow = followed(asides(table, choice), c.labels, c.k) if compared else []
    return [*usage.notes_on(table, choice), *follow]


def write_report(
    table: TableFile,
    choice: Choice,
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


def asides(table: TableFile, choice: Choice) -> list[Any]:
    """What was not clustered and can tell who is in the clusters."""
    import pyarrow.compute as pc

    from kpod._analysis.profiles import Aside
    from kpod._columns import dates
    from kpod._columns.usage import days_of, words_of

    out = []
    for name in choice.aside:
        column, role = table.column(name), choice.roles[name].role
        if role in ("identifier", "constant", "empty", "text"):
            continue
        if role == "date":
            days = (
                dates.of_numbers(column.values) if column.values is not None else days_of(table, column).days
            )
            unit = "year" if column.values is not None and is_years(column.values) else ""
            out.append(
                Aside(name, column.values, unit=unit) if days is None else Aside(name, days, unit="date")
            )
        elif column.values is not None and role in ("number", "boolean"):
            out.append(Aside(name, column.values))
        else:
            words = pc.dictionary_encode(words_of(table, column))
            words = words.combine_chunks() if hasattr(words, "combine_chunks") else words
            codes = pc.fill_null(words.indices, -1).to_numpy(zero_copy_only=False)
            out.append(
                Aside(name, codes=codes, levels=[str(level) for level in words.dictionary.to_pylist()])
            )
    return out


def is_years(values: Any) -> bool:
    import numpy as np

    from kpod._columns.roles import YEARS

    return bool(np.nanmin(values) >= YEARS[0] and np.nanmax(values) <= YEARS[1])


def command_line() -> str:
    import shlex

    return printable(shlex.join(["kpod", *sys.argv[1:]]))
