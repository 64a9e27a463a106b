"""Prepared columns of a fitted `TablePreparer`: their names, and the way back to the table."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kpod._columns.preparing.encoding import CATEGORY, NUMBER, ORDERED, PLAIN, Encoding
from kpod._columns.preparing.frames import as_frame
from kpod._common.typing import Floats
from kpod._inputs import validation


class PreparedColumns:
    """From prepared columns back to those of the table.

    What was learnt is kept in plain attributes, of which a model file is made.
    """

    columns_: list[str]
    kinds_: list[str]
    levels_: list[list[str]]
    _frame: str

    def inverse_transform(self, X: Any) -> Any:
        """From prepared rows or centers back to the columns: numbers in their units, the commonest level.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_columns_out)

        Returns
        -------
        A table of the kind that `fit` was given; an array for an array.
        """
        check_is_fitted(self)
        return as_frame(self._encoding.decode(self._encoded(X)), self._frame)

    def shares(self, X: Any) -> dict[str, Floats]:
        """Of prepared centers, the share of each level in each category column.

        Parameters
        ----------
        X : array-like of shape (n_clusters, n_columns_out)

        Returns
        -------
        dict
            For each category column an array of shape (n_clusters, n_levels), levels as in `levels_`.
        """
        check_is_fitted(self)
        encoding = self._encoding
        blocks = encoding.blocks(self._encoded(X))
        return {
            name: encoding.level_shares(block, j)
            for j, (name, block) in enumerate(zip(self.columns_, blocks, strict=True))
            if self.kinds_[j] == CATEGORY
        }

    def in_units(self, X: Any) -> Floats:
        """Prepared values in units one can read: numbers as they were, ranks, and shares of levels.

        Of two levels, it is the share of the second.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_columns_out)

        Returns
        -------
        ndarray of the same shape
        """
        check_is_fitted(self)
        return self._encoding.in_units(self._encoded(X))

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the prepared columns: the column, or column=level; of two levels, the second.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        return np.asarray(self._encoding.names_out, dtype=object)

    @property
    def _encoding(self) -> Encoding:
        kinds = [kind if kind in (CATEGORY, ORDERED) else NUMBER for kind in self.kinds_]
        learnt: dict[str, Any] = {"names": self.columns_, "kinds": kinds}
        rest = {name: getattr(self, f"{name}_") for name in PLAIN if name not in learnt}
        return Encoding(**learnt, **rest)

    def _encoded(self, X: Any) -> Floats:
        validation.refuse_dask(X)
        encoded = np.asarray(X, dtype=np.float64)
        width = sum(self._encoding.widths)
        if encoded.ndim != 2 or encoded.shape[1] != width:
            raise ValueError(f"X has shape {encoded.shape}, expected {width} columns.")
        return encoded
