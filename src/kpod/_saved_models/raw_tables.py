"""Models as they take raw tables: with a TablePreparer in front.

Models of before there was one, and those that were fitted on plain numbers in Python, have a scaler or
nothing there, and the names and kinds of their columns beside them. Their preparer takes the columns by name
and leaves the numbers as they are; the scaler stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kpod._columns.missing_codes import from_options
from kpod._columns.preparing.encoding import PLAIN, Encoding
from kpod._columns.preparing.preparer import TablePreparer

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from kpod._saved_models.model_file_format import Model


def for_raw_tables(model: Model) -> Pipeline:
    """The pipeline of a model, with a preparer in front."""
    from sklearn.pipeline import Pipeline

    if isinstance(model.pipeline[0], TablePreparer):
        return model.pipeline
    return Pipeline([("prepare", preparer_of(model)), *model.pipeline.steps])


def preparer_of(model: Model) -> TablePreparer:
    """A fitted preparer that takes the columns of a model by name, and nothing else."""
    p = len(model.columns)
    encoding = Encoding.plain(model.columns, np.zeros(p), np.ones(p))
    preparer = TablePreparer(
        columns=list(model.columns), scale="none", missing_values=from_options(model.missing)
    )
    preparer.__dict__.update(
        {f"{name}_": getattr(encoding, name) for name in PLAIN if name not in ("names", "kinds")},
        columns_=list(model.columns),
        kinds_=list(model.kinds) or ["any"] * p,
        feature_names_in_=np.asarray(model.columns, dtype=object),
        n_features_in_=p,
        decimal_=None,
        _frame="pyarrow",
    )
    return preparer
