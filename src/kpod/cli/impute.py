"""kpod impute: a table with its gaps filled from the clusters of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kpod._common.errors import printable
from kpod.cli.applying import apply, noted
from kpod.cli.options import in_file, reading, table_output, telling
from kpod.cli.outputs import check_outputs, check_types, output_for, say, written
from kpod.cli.summaries import summary_of_data

if TYPE_CHECKING:
    from kpod._columns.notations.spelling import Notation
    from kpod._columns.tables import Column, TableFile
    from kpod.cli.applying import Applied


@click.command(short_help="Fill the gaps of a table from the clusters of a model.")
@in_file("model")
@in_file("data")
@table_output("with its gaps filled")
@telling
@reading
def impute(model: str, data: str, output: str | None, quiet: bool, as_json: bool, **read: Any) -> None:
    """Fill the gaps of DATA from the clusters of MODEL, made by kpod fit --model.

    A gap in a column of the model gets the mean of the row's cluster, or the most common category; where
    nothing is known of the cluster, that of the whole table, and a note says so. If the model was fitted
    with --log or --clip, it is the mean of logarithms, taken back, or of clipped values. Other columns stay
    as they are. Use the result to look at the data, or for tools that need a complete
    table. Filled values vary less than real ones: do not compute standard errors from them.

    \b
    Examples:
      kpod impute wine.kpod data.csv > filled.csv
      kpod impute survey.kpod survey.sav -o filled.xlsx
    """
    output = output_for(output, as_json)
    check_outputs({"data": data, "model": model}, {"-o": output})
    from kpod._files import writing
    from kpod.cli.progress import Progress

    with Progress(quiet) as progress:
        progress.doing(f"reading {data}")
        given = apply(model, data, read)
        check_types(given.table, output)
        before = summary_of_data(given.table, given.choice)
        progress.doing("filling gaps")
        filled, notes = fill(given)
        if output:
            progress.doing("writing")
            typed = writing.format_of(output) != "csv"
            writing.write_table(writing.as_typed(given.table, typed=typed), output, given.table.dialect)
    summary = {
        **before,
        "filled": sum(filled.values()),
        "filled_by_column": filled,
        "clusters": [],
        "notes": [*given.notes, *notes],
    }
    say(summary, quiet, as_json, written(output))


def fill(given: Applied) -> tuple[dict[str, int], list[str]]:
    """Fill the gaps in the columns of the model, in place; how many of each, and what to say."""
    import numpy as np

    from kpod._common.words import counted

    columns = imputed(given)
    unknown = unknown_in_cluster(given)
    filled: dict[str, int] = {}
    notes = []
    for name, values in columns.items():
        column = given.table.column(name)
        gaps = gaps_in(given, name)
        fillable = gaps & np.array([value is not None and value == value for value in values])  # noqa: PLR0124
        if column.role.role == "date":
            notes.append(f"{name}: dates are not filled.")
        elif fillable.any():
            filled[name] = int(fillable.sum())
            replace(given.table, column, fillable, values)
            of_all = int((fillable & unknown[name]).sum())
            if of_all:
                notes.append(
                    f"{printable(name)}: {counted(of_all, 'gap')} got what is usual in the whole table, "
                    "because the model knows no value from the row's cluster."
                )
        if (gaps & ~fillable).any() and column.role.role != "date":
            notes.append(f"{name}: not filled; the model has never seen a value of this column.")
    return filled, notes


def unknown_in_cluster(given: Applied) -> dict[str, Any]:
    """Of each column, the rows in whose cluster nothing is known of it; rows in no cluster among them."""
    import numpy as np

    from kpod._columns.encoder import TableEncoder

    step, labels = given.step, given.predict()
    widths = step._widths() if isinstance(step, TableEncoder) else [1] * len(given.choice.used)
    first = np.cumsum([0, *widths[:-1]])
    nothing = np.vstack([np.asarray(given.kpod.counts_)[:, first] == 0, np.ones((1, len(first)), bool)])
    return dict(zip(given.choice.used, nothing[labels].T, strict=True))


def gaps_in(given: Applied, name: str) -> Any:
    import numpy as np

    if isinstance(given.values, np.ndarray):
        return np.isnan(given.values[:, given.choice.used.index(name)])
    return np.asarray(given.values.column(name).is_null())


def imputed(given: Applied) -> dict[str, Any]:
    """The columns of the model without gaps: numbers in their units, words for categories."""
    import numpy as np

    from kpod._columns.encoder import TableEncoder

    step, kpod = given.step, given.kpod
    with noted():
        encoded = given.values if step is None else step.transform(given.values)
    complete = kpod.impute(encoded)
    if isinstance(step, TableEncoder):
        back = step.inverse_transform(complete)
        return {name: back.column(name).to_pylist() for name in given.choice.used}
    numbers = np.asarray(complete if step is None else step.inverse_transform(complete), dtype=np.float64)
    return dict(zip(given.choice.used, numbers.T, strict=True))


def replace(table: TableFile, column: Column, where: Any, values: Any) -> None:
    """Put values into the gaps of a column, in the way the column writes them."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from kpod._columns.inspection import is_text

    at = table.raw.column_names.index(column.name)
    raw = table.raw.column(at)
    if pa.types.is_dictionary(raw.type):
        raw = raw.cast(raw.type.value_type)
    raw = raw.combine_chunks() if isinstance(raw, pa.ChunkedArray) else raw
    new = [values[i] for i in np.flatnonzero(where)]
    if column.role.role == "boolean":
        new = [commoner(column, float(value)) for value in new]
    cells: list[Any]
    if is_text(raw.type):
        spelled, notation = spellings_of(column, raw), notation_of(column, raw)
        cells = [
            value if isinstance(value, str) else spelled.get(value, notation.write(value)) for value in new
        ]
    elif pa.types.is_boolean(raw.type):
        cells = [bool(value) for value in new]
    else:
        raw, cells = raw.cast(pa.float64()), [float(value) for value in new]
    raw = pc.replace_with_mask(raw, pa.array(where), pa.array(cells, raw.type))
    table.raw = table.raw.set_column(at, column.name, raw)
    if column.values is not None and not isinstance(new[0], str):
        column.values = column.values.copy()
        column.values[where] = new
        column.kind = column.kind if column.kind != "integer" or is_whole(new) else "number"


def is_whole(values: list[float]) -> bool:
    return all(float(value).is_integer() for value in values)


def commoner(column: Column, share: float) -> float:
    """Of a column of two values, the one that most of a cluster has."""
    import numpy as np

    assert column.values is not None
    low, high = float(np.nanmin(column.values)), float(np.nanmax(column.values))
    return high if share >= (low + high) / 2 else low


def spellings_of(column: Column, raw: Any) -> dict[Any, str]:
    """How a column of text writes yes and no, true and false."""
    import numpy as np

    if column.kind not in ("yes/no", "true/false") or column.values is None:
        return {}
    known = np.unique(column.values[~np.isnan(column.values)])
    return {float(value): str(raw[int(np.argmax(column.values == value))]).strip() for value in known}


def notation_of(column: Column, raw: Any) -> Notation:
    """How a column of text writes its numbers."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from kpod._columns.notations.spelling import Notation

    if column.values is None:
        return Notation(column.decimal)
    return Notation.of(pc.unique(raw.filter(pa.array(~np.isnan(column.values)))).to_pylist(), column.decimal)
