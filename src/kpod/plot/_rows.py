"""Rows as points in a plane."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from matplotlib.colors import to_rgba
from scipy.sparse.linalg import eigsh

from kpod._report.summary import Clustering
from kpod._typing import Floats, Labels
from kpod.plot._display import INK, Display, colour, draw_rows, heading, marker, tidy

MOST_POINTS = 2000
MANY_COLUMNS = 500


class RowsDisplay(Display):
    """Rows in the plane of the first two principal components of the observed entries.

    A row with gaps is placed where it is to be expected given what was observed of it, and the
    less that was, the fainter it is drawn.

    Parameters
    ----------
    points : ndarray of shape (n_points, 2)
    labels : ndarray of shape (n_points,)
    shares : ndarray of shape (n_points,)
        Share of the columns observed.
    middles : dict
        Of each cluster, the mean of its points.
    explained : ndarray of shape (2,)
        Share of the variance in each direction.
    n_rows : int
        Rows of the table, of which the points are a sample where there are many.
    """

    def __init__(
        self,
        *,
        points: Floats,
        labels: Labels,
        shares: Floats,
        middles: dict[int, Floats],
        explained: Floats,
        n_rows: int,
    ) -> None:
        self.points, self.labels, self.shares = points, labels, shares
        self.middles, self.explained, self.n_rows = middles, explained, n_rows

    @classmethod
    def from_clustering(cls, clustering: Clustering) -> RowsDisplay:
        """Find the plane from all rows, and draw up to 2,000 of them."""
        c = clustering
        means = np.nan_to_num(np.asarray(c.kpod.column_means_, dtype=np.float64))
        values = c.values - means
        axes, variances, explained, noise = principal_plane(values)
        rows = draw_rows(len(values), MOST_POINTS)
        rows = rows[c.labels[rows] >= 0]
        points, labels = expected_scores(values[rows], axes, variances, noise), c.labels[rows]
        return cls(
            points=points,
            labels=labels,
            shares=c.observed_by_row[rows] / len(c.names),
            middles={m: points[labels == m].mean(axis=0) for m in range(c.k) if (labels == m).any()},
            explained=explained,
            n_rows=len(values),
        )

    size: ClassVar[tuple[float, float]] = (6.4, 4.6)

    def _draw(self, ax: Any) -> None:
        for cluster in self.middles:
            here = self.labels == cluster
            faces = np.tile(to_rgba(colour(cluster)), (int(here.sum()), 1))
            faces[:, 3] = 0.12 + 0.68 * np.clip(self.shares[here], 0, 1) ** 2
            x, y = self.points[here].T
            ax.scatter(x, y, c=faces, marker=marker(cluster), s=26, linewidths=0)
        for cluster, (x, y) in self.middles.items():
            ax.scatter(x, y, marker=marker(cluster), s=150, color=colour(cluster), edgecolors="white",
                       linewidths=1.6, zorder=5, label=f"cluster {cluster}")  # fmt: skip
        tidy(ax)
        for axis, share, which in zip((ax.xaxis, ax.yaxis), self.explained, ("first", "second"), strict=True):
            axis.set_label_text(f"{which} principal component ({share:.0%} of the variance)")
        n = len(self.points)
        sample = f"{n:,} of {self.n_rows:,} rows" if n < self.n_rows else f"{n:,} rows"
        heading(ax, f"{sample}; the fainter, the less was observed")
        if len(self.middles) <= 12:
            legend = ax.legend(frameon=False, fontsize=9, labelcolor=INK, loc="best", borderaxespad=0)
            for handle in legend.legend_handles:
                handle.set_sizes([60])


def principal_plane(values: Floats) -> tuple[Floats, Floats, Floats, float]:
    """Two directions, the variance along and its share; and the variance left to each other direction.

    Of the covariances over the rows in which both columns were observed.
    """
    observed = (~np.isnan(values)).astype(np.float64)
    zeroed = np.nan_to_num(values)
    covariance = (zeroed.T @ zeroed) / np.maximum(observed.T @ observed, 1)
    total = max(float(np.trace(covariance)), np.finfo(float).tiny)
    variances, vectors = two_largest(covariance)
    # The sign of an eigenvector is nobody's: its largest entry is taken to be positive.
    axes = vectors * np.where(np.abs(vectors).max(axis=0) == vectors.max(axis=0), 1, -1)
    noise = max(0.0, total - float(variances.sum())) / max(1, len(covariance) - 2)
    return axes, variances, variances / total, noise


def two_largest(covariance: Floats) -> tuple[Floats, Floats]:
    """The two largest eigenvalues, none below 0, and their vectors."""
    if len(covariance) == 1:
        return np.array([float(covariance[0, 0]), 0.0]), np.array([[1.0, 0.0]])
    if len(covariance) > MANY_COLUMNS:  # by Lanczos: the others would take minutes
        values, vectors = eigsh(covariance, 2, v0=np.ones(len(covariance)))
    else:
        values, vectors = np.linalg.eigh(covariance)
    order = np.argsort(values)[::-1][:2]
    return np.maximum(values[order], 0), vectors[:, order]


def expected_scores(values: Floats, axes: Floats, variances: Floats, noise: float) -> Floats:
    """Where each row lies in the plane, given its observed entries (Tipping & Bishop 1999).

    The mean of the scores t given x = A t + noise over the observed columns, with t of the
    given variances: (A'A / noise + 1 / variances)^-1 A'x / noise.
    """
    most = float(variances.max())
    if most == 0:
        return np.zeros((len(values), 2))
    observed = (~np.isnan(values)).astype(np.float64)
    noise = max(noise, 1e-9 * most)
    precision = 1 / np.maximum(variances - noise, 1e-6 * most)
    grams = np.einsum("ij,ja,jb->iab", observed, axes, axes) + noise * np.diag(precision)
    return np.linalg.solve(grams, (np.nan_to_num(values) @ axes)[..., None])[..., 0]
