"""The interface between findings and fitted models, for k-means and mixtures.

Both have labels, centers and counts. How near a row is to another cluster is a matter of distances in the one
and of probabilities in the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeGuard

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from kpod._common.typing import Floats, Labels, Positions
from kpod._estimators.mixture.model import MixtureModel
from kpod._estimators.nearest_center import NearestCenter
from kpod._findings.fitted_clusters.entries import Entries
from kpod._inputs import collections, validation
from kpod._inputs.scanned import ScannedTable
from kpod._saved_models.save_load import without_names

ROWS_COMPARED = 2_000_000
"""Entries of a scanned table compared with centers at once."""
NO_TABLE = "X is missing: give the table that the model was fitted on, or an Analysis instead of a model."

Model = NearestCenter | MixtureModel


def is_mixture(model: Model) -> TypeGuard[MixtureModel]:
    return isinstance(model, MixtureModel)


def split(estimator: Any) -> tuple[Any, Model]:
    """What comes before the model in a pipeline, if anything, and the model."""
    if isinstance(estimator, Pipeline):
        before, last = (estimator[:-1] if len(estimator) > 1 else None), estimator[-1]
    else:
        before, last = None, estimator
    if not isinstance(last, Model):
        raise TypeError(
            "model must be a fitted KPOD or GaussianMixture, or a pipeline that ends in one, got "
            f"{type(last).__name__}."
        )
    return before, last


def model_and_table(model: Any, X: Any) -> tuple[Model, Any]:
    """The model at the end of a pipeline or in an analysis, and the table as that sees it."""
    clustering = getattr(model, "_clustering", None)
    if X is None and clustering is not None:
        return clustering.kpod, clustering.seen
    if X is None:
        raise TypeError(NO_TABLE)
    validation.refuse_dask(X)  # before scikit-learn's transformers load it
    before, last = split(model)
    check_is_fitted(last)
    return last, X if before is None else before.transform(X)


def labels_of(model: Model, values: Entries, seen: Any) -> tuple[Labels, bool]:
    """The labels of the fit and True where this is the table of the fit, else those of `predict`.

    It is that table if it has the counts behind the centers (row weights change those) and if `predict`
    gives its rows the labels of the fit. Those of "mm" are its own, so there the means of the columns
    decide. A model from a file has no labels.
    """
    predicted = np.asarray(model.predict(seen))
    kept = getattr(model, "labels_", ())
    labels = np.asarray(() if collections.is_collection(kept) else kept)
    if len(labels) != len(predicted) or not has_counts(model, values, labels):
        return predicted, False
    fitted = True
    if is_mixture(model) or getattr(model, "algorithm", None) == "mm":
        fitted = np.allclose(values.moments[0], model.column_means_, rtol=1e-6, equal_nan=True)
    if getattr(model, "algorithm", None) != "mm":
        fitted = fitted and np.array_equal(predicted, labels)
    return (labels, True) if fitted else (predicted, False)


def has_counts(model: Model, values: Entries, labels: Labels) -> bool:
    """Whether a table has the counts behind the centers; a row counts in several clusters of a mixture."""
    if is_mixture(model):
        return np.allclose(values.by_column, model.counts_.sum(axis=0))
    return np.array_equal(values.by_group(labels, model.n_clusters_), model.counts_)


def has_probabilities(model: Model) -> bool:
    return is_mixture(model) or (hasattr(model, "predict_proba") and hasattr(model, "cluster_shares_"))


def margins(model: Model, rows: Any, labels: Labels) -> Floats:
    """Of each row, by how much its cluster is nearer, or more probable, than the next; NaN for no cluster.

    The silhouette with centers in place of clusters, (b - a) / max(a, b), a the partial distance to the
    row's own center and b that to the nearest other one; of a mixture, 1 - b / a with the probabilities.
    """
    out, nameless = np.empty(len(labels)), without_names(model)
    for start, seen in pieces_of(rows):
        named = model if hasattr(seen, "columns") else nameless
        found = named.predict_proba(seen) if is_mixture(model) else named.transform(seen)
        found = np.array(found, dtype=np.float64)
        here = np.arange(len(found))
        of_rows = labels[start : start + len(found)]
        own = found[here, of_rows].copy()
        found[here, of_rows] = 0.0 if is_mixture(model) else np.inf
        near, far = (found.max(axis=1), own) if is_mixture(model) else (own, found.min(axis=1))
        with np.errstate(divide="ignore", invalid="ignore"):
            largest = np.maximum(near, far)
            margin = np.where(largest > 0, (far - near) / largest, 0.0)
        margin[of_rows < 0] = np.nan
        out[start : start + len(margin)] = margin
    return out


def relative_spreads(model: Model) -> Floats | None:
    """Standard deviations of each cluster over those that clusters have on average; None if all are alike."""
    if not is_mixture(model) or not model._shape().own_variances:
        return None
    deviations = model._standard_deviations()
    return np.asarray(deviations / np.sqrt(model.weights_ @ deviations**2))


def pieces_of(table: Any) -> Iterator[tuple[int, Any]]:
    """Some rows of a scanned table after the other; any other table whole."""
    step = max(1, ROWS_COMPARED // table.shape[1]) if isinstance(table, ScannedTable) else 0
    if not step or sparse.issparse(table.values):
        yield 0, table
        return
    for start in range(0, len(table), step):
        yield start, table.rows(start, start + step)


def outlier_cells(model: Model, seen: Any, *, is_fitted_table: bool) -> Positions:
    """Rows and columns of the entries of a table that no cluster of a mixture expects (m, 2)."""
    if not is_mixture(model) or model._prices is None:
        return np.empty((0, 2), np.intp)
    if is_fitted_table and hasattr(model, "outlier_cells_"):
        return np.asarray(model.outlier_cells_)
    with model._fitted_table(seen, here=True) as (table, _):
        return model._outlier_cells(table)
