"""Store the results of a fit in an estimator: all at once, and none if the fit fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from kpod._common.warnings import warn
from kpod._engine.objective import GapObjective, Objective
from kpod._engine.solvers.interface import Solution
from kpod._engine.solvers.nearest import sizes_of
from kpod._engine.table import Table
from kpod._estimators.choices import Decided


def store_fitted(estimator: Any, attributes: Mapping[str, Any]) -> None:
    """Give an estimator the attributes of a fit that has succeeded, instead of those of any fit before."""
    kept = {
        name: value
        for name, value in vars(estimator).items()
        if name.startswith("_") or not name.endswith("_")
    }
    estimator.__dict__ = {**kept, **attributes}  # at once, so that nothing can come between


def column_names(estimator: Any) -> dict[str, Any]:
    """The attribute with the names of the columns, of an estimator that has seen any."""
    return {name: value for name, value in vars(estimator).items() if name == "feature_names_in_"}


def warn_of(solution: Solution, table: Table, max_iter: int) -> None:
    """Warn if a fit did not converge, or found fewer clusters than requested."""
    if not solution.converged:
        warn(
            f"Not converged after {max_iter} iterations; the result is usable, and increasing "
            "max_iter or tol may help.",
            ConvergenceWarning,
        )
    k = len(solution.centers)
    found = sizes_of(solution.labels, table, k) > 0 if len(solution.labels) else solution.counts.any(axis=1)
    n_distinct = int(found.sum())
    if n_distinct < k:
        warn(
            f"Number of distinct clusters ({n_distinct}) found smaller than n_clusters "
            f"({k}). Possibly due to duplicate points in X.",
            ConvergenceWarning,
        )


def fitted_attributes(solution: Solution, decided: Decided, table: Table) -> dict[str, Any]:
    """What a fit leaves behind, in the table's own units."""
    labels, scale, gaps = solution.labels, table.units.scale, solution.gaps
    objective = (Objective if gaps is None else GapObjective)(table, len(solution.centers))
    trace, ends = (objective.in_own_units(np.array(values)) for values in (solution.trace, solution.starts))
    fitted: dict[str, Any] = {}
    if gaps is None and len(labels):
        labels[table.observed == 0] = -1
    if gaps is not None:
        variance = gaps.variance / scale / scale
        if variance < np.finfo(np.float64).tiny:
            raise ValueError(
                "missingness='informative' compares gaps with the variance of the entries of X, which is "
                "too small to compute with. Use smaller units: multiply X, by 1e100 for instance."
            )
        fitted = {
            "missing_rates_": gaps.missing_rates[:, table.groups.starts[table.groups.source]],
            "cluster_shares_": gaps.shares,
            "noise_variance_": variance,
        }
    if decided.choice is not None:
        fitted["choice_"] = decided.choice
    if decided.missingness is not None:
        fitted["missingness_decision_"] = decided.missingness
    return fitted | {
        "algorithm_": decided.plan.algorithm,
        "shrinkage_": decided.plan.shrinkage,
        "missingness_": "informative" if decided.plan.gaps else "ignore",
        "labels_": labels,
        "cluster_centers_": table.units.back(solution.centers).astype(table.dtype),
        "counts_": solution.counts,
        "inertia_": solution.loss / scale / scale,
        "loss_curve_": np.array(solution.losses if gaps else solution.trace) / scale / scale,
        "losses_": ends,
        "objective_": float(trace[-1]),
        "objective_curve_": trace,
        "n_iter_": solution.n_iter,
        "converged_": solution.converged,
        "column_means_": table.column_means,
        "column_groups_": table.groups.source,
        "n_features_in_": table.n_columns,
        "_n_features_out": len(solution.centers),
        "_shift": table.units.shift,
        "_scale": scale,
    }
