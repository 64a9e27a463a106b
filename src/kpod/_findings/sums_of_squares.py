"""A clustering in a few numbers, as R prints it: sums of squares, or the likelihood of a mixture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kpod._common.notebook import ReadsAsText
from kpod._common.sentences.formatting import counted, starts_text
from kpod._common.typing import Floats
from kpod._estimators.mixture.model import MixtureModel
from kpod._findings.fitted_clusters.mixture_spread import shape_sentence
from kpod._findings.fitted_clusters.models import is_mixture, model_and_table
from kpod._inputs import validation
from kpod._inputs.samples import brought_here
from kpod._model_selection.holdout import entries


@dataclass
class ClusterSummary(ReadsAsText):
    """Sums of squares over observed entries: `total_ss_` = `between_ss_` + `within_ss_.sum()`.

    Attributes
    ----------
    sizes_ : ndarray of shape (n_clusters,)
        Rows (or their weight) in each cluster.
    within_ss_ : ndarray of shape (n_clusters,)
        Sum of squared distances of the observed entries of a cluster to its means.
    between_ss_by_cluster_ : ndarray of shape (n_clusters,)
        Sum over the observed entries of a cluster of the squared distance of its means to the means
        of the columns.
    between_ss_ : float
    total_ss_ : float
        Sum of squared distances of the observed entries to the means of their columns.
    losses_ : ndarray or None
        The loss of every start, if the model has stored them.
    n_rows_ : int or None
        The number of rows, if they are a sample of a Dask or Spark table; all values are those of the sample.
    """

    sizes_: Floats
    within_ss_: Floats
    between_ss_by_cluster_: Floats
    between_ss_: float
    total_ss_: float
    losses_: Any = None
    n_rows_: int | None = None

    def __str__(self) -> str:
        k = len(self.sizes_)
        share = self.between_ss_ / self.total_ss_ if self.total_ss_ > 0 else float("nan")
        sizes = ", ".join(f"{size:g}" for size in self.sizes_)
        lines = [
            f"k-POD clustering with {counted(k, 'cluster')} of size{'' if k == 1 else 's'} {sizes}",
            "",
            "Within cluster sum of squares by cluster (observed entries):",
            "  " + " ".join(f"{value:.6g}" for value in self.within_ss_),
            f" (between_SS / total_SS = {share:.1%})",
        ]
        if self.losses_ is not None:
            lines.append(starts_text(self.losses_))
        return "\n".join([*lines, *sample_line(self.n_rows_)]).rstrip()


@dataclass
class MixtureSummary(ReadsAsText):
    """The result of `summary` for a mixture: a likelihood instead of sums of squares.

    Attributes
    ----------
    sizes_ : ndarray of shape (n_clusters,)
        Rows (or their weight) in each cluster, every row in the most likely one.
    weights_ : ndarray of shape (n_clusters,)
        The cluster proportions.
    log_likelihood_ : float
        The log-likelihood of the observed entries, by weight.
    n_parameters_ : float
    bic_ : float
        The Bayesian information criterion: the lower, the better.
    shape_ : str
        The shape of the clusters: what they have in common.
    sentence_ : str
        The shape in a sentence.
    n_rows_ : int or None
        The number of rows, if they are a sample of a Dask or Spark table; sizes and likelihood are those of
        the sample.
    """

    sizes_: Floats
    weights_: Floats
    log_likelihood_: float
    n_parameters_: float
    bic_: float
    shape_: str
    sentence_: str
    n_rows_: int | None = None

    def __str__(self) -> str:
        k = len(self.sizes_)
        sizes = ", ".join(f"{size:g}" for size in self.sizes_)
        return "\n".join([
            f"Gaussian mixture ({self.shape_}) with {counted(k, 'cluster')} of size{'' if k == 1 else 's'} "
            f"{sizes}",
            "",
            f"log-likelihood {self.log_likelihood_:.6g}, parameters {self.n_parameters_:g}, BIC "
            f"{self.bic_:.6g} (observed entries)",
            self.sentence_,
            *sample_line(self.n_rows_),
        ])  # fmt: skip


def sample_line(n_rows: int | None) -> list[str]:
    """A line saying that the numbers are those of a sample, if they are."""
    return [] if n_rows is None else [f"Of a random sample of {n_rows:,} rows."]


def summary(model: Any, X: Any = None, *, sample_weight: Any = None) -> ClusterSummary | MixtureSummary:
    r"""Sums of squares within and between clusters, over observed entries.

    .. math:: \sum_{ij\ \text{observed}} w_i (x_{ij} - \bar x_j)^2 =
        \sum_{lj} N_{lj} (\bar x_{lj} - \bar x_j)^2 +
        \sum_{ij\ \text{observed}} w_i (x_{ij} - \bar x_{l(i) j})^2

    with :math:`N_{lj}` the observed weight of column j in cluster l and :math:`\bar x_{lj}` its mean.
    It prints like R's `kmeans`. For a mixture, whose columns share no unit, it gives
    the likelihood, as R's `Mclust` prints it.

    Parameters
    ----------
    model : KPOD, GaussianMixture, a pipeline that ends in one, or Analysis
        The fitted model; an analysis has its table already.
    X : array-like, dataframe or sparse matrix of shape (n_samples, n_features), default=None
        The table; rows are assigned to their nearest centers, or most likely clusters. A large Dask
        collection or Spark DataFrame is sampled, see `n_rows_` of the result.
    sample_weight : array-like of shape (n_samples,), default=None

    Returns
    -------
    ClusterSummary, or MixtureSummary for a GaussianMixture

    Examples
    --------
    >>> import numpy as np
    >>> from kpod import KPOD, summary
    >>> X = np.array([[1, 2], [1, np.nan], [10, 12], [np.nan, 14]])
    >>> print(summary(KPOD(2, random_state=0).fit(X), X))
    k-POD clustering with 2 clusters of sizes 2, 2
    <BLANKLINE>
    Within cluster sum of squares by cluster (observed entries):
      0 2
     (between_SS / total_SS = 98.5%)
    The best loss was found in 10 of 10 starts.
    """
    X, sample_weight, n_drawn, *_ = brought_here(X, sample_weight)
    fitted, seen = model_and_table(model, X)
    values, labels = validation.as_table(seen, fitted), np.asarray(fitted.predict(seen))
    given = getattr(model, "_weights", None) if sample_weight is None else sample_weight
    weights = validation.check_weights(given, values.shape[0])
    weight = np.ones(values.shape[0]) if weights is None else weights
    k, p = int(fitted.n_clusters_), values.shape[1]
    placed = labels >= 0
    sizes = np.bincount(labels[placed], weight[placed], k).astype(np.float64)
    if is_mixture(fitted):
        likelihood = float(weight @ fitted.score_samples(seen))
        return summary_of_mixture(fitted, sizes, likelihood, weight.sum(), n_drawn)
    rows, columns, x = entries(values)
    w, label = weight[rows], labels[rows]
    column_weights = np.bincount(columns, w, p)
    means = np.bincount(columns, w * x, p) / np.where(column_weights > 0, column_weights, 1)
    x = x - means[columns]
    cells = label.astype(np.int64) * p + columns
    counts = np.bincount(cells, w, k * p).reshape(k, p)
    offsets = np.bincount(cells, w * x, k * p).reshape(k, p) / np.where(counts > 0, counts, 1)
    within = np.bincount(label, w * (x - offsets[label, columns]) ** 2, k)
    between = (counts * offsets**2).sum(axis=1)
    return ClusterSummary(
        sizes,
        within.astype(np.float64),
        between,
        float(between.sum()),
        float(w @ x**2),
        getattr(fitted, "losses_", None),
        n_drawn,
    )


def summary_of_mixture(
    model: MixtureModel, sizes: Floats, log_likelihood: float, weight: float, n_drawn: int | None
) -> MixtureSummary:
    n_parameters = model._n_parameters()
    return MixtureSummary(
        sizes,
        model.weights_,
        log_likelihood,
        n_parameters,
        n_parameters * float(np.log(weight)) - 2 * log_likelihood,
        str(model._shape()),
        shape_sentence(model),
        n_drawn,
    )
