"""A table on disk that every function takes: mapped, not read."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from kpod._common.notes import Notes
from kpod._engine.windows import opened, packed


class ScannedTable:
    """A table on disk, mapped into memory and read page by page, as `kpod.scan` returns it.

    `KPOD.fit`, `predict`, `kpod.choose_k` and `kpod.report` take it as they take an array. A scratch file
    behind it is removed by `close`, at the end of a `with` block, or with the last reference.

    Attributes
    ----------
    shape : (n_samples, n_features)
    dtype : float32 or float64
    columns : list of str, or None where the files have no names
    scaler_ : ObservedScaler or None
        What the columns were standardised by; see `pipeline`.
    files : list of str
        Where the rows come from, in their order.
    values : ndarray or csr_array
        The rows: mapped, read-only, NaN in the gaps.
    notes : Notes
        What to know about how they were read: parts without rows, columns left out.
    """

    def __init__(
        self,
        values: Any,
        columns: Sequence[str] | None,
        files: Sequence[str],
        scaler: Any = None,
        release: Callable[[], None] | None = None,
        check: Callable[[], None] | None = None,
    ) -> None:
        self.values = values
        self.columns = None if columns is None else [str(name) for name in columns]
        self.files = list(files)
        self.scaler_ = scaler
        self.notes = Notes()
        self.measured: Any = None  # as a table of the engine, by the last pass over all rows
        self._check = check
        self._release = None if release is None else weakref.finalize(self, release)

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape

    @property
    def dtype(self) -> Any:
        return self.values.dtype

    @property
    def ndim(self) -> int:
        return 2

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if sparse.issparse(self.values):
            raise TypeError("A sparse table is not an array; its entries are in values.")
        return np.array(self.values, dtype, copy=copy)

    def __repr__(self) -> str:
        where = self.files[0] if len(self.files) == 1 else f"{len(self.files)} files"
        kind = "sparse " if sparse.issparse(self.values) else ""
        scaled = "" if self.scaler_ is None else ", standardised"
        return f"<{kind}table of {self.shape[0]:,} x {self.shape[1]:,} {self.dtype} in {where}{scaled}>"

    def rows(self, start: int, stop: int) -> ScannedTable:
        """Some of the rows, for as long as the whole is there."""
        return ScannedTable(
            self.values[start:stop], self.columns, self.files, self.scaler_, check=self._check
        )

    def pipeline(self, model: Any) -> Any:
        """A fitted model with the scaling before it: takes rows as the files have them.

        Parameters
        ----------
        model : KPOD
            Fitted on this table.

        Returns
        -------
        Pipeline
            For `predict` on other tables, `kpod.report` and `kpod.save`.
        """
        from sklearn.pipeline import make_pipeline

        if self.scaler_ is None:
            return make_pipeline(model)
        last = copy.copy(model)
        vars(last).pop("feature_names_in_", None)  # which the scaler checks, and does not hand on
        return make_pipeline(self.scaler_, last)

    def close(self) -> None:
        """Remove the scratch file. Rows that are in use stay readable until they are let go."""
        if self._release is not None:
            self._release()

    def leave_with_rows(self) -> None:
        """Keep the scratch file for as long as the rows are in use, not the table."""
        found = None if self._release is None else self._release.detach()
        if found is not None:
            self._release = weakref.finalize(self.values, found[1])

    def __enter__(self) -> ScannedTable:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        values = self.values
        parts = (values.data, values.indices, values.indptr) if sparse.issparse(values) else (values,)
        left = dict.fromkeys(("_release", "_check", "measured"))
        return {**self.__dict__, **left, "values": tuple(map(packed, parts)), "_shape": self.shape}

    def __setstate__(self, state: dict[str, Any]) -> None:
        from kpod._engine.blocks import csr_of

        shape, parts = state.pop("_shape"), tuple(map(opened, state.pop("values")))
        self.__dict__.update(state, values=csr_of(*parts, shape) if len(parts) == 3 else parts[0])

    def header(self) -> Any:
        """A table without rows that has the names of the columns; None where there are none."""
        if self.columns is None:
            return None
        import pyarrow as pa

        return pa.table({name: pa.array([], pa.float64()) for name in self.columns})
