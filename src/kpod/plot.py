"""Pictures of a clustering, after scikit-learn's displays.

Each class has `from_estimator(model, X)`, which works out what is to be shown, and
`plot(ax=)`, which draws it; `ax_` and `figure_` are what it was drawn on. `model` is a fitted
`KPOD`, or a pipeline that ends in one; then everything is shown in the units of `X`.

Colours are those of Okabe & Ito, which survive colour-blindness; every cluster has a marker of
its own as well, for print without colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, to_rgba
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from scipy.sparse.linalg import eigsh

from kpod._blocks import Floats, Labels
from kpod._files import printable
from kpod._summary import Clustering, number

__all__ = [
    "CentersDisplay",
    "ColumnsDisplay",
    "GapsDisplay",
    "LossDisplay",
    "MarginsDisplay",
    "RowsDisplay",
]

PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D31"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*", "<", ">"]
INK = "#24292f"
MUTED = "#6e7781"
FAINT = "#d0d7de"
NO_CLUSTER = "#8c959f"
DIVERGING = LinearSegmentedColormap.from_list("kpod", ["#0b5394", "#6fa8dc", "#eeeeee", "#f0a868", "#b45309"])
MOST_IMAGE_ROWS = 600
MOST_POINTS = 2000
MANY_COLUMNS = 500
MOST_DOTS = 1800


def colour(cluster: int) -> str:
    """The colour of a cluster."""
    return NO_CLUSTER if cluster < 0 else PALETTE[cluster % len(PALETTE)]


def marker(cluster: int) -> str:
    """The marker of a cluster: colours come again after seven clusters, pairs after seventy."""
    return MARKERS[cluster % len(MARKERS)]


class Display:
    """What the displays have in common."""

    ax_: Any
    figure_: Any
    size: ClassVar[tuple[float, float]] = (6.4, 4.0)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        ax: Any = None,
        column_names: Sequence[str] | None = None,
        **options: Any,
    ) -> Any:
        """Draw for a fitted model and a table.

        Parameters
        ----------
        estimator : KPOD or Pipeline
            The fitted model; a pipeline must end in a KPOD.
        X : array-like or dataframe of shape (n_samples, n_features)
            The table, of the kind that `estimator` was fitted on.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        column_names : sequence of str, default=None
            Names of the columns, where neither the model nor `X` knows them.
        **options
            Given to `from_clustering`.

        Returns
        -------
        The display.
        """
        return cls.from_clustering(Clustering.of(estimator, X, column_names), **options).plot(ax=ax)

    @classmethod
    def from_clustering(cls, clustering: Clustering) -> Any:
        """Work out what is to be shown, and draw nothing."""
        raise NotImplementedError

    def plot(self, ax: Any = None) -> Any:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        self
        """
        if ax is None:
            from matplotlib import pyplot as plt  # noqa: PLC0415

            _, ax = plt.subplots(figsize=self.figsize(), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        self._draw(ax)
        return self

    def figsize(self) -> tuple[float, float]:
        """Of a new figure, in inches."""
        return self.size

    def _draw(self, ax: Any) -> None:
        raise NotImplementedError


def tidy(ax: Any, *, grid: str | None = None) -> None:
    """Leave out what says nothing."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(FAINT)
    ax.tick_params(colors=MUTED, labelcolor=INK, length=3)
    for label in (ax.xaxis.label, ax.yaxis.label):
        label.set_color(INK)
    if grid:
        ax.grid(axis=grid, color=FAINT, linewidth=0.6)
        ax.set_axisbelow(True)


def heading(ax: Any, text: str) -> None:
    """What is to be seen, above the picture."""
    ax.set_title(text, loc="left", fontsize=10.5, color=INK)


def short(name: str, most: int = 28) -> str:
    """A name that leaves room for the picture; `$` is no mathematics here."""
    name = printable(name)
    return (name if len(name) <= most else name[: most - 1] + "…").replace("$", r"\$")


def draw_rows(n: int, most: int) -> np.ndarray[Any, Any]:
    """All rows, or a fixed sample where there are too many to draw."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False))


class GapsDisplay(Display):
    """The pattern of gaps: a line for each row, sorted by cluster, gaps light.

    Parameters
    ----------
    observed : ndarray of shape (n_lines, n_columns)
        Share observed; each line is a row, or several where there are many.
    bounds : ndarray of shape (n_groups + 1,)
        The lines at which clusters begin and end.
    groups : list of int
        The clusters, in order; -1 for rows with nothing observed.
    n_rows : int
        Rows of the table.
    names : list of str
        Names of the columns.
    """

    def __init__(
        self, *, observed: Floats, bounds: Floats, groups: list[int], n_rows: int, names: list[str]
    ) -> None:
        self.observed, self.bounds, self.groups = observed, bounds, groups
        self.n_rows, self.names = n_rows, names

    @classmethod
    def from_clustering(cls, clustering: Clustering) -> GapsDisplay:
        """Sort rows by cluster, then by how much was observed, and average the lines of long tables."""
        c = clustering
        group = np.where(c.labels < 0, c.k, c.labels)
        order = np.lexsort((-c.observed_by_row, group))
        groups = [int(g) for g in np.unique(group)]
        starts = np.searchsorted(group[order], groups)
        edges = np.linspace(0, len(order), min(len(order), MOST_IMAGE_ROWS) + 1).astype(int)
        lines = np.add.reduceat(c.observed[order].astype(np.float32), edges[:-1], axis=0)
        lines /= np.diff(edges)[:, None]
        bounds = np.append(starts, len(order)) / len(order)
        return cls(
            observed=lines,
            bounds=bounds,
            groups=[-1 if g == c.k else g for g in groups],
            n_rows=len(order),
            names=c.names,
        )

    def figsize(self) -> tuple[float, float]:
        """Wider for more columns."""
        longest = max(map(len, map(short, self.names)))
        return min(10.0, max(5.0, 1.6 + 0.3 * len(self.names))), 3.4 + 0.07 * longest

    def _draw(self, ax: Any) -> None:
        n_columns = len(self.names)
        ramp = LinearSegmentedColormap.from_list("gaps", ["#f3e3c8", "#33475b"])
        ax.imshow(
            self.observed, cmap=ramp, vmin=0, vmax=1, aspect="auto", interpolation="none",
            extent=(0, n_columns, 1, 0),
        )  # fmt: skip
        for j in range(1, n_columns if n_columns <= 200 else 0):
            ax.axvline(j, color="white", linewidth=min(1.0, 20 / n_columns))
        for bound in self.bounds[1:-1]:
            ax.axhline(bound, color="white", linewidth=2.5)
        for group, low, high in zip(self.groups, self.bounds[:-1], self.bounds[1:], strict=True):
            ax.add_patch(
                Rectangle((-0.014, low), 0.01, high - low, transform=ax.get_yaxis_transform(),
                          color=colour(group), clip_on=False, linewidth=0)
            )  # fmt: skip
        names = ["none" if group < 0 else f"cluster {group}" for group in self.groups]
        far = spaced((self.bounds[:-1] + self.bounds[1:]) / 2, 0.05)
        ax.set_yticks(
            [at for at, keep in far if keep], [n for n, (_, keep) in zip(names, far, strict=True) if keep]
        )
        tidy(ax)
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0)
        ax.tick_params(axis="y", pad=9)
        every = int(np.ceil(n_columns / 60))
        ax.set_xticks(np.arange(0, n_columns, every) + 0.5, [short(n) for n in self.names[::every]])
        ax.tick_params(
            axis="x", labelrotation=90 if n_columns > 5 else 0, labelsize=9 if n_columns <= 30 else 7
        )
        share = 1 - self.observed.mean()
        heading(ax, f"{self.n_rows:,} rows, {share:.0%} of the entries missing (light)")


