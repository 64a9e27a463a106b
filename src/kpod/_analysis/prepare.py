"""What is clustered of a table: its values, weights, and the step that brings columns to one scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kpod._common.errors import InputError, printable

if TYPE_CHECKING:
    from kpod._columns.tables import TableFile
    from kpod._columns.usage import ColumnUsage
    from kpod._files.ratings import Ratings


@dataclass(frozen=True)
class Encode:
    """How columns are brought to one scale."""

    scale: str = "standard"
    log: Sequence[str] = ()
    clip: float | None = None

    def step(self, choice: ColumnUsage) -> list[tuple[str, Any]]:
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


def table_data(table: TableFile, choice: ColumnUsage, encode: Encode, weight: str | None = None) -> Data:
    """The columns of a table that were chosen."""
    from kpod._files.pieces.large_table import LargeTable

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


def as_ratings(table: TableFile, columns: dict[str, str | None]) -> Ratings:
    """The sparse table that lines of ratings are."""
    from kpod._files.pieces.large_table import LargeTable
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

    from kpod._files.pieces.scanning import chunks
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
