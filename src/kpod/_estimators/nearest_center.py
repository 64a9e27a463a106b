"""What a model with centers does with new rows: labels, distances, probabilities, imputed entries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import softmax
from sklearn.base import (
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from kpod._common.column_groups import ColumnGroups
from kpod._common.typing import AnyFloats, Floats, Labels
from kpod._engine import step
from kpod._engine.blocks import Block, DenseBlock, Units
from kpod._engine.executors import Executor
from kpod._engine.fit import Fit, FitPlan, Lines
from kpod._engine.objective import GapModel, panel_of
from kpod._engine.sizes import FEW_ENTRIES
from kpod._engine.solvers.nearest import labels_of_block, loss_of, nearest, nearest_labels
from kpod._engine.table import Table, in_precision
from kpod._estimators import in_partitions
from kpod._estimators.documentation import DocumentedMixin
from kpod._estimators.table_model import TableModel
from kpod._inputs import collections, containers, frames, lazy, validation
from kpod._kernels.panel import Panel
from kpod._mixture.confidence import SoftClustering

# What `probability` adds to a fitted model.
MIXTURE = ("mixture_centers_", "cluster_shares_", "noise_variance_")


def has_probability(model: NearestCenter) -> bool:
    """Whether `predict_proba` is there; scikit-learn gives the reason why not beside its own words."""
    if not model.probability:
        raise AttributeError("predict_proba needs probability=True: set it, and fit again.")
    return True


@in_partitions.left_in_partitions
class NearestCenter(
    DocumentedMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, TableModel
):
    """A fitted table of centers: each row belongs to the nearest by its observed columns."""

    # Callback for lines on progress; set on an instance that shows them.
    _progress_line: Callable[[str], None] | None = None
    probability = False

    n_clusters: int | str
    init: Any
    verbose: int
    cluster_centers_: AnyFloats
    counts_: Floats
    inertia_: float
    labels_: Labels
    n_iter_: int
    feature_names_in_: NDArray[np.object_]
    cluster_shares_: Floats
    mixture_centers_: Floats
    missing_rates_: Floats
    noise_variance_: float

    @property
    def n_clusters_(self) -> int:
        """The number of clusters of the fit."""
        return len(self.cluster_centers_)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Labels:
        """Cluster the rows of X and return their labels."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> AnyFloats:
        """Cluster the rows of X and return their distances to the centers, see `transform`."""
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def predict(self, X: Any) -> Labels:
        """The nearest center of each row by its observed columns; -1 where there are none.

        Returns
        -------
        ndarray of shape (n_samples,)
            For a Dask array or DataFrame, a lazy Dask collection; for a Spark DataFrame, that DataFrame with
            a column `cluster`, also lazy.
        """
        check_is_fitted(self)
        if collections.is_collection(X):
            return in_partitions.applied(self, X, "predict", None)
        labels = self._labels_of_few(X)
        if labels is not None:
            return labels
        with self._fitted_table(X) as (table, executor):
            return self._labels(table, executor)

    @available_if(has_probability)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        r"""How likely each cluster is for each row, given the row's observed entries.

        .. math:: P(l \mid x_i) \propto \pi_l \exp\Bigl(-\frac{1}{2 \sigma^2}
                  \sum_{j\ \text{observed}} (x_{ij} - \mu_{lj})^2\Bigr)

        with the cluster proportions :math:`\pi` (`cluster_shares_`), the variance :math:`\sigma^2`
        (`noise_variance_`) and the centers :math:`\mu` (`mixture_centers_`) of the mixture of round
        clusters that was fitted from the clustering. Only with ``probability=True``. With informative
        gaps it is the posterior of the model that was fitted, gaps included. The most likely
        cluster may differ from that of `predict`, the nearest: a large cluster takes more of
        the rows between it and a small one. A row with nothing observed gets the cluster proportions.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)

        Examples
        --------
        >>> import numpy as np
        >>> from kpod import KPOD
        >>> X = np.random.default_rng(0).normal(size=(100, 3)) + 4 * (np.arange(100) % 2)[:, None]
        >>> model = KPOD(2, probability=True, random_state=0).fit(X)
        >>> model.predict_proba([[0, np.nan, 0], [2, 2, np.nan]]).max(axis=1).round(1)
        array([1. , 0.6])
        """
        check_is_fitted(self)
        if collections.is_collection(X):
            names = [f"cluster_{i}" for i in range(self.n_clusters_)]
            return in_partitions.applied(self, X, "predict_proba", names)
        if getattr(self, "missing_rates_", None) is not None:
            logs = -(self.transform(X).astype(np.float64) ** 2) / (2 * self.noise_variance_)
            return softmax(logs, axis=1)
        check_is_fitted(self, MIXTURE)
        with self._fitted_table(X, here=True):  # refuses what cannot be computed with
            values = validation.as_table(X, self)
        mixture = SoftClustering(
            self.cluster_shares_, self.mixture_centers_, self.noise_variance_, self.column_means_
        )
        return mixture.probabilities(values)

    def transform(self, X: Any) -> AnyFloats:
        r"""Distance of each row to each center, rescaled for the columns not observed.

        .. math:: d_{il} = \sqrt{\frac{p}{m_i} \sum_{j\ \text{observed}} (x_{ij} - c_{lj})^2}

        with :math:`m_i` of p columns observed, as in `nan_euclidean_distances`, so that
        rows with many and with few gaps are comparable; the indicators of a category are one column. Because
        of the factor, the squared distances to the nearest center do not add up to `inertia_`.
        NaN for a row with nothing observed.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
        """
        if collections.is_collection(X):
            return in_partitions.applied(self, X, "transform", self.get_feature_names_out())
        with self._fitted_table(X, here=True) as (table, executor):
            panel, groups = self._panel(table), self._groups()
            n_columns = float(groups.n_sources)
            out = np.empty((table.n_rows, self.n_clusters_), table.dtype)

            def measure(block: Block) -> None:
                rows = slice(block.first, block.first + block.n_rows)
                if panel.terms is not None:
                    out[rows] = np.sqrt(np.maximum(step.distances(block, panel), 0)) / table.units.scale
                    return
                observed = observed_sources(block, groups) if groups.present else table.observed[rows]
                with np.errstate(divide="ignore", invalid="ignore"):
                    scale = np.where(observed > 0, n_columns / observed, np.nan)
                out[rows] = np.sqrt(step.distances(block, panel) * scale[:, None]) / table.units.scale

            executor.map(measure, table.blocks)
            return out

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the loss of X with every row at its nearest center."""
        with self._fitted_table(X, sample_weight) as (table, executor):
            states, recall = nearest(table, executor, self._panel(table))
            loss = loss_of(table, executor, states, self._centers(table.units), recall)
            return -loss / table.units.scale / table.units.scale

    def impute(self, X: Any) -> Any:
        """X with its gaps filled from the center of each row's cluster.

        These are cluster means, suitable for display and for tools that need a complete
        table; they understate how much the missing values vary. A row with nothing observed
        gets the column means; a column with no observed entries in `fit` stays missing.

        Returns
        -------
        A table of the same kind: array, pandas, polars or pyarrow. Columns of a dataframe
        without gaps are returned unchanged.
        """
        if sparse.issparse(X):
            raise ValueError(
                "impute does not accept sparse tables: the result would be dense. Look up the centers "
                "instead, cluster_centers_[predict(X)], or pass the rows you need as an array with NaN."
            )
        if collections.is_collection(X):
            return in_partitions.applied(self, X, "impute")
        if lazy.lazy_kind(X) is not None:
            raise TypeError(containers.not_a_table(X))
        with self._fitted_table(X, here=True) as (table, executor):
            labels = self._labels(table, executor)
        values = validation.as_array(X, self)
        fill = np.vstack([self.cluster_centers_, self.column_means_]).astype(values.dtype)
        gaps = np.isnan(values)
        return frames.with_values(X, np.where(gaps, fill[labels], values), gaps.any(axis=0))

    def _lines(self) -> Lines:
        """Where lines on progress go: to the callback that was set, or they are printed if `verbose`."""
        return Lines(self._progress_line, 2) if self._progress_line else Lines(verbose=int(self.verbose))

    def _fitted_plan(self) -> FitPlan:
        """How the table of the fit, or one like it, is clustered again from other starts."""
        return FitPlan(
            self.n_clusters_,
            self.init if isinstance(self.init, str) else FitPlan.init,
            shrinkage=float(getattr(self, "shrinkage_", 0.0)),
            gaps=getattr(self, "missing_rates_", None) is not None,
        )

    def _labels_again(self, table: Table, executor: Executor, n_starts: int, seed: int) -> Labels:
        """The clusters of a table like that of the fit, by a fit of the same kind from other starts."""
        plan = self._fitted_plan().part(n_starts=n_starts, random_state=seed)
        return Fit(plan, table, executor).solve().labels

    def _centers(self, units: Units) -> Floats:
        """The centers in the units of a table."""
        centers = np.asarray(self.cluster_centers_, np.float64)
        # Not `n_clusters`, which may have been set for the next fit.
        if centers.ndim != 2 or centers.shape != (len(self.counts_), len(units.shift)):
            raise ValueError(
                f"The model is damaged: its centers have shape {centers.shape}, expected "
                f"{(len(self.counts_), len(units.shift))}. Fit it again."
            )
        return units.to(centers)

    def _labels_of_few(self, X: Any) -> Labels | None:
        """The labels of a few rows of an array: without threads, and without a pass for statistics.

        None where the array has to be converted first, or to be refused.
        """
        if not self._takes_as_it_is(X) or X.size > FEW_ENTRIES or hasattr(self, "missing_rates_"):
            return None
        if (np.abs(X) >= validation.largest(X.dtype, X.size)).any():
            return None
        units = in_precision(self._units(), X.dtype)
        labels = labels_of_block(DenseBlock(X, 0, units), Panel(self._centers(units)))
        gaps = np.isnan(X) | np.isnan(units.shift)
        labels[gaps.all(axis=1)] = -1
        return labels

    def _labels(self, table: Table, executor: Executor) -> Labels:
        """The nearest center of each row; -1 where nothing is observed and gaps are ignored."""
        labels = nearest_labels(table, executor, self._panel(table))
        if self._gap_model(table) is None:
            labels[table.observed == 0] = -1
        return labels

    def _panel(self, table: Table) -> Panel:
        """What rows are compared with."""
        return panel_of(self._centers(table.units), self._gap_model(table))

    def _gap_model(self, table: Table) -> GapModel | None:
        """The model of gaps, in the units of a table."""
        if getattr(self, "missing_rates_", None) is None:
            return None
        rates, shares = (np.asarray(a, np.float64) for a in (self.missing_rates_, self.cluster_shares_))
        if rates.shape != (self.n_clusters_, table.n_columns) or shares.shape != (self.n_clusters_,):
            raise ValueError(
                "The model is damaged: its missing rates do not match its clusters. Fit it again."
            )
        rates = np.where(self._groups().first, rates, 0.0)  # of a group, the first column stands for all
        return GapModel(rates, shares, float(self.noise_variance_) * table.units.scale * table.units.scale)

    def _fills_in(self) -> bool:
        """Whether fitting takes a table with its gaps filled in, so that it cannot be sparse."""
        return isinstance(self.init, str) and self.init == "mean-fill"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = not self._fills_in()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def observed_sources(block: Block, groups: ColumnGroups) -> Floats:
    """How many columns each row of a block observes, the indicators of a category but once."""
    shares = np.where(np.isnan(block.units.shift), 0.0, groups.shares)
    parts = block.columns(np.arange(block.n_columns))
    return np.concatenate([~np.isnan(part) @ shares for part in parts])