def spaced(positions: Floats, least: float) -> list[tuple[float, bool]]:
    """Positions, and whether each is far enough from the last one kept to bear a label."""
    kept, last = [], -np.inf
    for position in positions:
        keep = bool(position - last >= least)
        last = float(position) if keep else last
        kept.append((float(position), keep))
    return kept


class CentersDisplay(Display):
    """Centers as differences from the column's mean, in its standard deviations.

    The colour and the number are the difference; the area of each square is the number of
    observed entries behind it, which is also written beside it, so that a center resting on
    two observations does not look like one resting on two hundred.

    Parameters
    ----------
    differences, counts : ndarray of shape (n_clusters, n_columns)
        Standardised differences, and observed entries behind them.
    sizes : ndarray of shape (n_clusters,)
        Rows of each cluster.
    names : list of str
        Names of the columns.
    """

    def __init__(self, *, differences: Floats, counts: Floats, sizes: Labels, names: list[str]) -> None:
        self.differences, self.counts, self.sizes, self.names = differences, counts, sizes, names

    @classmethod
    def from_clustering(cls, clustering: Clustering, *, max_columns: int = 25) -> CentersDisplay:
        """The columns that separate most, first those."""
        c = clustering
        columns = c.by_separation[:max_columns]
        return cls(
            differences=c.differences[:, columns],
            counts=c.counts[:, columns],
            sizes=c.sizes,
            names=[c.names[j] for j in columns],
        )

    def figsize(self) -> tuple[float, float]:
        """A cell for each center and column."""
        return max(5.2, 2.6 + 1.25 * len(self.sizes)), 1.2 + 0.36 * len(self.names)

    def _draw(self, ax: Any) -> None:
        k, n_columns = self.differences.shape
        limit = max(1.0, float(np.abs(self.differences).max()))
        most = max(1.0, float(self.counts.max()))
        # The axes are stretched: a square on paper is narrower in data by this factor.
        width = 0.36 / 1.25
        for cluster in range(k):
            for j in range(n_columns):
                count, difference = self.counts[cluster, j], self.differences[cluster, j]
                side = 0.86 * np.sqrt(count / most)
                frame = Rectangle((cluster - 0.28 - 0.43 * width, j - 0.43), 0.86 * width, 0.86,
                                  facecolor="none", edgecolor=FAINT, linewidth=0.7)  # fmt: skip
                tile = Rectangle((cluster - 0.28 - side * width / 2, j - side / 2), side * width, side,
                                 facecolor=DIVERGING(0.5 + difference / (2 * limit)),
                                 edgecolor=MUTED, linewidth=0.4)  # fmt: skip
                ax.add_patch(frame)
                if count > 0:
                    ax.add_patch(tile)
                said = f"{round(difference, 1) + 0:+.1f}" if count > 0 else "–"  # noqa: RUF001
                ax.text(cluster - 0.06, j, said, va="center", ha="left", fontsize=9.5, color=INK)
                ax.text(
                    cluster + 0.46,
                    j,
                    f"n {number(count)}",
                    va="center",
                    ha="right",
                    fontsize=7.5,
                    color=MUTED,
                )
        ax.set(xlim=(-0.55, k - 0.45), ylim=(n_columns - 0.5, -0.5))
        ax.set_yticks(range(n_columns), [short(name) for name in self.names])
        ax.set_xticks(
            range(k), [f"cluster {cluster}\n{size:,} rows" for cluster, size in enumerate(self.sizes)]
        )
        ax.xaxis.tick_top()
        tidy(ax)
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0)
        for cluster, label in enumerate(ax.get_xticklabels()):
            label.set_color(colour(cluster))
            label.set_fontweight("bold")
        for edge in np.arange(1, k) - 0.5:
            ax.axvline(edge, color=FAINT, linewidth=0.7)
        note = "standard deviations from the column's mean\narea of a square: observed entries (n)"
        ax.set_xlabel(note, fontsize=9)
        ax.xaxis.set_label_position("bottom")


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


