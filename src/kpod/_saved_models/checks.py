"""Checks across the attributes of a model in a file, beyond those of each attribute."""

from __future__ import annotations

from typing import Any

import numpy as np

FRAMES = ("pandas", "polars", "pyarrow", "array")


KINDS = ("number", "boolean", "date", "category", "ordered")


def check_kpod(kpod: Any) -> None:
    if kpod.n_clusters not in ("auto", kpod._n_features_out):
        raise ValueError("invalid n_clusters")
    if np.isnan(kpod.column_means_).all():
        raise ValueError("nothing observed in any column")
    if not kpod._groups().is_valid:
        raise ValueError("column_groups_ are not numbers from 0 in order")
    first = "missing_rates_" if hasattr(kpod, "missing_rates_") else "mixture_centers_"
    names = (first, "cluster_shares_", "noise_variance_")
    there = [name for name in names if hasattr(kpod, name)]
    if len(there) < 3 and (there or kpod.probability):
        raise ValueError(f"one of {', '.join(names)} is missing")
    if there and not np.isclose(kpod.cluster_shares_.sum(), 1):
        raise ValueError("cluster_shares_ do not add up to 1")


def check_mixture(mixture: Any) -> None:
    from kpod._estimators.mixture.parameters import check_mixture_parameters
    from kpod._mixture.covariance_shape import SHAPES

    check_mixture_parameters(mixture)
    shape, k = mixture._shape(), mixture.n_clusters_
    if mixture.n_components != k:
        raise ValueError("invalid n_components")
    if shape.covariance_type not in SHAPES or shape.q != mixture.loadings_.shape[2]:
        raise ValueError("the shape of the clusters and their loadings do not match")
    if not np.isclose(mixture.weights_.sum(), 1):
        raise ValueError("weights_ do not add up to 1")
    live = ~np.isnan(mixture.column_means_)
    if not live.any():
        raise ValueError("nothing observed in any column")
    n_matrices = 0 if mixture._whole is None else len(mixture._whole)
    if n_matrices != (0 if not shape.whole else k if shape.own_variances else 1):
        raise ValueError("the shape of the clusters and their covariances do not match")
    if n_matrices:
        check_covariances(mixture._whole[:, live][:, :, live])
    prices = mixture._prices
    if prices is not None and (len(prices) != 3 or not (prices[1:, live] > 0).all()):
        raise ValueError("invalid ranges of the columns")
    bics = mixture.shape_bics_
    if not isinstance(bics, dict) or any(type(pair) is not str for pair in bics):
        raise ValueError("invalid shape_bics_")


def check_covariances(matrices: Any) -> None:
    symmetric = np.allclose(matrices, matrices.transpose(0, 2, 1), rtol=1e-6, atol=0)
    if not symmetric or np.linalg.eigvalsh(matrices).min() <= 0:
        raise ValueError("covariances that are none")


def check_mini_batch(model: Any) -> None:
    """What the batches have left has to be of the same clusters and columns."""
    if model.n_clusters != model._n_features_out or np.isnan(model.column_means_).all():
        raise ValueError("invalid n_clusters")
    shape, running, order = model.cluster_centers_.shape, model._running, model._order
    if type(running).__name__ != "Running" or type(order).__name__ != "Order" or model._words.shape != (6,):
        raise ValueError("the state of the batches is missing")
    moments = (order.rows, order.group)
    if any(type(one).__name__ != "Moments" for one in moments):
        raise ValueError("the state of the batches is missing")
    lengths = {len(one.n) for one in moments} | {len(order.between)}
    if running.centers.shape != shape or lengths != {shape[1]}:
        raise ValueError("the state of the batches does not match the centers")


def check_preparer(preparer: Any) -> None:
    preparer._check_parameters()
    columns, kinds, levels = preparer.columns_, preparer.kinds_, preparer.levels_
    if not all(isinstance(name, str) for name in columns) or len(set(columns)) < len(columns):
        raise ValueError("invalid names of columns")
    if len(kinds) != len(columns) or len(levels) != len(columns) or not set(kinds) <= set(KINDS):
        raise ValueError("invalid kinds of columns")
    if not all(isinstance(level, str) for of_column in levels for level in of_column):
        raise ValueError("levels are not text")
    if any(len(set(of_column)) < len(of_column) for of_column in levels):
        raise ValueError("levels appear twice")
    if preparer._n_features_out != sum(preparer._encoding.widths):
        raise ValueError("levels and columns do not match")
    if not (preparer.low_ <= preparer.high_).all() or preparer._frame not in FRAMES:
        raise ValueError("invalid settings of the preparer")


def check_roles(table: Any) -> None:
    if not all(type(row).__name__ == "ColumnRole" for row in table.rows):
        raise ValueError("roles that are none")


def check_role(role: Any) -> None:
    texts = (role.column, role.role, role.why)
    if not all(isinstance(text, str) for text in texts) or not isinstance(role.used, bool):
        raise ValueError("invalid role of a column")


def check_choice(choice: Any) -> None:
    if {np.shape(column) for column in choice.table_.values()} != {np.shape(choice.table_["k"])}:
        raise ValueError("invalid numbers of clusters tried")
