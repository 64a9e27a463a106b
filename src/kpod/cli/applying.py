"""A model and a table of new rows: what kpod predict and kpod impute share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kpod._common.errors import InputError, printable
from kpod.cli.summaries import noting

if TYPE_CHECKING:
    from kpod._columns.tables import TableFile
    from kpod._columns.usage import ColumnUsage
    from kpod._models.archive import Model


@dataclass(frozen=True)
class Applied:
    """A model, a table, and the table as the model takes it."""

    model: Model
    table: TableFile
    choice: ColumnUsage
    values: Any
    notes: list[str]

    @property
    def kpod(self) -> Any:
        return self.model.pipeline[-1]

    def predict(self) -> Any:
        """The clusters of the rows."""
        import numpy as np

        from kpod._files.pieces.scanning import chunks

        if not isinstance(self.values, np.memmap):
            with noted():
                return self.model.pipeline.predict(self.values)
        return np.concatenate([self.model.pipeline.predict(np.asarray(rows)) for rows in chunks(self.values)])

    @property
    def step(self) -> Any:
        """What brings columns to one scale, if anything."""
        return self.model.pipeline[0] if len(self.model.pipeline) > 1 else None


@contextmanager
def noted() -> Iterator[None]:
    """Without the encoder's warnings of levels that it has not seen, on which there are notes already."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


@contextmanager
def open_model_and_table(
    model: str,
    data: Sequence[str],
    scratch: str | None,
    progress: Any,
    ratings: dict[str, str | None],
    read: dict[str, Any],
) -> Iterator[Applied]:
    """A model and a table in one or several files, which are read in pieces where they would not fit."""
    from kpod._models import archive
    from kpod.cli.tables import open_table

    with noting() as notes:
        opened = archive.load(model)
    with open_table(data, scratch, progress, **as_fitted(opened, read)) as table:
        yield applied(opened, table, notes, ratings)


def apply(model: str, data: str, read: dict[str, Any]) -> Applied:
    """Open the model and read the table into memory."""
    from kpod._files.reading import read_table
    from kpod._models import archive

    with noting() as notes:
        opened = archive.load(model)
    return applied(opened, read_table(data, **as_fitted(opened, read)), notes)


def as_fitted(model: Model, read: dict[str, Any]) -> dict[str, Any]:
    """How to read a table so that its gaps are those of the model's, and every row comes out again."""
    from kpod._columns.missing_codes import answers_among

    answers = {name: answers_among(levels) for name, levels in levels_of(model).items()}
    return {**read, "missing": [*model.missing, *read["missing"]], "answers": answers, "every_row": True}


def applied(
    opened: Model, table: TableFile, notes: list[str], ratings: dict[str, str | None] | None = None
) -> Applied:
    """A table as a model takes it: columns by name, or ratings with a line each."""
    from kpod._columns.usage import ColumnUsage
    from kpod._files.pieces.large_table import LargeTable

    if ratings and any(ratings.values()):
        return applied_ratings(opened, table, ratings, notes)
    known = {column.name for column in table.columns}
    check_columns(opened, table, known)
    check_kinds(opened, table)
    aside = dict.fromkeys(sorted(known - set(opened.columns)), "not in the model")
    choice = ColumnUsage(opened.columns, aside, categories=categories_of(opened.pipeline))
    with_words = any(name == "encode" for name, _ in opened.pipeline.steps)
    if isinstance(table, LargeTable):
        return Applied(opened, table, choice, table.scanned(choice, scale=False).values, notes)
    take: Any = choice.frame if with_words else choice.matrix
    check_levels(table, choice)
    values = take(table, all_missing=True)
    notes += [*table.notes_without(choice.aside), *unknown_levels(opened, values), *codes(table, choice)]
    return Applied(opened, table, choice, values, notes)


def check_levels(table: TableFile, choice: ColumnUsage) -> None:
    """Refuse what has no place in the order of an ordered category."""
    from kpod._columns.frames import word
    from kpod._columns.tables import shown
    from kpod._common.words import option, some

    ordered = {name: order for name, order in choice.categories.items() if order}
    frame: Any = choice.frame(table, all_missing=True) if ordered else None
    for name, order in ordered.items():
        for row, value in enumerate(frame.column(name).to_pylist()):
            if value is not None and word(value) not in order:
                levels = some([printable(level) for level in order])
                raise InputError(
                    f"{table.source}: {table.where(row, name)}, column {shown(name)}: '{printable(value)}' "
                    f"has no place in the order of the model's levels ({levels}); "
                    f"correct it, or treat it as missing with {option('--missing', f'{name}={value}')}."
                )


