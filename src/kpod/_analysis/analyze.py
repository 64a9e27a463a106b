"""kpod.analyze: from a file or a data frame to the analysis of its clusters.

    file or frame -> table -> TablePreparer -> choice of k -> KPOD -> choice of shape -> Analysis

Each arrow is taken once: one file opened, one table prepared, one model fitted on all rows.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from kpod._analysis.analysis import FEW_ROWS, Analysis
from kpod._columns.preparing.preparer import TablePreparer
from kpod._common.errors import InputError
from kpod._common.notes import Note, Notes
from kpod._common.options import option
from kpod._common.progress import Part, Progress, following, introduce, no_progress
from kpod._common.warnings import EmptyRowsWarning, RoundClustersWarning
from kpod._estimators.kpod import KPOD
from kpod._findings.choose_k import choose_k
from kpod._findings.cluster_shapes import ShapeChoice, check_shape, choose_shape, why_not
from kpod._findings.fitted_clusters.clustering import Clustering
from kpod._findings.shape_comparison import ROUND
from kpod._findings.unused_column_profiles import followed
from kpod._findings.unused_columns import unused_columns
from kpod._inputs.lazy import lazy_kind

if TYPE_CHECKING:
    from kpod._columns.tables import TableFile
    from kpod._model_selection.number_of_clusters import KChoice


def analyze(
    data: Any,
    n_clusters: int | str | Sequence[int] = "auto",
    *,
    missing_values: Any = None,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    ids: Sequence[str] = (),
    roles: Mapping[str, str | Sequence[str]] | None = None,
    categories: str | Sequence[str] = (),
    weight: str | None = None,
    outcome: str | None = None,
    column_weights: Mapping[str, float] | None = None,
    scale: str = "standard",
    log: Sequence[str] = (),
    clip: float | None = None,
    drop_rows: str | Sequence[str] | Mapping[str, Any] = (),
    one_row_per: str | None = None,
    combine: str = "mean",
    rows: str | None = None,
    items: str | None = None,
    values: str | None = None,
    shape: str = "auto",
    max_seconds: float | None = None,
    missingness: str = "ignore",
    algorithm: str = "hartigan",
    n_init: int | str = "auto",
    shrinkage: float | str = 0.0,
    random_state: Any = 0,
    probability: bool = False,
    verdict: bool = True,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    header: int | None = None,
    strict: bool = False,
    scratch: str | os.PathLike[str] | None = None,
) -> Analysis:
    """Cluster a table, from a file or a data frame to a description of its clusters.

    Works out what the columns mean, scales them, chooses the number of clusters if it is
    left open, and fits. ``kpod fit`` is this call: the same numbers, the same sentences.

    Parameters
    ----------
    data : path, sequence of paths, dataframe or array-like of shape (n_samples, n_features)
        A file of any kind that `kpod.read` takes; several files, a folder, a pattern or a URL as one table,
        which is read in pieces; or a pandas, polars or pyarrow data frame. Anything else that `kpod.scan`
        takes, such as a polars LazyFrame or a Delta table, is loaded if it fits in memory, and otherwise
        read in pieces.
    n_clusters : int, "auto" or sequence of int, default="auto"
        The number of clusters, or the numbers to choose from.
    missing_values, columns, exclude, ids, roles, categories, weight, column_weights, scale, log, clip
        What the columns mean and how they are scaled; see `TablePreparer`.
    outcome : str, default=None
        A column that is not clustered, but compared between the clusters; see `Analysis.outcome`.
    drop_rows : str, sequence of str or mapping, default=()
        Rows to leave out: "duplicates" (copies of other rows), "aggregates" (sums of other rows, as the notes
        name them), or those with some values in a column, ``{"country": ["World", "*income*"]}``.
    one_row_per : str, default=None
        A column that names individuals with several rows each: these rows are combined into one.
    combine : {"mean", "last", "change"}, default="mean"
        How to combine them: numbers become their mean, the last value, or the last minus the first, in the
        order of the first date column, or else of the rows. Other columns keep the value that all rows of an
        individual share.
    rows, items, values : str, default=None
        For ratings, one per line: the columns with the rater, the item and the rating.
    shape : "auto", "round" or a type of covariance, default="auto"
        The shape of the clusters. "auto" compares round clusters with a `GaussianMixture` and keeps the model
        that fits; see `kpod.choose_k`, and `Analysis.shape` for which it is and why. Clusters stay round
        where no mixture can be compared: with `shrinkage`, another `algorithm` or `missingness`, categories
        among the columns, more than 200 columns, ratings, and tables read in pieces. "round" is
        k-means throughout; a type of covariance is fitted without comparison.
    max_seconds : float, default=None
        Stop choosing the number of clusters after this many seconds, with the best answer so far; the choice
        is then not clear, and says why. The verdict is not limited by it.
    missingness, algorithm, n_init, shrinkage, random_state, probability, checkpoint
        How to cluster; see `KPOD`.
    verdict : bool, default=True
        Whether to repeat the analysis under other choices, and report how many of them give the same
        clusters; see `Analysis.verdict`.
    progress : callable, default=None
        A callback, called as `progress(done, total, text)`; `total` is 0 if it is not known.
    delimiter, decimal, encoding, sheet, header, strict
        How to read a file; see `kpod.read`. `decimal` and `strict` also apply to text in a data frame.
    scratch : path, default=None
        A folder for a scratch file; the file is then read in pieces.

    Returns
    -------
    Analysis

    Examples
    --------
    >>> import kpod
    >>> from kpod.datasets import load_incomplete_wine
    >>> analysis = kpod.analyze(load_incomplete_wine().filename, 3)
    >>> list(analysis.describe()["rows"])
    [68, 58, 52]
    >>> analysis.shape.shape_
    'diag, 2 factors'
    >>> analysis.describe()["description"][0].partition(", alcohol")[0]
    'low in color_intensity (2.97, others 6.37)'
    >>> analysis.model.predict(kpod.read(load_incomplete_wine().filename))[:5]
    array([1, 1, 1, 1, 1], dtype=int32)
    """
    progress = progress or no_progress
    check_shape(shape)
    preparer = TablePreparer(
        columns=columns, exclude=exclude, ids=ids, roles=roles, categories=categories, weight=weight,
        missing_values=missing_values, decimal=decimal, column_weights=column_weights, scale=scale, log=log,
        clip=clip, strict=strict,
    )  # fmt: skip
    n_clusters = int(n_clusters) if isinstance(n_clusters, Integral) else n_clusters
    kpod = KPOD(
        n_clusters if isinstance(n_clusters, int) else "auto",
        algorithm=algorithm, n_init=n_init, shrinkage=shrinkage, random_state=random_state,
        missingness=missingness, probability=probability, checkpoint=checkpoint,
    )  # fmt: skip
    long_form = {"--rows": rows, "--items": items, "--values": values}
    from kpod._columns.rows.rows_in_use import arrange_rows

    reading = {
        "delimiter": delimiter, "encoding": encoding, "sheet": sheet, "header": header, "scratch": scratch
    }  # fmt: skip
    table = open_data(data, preparer, progress, reading)
    try:
        arranged = arrange_rows(table, drop_rows, one_row_per, combine)
        given = None if is_path(data) or lazy_kind(data) or arranged is not table else data
        if outcome is not None:
            set_apart(arranged, preparer, outcome, long_form)
        analysis = analyze_table(
            arranged, preparer, kpod, n_clusters, long_form, progress, given, shape, outcome, max_seconds
        )
        if verdict:
            _ = analysis.verdict, analysis.rule, analysis.other_numbers
        return analysis
    except BaseException:
        table.close()
        raise


def set_apart(
    table: TableFile, preparer: TablePreparer, outcome: str, long_form: Mapping[str, str | None]
) -> None:
    """See to it that the outcome is not clustered."""
    given = option("--outcome", outcome)
    name = table.column(outcome).name
    if table.in_pieces or any(long_form.values()):
        raise InputError(
            f"{table.source}: {given} needs a table in memory{table.whole_size} with a row for each "
            "individual; leave it out."
        )
    named = [*table.names(list(preparer.columns or ())), *([preparer.weight] if preparer.weight else [])]
    if name in named:
        where = "the weight" if name == preparer.weight else f"in {option('--columns')}"
        raise InputError(f"{table.source}: {given} is also {where}; an outcome is compared, not clustered.")
    preparer.exclude = (*preparer.exclude, name)


def is_path(data: Any) -> bool:
    many = isinstance(data, (list, tuple)) and bool(data)
    return all(isinstance(one, (str, os.PathLike)) for one in (data if many else [data]))


def open_data(
    data: Any, preparer: TablePreparer, progress: Progress, reading: Mapping[str, Any]
) -> TableFile:
    """The table in files, or a data frame as one."""
    if is_path(data):
        from kpod._files.opening import open_table

        exclude = (*preparer.exclude, *preparer.ids)
        return open_table(
            data, missing_values=preparer.missing_values, columns=preparer.columns or (), exclude=exclude,
            weight=preparer.weight, progress=progress, decimal=preparer.decimal, strict=preparer.strict,
            **reading,
        )  # fmt: skip
    if lazy_kind(data) is not None:
        from kpod._columns.tables import TableFile

        opened = open_query(data, preparer, progress, reading)
        if isinstance(opened, TableFile):
            return opened
        data, reading = opened, {}
    given = [name for name, value in reading.items() if value is not None]
    if given:
        raise TypeError(f"{given[0]} is for files, but data is not the name of one.")
    table = preparer._table(data, fitting=True)
    read = getattr(data, "attrs", {}).get("notes", ())  # of `kpod.read`
    table.notes = [*(note for note in read if isinstance(note, Note)), *table.notes]
    return table


def open_query(data: Any, preparer: TablePreparer, progress: Progress, reading: Mapping[str, Any]) -> Any:
    """The rows of an object that represents a table: in memory, or as a table in pieces."""
    from kpod._files.opening import open_lazy

    odd = next((name for name, value in reading.items() if value is not None and name != "scratch"), None)
    if odd is not None:
        raise TypeError(f"{odd} is for files, but data is not the name of one.")
    only = [*(preparer.columns or ()), *([preparer.weight] if preparer.weight and preparer.columns else [])]
    return open_lazy(
        data, reading.get("scratch"), progress, leave_out=(*preparer.exclude, *preparer.ids), only=only,
        missing=preparer.missing_values,
    )  # fmt: skip


def analyze_table(
    table: TableFile,
    preparer: TablePreparer,
    kpod: KPOD,
    numbers: Any,
    long_form: Mapping[str, str | None],
    progress: Progress,
    given: Any = None,
    shape: str = ROUND,
    outcome: str | None = None,
    max_seconds: float | None = None,
) -> Analysis:
    """Prepare a table, choose what was left open, and fit; each of them once."""
    from sklearn.pipeline import Pipeline

    from kpod._analysis.prepared import prepare
    from kpod._analysis.summaries import summary_of_prepared

    progress(0, 0, "clustering")
    with noting() as notes:
        prepared = prepare(table, preparer, long_form)
        if outcome is not None:
            prepared.usage.unused[outcome] = "outcome"
        if isinstance(numbers, int):
            with naming(table.source):
                check_enough_rows(prepared.values, numbers)
        introduce(progress, summary_of_prepared(prepared))
        model, choice, shaped = fitted(
            kpod, prepared.values, numbers, shape, prepared.weights, table.source, progress, max_seconds
        )
    pipeline = Pipeline([*prepared.steps, ("kpod" if isinstance(model, KPOD) else "mixture", model)])
    clustering = Clustering.of(
        *prepared.clustered_as(pipeline), is_fitted_table=True, seen=prepared.values, weights=prepared.weights
    )
    shaped = None if shaped is None else shaped.named(clustering.names)
    on_shape = [] if shaped is None or shaped.is_plain else [shaped.note]
    followed_by = follows(prepared.table, prepared.usage, clustering)
    about = Notes([*on_shape, *prepared.notes, *followed_by, *notes]).by_importance()
    return Analysis(
        prepared.table, prepared.usage, pipeline, clustering, notes=about, choice=choice, numbers=numbers,
        shape=shaped, weights=prepared.weights, given=given, kpod=kpod,
        missing_values=preparer.missing_values, progress=progress, outcome=outcome,
    )  # fmt: skip


def fitted(
    kpod: KPOD,
    values: Any,
    numbers: Any,
    shape: str,
    weights: Any,
    source: str,
    progress: Progress,
    max_seconds: float | None = None,
) -> tuple[Any, KChoice | None, ShapeChoice | None]:
    """The model; and why it has so many clusters, and this shape, where that was left open."""
    with following(progress, kpod), naming(source):
        if isinstance(numbers, int):
            comparing = shape != ROUND and not why_not(values, kpod, shape)
            kpod.fit(values, sample_weight=weights)
            if shape == ROUND:
                return kpod, None, None
            if comparing:
                progress(0, 0, "comparing shapes")
            model, shaped = choose_shape(values, kpod, shape, weights)
            return model, None, shaped
        told = Part(progress, "choosing the number of clusters")
        choice = choose_k(
            values, numbers, shape=shape, estimator=kpod, sample_weight=weights, progress=told,
            max_seconds=max_seconds,
        )  # fmt: skip
        return choice.model_, choice, choice.shape_


def check_enough_rows(values: Any, n_clusters: int) -> None:
    """Refuse more clusters than there are rows; of a table in pieces, the fit will do so."""
    if isinstance(values, np.ndarray):
        n_usable = int((~np.isnan(values)).any(axis=1).sum())
        if n_clusters > n_usable:
            raise InputError(
                f"{option('-k', n_clusters)} is more than the number of rows with observed entries "
                f"({n_usable:,}); ask for fewer clusters."
            )


@contextmanager
def naming(source: str) -> Iterator[None]:
    """Errors with the name of the table."""
    try:
        yield
    except ValueError as error:
        raise InputError(f"{source}: {error}") from error


def follows(table: TableFile, usage: Any, c: Clustering) -> list[Note]:
    """Columns not used that the clusters follow."""
    compared = table.n_rows <= FEW_ROWS and not table.in_pieces
    return followed(unused_columns(table, usage), c.labels, c.k) if compared else []


@contextmanager
def noting() -> Iterator[Notes]:
    """Warnings as notes, one line each; without those that a caution covers."""
    notes = Notes()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    parts = [
        " ".join(str(warning.message).split())
        for warning in caught
        if not issubclass(warning.category, EmptyRowsWarning | RoundClustersWarning)
    ]
    notes += [Note("warning", values={"message": message}) for message in dict.fromkeys(parts)]
