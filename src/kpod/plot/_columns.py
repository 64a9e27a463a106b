"""Distributions of the columns that separate most."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from kpod._report.summary import Clustering
from kpod._typing import Floats
from kpod.plot._display import Display, colour, draw_rows, heading, short, tidy

MOST_DOTS = 1800


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
