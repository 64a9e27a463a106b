"""Models as they take raw tables: with a TablePreparer in front.

Models of before there was one, and those that were fitted on plain numbers in Python, have a scaler or
nothing there, and the names and kinds of their columns beside them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kpod._columns.encoding import PLAIN, Encoding
from kpod._columns.missing_codes import from_options
from kpod._columns.preparer import TablePreparer

if TYPE_CHECKING:
    from kpod._models.archive import Model


def for_raw_tables(model: Model, *, columns_only: bool = False) -> Any:
    """The pipeline with a preparer in front; one that takes ratings stays as it is unless it must not."""
    from sklearn.pipeline import Pipeline

    *before, last = model.pipeline.steps
    first = before[0][1] if before else None
    if isinstance(first, TablePreparer):
        return model.pipeline
    if not columns_only and (first is None or hasattr(first, "row_means")):
        return model.pipeline
    p = len(model.columns)
    mean = np.zeros(p) if first is None else np.nan_to_num(first.mean_)
    scale = np.ones(p) if first is None else first.scale_
    encoding = Encoding.plain(model.columns, mean, scale)
    preparer = TablePreparer(
        columns=list(model.columns),
        scale="none" if first is None else "standard",
        missing_values=from_options(model.missing),
    )
    preparer.columns_ = list(model.columns)
    preparer.kinds_ = list(model.kinds) or ["any"] * p
    preparer.__dict__.update(
        {f"{name}_": getattr(encoding, name) for name in PLAIN if name not in ("names", "kinds")}
    )
    preparer.feature_names_in_ = np.asarray(model.columns, dtype=object)
    preparer.n_features_in_, preparer._frame, preparer.decimal_ = p, "pyarrow", None
    return Pipeline([("prepare", preparer), last])
