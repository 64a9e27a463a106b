"""Are the clusters as round as probabilities of k-means assume? Compared with mixtures that need not be.

`KPOD(probability=True)` assumes one variance for all columns and clusters. Mixtures with variances of each
cluster and column, with correlated columns, and with both are fitted from its clusters; where one of them is
better by BIC, it says how far off the probabilities are: by how much they differ, on average over tenths of
the confidence, from what that mixture expects of the same clusters. Started from clusters that are wrong, it
may itself be wrong, and the true error larger.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kpod._common.typing import Floats, Labels
from kpod._engine.blocks import some_rows
from kpod._engine.executors import Executor
from kpod._engine.table import make_table
from kpod._mixture.covariance_shape import Shape
from kpod._mixture.em.iteration import from_labels, run, smallest_variances
from kpod._mixture.em.maximisation import Constraints
from kpod._mixture.em.mixture_parameters import Prior
from kpod._mixture.search import WIDEST_WHOLE_AUTO
from kpod._mixture.starts import prior_of, standardised_sample

MOST_ENTRIES = 200_000  # that are looked at
STEPS, TOL = 30, 1e-4
PRIOR_ROWS = 5.0
SMALLEST_VARIANCE = 1e-6  # of a column, as a share of its own
OFF = 0.03  # probabilities that are off by less can be used as they are


class Roundness(NamedTuple):
    """What contradicts round clusters of the same spread, and how far off their probabilities are.

    `spreads` is whether variances differ, `correlated` whether columns are correlated within clusters;
    neither, where no other mixture is better. `error` is the calibration error to be expected.
    """

    spreads: bool
    correlated: bool
    error: float

    @property
    def contradicted(self) -> bool:
        return (self.spreads or self.correlated) and self.error > OFF


def roundness(X: Any, labels: Labels, probabilities: Floats, weights: Floats | None = None) -> Roundness:
    """Of an array with NaN or a CSR array, the clusters of its rows, and their probabilities (n, k)."""
    k = probabilities.shape[1]
    rows = np.flatnonzero((labels >= 0) & (True if weights is None else weights > 0))
    most = max(MOST_ENTRIES // X.shape[1], 1000)
    if len(rows) > most:
        rows = rows[np.linspace(0, len(rows) - 1, most).astype(np.intp)]
    weight = None if weights is None else weights[rows]
    table = make_table(some_rows(X, rows), Executor(), weights=weight)
    sample = standardised_sample(table, np.random.default_rng(0), together=True)
    of, clusters = sample.table, labels[rows][sample.rows]
    floor = smallest_variances(of.variances, of.live, SMALLEST_VARIANCE)
    factors = None if int(table.live.sum()) <= WIDEST_WHOLE_AUTO else 1
    found = {}
    for shape in (Shape("tied_spherical"), Shape("diag"), Shape("tied", factors), Shape("full", factors)):
        within = Constraints(floor, of.fallback, Prior())
        prior = prior_of(sample.entries, shape, clusters, k, within, PRIOR_ROWS)
        within = Constraints(floor, of.fallback, prior)
        start = from_labels(sample.entries, shape, clusters, k, within)
        solution = run(sample.entries, shape, start, within, STEPS, TOL)
        found[shape] = solution.bic(sample.entries.weight, within), solution.parameters
    best = min(found, key=lambda shape: found[shape][0])
    if best == Shape("tied_spherical"):
        return Roundness(False, False, 0.0)
    expected = sample.entries.posterior(found[best][1])[0]
    error = calibration_error(probabilities[rows][sample.rows], expected, of.weights)
    return Roundness(best.own_variances, best.whole or bool(best.q), error)


def calibration_error(probabilities: Floats, expected: Floats, weights: Floats | None) -> float:
    """Of the largest probability of each row, if the expected ones are right: by tenths of it."""
    rows, likeliest = np.arange(len(probabilities)), probabilities.argmax(axis=1)
    confidence, right = probabilities[rows, likeliest], expected[rows, likeliest]
    weight = np.ones(len(rows)) if weights is None else weights
    tenth = np.minimum((10 * confidence).astype(int), 9)
    off = np.bincount(tenth, weight * (confidence - right), 10)
    return float(np.abs(off).sum() / max(weight.sum(), 1e-300))
