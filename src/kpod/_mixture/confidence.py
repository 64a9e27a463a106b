r"""How sure is a row's cluster? The posterior of the mixture behind k-means.

k-means is the limit of a mixture of round normal clusters of equal size and vanishing variance. This
fits the shares :math:`\pi_l`, the one variance :math:`\sigma^2` and the centers :math:`\mu_l` of that
mixture to the observed entries :math:`O_i`, by EM from the clustering, and asks for the posterior

.. math:: P(l \mid x_i) \propto \pi_l \exp\Bigl(-\frac{1}{2\sigma^2}
          \sum_{j \in O_i} (x_{ij} - \mu_{lj})^2\Bigr)

The centers of the mixture are consistent where those of k-means are not: a row near the border is
counted in both clusters, by its probabilities, and does not pull one center away from the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from kpod._common.column_groups import ColumnGroups
from kpod._common.typing import Floats, Labels
from kpod._engine.executors import Executor
from kpod._engine.table import make_table
from kpod._mixture.covariance_shape import Shape
from kpod._mixture.em.chunks import chunks
from kpod._mixture.em.expectation import Entries
from kpod._mixture.em.iteration import from_labels, run, smallest_variances
from kpod._mixture.em.maximisation import Constraints
from kpod._mixture.em.mixture_parameters import Prior

STEPS = 200
TOL = 1e-5  # of log-likelihood a row
SMALLEST_VARIANCE = 1e-6  # of the variance of a column, so that constant columns divide nothing
MOST_ROWS = 50_000  # that the mixture is fitted on; a probability to two digits needs no more


@dataclass(frozen=True)
class SoftClustering:
    """The mixture: `shares` (k,), `centers` (k, p) in the units of the table, `variance`."""

    shares: Floats
    centers: Floats
    variance: float
    column_means: Floats

    def probabilities(self, X: Any) -> Floats:
        """P(cluster | observed entries) for each row (n, k); the shares where nothing is observed.

        What all clusters share of a distance is left out: of a row far out, it would leave no digits for the
        differences.
        """
        means = np.nan_to_num(self.column_means)
        centers = np.nan_to_num(self.centers - means)
        with np.errstate(divide="ignore"):
            logs = np.log(self.shares)
        found = [
            logs + values @ (centers / self.variance).T - mask @ (centers**2 / (2 * self.variance)).T
            for values, mask in chunks(X, means)
        ]
        return np.asarray(softmax(np.vstack(found), axis=1))


def soften(
    X: Any, labels: Labels, k: int, weights: Floats | None = None, groups: ColumnGroups | None = None
) -> SoftClustering:
    """Fit the mixture by EM, from the labels of a clustering; rows with label -1 count for nothing.

    `X` is a float array with NaN in the gaps, or a CSR array. The variance is corrected for the
    centers that were fitted: divided by the observed entries less the entries of the centers, or
    by half of the observed entries where that is more (columns of one of the `groups` count as one). On
    more than 50,000 rows, the mixture is fitted on 50,000 of them, evenly spaced.
    """
    weight = np.where(labels >= 0, np.ones(X.shape[0]) if weights is None else weights, 0.0)
    if X.shape[0] > MOST_ROWS:
        chosen = np.linspace(0, X.shape[0] - 1, MOST_ROWS).astype(np.intp)
        X, labels, weight = X[chosen], labels[chosen], weight[chosen]
    table = make_table(X, Executor(), weights=weight, groups=groups)
    entries, shape = Entries(table, Executor()), Shape("tied_spherical")
    counts, first = table.about.weights, table.groups.first
    observed = float(counts[first].sum())
    within = Constraints(
        smallest_variances(table.variances, table.live, SMALLEST_VARIANCE),
        table.fallback,
        Prior(),
        columns_per_entry=float(counts.sum()) / max(observed, 1e-300),
        more_entries=float(counts.sum()) - observed,
    )
    start = from_labels(entries, shape, labels, k, within)
    m = run(entries, shape, start, within, STEPS, TOL).parameters.rescaled(
        table.units.shift, table.units.scale
    )
    fitted = min(k * float((table.live & first).sum()), observed / 2)
    variance = float(m.variances[0, 0]) if table.live.any() else 1.0
    return SoftClustering(
        m.shares,
        np.where(table.live, m.means, np.nan),
        variance * observed / max(observed - fitted, 1e-300),
        table.column_means,
    )


class Sureness(NamedTuple):
    """Of each row: the probability of its own cluster, the next candidate, and whether that is likelier.

    NaN, -1 and False for rows without a cluster; with one cluster there is no next candidate (-1).
    `largest` is the probability of the likelier of the two.
    """

    confidence: Floats
    second: Labels
    elsewhere: Any
    largest: Floats


def sureness(probabilities: Floats, labels: Labels) -> Sureness:
    """How sure the label of each row is, by the probabilities of all clusters."""
    n, k = probabilities.shape
    placed = labels >= 0
    own = np.where(placed, probabilities[np.arange(n), np.where(placed, labels, 0)], np.nan)
    if k == 1:
        return Sureness(own, np.full(n, -1, np.int32), np.zeros(n, bool), own)
    others = probabilities.copy()
    others[np.arange(n)[placed], labels[placed]] = -1.0
    second = np.where(placed, others.argmax(axis=1), -1).astype(np.int32)
    other = others.max(axis=1)
    return Sureness(own, second, placed & (other > np.nan_to_num(own)), np.maximum(own, other))
