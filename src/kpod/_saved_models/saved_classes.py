"""The classes that a model file may hold, and of each what is kept.

A new class takes one entry in `CLASSES`. What is not listed there is neither written nor read, and what is
listed is checked before an object is made of it: compiled code relies on the shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from inspect import Parameter, signature
from typing import Any

import numpy as np

from kpod._common.errors import printable
from kpod._saved_models.checks import (
    check_choice,
    check_kpod,
    check_mini_batch,
    check_mixture,
    check_preparer,
    check_role,
    check_roles,
)

MOST_THREADS = 1024


class ForeignError(Exception):
    """Something that a kpod model never contains."""

    def __init__(self, what: object) -> None:
        super().__init__(printable(str(what)[:100]))


def is_bounded(numbers: Any) -> Any:
    """Whether distances can be computed with numbers of p columns."""
    from kpod._inputs.validation import largest

    return np.abs(numbers) < largest(np.float64, numbers.shape[-1])


RANGES: dict[str, Callable[[Any], Any]] = {
    "bounded": is_bounded,
    "finite": np.isfinite,
    "positive": lambda numbers: np.isfinite(numbers) & (numbers > 0),
    "nonnegative": lambda numbers: np.isfinite(numbers) & (numbers >= 0),
    "or_missing": lambda numbers: ~np.isinf(numbers),
    "lower": lambda numbers: numbers < np.inf,
    "upper": lambda numbers: numbers > -np.inf,
    "inside": lambda numbers: (numbers > 0) & (numbers < 1),
    "share": lambda numbers: (numbers >= 0) & (numbers <= 1),
    "threads": lambda numbers: (numbers >= 1) & (numbers <= MOST_THREADS),
}


FLAGS = ("means", "none", "optional", "scalar")


class Attribute:
    """What an attribute has to be, described in words.

    First the kinds of its dtype, or "any" for any value; then its axes: clusters k, columns p, and other
    names that stand for one length each; and the range of its numbers, one of `RANGES`. "optional": may be
    lacking. "none": may be None. "scalar": may be one number as well. "means": NaN marks the columns without
    observed entries, in which attributes after this one may hold NaN, too.
    """

    def __init__(self, words: str) -> None:
        self.kinds, *rest = words.split()
        self.flags = {word for word in rest if word in FLAGS}
        self.in_range = next((RANGES[word] for word in rest if word in RANGES), None)
        self.axes = [word for word in rest if word not in FLAGS and word not in RANGES]

    def is_kind(self, value: Any) -> bool:
        plain = {bool: "b", int: "i", float: "f", str: "U"}.get(type(value), "nothing")
        kind = value.dtype.kind if isinstance(value, np.ndarray | np.generic) else plain
        return self.kinds == "any" or kind in self.kinds or (value is None and "none" in self.flags)

    def is_shape(self, shape: tuple[int, ...], sizes: dict[str, Any]) -> bool:
        """Whether the lengths are those of the axes; the first attribute with an axis sets its length."""
        expected = [sizes.setdefault(*pair) for pair in zip(self.axes, shape, strict=False)]
        return (expected == list(shape) and len(self.axes) == len(shape)) or (
            "scalar" in self.flags and not shape
        )

    def is_allowed(self, numbers: Any, unobserved: Any) -> Any:
        """Where the numbers are in their range, or in a column without any."""
        inside = np.True_ if self.in_range is None else self.in_range(np.asarray(numbers, np.float64))
        return inside | (unobserved if self.axes[-1:] == ["p"] else False)


ANY = Attribute("any")


@dataclass(frozen=True)
class Entry:
    """A class that may be saved: its module, the attributes stored beside its parameters, and checks.

    A parameter may be described, too: where its value is of another kind, the file has its default.
    """

    module: str
    described: Mapping[str, str]
    check: Callable[[Any], None] | None = None
    not_kept: tuple[str, ...] = ()

    @cached_property
    def attributes(self) -> dict[str, Attribute]:
        return {name: Attribute(words) for name, words in self.described.items()}


CLASSES = {
    "KPOD": Entry(
        "kpod._estimators.kpod",
        {
            "init": "U optional",
            "random_state": "i none optional",
            "n_threads": "i threads none optional",
            "n_features_in_": "i",
            "_n_features_out": "i",
            "column_means_": "f p bounded means",
            "column_groups_": "i p optional",
            "cluster_centers_": "f k p bounded",
            "counts_": "fi k p nonnegative",
            "inertia_": "fi nonnegative",
            "loss_curve_": "f steps nonnegative",
            "losses_": "f starts finite optional",
            "objective_": "fi finite optional",
            "objective_curve_": "f evaluations finite optional",
            "n_iter_": "i",
            "converged_": "b",
            "shrinkage_": "fi nonnegative optional",
            "mixture_centers_": "f k p bounded optional",
            "missing_rates_": "f k p share optional",
            "cluster_shares_": "f k share optional",
            "noise_variance_": "fi positive optional",
            "algorithm_": "U optional",
            "missingness_": "U optional",
            "missingness_decision_": "any optional",
            "choice_": "any optional",
            "_shift": "f p bounded optional",
            "_scale": "fi positive optional",
        },
        check_kpod,
        not_kept=("checkpoint", "labels_"),
    ),
    "GaussianMixture": Entry(
        "kpod._estimators.mixture.gaussian_mixture",
        {
            "random_state": "i none optional",
            "n_threads": "i threads none optional",
            "n_features_in_": "i",
            "column_means_": "f p bounded means",
            "weights_": "f k share",
            "means_": "f k p bounded",
            "loadings_": "f k p factors finite",
            "covariance_type_": "U",
            "n_factors_": "i none",
            "shape_bics_": "any",
            "selected_": "b p",
            "counts_": "f k p nonnegative",
            "lower_bound_": "f finite",
            "lower_bounds_": "f steps finite",
            "n_iter_": "i",
            "converged_": "b",
            "missing_rates_": "f k p share optional",
            "missingness_": "U",
            "missingness_decision_": "any optional",
            "_variances": "f k p positive",
            "_whole": "f matrices p p finite none",
            "_rates": "f k p inside none",
            "_prices": "f quartiles p finite none",
            "_shift": "f p bounded",
            "_scale": "fi positive",
        },
        check_mixture,
        not_kept=("labels_", "outlier_cells_", "n_rows_"),
    ),
    "MiniBatchKPOD": Entry(
        "kpod._estimators.mini_batch",
        {
            "init": "U optional",
            "random_state": "i none optional",
            "n_threads": "i threads none optional",
            "n_features_in_": "i",
            "_n_features_out": "i",
            "column_means_": "f p bounded means",
            "cluster_centers_": "f k p bounded",
            "counts_": "fi k p nonnegative",
            "inertia_": "fi nonnegative",
            "n_iter_": "i",
            "n_steps_": "i",
            "n_buffered_": "i",
            "batch_losses_": "f batches nonnegative",
            "drift_": "f p or_missing",
            "_shift": "f p bounded",
            "_scale": "fi positive",
            "_has_warned": "b",
            "_words": "u words",
            "_running": "any",
            "_order": "any",
        },
        check_mini_batch,
        not_kept=("labels_",),
    ),
    "Running": Entry(
        "kpod._engine.solvers.minibatch",
        {
            "column_means": "f p bounded means",
            "centers": "f k p or_missing",
            "counts": "f k p nonnegative",
            "column_weights": "f p nonnegative",
            "recent": "f k nonnegative",
            "n_rows": "i",
        },
    ),
    "Order": Entry(
        "kpod._engine.solvers.order",
        {"between": "f p nonnegative", "n_groups": "f p nonnegative", "n_rows": "i"},
    ),
    "Moments": Entry(
        "kpod._engine.solvers.order",
        {"n": "f p nonnegative", "mean": "f p finite", "squares": "f p nonnegative"},
    ),
    "StandardScaler": Entry(
        "sklearn.preprocessing",
        {
            "n_features_in_": "i",
            "n_samples_seen_": "fi p nonnegative scalar",
            "mean_": "f p bounded means none",
            "var_": "f p nonnegative none",
            "scale_": "f p positive none",
        },
    ),
    "ObservedScaler": Entry(
        "kpod._estimators.observed_scaler",
        {"n_features_in_": "i", "mean_": "f p bounded means", "scale_": "f p positive"},
    ),
    "TablePreparer": Entry(
        "kpod._columns.preparing.preparer",
        {
            "n_features_in_": "i",
            "_n_features_out": "i",
            "feature_names_in_": "O p optional",
            "_frame": "U",
            "_streamed": "b optional",
            "columns_": "any",
            "kinds_": "any",
            "levels_": "any",
            "roles_": "any",
            "decimal_": "U none",
            "mean_": "f used bounded",
            "scale_": "f used positive",
            "weights_": "f used positive",
            "offset_": "f used or_missing",
            "low_": "f used lower",
            "high_": "f used upper",
            "missing_shares_": "f used share optional",
        },
        check_preparer,
        not_kept=("notes_",),
    ),
    "RoleTable": Entry("kpod._columns.preparing.role_table", {}, check_roles),
    "ColumnRole": Entry("kpod._columns.preparing.role_table", {}, check_role),
    "KChoice": Entry(
        "kpod._model_selection.number_of_clusters",
        {
            "best_k_": "i",
            "clear_": "b",
            "reason_": "U",
            "sentence_": "U",
            "table_": "any",
            "centers_k_": "i",
            "correlated_": "b",
            "n_hidden_": "i",
            "n_rows_": "i",
            "gaps_": "b optional",
            "n_separate_": "i optional",
        },
        check_choice,
        not_kept=("column_errors_", "model_", "shape_", "doubt_"),
    ),
    "MissingnessDecision": Entry(
        "kpod._model_selection.informative_missingness", {"use": "b", "reason": "U"}
    ),
}


def class_of(name: str) -> Any:
    """The class that a file calls by a name."""
    if name not in CLASSES:
        raise ForeignError(name)
    return getattr(import_module(CLASSES[name].module), name)


def is_listed(made: Any) -> bool:
    """Whether a file may hold an object; no subclasses, which it could not name."""
    name = type(made).__name__
    return name in CLASSES and class_of(name) is type(made)


def are_steps(steps: list[Any]) -> bool:
    """Whether there is at most one step that prepares, and one that predicts."""
    return [hasattr(step, "predict") for step in steps] in ([True], [False, True])


def state_of(made: Any) -> tuple[str, dict[str, Any]]:
    """The name of an object's class, and what a file keeps of it."""
    kind = type(made)
    if not is_listed(made):
        raise ForeignError(f"{kind.__module__}.{kind.__qualname__}")
    entry = CLASSES[kind.__name__]
    fitted = {name: getattr(made, name) for name in entry.described if name in vars(made)}
    return kind.__name__, fitted | parameters_of(made, entry)


