"""A model from a file and a table of new rows: what `kpod predict` and `kpod impute` share."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from kpod._analysis.analyze import is_path, noting
from kpod._analysis.summaries import summary_of_data
from kpod._columns.missing_codes import both
from kpod._columns.preparing.columns_in_use import ColumnUsage
from kpod._columns.preparing.new_rows import check_columns
from kpod._columns.preparing.preparer import TablePreparer
from kpod._common.errors import InputError
from kpod._common.notes import Note, Notes
from kpod._common.options import option
from kpod._common.progress import Progress, no_progress
from kpod._common.sentences.formatting import counted, listed
from kpod._estimators.observed_scaler import ObservedScaler
from kpod._files.opening import open_table
from kpod._files.pieces.scanning import chunks
from kpod._files.ratings import as_ratings
from kpod._mixture.confidence import Sureness, sureness
from kpod._saved_models.raw_tables import for_raw_tables

if TYPE_CHECKING:
    from kpod._columns.tables import TableFile
    from kpod._saved_models.model_file_format import Model


@dataclass(frozen=True)
class Applied:
    """A model, a table, and what is to be known about them."""

    model: Any
    """The pipeline, which takes `values`."""
    table: TableFile
    usage: ColumnUsage
    values: Any
    notes: Notes

    @property
    def kpod(self) -> Any:
        return self.model[-1]

    @property
    def preparer(self) -> TablePreparer | None:
        first = self.model[0]
        return first if isinstance(first, TablePreparer) else None

    def __enter__(self) -> Applied:
        return self

    def __exit__(self, *_: object) -> None:
        self.table.close()

    @cached_property
    def sureness(self) -> Sureness:
        """How sure the clusters of the rows are."""
        return sureness(self.kpod.predict_proba(self.encoded), self.labels)

    @cached_property
    def encoded(self) -> Any:
        """The table as the KPOD takes it; what is unknown to it is in the notes already."""
        with noting():
            return self.model[:-1].transform(self.values) if len(self.model) > 1 else self.values

    @cached_property
    def labels(self) -> Any:
        """The clusters of the rows."""
        if not self.table.in_pieces:
            return self.kpod.predict(self.encoded)
        parts = [self.kpod.predict(self.scaled(np.array(rows))) for rows in chunks(self.values)]
        return np.concatenate(parts)

    def scaled(self, values: Any) -> Any:
        """Some rows of the columns of the model, as the KPOD takes them."""
        assert self.preparer is not None
        out = self.preparer._encoding.encode(values)
        for _, step in self.model.steps[1:-1]:
            out = step.transform(out)
        return out


def apply(
    model: str,
    data: Sequence[str] | str,
    *,
    long_form: Mapping[str, str | None] | None = None,
    missing_values: Any = None,
    progress: Progress = no_progress,
    **reading: Any,
) -> Applied:
    """Open a model and a table in one or several files, in which every row comes out again."""
    from kpod._saved_models import model_file_format

    with noting() as notes:
        opened = model_file_format.load(model)
        pipeline = for_raw_tables(opened)
    preparer = pipeline[0]
    table = open_table(
        data, missing_values=both(preparer.missing_values, missing_values), answers=preparer._answers,
        every_row=True, progress=progress, **reading,
    )  # fmt: skip
    try:
        if any((long_form or {}).values()):
            return applied_ratings(opened, table, long_form or {}, notes)
        return applied(pipeline, table, notes, is_of_ratings=takes_ratings(opened))
    except BaseException:
        table.close()
        raise


def applied_to(
    model: Any, data: Any, *, missing_values: Any = None, progress: Progress = no_progress, **reading: Any
) -> Applied:
    """A model, from a file or fitted, and a table, from files or a data frame."""
    if is_path(model) and is_path(data):
        return apply(os.fspath(model), data, missing_values=missing_values, progress=progress, **reading)
    if is_path(model):
        from kpod._saved_models import model_file_format

        model = for_raw_tables(model_file_format.load(os.fspath(model)))
    preparer = model[0] if hasattr(model, "steps") else None
    if not isinstance(preparer, TablePreparer):
        raise TypeError(
            "model must be a file, an Analysis, or a fitted pipeline of a TablePreparer and a KPOD or "
            f"GaussianMixture, got {type(model).__name__}."
        )
    if is_path(data):
        codes = both(preparer.missing_values, missing_values)
        table = open_table(
            data,
            missing_values=codes,
            answers=preparer._answers,
            every_row=True,
            progress=progress,
            **reading,
        )
    else:
        table = preparer._table(data)
    return applied(model, table, Notes())


def applied(pipeline: Any, table: TableFile, notes: Notes, *, is_of_ratings: bool = False) -> Applied:
    """A table as a model takes it: columns by name."""
    preparer = pipeline[0]
    ratings = is_of_ratings and not table.in_pieces
    needed = listed([option("--rows"), option("--items"), option("--values")])
    none = not {column.name for column in table.columns} & set(preparer.columns_)
    advice = f"; for ratings with a line each, give {needed} as to kpod fit" if ratings and none else ""
    check_columns(table, preparer.columns_, advice)
    known = {column.name for column in table.columns}
    unused = dict.fromkeys(sorted(known - set(preparer.columns_)), "not in the model")
    orders = {
        name: tuple(levels) if kind == "ordered" else ()
        for name, kind, levels in zip(preparer.columns_, preparer.kinds_, preparer.levels_, strict=True)
        if kind in ("category", "ordered")
    }
    usage = ColumnUsage(preparer.columns_, unused, categories=orders)
    if table.in_pieces:
        values = table.scanned(usage, scale=False).values  # type: ignore[attr-defined]
        return Applied(pipeline, table, usage, values, notes)
    return Applied(pipeline, table, usage, table, Notes([*preparer._notes_on(table), *notes]))


def takes_ratings(model: Model) -> bool:
    """Whether the model can take a sparse table: nothing before the KPOD, or a scaler made for that."""
    *before, _ = [step for _, step in model.pipeline.steps]
    return all(isinstance(step, ObservedScaler) for step in before)


def applied_ratings(
    opened: Model, table: TableFile, long_form: Mapping[str, str | None], notes: Notes
) -> Applied:
    needed = listed([option("--rows"), option("--items"), option("--values")])
    if not takes_ratings(opened):
        raise InputError(f"{needed} need a model that was fitted on ratings.")
    ratings = as_ratings(table, long_form)
    at = {name: j for j, name in enumerate(ratings.items)}
    unknown = [name for name in ratings.items if name not in set(opened.columns)]
    if len(unknown) == len(ratings.items):
        raise InputError(
            f"{needed} need a model that was fitted on ratings: none of these items is a column of this "
            "model."
        )
    if unknown:
        notes = Notes([*notes, Note("unknown items", values={"items": unknown})])
    values = columns_of(ratings.values, [at.get(name, -1) for name in opened.columns])
    usage = ratings.choice
    usage.used = opened.columns
    return Applied(opened.pipeline, ratings.table, usage, values, notes)


def summary_of_new_rows(given: Applied, sure: Sureness | None) -> dict[str, Any]:
    """What was read and assigned, as plain data."""
    labels = given.labels
    sizes = [int((labels == cluster).sum()) for cluster in range(given.kpod.n_clusters_)]
    return {
        **summary_of_data(given.table, given.usage),
        "clusters": [
            {"cluster": cluster, "rows": n, "sentence": f"cluster {cluster}: {counted(n, 'row')}"}
            for cluster, n in enumerate(sizes)
        ],
        "unassigned": int((labels < 0).sum()),
        **({} if sure is None else {"confidence": {"another_more_probable": int(sure.elsewhere.sum())}}),
        "notes": [note.to_dict() for note in given.notes],
    }


def columns_of(table: Any, which: list[int]) -> Any:
    """Some columns of a sparse table in a given order, -1 for one that it has not."""
    order = np.full(table.shape[1], -1)
    for new, old in enumerate(which):
        if old >= 0:
            order[old] = new
    entries = table.tocoo()
    row, column = entries.coords
    kept = order[column] >= 0
    coordinates = (row[kept], order[column[kept]])
    return sparse.csr_array((entries.data[kept], coordinates), shape=(table.shape[0], len(which)))
