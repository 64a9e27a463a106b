"""What a model file may hold: classes, attributes, shapes and types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    pass
KINDS = ("number", "boolean", "date", "category")
MOST_THREADS = 1024
DTYPES = [np.dtype(kind) for kind in (np.float64, np.float32, np.int64, np.int32, np.bool_)]
KPOD_CLASS = "kpod._estimators.kpod.KPOD"
SCALER_CLASSES = ("sklearn.preprocessing._data.StandardScaler", "kpod._estimators.scaler.ObservedScaler")
PIPELINE_CLASS = "sklearn.pipeline.Pipeline"


# Of each class, what is fitted: its shape, in clusters k and columns p, and the kinds of its dtype.
ATTRIBUTES: dict[str, dict[str, tuple[str, str]]] = {
    KPOD_CLASS: {
        "cluster_centers_": ("k p", "f"),
        "counts_": ("k p", "fi"),
        "column_means_": ("p", "f"),
        "column_groups_": ("p", "i"),
        "inertia_": ("", "fi"),
        "loss_curve_": ("iterations", "f"),
        "losses_": ("iterations", "f"),
        "mixture_centers_": ("k p", "f"),
        "cluster_shares_": ("k", "f"),
        "noise_variance_": ("", "fi"),
        "missing_rates_": ("k p", "f"),
        "objective_": ("", "fi"),
        "objective_curve_": ("iterations", "f"),
        "shrinkage_": ("", "fi"),
        "n_iter_": ("", "i"),
        "converged_": ("", "b"),
        "n_features_in_": ("", "i"),
        "_n_features_out": ("", "i"),
        "_shift": ("p", "f"),
        "_scale": ("", "fi"),
    },
    SCALER_CLASSES[0]: {
        "mean_": ("p", "f"),
        "var_": ("p", "f"),
        "scale_": ("p", "f"),
        "n_samples_seen_": ("p or one", "fi"),
        "n_features_in_": ("", "i"),
        "_sklearn_version": ("", "U"),
    },
    SCALER_CLASSES[1]: {"mean_": ("p", "f"), "scale_": ("p", "f"), "n_features_in_": ("", "i")},
}
NOT_KEPT = {"algorithm_", "checkpoint", "choice_", "missingness_decision_", "labels_", "missingness_"}
"""Not needed to assign other rows; the choice of a number has a place of its own."""
MAY_LACK = {
    "checkpoint",
    "column_groups_",
    "probability",
    "missingness",
    "missing_rates_",
    "objective_",
    "objective_curve_",
    "_shift",
    "_scale",
    "_sklearn_version",
    "losses_",
    "mixture_centers_",
    "cluster_shares_",
    "noise_variance_",
    "shrinkage_",
}
"""What a model of 0.1.0 does not have: parameters since then keep their defaults."""
MAY_BE_LARGE = {
    "_scale",
    "inertia_",
    "loss_curve_",
    "losses_",
    "noise_variance_",
    "objective_",
    "objective_curve_",
    "var_",
}
POSITIVE = {"scale_", "_scale", "noise_variance_"}
NOT_NEGATIVE = {
    "cluster_shares_",
    "counts_",
    "inertia_",
    "loss_curve_",
    "missing_rates_",
    "n_samples_seen_",
    "shrinkage_",
    "var_",
}
BY_COLUMN = {
    name for known in ATTRIBUTES.values() for name, (shape, _) in known.items() if "p" in shape.split()
}
MIXTURE = ("mixture_centers_", "cluster_shares_", "noise_variance_")
OF_GAPS = ("missing_rates_", "cluster_shares_", "noise_variance_")
