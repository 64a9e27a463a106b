"""Rows of a stream: by name of column, one or several at a time, kept until there are enough."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from kpod._common.sentences.formatting import some
from kpod._common.typing import AnyFloats, Floats
from kpod._engine.executors import Executor
from kpod._engine.solvers.minibatch import Running
from kpod._engine.solvers.order import Order
from kpod._estimators.nearest_center import NearestCenter
from kpod._inputs import collections, conversion, frames, lazy, validation

LOOK = 4096
ROWS_PER_CLUSTER = 10
"""Where rows come one by one, so many for each cluster are clustered to begin with."""


@dataclass(frozen=True)
class NamedRows:
    """Rows whose columns have names."""

    names: list[str]
    values: AnyFloats

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.values), len(self.names)

    def aligned(self, names: Sequence[str]) -> AnyFloats:
        """The rows in these columns; missing where they have none of that name."""
        if list(names) == self.names:
            return self.values
        out = np.full((len(self.values), len(names)), np.nan, self.values.dtype)
        at = {name: j for j, name in enumerate(self.names)}
        for j, name in enumerate(names):
            if name in at:
                out[:, j] = self.values[:, at[name]]
        return out


def named_rows(X: Any, estimator: Any = None) -> NamedRows | None:
    """The rows of a data frame, a dict or a list of dicts; None for input without column names."""
    if not frames.is_frame(X):
        return dicts_in(X)
    columns = list(getattr(X, "column_names", None) or X.columns)  # pyarrow's columns are the entries
    if not columns or not all(isinstance(name, str) for name in columns):
        return None
    return NamedRows(columns, validation.as_array(X, estimator))


def dicts_in(X: Any) -> NamedRows | None:
    """The rows of a dict or a list of dicts; None of anything else."""
    if isinstance(X, Mapping) and not sparse.issparse(X):  # a sparse table may be a dict of entries
        return rows_of_dicts([X])
    if isinstance(X, list | tuple) and X and all(isinstance(row, Mapping) for row in X):
        return rows_of_dicts(X)
    return None


def rows_of_dicts(rows: Sequence[Mapping[Any, Any]]) -> NamedRows:
    """Rows as dicts from the name of a column to its value; a column that a row lacks is missing there."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not names or not all(isinstance(name, str) for name in names):
        raise TypeError("A row as a dict must have the names of columns, text, as its keys.")
    cells = np.empty((len(rows), len(names)), dtype=object)
    for i, row in enumerate(rows):
        for j, name in enumerate(names):
            cells[i, j] = row.get(name)
    return NamedRows(names, conversion.objects_as_floats(cells, lambda i, j: (i, repr(names[j]))))


def joined_names(known: Sequence[str], rows: NamedRows) -> list[str]:
    """Names of columns, with those behind them that come now for the first time."""
    new = [name for name in rows.names if name not in known]
    if known and len(new) == len(rows.names):
        raise ValueError(
            f"X has none of the columns of the model ({some([repr(name) for name in known])}); give rows "
            "that have some of them."
        )
    return [*known, *new]


@dataclass
class Buffer:
    """Rows that came before there were enough of them to begin with."""

    batches: list[Any] = field(default_factory=list)
    weights: list[Floats | None] = field(default_factory=list)

    def with_batch(self, rows: Any, weights: Floats | None) -> Buffer:
        return Buffer([*self.batches, rows], [*self.weights, weights])

    @property
    def n_usable(self) -> int:
        """Rows with something observed."""
        return sum(usable_rows(rows) for rows in self.batches)

    def all_rows(self) -> Any:
        """All batches as one; by name of column if they have names."""
        if all(isinstance(rows, NamedRows) for rows in self.batches):
            names: list[str] = []
            for rows in self.batches:
                names = joined_names(names, rows)
            return NamedRows(names, np.vstack([rows.aligned(names) for rows in self.batches]))
        widths = {
            rows.shape[1] if not isinstance(rows, NamedRows) else len(rows.names) for rows in self.batches
        }
        if len(widths) > 1 or any(isinstance(rows, NamedRows) for rows in self.batches):
            raise ValueError("Batches must all have the same columns, or all have names of columns.")
        if any(map(sparse.issparse, self.batches)):
            return sparse.vstack(self.batches, format="csr")
        return np.vstack(self.batches)

    def all_weights(self) -> Floats | None:
        if all(weights is None for weights in self.weights):
            return None
        lengths = [
            len(rows.values) if isinstance(rows, NamedRows) else rows.shape[0] for rows in self.batches
        ]
        pairs = zip(self.weights, lengths, strict=True)
        return np.concatenate([np.ones(n) if weights is None else weights for weights, n in pairs])