class ColumnsDisplay(Display):
    """Distributions by cluster of the columns that separate most, in their own units.

    Boxes hold the middle half, whiskers reach from the 5th to the 95th percentile, the line
    is the median; dots are rows, a sample where there are many.

    Parameters
    ----------
    entries : list of lists of ndarray
        The observed entries of each column in each cluster.
    names : list of str
        Names of the columns.
    separation : list of float
        Of each column, the share of its variance that the clusters explain.
    """

    def __init__(self, *, entries: list[list[Floats]], names: list[str], separation: list[float]) -> None:
        self.entries, self.names, self.separation = entries, names, separation

    @classmethod
    def from_clustering(cls, clustering: Clustering, *, max_columns: int = 6) -> ColumnsDisplay:
        """Gather the observed entries of the columns that separate most."""
        c = clustering
        columns = [j for j in c.by_separation[:max_columns] if c.observed[:, j].any()]
        members = [c.labels == cluster for cluster in range(c.k)]
        return cls(
            entries=[[c.table[here & c.observed[:, j], j] for here in members] for j in columns],
            names=[c.names[j] for j in columns],
            separation=[float(c.separation[j]) for j in columns],
        )

    def shape(self) -> tuple[int, int]:
        """Rows and columns of panels."""
        n_wide = min(3, max(1, len(self.names)))
        return int(np.ceil(len(self.names) / n_wide)), n_wide

    def figsize(self) -> tuple[float, float]:
        """A panel for each column of the table."""
        n_high, n_wide = self.shape()
        k = len(self.entries[0]) if self.entries else 1
        return max(3.2 * n_wide, 4.0), n_high * (0.9 + 0.3 * min(k, 16))

    def _draw(self, ax: Any) -> None:
        """One axes stands for all panels, as in scikit-learn's partial dependence display."""
        ax.set_axis_off()
        self.axes_ = []
        if not self.names:
            return
        spec = ax.get_subplotspec()
        if spec is None:
            raise ValueError("ColumnsDisplay needs axes that are part of a grid, as plt.subplots makes them.")
        panels = spec.subgridspec(*self.shape())
        for number_, (name, groups) in enumerate(zip(self.names, self.entries, strict=True)):
            panel = ax.figure.add_subplot(panels[divmod(number_, self.shape()[1])])
            self._draw_panel(panel, groups)
            heading(panel, f"{short(name)}  {self.separation[number_]:.0%}")
            labels = [f"cluster {c}" for c in range(len(groups))] if number_ % self.shape()[1] == 0 else []
            panel.set_yticks(range(len(groups)), labels or [""] * len(groups))
            self.axes_.append(panel)

    def _draw_panel(self, panel: Any, groups: list[Floats]) -> None:
        rng = np.random.default_rng(0)
        for cluster, entries in enumerate(groups):
            if not len(entries):
                continue
            dots = entries[draw_rows(len(entries), MOST_DOTS // (len(self.names) * len(groups)))]
            panel.scatter(dots, cluster + rng.uniform(-0.3, 0.3, len(dots)), s=5, color=colour(cluster),
                          alpha=0.35, linewidths=0)  # fmt: skip
            low, q1, median, q3, high = np.percentile(entries, [5, 25, 50, 75, 95])
            panel.plot([low, high], [cluster, cluster], color=colour(cluster), linewidth=1.2)
            inside = to_rgba(colour(cluster), 0.25)
            panel.add_patch(Rectangle((q1, cluster - 0.3), q3 - q1, 0.6, facecolor=inside,
                                      edgecolor=colour(cluster), linewidth=1.2))  # fmt: skip
            panel.plot([median, median], [cluster - 0.3, cluster + 0.3], color=colour(cluster), linewidth=2.4)
        panel.set_ylim(len(groups) - 0.4, -0.6)
        panel.xaxis.set_major_locator(MaxNLocator(5))
        tidy(panel, grid="x")
        panel.tick_params(axis="y", length=0)
        panel.tick_params(labelsize=9)


class LossDisplay(Display):
    """The loss by iteration: of Lloyd first, then of moving single rows.

    Parameters
    ----------
    losses : ndarray
        The loss after each iteration.
    n_iter : int
        Iterations before moves of single rows.
    """

    def __init__(self, *, losses: Floats, n_iter: int) -> None:
        self.losses, self.n_iter = losses, n_iter

    @classmethod
    def from_clustering(cls, clustering: Clustering) -> LossDisplay:
        """What the best start went through."""
        return cls(losses=np.asarray(clustering.kpod.loss_curve_), n_iter=int(clustering.kpod.n_iter_))

    size: ClassVar[tuple[float, float]] = (6.4, 3.0)

    def _draw(self, ax: Any) -> None:
        steps = np.arange(1, len(self.losses) + 1)
        n = self.n_iter
        dots = {"marker": "o", "markersize": 4.5 if len(steps) <= 60 else 0}
        if len(steps) > n:
            ax.plot(steps[n - 1 :], self.losses[n - 1 :], color=PALETTE[1], label="moves of single rows",
                    **{**dots, "marker": "s"})  # fmt: skip
        ax.plot(steps[:n], self.losses[:n], color=PALETTE[0], label="iterations", **dots)
        ax.set(xlabel="iteration", ylabel="loss over observed entries")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        tidy(ax, grid="y")
        if len(steps) > n:
            ax.legend(frameon=False, fontsize=9, labelcolor=INK)


class MarginsDisplay(Display):
    """How well each row sits in its cluster: 1 on its center, 0 halfway to another.

    (b - a) / max(a, b), with a the distance of the row to its own center over its observed
    columns and b that to the nearest other center: the silhouette with centers for clusters.

    Parameters
    ----------
    margins : list of ndarray
        The margins of the rows of each cluster, in descending order.
    """

    def __init__(self, *, margins: list[Floats]) -> None:
        self.margins = margins

    @classmethod
    def from_clustering(cls, clustering: Clustering) -> MarginsDisplay:
        """Sort the margins of each cluster."""
        c = clustering
        if c.k < 2:
            raise ValueError("How well a row sits in its cluster takes a second cluster to compare with.")
        return cls(margins=[np.sort(c.margins[c.labels == cluster])[::-1] for cluster in range(c.k)])

    size: ClassVar[tuple[float, float]] = (6.4, 4.0)

    def _draw(self, ax: Any) -> None:
        total = sum(map(len, self.margins))
        gap, start, ticks = 0.02 * total, 0.0, []
        for cluster, margins in enumerate(self.margins):
            if len(margins):
                # A few hundred points draw the same outline as a million.
                at = np.linspace(0, len(margins) - 1, min(len(margins), 400))
                outline = np.interp(at, np.arange(len(margins)), margins)
                ax.fill_betweenx(start + at / max(1, len(margins) - 1) * len(margins), 0, outline,
                                 color=colour(cluster), alpha=0.85, linewidth=0)  # fmt: skip
                ticks.append((start + len(margins) / 2, f"cluster {cluster}"))
            start += len(margins) + gap
        mean = float(np.concatenate(self.margins).mean()) if total else 0.0
        ax.axvline(mean, color=INK, linewidth=1, linestyle=(0, (4, 3)))
        ax.set_yticks([at for at, _ in ticks], [name for _, name in ticks])
        ax.set_ylim(start, -gap)
        ax.set_xlim(min(0.0, *(float(m.min()) for m in self.margins if len(m))) - 0.01, 1)
        ax.set_xlabel("how well each row sits: 0 between two centers, 1 on its own")
        heading(ax, f"mean {mean:.2f} (dashed)")
        tidy(ax, grid="x")
        ax.tick_params(axis="y", length=0)
