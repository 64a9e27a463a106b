"""The parameters of a Gaussian mixture, as EM passes them on from step to step."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from kpod._common.typing import Floats, Positions
from kpod._kernels.mixture import Covariances, Factors


@dataclass(frozen=True)
class Parameters:
    """Shares (k,), means (k, p), and covariances: `whole` (1 or k, p, p), or variances and loadings.

    These are (k, p) and (k, p, q) also where clusters have them in common. `rates` (k, p) is how often each
    cluster observes a column where gaps count, else None; it is 0.5 in an uninformative column. Of the
    last `n_shadows` columns, an entry only says that one is observed whose value is hidden.
    """

    shares: Floats
    means: Floats
    variances: Floats
    loadings: Floats
    whole: Floats | None = None
    rates: Floats | None = None
    n_shadows: int = 0

    @property
    def k(self) -> int:
        return len(self.shares)

    @property
    def q(self) -> int:
        return self.loadings.shape[2]

    def model(self) -> Factors | Covariances:
        """As the kernels take them."""
        with np.errstate(divide="ignore"):
            shares = np.log(self.shares)
        offsets = None
        if self.rates is not None:
            speaks = self.rates[0] != 0.5
            speaks[len(speaks) - self.n_shadows :] = False
            shares = shares + np.log(1 - self.rates[:, speaks]).sum(axis=1)
            offsets = np.log(1 / self.rates - 1)
        if self.whole is not None:
            return Covariances(shares, self.means, self.whole, offsets)
        return Factors(shares, self.means, self.variances, self.loadings, offsets)

    def in_order(self, order: Positions) -> Parameters:
        """With the clusters in another order."""
        return replace(
            self,
            shares=self.shares[order],
            means=self.means[order],
            variances=self.variances[order],
            loadings=self.loadings[order],
            whole=self.whole if self.whole is None or len(self.whole) == 1 else self.whole[order],
            rates=None if self.rates is None else self.rates[order],
        )

    def rescaled(self, shift: Floats, scale: float) -> Parameters:
        """Of x = z / scale + shift, where these are of z."""
        return replace(
            self,
            means=self.means / scale + shift,
            variances=self.variances / scale / scale,
            loadings=self.loadings / scale,
            whole=None if self.whole is None else self.whole / scale / scale,
        )

    def covariance(self, cluster: int) -> Floats:
        """The covariance matrix of a cluster."""
        if self.whole is not None:
            return self.whole[0 if len(self.whole) == 1 else cluster]
        loadings = self.loadings[cluster]
        return np.asarray(loadings @ loadings.T + np.diag(self.variances[cluster]))


SMALLEST_RATE = 1e-3  # at which entries are observed or missing: nothing is impossible


@dataclass(frozen=True)
class Prior:
    """What variances and covariances of a cluster's own are pulled to, by so many rows of it."""

    rows: float = 0.0
    variances: Floats = field(default_factory=lambda: np.zeros(0))
    whole: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    def log_density(self, of: Parameters) -> float:
        """Up to a constant."""
        if not self.rows:
            return 0.0
        if of.whole is not None:
            _, logs = np.linalg.slogdet(of.whole)
            traces = np.trace(np.linalg.solve(of.whole, self.whole[None]), axis1=1, axis2=2)
            return -0.5 * self.rows * float((logs + traces).sum())
        return -0.5 * self.rows * float((np.log(of.variances) + self.variances / of.variances).sum())