def usable_rows(rows: Any, enough: int = sys.maxsize) -> int:
    """Rows with something observed; no more are counted than are enough."""
    if sparse.issparse(rows):
        return int((np.diff(rows.tocsr().indptr) > 0).sum())
    values, found = rows.values if isinstance(rows, NamedRows) else rows, 0
    for start in range(0, len(values), LOOK):
        found += int((~np.isnan(values[start : start + LOOK])).any(axis=1).sum())
        if found >= enough:
            break
    return found


def words_of(random: np.random.Generator) -> Any:
    """The state of a generator of random numbers as six whole numbers."""
    state: Any = random.bit_generator.state
    parts = [part for key in ("state", "inc") for part in divmod(state["state"][key], 1 << 64)]
    return np.array([*parts, state["has_uint32"], state["uinteger"]], np.uint64)


def generator_of(words: Any) -> np.random.Generator:
    """A generator that continues from a state."""
    high, low, inc_high, inc_low, has, last = (int(word) for word in words)
    bits = np.random.PCG64()
    bits.state = {
        "bit_generator": "PCG64",
        "state": {"state": high << 64 | low, "inc": inc_high << 64 | inc_low},
        "has_uint32": has,
        "uinteger": last,
    }
    return np.random.Generator(bits)


NO_DASK = (
    "MiniBatchKPOD takes tables in memory or on disk, not those of Dask or Spark. Call partial_fit with the "
    "partitions of such a table one after the other, or give the table to KPOD."
)


class StreamModel(NearestCenter):
    """A model that learns from batches as they come."""

    n_clusters: int
    _running: Running
    _order: Order
    _shift: Floats

    def _check_parameters(self) -> None:
        raise NotImplementedError

    def _learn(self, X: Any, sample_weight: Any, *, reset: bool, one_batch: bool = False) -> Any:
        raise NotImplementedError

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Move the centers by one batch of rows.

        The first batch is clustered as `KPOD` would. If it has fewer than `n_clusters` rows with something
        observed, it is buffered until there are 10 rows for each cluster, or a batch arrives that has enough
        by itself; later batches may have any number of rows.

        Columns of data frames and dicts are matched by name, in any order: one that is absent from a batch is
        missing there, and a new one is added to the columns. Arrays must
        have the same columns throughout.

        Parameters
        ----------
        X : array-like, dataframe or sparse matrix of shape (n_samples, n_features), dict or list of dicts
            The batch. A dict is one row, with column names as keys; None means missing.
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None
            The weight of each row.

        Returns
        -------
        self
        """
        self._check_parameters()
        if collections.is_collection(X):
            raise TypeError(NO_DASK)
        X = lazy.scanned(X)
        named = named_rows(X, self)
        batch = X if named is None else named
        if hasattr(self, "_running"):
            return self._learn(batch, sample_weight, reset=False, one_batch=True)
        rows = validation.as_table(X, self) if named is None else named
        weights = validation.check_weights(sample_weight, rows.shape[0])
        before: Buffer = getattr(self, "_buffer", Buffer())
        buffer, k = before.with_batch(rows, weights), int(self.n_clusters)
        if usable_rows(rows, k) < k and buffer.n_usable < ROWS_PER_CLUSTER * k:
            buffer.all_rows()  # which go together, or an error is raised now
            self._buffer, self.n_buffered_ = buffer, buffer.n_usable
            return self
        if not before.batches:
            return self._learn(batch, sample_weight, reset=True, one_batch=True)
        return self._learn(buffer.all_rows(), buffer.all_weights(), reset=True, one_batch=True)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "cluster_centers_")

    def _validate(self, X: Any, executor: Executor, *, reset: bool, weight: str | None = None) -> Any:
        """What the engine takes; rows with names in the columns of the model, which may become more."""
        rows = X if isinstance(X, NamedRows) else None if reset else dicts_in(X)
        if rows is None:
            return super()._validate(X, executor, reset=reset, weight=weight)
        known = [] if reset else list(getattr(self, "feature_names_in_", ()))
        if not reset and not known:
            raise ValueError("X has names of columns, but the model was fitted on an array without any.")
        names = joined_names(known, rows)
        if reset:
            self.feature_names_in_ = np.asarray(names, dtype=object)
            self.n_features_in_ = len(names)
        return rows.aligned(names if reset else known)

    def _grow(self, X: NamedRows) -> None:
        """Add columns that occur for the first time."""
        known = list(self.feature_names_in_)
        names = joined_names(known, X)
        more = len(names) - len(known)
        if more:
            self.feature_names_in_ = np.asarray(names, dtype=object)
            self.n_features_in_ = len(names)
            self._shift = np.append(self._shift, np.full(more, np.nan))
            self._running.add_columns(more)
            self._order.add_columns(more)
