"""A table ready to be clustered: in memory, in pieces, or as ratings with a line each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from kpod._columns.preparing.column_values import weights_of
from kpod._columns.preparing.columns_in_use import ColumnUsage, choose_columns
from kpod._columns.preparing.encoding import Encoding
from kpod._columns.tables import TableFile
from kpod._common.errors import InputError
from kpod._common.notes import Notes
from kpod._common.options import in_the_shell, option

if TYPE_CHECKING:
    from kpod._columns.preparing.preparer import TablePreparer


@dataclass(frozen=True)
class Prepared:
    """What is clustered, and how it came about."""

    table: TableFile
    usage: ColumnUsage
    steps: list[tuple[str, Any]]
    """What comes before the KPOD in the model."""
    source: Any
    """The table as the model takes it."""
    values: Any
    """The table as the KPOD takes it."""
    weights: Any = None
    names: list[str] | None = None
    """Names of columns, for steps that have none."""
    notes: Notes = field(default_factory=Notes)
    n_missing: int | None = None
    """Entries that are missing in the columns used, where they have been counted."""

    def clustered_as(self, pipeline: Any) -> tuple[Any, Any, list[str] | None]:
        """The model and the table that go together, and the names of the columns."""
        in_pieces = self.table.in_pieces
        return (pipeline[-1] if in_pieces else pipeline), self.source, self.names


def prepare(table: TableFile, preparer: TablePreparer, long_form: Mapping[str, str | None]) -> Prepared:
    """Decide about the columns, and bring them to one scale."""
    if any(long_form.values()):
        return prepare_ratings(table, preparer, long_form)
    if table.in_pieces:
        return prepare_pieces(table, preparer)
    usage, encoding, values = preparer._fit(table)
    weights = preparer.row_weights(table)
    steps = [("prepare", preparer)]
    n_missing = int(np.isnan(values).sum())  # before they are encoded in place
    encoded = encoding.encode(values)
    return Prepared(table, usage, steps, table, encoded, weights, None, preparer.notes_, n_missing)


def prepare_pieces(table: Any, preparer: TablePreparer) -> Prepared:
    """A table that would not fit into memory: its numbers are scaled as they are read."""
    needs_all = preparer.scale in ("auto", "robust")
    if needs_all or preparer.log or preparer.clip or preparer.column_weights:
        scale = option("--scale", preparer.scale if needs_all else "robust")
        more = "" if in_the_shell() else ", `column_weights`"
        raise InputError(
            f"{table.source}: {scale}{more}, {option('--log')} and {option('--clip')} need the whole table "
            f"in memory{table.whole_size}; leave them out, or give a table that fits."
        )
    usage = choose_columns(
        table, preparer.columns or (), preparer.exclude, preparer.ids,
        roles=preparer.roles, categories=preparer.categories, weight=preparer.weight,
    )  # fmt: skip
    weights = None if preparer.weight is None else weights_of(table, preparer.weight)
    scanned = table.scanned(usage, preparer.scale == "standard")
    scaler = scanned.scaler_
    p = len(usage.used)
    encoding = Encoding.plain(
        usage.used, *((scaler.mean_, scaler.scale_) if scaler else ([0.0] * p, [1.0] * p))
    )
    preparer._of_parts(table, usage, encoding)
    return Prepared(
        table, usage, [("prepare", preparer)], scanned, scanned, weights, usage.used, preparer.notes_
    )


def prepare_ratings(
    table: TableFile, preparer: TablePreparer, long_form: Mapping[str, str | None]
) -> Prepared:
    """The sparse table that lines of ratings are: what is not there is missing."""
    from kpod._estimators.observed_scaler import ObservedScaler
    from kpod._files.ratings import as_ratings

    ratings = as_ratings(table, long_form)
    steps = [] if preparer.scale == "none" else [("scale", ObservedScaler())]
    values = ratings.values
    for _, step in steps:
        values = step.fit_transform(values)
    return Prepared(ratings.table, ratings.choice, steps, ratings.values, values, None, ratings.items)
