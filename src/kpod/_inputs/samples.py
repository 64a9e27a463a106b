"""Samples of a distributed table, for functions that need a table in memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from kpod._common.typing import Positions
from kpod._common.warnings import warn
from kpod._engine import sizes
from kpod._engine.blocks import some_rows
from kpod._engine.sampling import Sample, order_by_content, rows_here
from kpod._engine.table import make_table
from kpod._inputs import choose_executor, collections, dask_tables, validation


class RowsHere(NamedTuple):
    """A table in memory.

    Parameters
    ----------
    table : a data frame where the columns have names, else an array or CSR array
    weights : of its rows, as they were given for a table that is in memory anyway
    n_drawn : its rows, where they are a sample; else None
    sentence : what they are a sample of; else empty
    rows : their positions in a table of Dask; else None, rows of Spark have none
    """

    table: Any
    weights: Any
    n_drawn: int | None = None
    sentence: str = ""
    rows: Positions | None = None


def brought_here(X: Any, sample_weight: Any = None, seed: int = 0, *, by_content: bool = False) -> RowsHere:
    """Rows of a collection of Dask or a DataFrame of Spark that observe anything; any other table as it is.

    All of them where they are few, else a random sample, of which it is warned. Which rows depends on the
    table, the order of its rows and the seed, not on the machines that it is on. They are in the order of the
    table, or for what depends on it, `by_content` (`sampling.order_by_content`).
    """
    if not collections.is_collection(X):
        return RowsHere(X, sample_weight)
    weight = collections.weight_column(X, sample_weight)
    with choose_executor.executor_for(X, 1) as executor:
        values: Any = collections.table_of(X, executor, weight)
        given = sample_weight if weight is None else values.weights
        weights = validation.check_weights(given, values.shape[0])
        header = values.header
        with choose_executor.nearby(values, executor, 1) as (near, own):
            table = make_table(near, own, weights=weights, checked=True)
            validation.check_finite(table, names_of(header))
            n_usable = table.n_usable
            if not n_usable:
                raise ValueError(
                    f"X is a table of Dask or Spark, and none of its {table.n_rows:,} rows has both an "
                    "observed entry and a weight."
                )
            drawn = rows_here(table, own, np.random.default_rng(seed))
            table.check_unchanged(own)
    if by_content:
        order = order_by_content(drawn.values, drawn.weights)
        own_weights = None if drawn.weights is None else drawn.weights[order]
        drawn = Sample(some_rows(drawn.values, order), own_weights, drawn.rows[order])
    n, rows = len(drawn.rows), drawn.rows if validation.is_dask(X) else None
    found = named(drawn.values, header)
    if n == n_usable:
        return RowsHere(found, drawn.weights, rows=rows)
    sentence = f"a random sample of {n:,} of {table.n_rows:,} rows, the same on any number of workers"
    warn(f"X is on a cluster, and this rests on {sentence}.")
    return RowsHere(found, drawn.weights, n, sentence, rows)


def raw_rows_here(X: Any) -> Any:
    """Rows of a DataFrame of Dask or Spark as they are, words and dates included: all, or a random sample.

    Which rows depends on the partitions, not on the machines that they are on.
    """
    most = sizes.SAMPLED_ROWS
    if validation.is_spark(X):
        n_rows = X.count()
        rows = X if n_rows <= most else X.sample(withReplacement=False, fraction=most / n_rows, seed=0)
        out = rows.toArrow() if hasattr(rows, "toArrow") else rows.toPandas()
    else:
        n_rows, out = dask_tables.raw_rows(X, most)
    if len(out) < n_rows:
        warn(f"X is on a cluster, and this rests on a random sample of {len(out):,} of {n_rows:,} rows.")
    return out


def names_of(header: Any) -> list[str] | None:
    """The names of the columns of a frame of pandas or pyarrow."""
    names = header.column_names if hasattr(header, "column_names") else getattr(header, "columns", None)
    return None if names is None else [str(name) for name in names]


def named(values: Any, header: Any) -> Any:
    """Rows with the names of a header, if it has any."""
    if not hasattr(header, "columns") or sparse.issparse(values):
        return values
    if hasattr(header, "column_names"):
        columns = [np.ascontiguousarray(column) for column in values.T]
        return type(header).from_pydict(dict(zip(header.column_names, columns, strict=True)))
    return type(header)(values, columns=header.columns)