def parameters_of(made: Any, entry: Entry) -> dict[str, Any]:
    """Parameters as a file keeps them.

    What only a fit needs may be more than a plain value (an array or a function to start from, a generator of
    random numbers); the default takes its place.
    """
    out = {}
    for name, parameter in signature(type(made)).parameters.items():
        value = getattr(made, name)
        value = value.item() if isinstance(value, np.generic) else value
        if name in entry.not_kept or not entry.attributes.get(name, ANY).is_kind(value):
            value = None if parameter.default is Parameter.empty else parameter.default
        out[name] = value
    return out


def make(name: str, state: Mapping[str, Any]) -> Any:
    """An object of a class that is listed, from attributes that are; absent ones have defaults."""
    kind = class_of(name)
    entry, parameters = CLASSES[name], signature(kind).parameters
    unknown = [key for key in state if key not in parameters and key not in entry.described]
    if unknown:
        raise ForeignError(f"{name}.{unknown[0]}")
    check_attributes(entry.attributes, state)
    made = kind(**{key: value for key, value in state.items() if key in parameters})
    vars(made).update(state)
    if entry.check:
        entry.check(made)
    return made


def check_attributes(attributes: Mapping[str, Attribute], state: Mapping[str, Any]) -> None:
    about = {"p": "n_features_in_", "k": "_n_features_out"}
    sizes = {axis: state[name] for axis, name in about.items() if name in state}
    unobserved: Any = False
    for name, attribute in attributes.items():
        if name not in state and "optional" not in attribute.flags:
            raise ValueError(f"{name} is missing")
        value: Any = state.get(name)
        if name not in state or attribute.kinds == "any" or (value is None and "none" in attribute.flags):
            continue
        if not attribute.is_kind(value) or not attribute.is_shape(np.shape(value), sizes):
            raise ValueError(f"{name} has the wrong shape or type")
        if "means" in attribute.flags:
            unobserved = np.isnan(value)
        allowed = attribute.is_allowed(value, unobserved)
        if not allowed.all():
            raise ValueError(f"{name} holds {np.asarray(value)[~allowed][0]:g}")
