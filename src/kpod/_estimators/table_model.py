"""What fitted models have in common that read tables: checked columns, the units of the fit, threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from kpod._common.column_groups import ColumnGroups
from kpod._common.typing import Floats
from kpod._engine.blocks import Units
from kpod._engine.executors import Executor, available_threads, threads
from kpod._engine.table import Table, make_table
from kpod._inputs import choose_executor, collections, lazy, validation


class TableModel(BaseEstimator):
    """A model that was fitted to a table, and takes others with the same columns."""

    n_threads: int | None
    column_means_: Floats
    n_features_in_: int

    def __getstate__(self) -> Any:
        """Without labels that are elsewhere: those who open the model may be, too."""
        state = super().__getstate__()
        spread = collections.is_collection(state.get("labels_"))
        return {name: value for name, value in state.items() if not spread or name != "labels_"}

    def _validate(self, X: Any, executor: Executor, *, reset: bool, weight: str | None = None) -> Any:
        """What the engine takes; the columns are those of the model, or become so.

        Of a table that is spread over machines, one column may be the weights of the rows.
        """
        X = lazy.scanned(X, None if reset else getattr(self, "feature_names_in_", None))
        if collections.is_collection(X):
            values: Any = collections.table_of(X, executor, weight)
            validate_data(self, values.header, reset=reset, skip_check_array=True)
            return values
        if reset and validation.is_plain(X):
            self.n_features_in_ = X.shape[1]
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
            return X
        if not reset and self._takes_as_it_is(X):
            return X
        values = validation.as_table(X, self)
        validate_data(self, validation.named(X, values), reset=reset, skip_check_array=True)
        return values

    @contextmanager
    def _opened(
        self, X: Any, sample_weight: Any, *, reset: bool, here: bool = False
    ) -> Iterator[tuple[Any, Floats | None, Executor]]:
        """What the engine takes, the weights of the rows, and what runs over them."""
        n_threads, weight = self._n_threads(), collections.weight_column(X, sample_weight)
        with threads(n_threads) if here else choose_executor.executor_for(X, n_threads) as executor:
            values = self._validate(X, executor, reset=reset, weight=weight)
            given = sample_weight if weight is None else values.weights
            weights = validation.check_weights(given, values.shape[0])
            with choose_executor.nearby(values, executor, n_threads) as (values, own):
                yield values, weights, own

    def _takes_as_it_is(self, X: Any) -> bool:
        """Whether X is an array that the engine takes, without names to compare with those of the fit."""
        names = hasattr(self, "feature_names_in_")
        return validation.is_plain(X) and not names and X.shape[1] == self.n_features_in_

    def _n_threads(self) -> int:
        return available_threads() if self.n_threads is None else int(self.n_threads)

    def _groups(self) -> ColumnGroups:
        """Which columns come from the same one; a model of version 0.1 has none."""
        source = getattr(self, "column_groups_", None)
        return ColumnGroups.none(self.n_features_in_) if source is None else ColumnGroups(np.asarray(source))

    def _units(self) -> Units:
        """The units of the fit, in which the same row gets the same label again."""
        # A model of version 0.1 has no units of its own.
        shift = np.asarray(getattr(self, "_shift", self.column_means_), np.float64)
        scale = float(getattr(self, "_scale", 1.0))
        if shift.shape != (self.n_features_in_,) or not 0 < scale < np.inf:
            raise ValueError("The model is damaged: its scales do not match its columns. Fit it again.")
        return Units(shift, scale)

    @contextmanager
    def _fitted_table(
        self, X: Any, sample_weight: Any = None, *, here: bool = False
    ) -> Iterator[tuple[Table, Executor]]:
        """Another table in the units of the fit, and what runs over it for as long as it is in use.

        That is threads of this process, if it has to be `here`.
        """
        check_is_fitted(self)
        with self._opened(X, sample_weight, reset=False, here=here) as (values, weights, executor):
            table = make_table(values, executor, weights=weights, units=self._units())
            validation.check_finite(table, getattr(self, "feature_names_in_", None))
            yield table, executor
