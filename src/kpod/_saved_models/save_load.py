"""kpod.save and kpod.load: models in files, as the command line keeps them."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from kpod._common.sentences.formatting import either


def save(
    model: Any,
    path: str | os.PathLike[str],
    *,
    column_names: Sequence[str] | None = None,
    missing_values: Any = None,
) -> None:
    """Write a fitted model to a file, for `kpod.load` and `kpod predict`.

    Parameters
    ----------
    model : KPOD, MiniBatchKPOD, GaussianMixture or Pipeline
        A fitted model, alone or after one StandardScaler, ObservedScaler or TablePreparer. A MiniBatchKPOD
        resumes after `kpod.load` where it stopped.
    path : path-like
        The file to write; it appears whole or not at all.
    column_names : sequence of str, default=None
        Names of the columns, if the model was fitted on an array; `kpod predict` matches
        columns by name.
    missing_values : scalar, sequence or mapping, default=None
        Missing codes in tables for `kpod predict`; a `TablePreparer` has its own.

    Examples
    --------
    >>> import kpod
    >>> from kpod.datasets import load_incomplete_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> wine = load_incomplete_wine()
    >>> model = make_pipeline(StandardScaler(), kpod.KPOD(3, random_state=0)).fit(wine.data)
    >>> kpod.save(model, "wine.kpod")
    >>> bool((kpod.load("wine.kpod").predict(wine.data) == model.predict(wine.data)).all())
    True
    """
    from kpod._columns.missing_codes import as_options, both
    from kpod._files.atomic import check_path
    from kpod._saved_models import model_file_format

    check_path(path)
    steps = model.steps if isinstance(model, Pipeline) else [("kpod", model)]
    check_steps(model, [step for _, step in steps])
    first, last = steps[0][1], copy.copy(steps[-1][1])
    check_is_fitted(last)
    for name in ("n_clusters", "n_components"):  # may have been set for the next fit
        if getattr(last, name, "auto") != "auto":
            setattr(last, name, last.n_clusters_)
    n_columns = int(first.n_features_in_)
    names = list(column_names) if column_names is not None else list(getattr(first, "feature_names_in_", ()))
    named = bool(names)
    names = [str(name) for name in names] or [f"x{j}" for j in range(n_columns)]
    if len(names) != n_columns or len(set(names)) < n_columns:
        raise ValueError(f"column_names must be {n_columns} different names, got {len(set(names))}.")
    pipeline = Pipeline([*steps[:-1], (steps[-1][0], last)])
    codes = as_options(both(missing_values, None))
    model_file_format.save(model_file_format.Model(pipeline, names, codes, named=named), path)


def check_steps(model: Any, steps: list[Any]) -> None:
    """Refuse what a file could not hold."""
    from kpod._saved_models import saved_classes

    if all(saved_classes.is_listed(step) for step in steps) and saved_classes.are_steps(steps):
        return
    kinds = {name: saved_classes.class_of(name) for name in saved_classes.CLASSES}
    last = [name for name, kind in kinds.items() if hasattr(kind, "predict")]
    before = [name for name, kind in kinds.items() if hasattr(kind, "transform") and name not in last]
    raise TypeError(
        f"Only a {either(last)} can be saved, alone or after one {either(before)}; "
        f"got {' '.join(repr(model).split())}. Use joblib.dump for other estimators, and open such files "
        "only where you trust who wrote them."
    )


def without_names(step: Any) -> Any:
    """A copy without the names of its columns, which a file keeps once."""
    from kpod._columns.preparing.preparer import TablePreparer

    out = copy.copy(step)
    if not isinstance(out, TablePreparer) and hasattr(out, "feature_names_in_"):
        del out.feature_names_in_
    return out


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model from a file that `kpod.save` or `kpod fit --model` wrote.

    Files of any origin are safe to open: only a kpod model and the step before it are
    created from one. The columns keep their names: a data frame with other columns, or in another order, is
    an error.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    KPOD, MiniBatchKPOD, GaussianMixture or Pipeline
        The model as it was saved, without its results for the rows of the fit (`labels_`, `outlier_cells_`,
        `n_rows_`) and `set_output`; an `init` or `random_state` other than a string or a number, and
        `checkpoint`, have their defaults.

    Examples
    --------
    >>> import tempfile, pathlib, kpod
    >>> from kpod.datasets import load_incomplete_wine
    >>> X = load_incomplete_wine().data
    >>> model = kpod.KPOD(3, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kpod.save(model, pathlib.Path(folder) / "wine.kpod")
    ...     opened = kpod.load(pathlib.Path(folder) / "wine.kpod")
    >>> bool((opened.predict(X) == model.labels_).all())
    True
    """
    from kpod._files.atomic import check_path
    from kpod._saved_models import model_file_format

    check_path(path)
    opened = model_file_format.load(path)
    first = opened.pipeline.steps[0][1]
    if opened.named:
        first.feature_names_in_ = np.asarray(opened.columns, dtype=object)
    return opened.pipeline if len(opened.pipeline.steps) > 1 else first
