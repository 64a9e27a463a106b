"""The centers, and the number of observed entries behind each value."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.patches import Rectangle

from kpod._common.sentences.formatting import counted
from kpod._common.typing import Floats, Labels
from kpod._findings.fitted_clusters.clustering import Clustering
from kpod.plot._display import FAINT, INK, MUTED, Display, colour, fading, short_names, tidy

DIVERGING = fading("kpod", ["#0b5394", "#6fa8dc"], ["#f0a868", "#b45309"])
MOST_COLOURED = 3.0


def short_count(count: float) -> str:
    """A short count: 950, 1.2k, 35k, 2.1M."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.1f}{letter}" if count < 10 * size else f"{count / size:.0f}{letter}"
    return f"{count:.3g}"


class CentersDisplay(Display):
    """Centers as differences from the column mean, in standard deviations of the column.

    The colour and the number are the difference; the area of each square is the number of
    observed entries behind it, which is also written beside it, so that a center based on
    two observations does not look like one based on two hundred.

    Parameters
    ----------
    differences, counts : ndarray of shape (n_clusters, n_columns)
        Standardised differences, and observed entries behind them.
    sizes : ndarray of shape (n_clusters,)
        Rows of each cluster.
    names : list of str
        Names of the columns.
    texts : list of list of str, default=None
        What to write for each cluster and column, instead of the difference: the share of a level.

    Examples
    --------
    >>> from kpod import KPOD
    >>> from kpod.datasets import load_incomplete_wine
    >>> from kpod.plot import CentersDisplay
    >>> wine = load_incomplete_wine()
    >>> model = KPOD(3, random_state=0).fit(wine.data)
    >>> display = CentersDisplay.from_estimator(model, wine.data, column_names=wine.feature_names)
    >>> display.figure_.savefig("centers.png")
    >>> display.differences.shape
    (3, 13)
    """

    def __init__(
        self,
        *,
        differences: Floats,
        counts: Floats,
        sizes: Labels,
        names: list[str],
        texts: list[list[str]] | None = None,
    ) -> None:
        self.differences, self.counts, self.sizes, self.names = differences, counts, sizes, names
        self.texts = texts

    @classmethod
    def from_clustering(cls, clustering: Clustering, *, max_columns: int = 25) -> CentersDisplay:
        """The columns that separate most, first those."""
        c = clustering
        columns = c.by_separation[:max_columns]
        return cls(
            differences=c.differences[:, columns],
            counts=c.counts[:, columns],
            sizes=c.sizes,
            names=[c.label(j) for j in columns],
            texts=[[c.shown(j, c.centers[m, j]) if c.levels[j] else "" for j in columns] for m in range(c.k)],
        )

    def figsize(self) -> tuple[float, float]:
        """A cell for each center and column."""
        return max(5.2, 2.6 + 1.25 * len(self.sizes)), 1.2 + 0.36 * len(self.names)

    def _draw(self, ax: Any) -> None:
        k, n_columns = self.differences.shape
        # One extreme value must not turn all others grey.
        limit = min(MOST_COLOURED, max(1.0, float(np.abs(self.differences).max())))
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
                text = f"{round(difference, 1) + 0:+.1f}" if count > 0 else "–"  # noqa: RUF001
                if count > 0 and self.texts is not None and self.texts[cluster][j]:
                    text = self.texts[cluster][j]
                ax.text(cluster - 0.06, j, text, va="center", ha="left", fontsize=9.5, color=INK)
                ax.text(
                    cluster + 0.46,
                    j,
                    f"n {short_count(count)}",
                    va="center",
                    ha="right",
                    fontsize=7.5,
                    color=MUTED,
                )
        ax.set(xlim=(-0.55, k - 0.45), ylim=(n_columns - 0.5, -0.5))
        ax.set_yticks(range(n_columns), short_names(self.names))
        ax.set_xticks(
            range(k),
            [f"cluster {cluster}\n{counted(int(size), 'row')}" for cluster, size in enumerate(self.sizes)],
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
