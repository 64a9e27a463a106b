"""kpod.save and kpod.load: models in files, as the command line keeps them."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from inspect import signature
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted


def save(model: Any, path: str | os.PathLike[str], *, column_names: Sequence[str] | None = None) -> None:
    """Write a fitted model to a file, for `kpod.load` and `kpod predict`.

    Parameters
    ----------
    model : KPOD or Pipeline
        A fitted KPOD, alone or after one StandardScaler, ObservedScaler or TablePreparer.
    path : path-like
        The file to write; it appears whole or not at all.
    column_names : sequence of str, default=None
        Names of the columns, where the model was fitted on an array; `kpod predict` matches
        columns by name.

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
    from kpod._columns.preparer import TablePreparer
    from kpod._estimators.kpod import KPOD
    from kpod._estimators.scaler import ObservedScaler
    from kpod._files.atomic import check_path
    from kpod._models import archive

    check_path(path)
    steps = model.steps if isinstance(model, Pipeline) else [("kpod", model)]
    *before, kpod = [step for _, step in steps]
    # No subclasses, which a file could not be trusted to name.
    scalers = all(type(step) in (TablePreparer, ObservedScaler, StandardScaler) for step in before)
    if type(kpod) is not KPOD or len(before) > 1 or not scalers:
        raise TypeError(
            "Only a KPOD can be saved, alone or after one StandardScaler, ObservedScaler or TablePreparer; "
            f"got {' '.join(repr(model).split())}. Use joblib.dump for other estimators, and open such files "
            "only where you trust who wrote them."
        )
    check_is_fitted(kpod)
    first = steps[0][1]
    n_columns = int(first.n_features_in_)
    names = list(column_names) if column_names is not None else list(getattr(first, "feature_names_in_", ()))
    named = bool(names)
    names = [str(name) for name in names] or [f"x{j}" for j in range(n_columns)]
    if len(names) != n_columns or len(set(names)) < n_columns:
        raise ValueError(f"column_names must be {n_columns} different names, got {len(set(names))}.")
    pipeline = Pipeline([(name, without_names(step)) for name, step in steps])
    vars(pipeline[-1]).update(plain_parameters(kpod))
    archive.save(archive.Model(pipeline, names, named=named), path)


def without_names(step: Any) -> Any:
    """A copy without the names of its columns, which a file keeps once."""
    from kpod._columns.preparer import TablePreparer

    out = copy.copy(step)
    if not isinstance(out, TablePreparer) and hasattr(out, "feature_names_in_"):
        del out.feature_names_in_
    return out


def plain_parameters(kpod: Any) -> dict[str, Any]:
    """Parameters as a file keeps them: numbers, words and None.

    What only a fit needs may be more than that (an array or a function to start from, a generator
    of random numbers); the default takes its place.
    """
    out: dict[str, Any] = {}
    for name, parameter in signature(type(kpod)).parameters.items():
        value = getattr(kpod, name)
        if isinstance(value, bool | np.bool_):
            value = bool(value)
        elif isinstance(value, Integral):
            value = int(value)
        elif isinstance(value, Real):
            value = float(value)
        elif value is not None and not isinstance(value, str):
            value = parameter.default
        out[name] = value
    if kpod.n_clusters != "auto":  # it may have been set for the next fit
        out["n_clusters"] = kpod.n_clusters_
    return out


def load(path: str | os.PathLike[str]) -> Any:
    """The model in a file that `kpod.save` or `kpod fit --model` wrote.

    Files of any origin are safe to open: nothing but a KPOD and the step before it is made from
    one. The columns keep their names: a data frame with other columns, or in another order, is an
    error.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    KPOD or Pipeline
        As it was saved, without `labels_` and `set_output`; an `init` or `random_state` other than a word
        or a number, and `checkpoint`, are at their defaults.

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
    from kpod._models import archive

    check_path(path)
    opened = archive.load(path)
    first = opened.pipeline.steps[0][1]
    if opened.named:
        first.feature_names_in_ = np.asarray(opened.columns, dtype=object)
    return opened.pipeline if len(opened.pipeline.steps) > 1 else first
