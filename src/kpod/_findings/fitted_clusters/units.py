"""Centers in the units of the user's columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.compose import ColumnTransformer

from kpod._columns.preparing.encoding import CATEGORY
from kpod._columns.preparing.preparer import TablePreparer
from kpod._common.typing import AnyFloats, Floats
from kpod._findings.fitted_clusters.entries import DenseEntries, Entries, MappedEntries, entries_of
from kpod._inputs import validation
from kpod._inputs.scanned import ScannedTable

SMALL = 1e-6
"""In standard deviations of its column, what is as good as 0."""


class Level(NamedTuple):
    """A level of a category, and of two levels the other one, which has no column of its own."""

    column: str
    name: str
    other: str | None = None


InUnits = Callable[[Floats], Floats]
"""From points as the model sees them to the units of the table."""


def in_units(
    estimator: Any, before: Any, model: Any, X: Any, values: Entries
) -> tuple[Entries, InUnits, Sequence[str] | None, list[Level | None]]:
    """The table in units one can read, how centers come there, the names of columns, and which are levels."""
    plain: list[Level | None] = [None] * values.shape[1]
    if isinstance(X, ScannedTable) and X.scaler_ is not None and before is None:
        in_file = MappedEntries(values.mapped, X.scaler_) if isinstance(values, MappedEntries) else values
        return in_file, X.scaler_.inverse_transform, X.columns, plain
    if before is None:
        return values, as_they_are, names_of(estimator, model, X), plain
    if len(before) == 1 and isinstance(before[0], TablePreparer):
        preparer = before[0]
        names, levels = list(preparer.get_feature_names_out()), levels_of(preparer)
        return entries_of(preparer._readable(X)), preparer.in_units, names, levels
    try:
        table = entries_of(validation.as_table(X, model))
        if table.shape == values.shape and hasattr(before, "inverse_transform"):
            before.inverse_transform(np.asarray(model.cluster_centers_, np.float64))
            return table, before.inverse_transform, names_of(estimator, model, X), plain
    except (ValueError, TypeError):
        pass  # text among the columns, or a step that cannot be undone: describe what came out
    try:
        names_out: Sequence[str] | None = list(before.get_feature_names_out())
    except (AttributeError, ValueError):
        names_out = names_of(model, model, None)
    if len(before) == 1 and isinstance(before[0], ColumnTransformer) and isinstance(values, DenseEntries):
        undone = partial(undo, before[0])
        return entries_of(undone(values.values)), undone, without_prefixes(names_out), plain
    return values, as_they_are, names_out, plain


def as_they_are(points: Floats) -> Floats:
    return points


def undo(columns: ColumnTransformer, values: Floats) -> Floats:
    """Values in the units they had, where a transformer gives one column for each and can be undone."""
    out = np.array(values, dtype=np.float64)
    for name, transformer, given in columns.transformers_:
        block = columns.output_indices_[name]
        is_one_for_one = block.stop - block.start == np.size(given)
        if is_one_for_one and block.stop > block.start and hasattr(transformer, "inverse_transform"):
            try:
                out[:, block] = transformer.inverse_transform(out[:, block])
            except (ValueError, TypeError):  # categories for example: there are no numbers to go back to
                continue
    return out


def without_prefixes(names: Sequence[str] | None) -> Sequence[str] | None:
    """The names a ColumnTransformer gives, without those of its parts where that leaves them different."""
    plain = [name.partition("__")[2] or name for name in names or ()]
    return plain if names is not None and len(set(plain)) == len(plain) else names


def is_bent(before: Any) -> bool:
    """Whether what comes before the model takes logarithms or clips."""
    steps = [] if before is None else [step for _, step in before.steps]
    return any(isinstance(step, TablePreparer) and bool(step._encoding.bent.any()) for step in steps)


def means_of(before: Any, n_columns: int) -> list[str]:
    """The scale on which the mean of each column was taken (logarithms, clipped values), "" for its units."""
    if before is None or len(before) > 1 or not isinstance(before[0], TablePreparer):
        return [""] * n_columns
    preparer, out = before[0], []
    encoding = preparer._encoding
    for j, (kind, width) in enumerate(zip(preparer.kinds_, encoding.widths, strict=True)):
        clipped = encoding.limited(j)
        values = "logarithms" if np.isfinite(encoding.offset[j]) else "values" if clipped else ""
        out += [""] * width if kind == CATEGORY else [f"clipped {values}" if clipped else values]
    return out


def levels_of(preparer: TablePreparer) -> list[Level | None]:
    out: list[Level | None] = []
    columns = zip(preparer.columns_, preparer.kinds_, preparer.levels_, strict=True)
    for name, kind, levels in columns:
        if kind != CATEGORY:
            out.append(None)
        elif len(levels) == 2:
            out.append(Level(name, levels[1], levels[0]))
        else:
            out += [Level(name, level) for level in levels]
    return out


YEAR = re.compile(r"year|decade|yr|jahr|ann[eé]e|\bano\b", re.IGNORECASE)


def is_year(name: str, values: AnyFloats) -> bool:
    """Whether a column holds years, by its name and its values."""
    return bool(YEAR.search(name) and len(values) and values.min() >= 1500 and values.max() <= 2200)


def names_of(estimator: Any, model: Any, X: Any) -> Sequence[str] | None:
    for holder in (estimator, model):
        if hasattr(holder, "feature_names_in_"):
            return list(holder.feature_names_in_)
    columns = getattr(X, "columns", None)
    return None if columns is None or callable(columns) else list(map(str, columns))
