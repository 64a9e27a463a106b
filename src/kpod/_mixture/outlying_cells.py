r"""Outlying cells: entries that no cluster expects, given the rest of their row, count as gaps, at a price.

An entry that comes from anywhere in the range of its column, with probability :math:`\epsilon`, has the
density :math:`\epsilon / \text{range}`; it is an outlier where the mixture gives it less, given the clean
entries of the row. That conditional density needs no second pass: with posterior :math:`r_l` of the row and
density :math:`p_l(x_j \mid \text{rest})` in each cluster it is
:math:`1 / \sum_l r_l / p_l(x_j \mid \text{rest})`. After cellGMM (Zaccaria et al. 2024, arXiv:2409.07881).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from kpod._common.typing import Floats
from kpod._engine.blocks import Units
from kpod._mixture.em.completion import given_observed
from kpod._mixture.em.mixture_parameters import Parameters

Mask = NDArray[np.bool_]

SHARE = 0.01  # of the entries are outliers
FAR = 4.0  # robust standard deviations from the median, at which an entry is suspected
ROUNDS = 3
LOG_2_PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class Prices:
    """What counts as an outlier: the middle and the spread of each column by its quartiles, and its range."""

    middle: Floats
    spread: Floats
    range: Floats

    @classmethod
    def of(cls, values: Floats) -> Prices:
        """Of the columns of a dense table with NaN."""
        out = np.zeros((3, values.shape[1]))
        for j, column in enumerate(values.T):
            seen = column[~np.isnan(column)]
            if not len(seen):
                out[:, j] = 0.0, 1.0, 1.0
                continue
            low, middle, high = np.percentile(seen, [25, 50, 75])
            spread, deviation = (high - low) / 1.349, float(seen.std())
            # Quartiles are useless for a column of few values, half of which are equal.
            spread = spread if spread > 0.05 * deviation else deviation
            out[:, j] = middle, spread or 1.0, float(seen.max() - seen.min()) or 1.0
        return cls(*out)

    def in_units(self, units: Units) -> Prices:
        """Of z, where these are of x = z / scale + shift."""
        return Prices(units.to(self.middle), self.spread * units.scale, self.range * units.scale)

    @property
    def log(self) -> Floats:
        """The log density of an outlying entry of each column."""
        return np.log(SHARE) - np.log(self.range)

    def suspects(self, values: Floats) -> Mask:
        with np.errstate(invalid="ignore"):
            return keep_rows(np.abs(values - self.middle) > FAR * self.spread, values)

    def may_pay(self, values: Floats, weights: Floats) -> bool:
        """Whether ignoring the suspects may gain more likelihood than it costs that other entries are clean.

        A suspect gains its price over the normal density of its column, by the quartiles.
        """
        suspects = self.suspects(values)
        squares = np.where(suspects, (values - self.middle) / self.spread, 0.0) ** 2
        density = -0.5 * (LOG_2_PI + squares) - np.log(self.spread)
        gain = np.where(suspects, self.log - density, 0.0).sum(axis=1)
        clean = (~np.isnan(values) & ~suspects).sum(axis=1)
        return float(weights @ (gain + clean * np.log1p(-SHARE))) > 0

    def outliers(self, values: Floats, parameters: Parameters) -> Mask:
        """The outlying cells of the rows of a dense table: a function of each row alone."""
        found = self.suspects(values)
        for _ in range(ROUNDS):
            logs = conditional_log_densities(values, found, parameters)
            with np.errstate(invalid="ignore"):
                now = keep_rows(logs + np.log1p(-SHARE) < self.log, values)
            if (now == found).all():
                break
            found = now
        return found

    def log_density(self, values: Floats, outliers: Mask) -> Floats:
        """What outlying and clean cells add to the log density of each row."""
        clean = (~np.isnan(values) & ~outliers).sum(axis=1)
        return clean * np.log1p(-SHARE) + outliers @ self.log


def keep_rows(outliers: Mask, values: Floats) -> Mask:
    """Where nothing of a row would be left, all of it stays."""
    outliers = outliers & ~np.isnan(values)
    return outliers & (outliers.sum(axis=1) < (~np.isnan(values)).sum(axis=1))[:, None]


def conditional_log_densities(values: Floats, ignored: Mask, parameters: Parameters) -> Floats:
    """Log density of each entry given the other entries of its row that are not ignored; NaN for gaps."""
    out = np.full(values.shape, np.nan)
    clean = np.where(ignored, np.nan, values)
    for given in given_observed(clean, parameters):
        x, own = values[given.rows], ~np.isnan(clean[given.rows])
        with np.errstate(divide="ignore"):
            logs = np.log(given.posterior)[:, :, None]
        error, variance = x[:, None] - given.means, given.variances.copy()
        if parameters.whole is not None:
            leave_out(clean[given.rows], parameters, error, variance)
        else:
            noise = given.noise**2
            # An entry takes part in what the factors are: without it, they are less certain.
            left = np.where(own[:, None], np.maximum(2 - variance / noise, 1e-9), 1.0)
            error, variance = error / left, np.where(own[:, None], noise / left, variance)
        density = -0.5 * (LOG_2_PI + np.log(variance) + error**2 / variance)
        rest = -logsumexp(logs - density, axis=1)
        outside = logsumexp(logs + density, axis=1)
        out[given.rows] = np.where(own, rest, outside)
    return np.where(np.isnan(values), np.nan, out)


def leave_out(values: Floats, parameters: Parameters, error: Floats, variance: Floats) -> None:
    """Put errors and variances of observed entries, given the others of the row, in place."""
    patterns, of_row = np.unique(np.isnan(values), axis=0, return_inverse=True)
    for number, missing in enumerate(patterns):
        here, seen = np.flatnonzero(of_row.ravel() == number), np.flatnonzero(~missing)
        if not len(seen):
            continue
        for cluster in range(parameters.k):
            inverse = np.linalg.inv(parameters.covariance(cluster)[np.ix_(seen, seen)])
            deviations = values[np.ix_(here, seen)] - parameters.means[cluster, seen]
            diagonal = np.diag(inverse)
            at = here[:, None], cluster, seen
            error[at] = deviations @ inverse / diagonal
            variance[at] = 1 / diagonal


def bitmap(outliers: Mask) -> NDArray[np.uint8]:
    """As `Rows` takes entries of a dense block that are not to be looked at."""
    return np.ascontiguousarray(np.packbits(outliers, axis=1, bitorder="little")).ravel()