def unknown_levels(model: Model, values: Any) -> list[str]:
    """A note on every column with categories that the model has never seen."""
    from kpod._columns.frames import word
    from kpod._common.words import counted, some

    notes = []
    for name, levels in levels_of(model).items():
        found = [word(value) for value in values.column(name).to_pylist() if value is not None]
        odd = [value for value in found if value not in levels]
        if odd:
            which = some([f"'{printable(value)}'" for value in dict.fromkeys(odd)])
            are = "is" if len(set(odd)) == 1 else "are"
            taken = "missing" if len(levels) == 2 else "none of them"
            notes.append(
                f"{printable(name)}: {which} ({counted(len(odd), 'row')}) {are} not among the categories the "
                f"model was fitted on, and taken as {taken}."
            )
    return notes


def codes(table: TableFile, choice: ColumnUsage) -> list[str]:
    """Notes on numbers that may stand for missing."""
    numbers = [table.column(name) for name in choice.used if name not in choice.categories]
    return [
        f"{printable(column.name)}: {note.sentence}"
        for column in numbers
        for note in column.role.notes
        if note.kind == "code"
    ]


def check_columns(model: Model, table: TableFile, known: set[str]) -> None:
    from kpod._columns import tables
    from kpod._common.words import some

    absent = [tables.shown(name) for name in model.columns if name not in known]
    if not absent:
        return
    advice = "add them (empty where unknown), or fit a model without them"
    if takes_ratings(model) and len(absent) == len(model.columns) and not table.in_pieces:
        advice += "; for ratings with a line each, give --rows, --items and --values as to kpod fit"
    raise InputError(f"{table.source}: is missing columns the model needs: {some(absent, most=8)}; {advice}.")


def check_kinds(model: Model, table: TableFile) -> None:
    """Refuse dates, yes and no where the model has numbers."""
    from kpod._columns import tables

    for name, kind in zip(model.columns, model.kinds, strict=False):
        column = table.column(name)
        if kind != "number" or column.missing == table.n_rows:
            continue
        tables.check_numeric(table, column, may_leave_out=False)
        if column.kind in ("yes/no", "true/false"):
            raise InputError(
                f"{table.source}: column {tables.shown(name)} holds {column.kind} values, which are not "
                "numbers; correct it, or fit the model again on values like these."
            )


def takes_ratings(model: Model) -> bool:
    """Whether the model can take a sparse table: nothing before the KPOD, or a scaler made for that."""
    from kpod._estimators.scaler import ObservedScaler

    *before, _ = [step for _, step in model.pipeline.steps]
    return all(isinstance(step, ObservedScaler) for step in before)


def applied_ratings(
    model: Model, table: TableFile, ratings: dict[str, str | None], notes: list[str]
) -> Applied:
    from kpod._analysis.prepare import as_ratings
    from kpod._common.words import counted, some

    if not takes_ratings(model):
        raise InputError("--rows, --items and --values need a model that was fitted on ratings.")
    sparse = as_ratings(table, ratings)
    at = {name: j for j, name in enumerate(sparse.items)}
    unknown = [printable(name) for name in sparse.items if name not in set(model.columns)]
    if len(unknown) == len(sparse.items):
        raise InputError(
            "--rows, --items and --values need a model that was fitted on ratings: "
            "none of these items is a column of this model."
        )
    if unknown:
        are = "is" if len(unknown) == 1 else "are"
        what = counted(len(unknown), "item")
        notes.append(f"{what} ({some(unknown)}) {are} not in the model, and ignored.")
    values = columns_of(sparse.values, [at.get(name, -1) for name in model.columns])
    choice = sparse.choice
    choice.used = model.columns
    return Applied(model, sparse.table, choice, values, notes)


def columns_of(table: Any, which: list[int]) -> Any:
    """Some columns of a sparse table in a given order, -1 for one that it has not."""
    import numpy as np
    from scipy import sparse

    order = np.full(table.shape[1], -1)
    for new, old in enumerate(which):
        if old >= 0:
            order[old] = new
    entries = table.tocoo()
    row, column = entries.coords
    kept = order[column] >= 0
    coordinates = (row[kept], order[column[kept]])
    return sparse.csr_array((entries.data[kept], coordinates), shape=(table.shape[0], len(which)))


def levels_of(model: Model) -> dict[str, list[str]]:
    """The columns that a model takes as categories without an order, and their levels."""
    from kpod._columns.encoded_column import CATEGORY
    from kpod._columns.encoder import TableEncoder

    encoder = model.pipeline[0]
    if not isinstance(encoder, TableEncoder):
        return {}
    columns = zip(encoder.feature_names_in_, encoder.kinds_, encoder.levels_, strict=True)
    return {str(name): levels for name, kind, levels in columns if kind == CATEGORY}


def categories_of(pipeline: Any) -> dict[str, tuple[str, ...]]:
    """The columns that a model takes as categories, with their order if they have one."""
    from kpod._columns.encoded_column import NUMBER, ORDERED
    from kpod._columns.encoder import TableEncoder

    encoder = pipeline[0]
    if not isinstance(encoder, TableEncoder):
        return {}
    columns = zip(encoder.feature_names_in_, encoder.kinds_, encoder.levels_, strict=True)
    return {
        str(name): tuple(levels) if kind == ORDERED else ()
        for name, kind, levels in columns
        if kind != NUMBER
    }
