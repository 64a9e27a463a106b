"""Rows as points in a plane."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from matplotlib.colors import to_rgba
from matplotlib.patches import Ellipse
from scipy.sparse.linalg import LinearOperator, eigsh

from kpod._common.sentences.formatting import counted
from kpod._common.typing import Floats, Labels, Positions
from kpod._findings.fitted_clusters.clustering import Clustering
from kpod._findings.fitted_clusters.models import is_mixture
from kpod.plot._display import (
    INK,
    Display,
    colour,
    draw_members,
    draw_rows,
    heading,
    marker,
    middle_part,
    tidy,
)

MOST_POINTS = 2000
MANY_COLUMNS = 500
MOST_PLANE_ENTRIES = 400_000
FEWEST_PLANE_ROWS = 500
MOST_STEPS = 100
INSIDE = 0.9  # of the complete rows of a cluster, those inside its ellipse


class RowsDisplay(Display):
    """Rows in the plane of the first two principal components of the observed entries.

    A row with gaps is drawn at its expected position given its observed entries; the fewer of
    them, the fainter it is. For a mixture, columns are in units of their standard
    deviations, and ellipses hold nine in ten complete rows of a cluster, by its covariance.

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
    ellipses : dict, default=None
        Of each cluster of a mixture, the covariance matrix of its complete rows in the plane.
    rows : ndarray of shape (n_points,), default=None
        Positions of the points' rows in the table.

    Examples
    --------
    >>> from kpod import KPOD
    >>> from kpod.datasets import load_incomplete_wine
    >>> from kpod.plot import RowsDisplay
    >>> wine = load_incomplete_wine()
    >>> model = KPOD(3, random_state=0).fit(wine.data)
    >>> display = RowsDisplay.from_estimator(model, wine.data)
    >>> display.figure_.savefig("rows.png")
    >>> display.points.shape
    (178, 2)
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
        ellipses: dict[int, Floats] | None = None,
        rows: Positions | None = None,
    ) -> None:
        self.points, self.labels, self.shares, self.ellipses = points, labels, shares, ellipses or {}
        self.middles, self.explained, self.n_rows, self.rows = middles, explained, n_rows, rows

    @classmethod
    def from_clustering(cls, clustering: Clustering) -> RowsDisplay:
        """Find the plane from the rows, or a sample of many, and draw up to 2,000 of them."""
        c = clustering
        n_rows, n_columns = c.values.shape
        means, units = origin_and_units(c)
        enough = max(MOST_PLANE_ENTRIES // n_columns, FEWEST_PLANE_ROWS)
        plane = principal_plane((expected_rows(c, draw_rows(n_rows, enough)) - means) / units)
        rows = draw_members(c.labels, MOST_POINTS)
        # A direction with nothing but noise would be shrunk to a line; half of the noise is drawn.
        variances = np.maximum(plane.variances, 2 * plane.noise)
        points = np.vstack([
            expected_scores((expected_rows(c, some) - means) / units, plane.axes, variances, plane.noise)
            for some in np.array_split(rows, max(1, len(rows) * n_columns // MOST_PLANE_ENTRIES))
        ])  # fmt: skip
        labels = c.labels[rows]
        middles = {m: points[labels == m].mean(axis=0) for m in range(c.k) if (labels == m).any()}
        ellipses = {}
        if is_mixture(c.kpod):
            # As complete rows are placed: a linear map of the columns.
            onto = expected_scores(np.eye(n_columns), plane.axes, variances, plane.noise)
            means_of_clusters = np.nan_to_num((c.kpod.means_ - means) / units) @ onto
            middles = {m: means_of_clusters[m] for m in middles}
            ellipses = {m: c.kpod._covariance_along(m, onto / units[:, None]) for m in middles}
        return cls(
            points=points,
            labels=labels,
            shares=c.source.by_row[rows] / len(c.sources),
            middles=middles,
            explained=plane.explained,
            n_rows=n_rows,
            ellipses=ellipses,
            rows=rows,
        )

    size: ClassVar[tuple[float, float]] = (6.4, 4.6)

    def _frame(self, ax: Any) -> None:
        """Leave a few rows far out beyond the frame, where they would squash all others."""
        self.n_outside = 0
        if len(self.points) < 50:
            return
        ranges = [middle_part(axis) for axis in self.points.T]
        outside = np.zeros(len(self.points), bool)
        for axis, (low, high) in zip(self.points.T, ranges, strict=True):
            outside |= (axis < low) | (axis > high)
        middles = np.array(list(self.middles.values()))
        seen = all(((low <= m) & (m <= high)).all() for m, (low, high) in zip(middles.T, ranges, strict=True))
        if not outside.any() or not seen:
            return
        self.n_outside = int(outside.sum())
        for limit, (low, high) in zip((ax.set_xlim, ax.set_ylim), ranges, strict=True):
            limit(low - 0.05 * (high - low), high + 0.05 * (high - low))

    def _draw(self, ax: Any) -> None:
        for cluster in self.middles:
            here = self.labels == cluster
            faces = np.tile(to_rgba(colour(cluster)), (int(here.sum()), 1))
            faces[:, 3] = 0.12 + 0.68 * np.clip(self.shares[here], 0, 1) ** 2
            x, y = self.points[here].T
            ax.scatter(x, y, c=faces, marker=marker(cluster), s=26, linewidths=0, gid=f"points-{cluster}")
        for cluster, covariance in self.ellipses.items():
            ax.add_patch(ellipse(self.middles[cluster], covariance, colour(cluster)))
        for cluster, (x, y) in self.middles.items():
            ax.scatter(x, y, marker=marker(cluster), s=150, color=colour(cluster), edgecolors="white",
                       linewidths=1.6, zorder=5, label=f"cluster {cluster}")  # fmt: skip
        self._frame(ax)
        tidy(ax)
        for axis, share, which in zip((ax.xaxis, ax.yaxis), self.explained, ("first", "second"), strict=True):
            axis.set_label_text(f"{which} principal component ({share:.0%} of the variance)")
        n = len(self.points)
        sample = f"{n:,} of {self.n_rows:,} rows" if n < self.n_rows else counted(n, "row")
        outside = f"; {self.n_outside:,} outside the frame" if self.n_outside else ""
        inside = "; ellipses hold 90%" if self.ellipses else ""
        fainter = "; the less observed, the fainter" if (self.shares < 1).any() else ""
        heading(ax, f"{sample}{fainter}{inside}{outside}")
        if 0 < len(self.middles) <= 12:
            legend = ax.legend(frameon=False, fontsize=9, labelcolor=INK, loc="best", borderaxespad=0)
            for handle in legend.legend_handles:
                handle.set_sizes([60])


def expected_rows(c: Clustering, which: Positions) -> Floats:
    """Some rows as the model sees them: without the entries that no cluster expects."""
    values = c.values.rows(which)
    cells = c.outlier_cells[np.isin(c.outlier_cells[:, 0], which)]
    values[np.searchsorted(which, cells[:, 0]), cells[:, 1]] = np.nan
    return values


def origin_and_units(c: Clustering) -> tuple[Floats, Floats]:
    """What is taken off the columns, and what they are divided by.

    Units do not matter to a mixture, and should not to its picture.
    """
    if not is_mixture(c.kpod):
        return np.nan_to_num(np.asarray(c.kpod.column_means_, dtype=np.float64)), np.ones(len(c.names))
    means, deviations = c.kpod._moments()
    if c.kpod._shape().round:
        deviations = np.ones(len(c.names))
    return np.nan_to_num(means), np.where(deviations > 0, deviations, 1.0)


def ellipse(middle: Floats, covariance: Floats, edge: str) -> Ellipse:
    """Where nine in ten of a normal distribution in two dimensions lie."""
    variances, axes = np.linalg.eigh(covariance)
    width, height = 2 * np.sqrt(-2 * np.log(1 - INSIDE) * np.maximum(variances, 0.0))
    angle = float(np.degrees(np.arctan2(axes[1, 0], axes[0, 0])))
    return Ellipse((float(middle[0]), float(middle[1])), width, height, angle=angle, facecolor="none",
                   edgecolor=edge, linewidth=1.4, alpha=0.9, zorder=4)  # fmt: skip


class Plane(NamedTuple):
    """Two directions (axes) and what varies: along each, its share of all, and in every other one."""

    axes: Floats
    variances: Floats
    explained: Floats
    noise: float


def principal_plane(values: Floats) -> Plane:
    """Principal components of the observed entries; on complete data, those of PCA.

    With gaps a row is x = W t + noise, t standard normal in two dimensions and the noise the same in
    every column (Tipping & Bishop 1999), fitted by EM to what was observed. The columns of W
    have normal priors of variances fitted along (Bishop 1999, Bayesian PCA): of many columns with few
    entries, largest likelihood alone would make a plane that explains most of pure noise.
    """
    n_columns = values.shape[1]
    observed = (~np.isnan(values)).astype(np.float64)
    zeroed = np.nan_to_num(values)
    total = float((zeroed**2).sum()) / max(1, len(values))
    if n_columns == 1 or total == 0:
        axes = np.eye(n_columns, 2)
        return Plane(axes, np.array([total, 0.0]), np.array([float(total > 0), 0.0]), 0.0)
    variances, axes = two_largest(zeroed)
    least = 1e-9 * total / n_columns
    noise = max(least, (total - float(variances.sum())) / max(1, n_columns - 2))
    weights = axes * np.sqrt(np.maximum(variances - noise, 0))
    for _ in range(MOST_STEPS if np.isnan(values).any() else 0):
        before = weights
        weights, noise = step(zeroed, observed, weights, max(noise, least))
        if np.abs(weights - before).max() <= 1e-4 * np.abs(weights).max():
            break
    axes, lengths, _ = np.linalg.svd(weights, full_matrices=False)
    variances = lengths**2 + noise
    # The sign of a direction is arbitrary: its largest entry is taken to be positive.
    axes = axes * np.where(np.abs(axes).max(axis=0) == axes.max(axis=0), 1, -1)
    all_of_it = float(variances.sum()) + (n_columns - 2) * noise
    return Plane(axes, variances, variances / all_of_it, noise)


def step(zeroed: Floats, observed: Floats, weights: Floats, noise: float) -> tuple[Floats, float]:
    """One step of EM: what is expected of t given W and the noise, then these given that.

    With E the expectation over t, w_j solves (sum E[t t'] + noise / spread) w_j = sum x_j E[t], sums
    over the rows in which column j is observed; `spread` is the mean square of W's columns.
    """
    products = (weights[:, :, None] * weights[:, None, :]).reshape(-1, 4)
    inverse = np.linalg.inv((observed @ products).reshape(-1, 2, 2) + noise * np.eye(2))
    scores = np.einsum("iab,ib->ia", inverse, zeroed @ weights)
    seconds = noise * inverse + scores[:, :, None] * scores[:, None, :]
    left, right = zeroed.T @ scores, (observed.T @ seconds.reshape(-1, 4)).reshape(-1, 2, 2)
    spread = np.maximum((weights**2).mean(axis=0), 1e-12 * (weights**2).mean() + np.finfo(float).tiny)
    new = np.linalg.solve(right + np.diag(noise / spread), left[..., None])[..., 0]
    error = (zeroed**2).sum() - 2 * (new * left).sum() + np.einsum("ja,jab,jb->", new, right, new)
    return new, max(0.0, float(error) / max(1.0, float(observed.sum())))


def two_largest(zeroed: Floats) -> tuple[Floats, Floats]:
    """The two largest principal components of a table with its gaps at the mean."""
    n_rows, n_columns = zeroed.shape
    if n_columns > MANY_COLUMNS:  # by Lanczos, without a matrix of columns by columns
        product = LinearOperator(
            (n_columns, n_columns), matvec=lambda v: zeroed.T @ (zeroed @ v) / n_rows, dtype=np.float64
        )
        values, vectors = eigsh(product, 2, v0=np.ones(n_columns))
    else:
        values, vectors = np.linalg.eigh(zeroed.T @ zeroed / n_rows)
    order = np.argsort(values)[::-1][:2]
    return np.maximum(values[order], 0), vectors[:, order]


def expected_scores(values: Floats, axes: Floats, variances: Floats, noise: float) -> Floats:
    """The expected position of each row in the plane, given its observed entries (Tipping & Bishop 1999).

    The mean of the scores t given x = A t + noise over the observed columns, with t of the
    given variances: (A'A / noise + 1 / variances)^-1 A'x / noise.
    """
    most = float(variances.max())
    if most == 0:
        return np.zeros((len(values), 2))
    observed = (~np.isnan(values)).astype(np.float64)
    noise = max(noise, 1e-9 * most)
    precision = 1 / np.maximum(variances - noise, 1e-6 * most)
    products = (axes[:, :, None] * axes[:, None, :]).reshape(-1, 4)
    grams = (observed @ products).reshape(-1, 2, 2) + noise * np.diag(precision)
    scores = np.linalg.solve(grams, (np.nan_to_num(values) @ axes)[..., None])[..., 0]
    return scores.astype(np.float64, copy=False)
