"""Distributions of the columns that separate most."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from kpod._common.sentences.formatting import percent
from kpod._common.typing import Floats
from kpod._findings.fitted_clusters.clustering import MOST_ROWS, Clustering
from kpod.plot._display import (
    INK,
    Display,
    colour,
    draw_members,
    draw_rows,
    heading,
    middle_part,
    short_names,
    tidy,
)

MOST_DOTS = 1800


def is_zero_or_one(values: Floats) -> bool:
    """Whether 0 and 1 are all there is."""
    return bool(
        len(values) and values.min() == 0 and values.max() == 1 and ((values == 0) | (values == 1)).all()
    )


def plain_year(value: float, _: int = 0) -> str:
    """2007, without a comma."""
    return f"{value:.0f}" if value == round(value) else f"{value:.1f}"


def short_number(value: float, _: int = 0) -> str:
    """A number beside an axis: 0.5, 1,500, 250k, 1.2M, 3B."""
    for least, unit, letter in ((1e9, 1e9, "B"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if abs(value) >= least:
            return f"{value / unit:.4g}{letter}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


class ColumnsDisplay(Display):
    """Distributions by cluster of the columns that separate the clusters most, in their own units.

    Boxes hold the middle half, whiskers reach from the 5th to the 95th percentile, the line
    is the median; dots are rows (a sample if there are many).

    Parameters
    ----------
    entries : list of lists of ndarray
        The observed entries of each column in each cluster.
    names : list of str
        Names of the columns.
    separation : list of float
        Of each column, how much of it the clusters explain.
    are_shares : list of bool, default=None
        Whether a column holds nothing but 0 and 1, of which the share of 1 is drawn.
    are_years : list of bool, default=None
        Whether a column holds years.

    Examples
    --------
    >>> from kpod import KPOD
    >>> from kpod.datasets import load_incomplete_wine
    >>> from kpod.plot import ColumnsDisplay
    >>> wine = load_incomplete_wine()
    >>> model = KPOD(3, random_state=0).fit(wine.data)
    >>> display = ColumnsDisplay.from_estimator(model, wine.data, column_names=wine.feature_names)
    >>> display.figure_.savefig("columns.png")
    >>> display.names[0]
    'proline'
    """

    def __init__(
        self,
        *,
        entries: list[list[Floats]],
        names: list[str],
        separation: list[float],
        are_shares: list[bool] | None = None,
        are_years: list[bool] | None = None,
    ) -> None:
        self.entries, self.names, self.separation = entries, names, separation
        self.are_shares = are_shares or [False] * len(names)
        self.are_years = are_years or [False] * len(names)

    @classmethod
    def from_clustering(cls, clustering: Clustering, *, max_columns: int = 6) -> ColumnsDisplay:
        """Gather the observed entries of the columns that separate most."""
        c = clustering
        columns = [j for j in c.by_separation[:max_columns] if c.table.by_column[j]]
        rows = None if c.sample is None else draw_members(c.labels, MOST_ROWS, least=200)
        labelled = []
        for j in columns:
            where, entries = c.table.column(j, rows)
            here = c.labels[where] >= 0
            labelled.append((entries[here].astype(np.float64), c.labels[where[here]]))
        return cls(
            entries=[[entries[labels == m] for m in range(c.k)] for entries, labels in labelled],
            names=[c.label(j) for j in columns],
            are_shares=[
                c.levels[j] is not None or is_zero_or_one(entries)
                for j, (entries, _) in zip(columns, labelled, strict=True)
            ],
            are_years=[c.is_year[j] for j in columns],
            separation=[float(c.separation[j]) for j in columns],
        )

    def shape(self) -> tuple[int, int]:
        """Rows and columns of panels."""
        n_wide = min(3, max(1, len(self.names)))
        return max(1, int(np.ceil(len(self.names) / n_wide))), n_wide

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
        for number_, (name, groups) in enumerate(zip(short_names(self.names), self.entries, strict=True)):
            panel = ax.figure.add_subplot(panels[divmod(number_, self.shape()[1])])
            if self.are_shares[number_]:
                self._draw_shares(panel, groups)
            else:
                self._draw_panel(panel, groups)
                panel.xaxis.set_major_formatter(plain_year if self.are_years[number_] else short_number)
            heading(panel, f"{name}  {percent(self.separation[number_])}")
            labels = [f"cluster {c}" for c in range(len(groups))] if number_ % self.shape()[1] == 0 else []
            panel.set_yticks(range(len(groups)), labels or [""] * len(groups))
            self.axes_.append(panel)

    def _draw_shares(self, panel: Any, groups: list[Floats]) -> None:
        for cluster, entries in enumerate(groups):
            if len(entries):
                share = float(entries.mean())
                panel.barh(cluster, share, height=0.6, color=colour(cluster), alpha=0.8)
                panel.text(share, cluster, f" {percent(share)}", va="center", fontsize=8, color=INK)
        panel.set(ylim=(len(groups) - 0.4, -0.6), xlim=(0, 1.18))
        panel.set_xticks([0, 0.5, 1], ["0%", "50%", "100%"])
        tidy(panel, grid="x")
        panel.tick_params(axis="y", length=0)
        panel.tick_params(labelsize=9)

    def _draw_panel(self, panel: Any, groups: list[Floats]) -> None:
        rng = np.random.default_rng(0)
        ends = []
        for cluster, entries in enumerate(groups):
            if not len(entries):
                continue
            dots = entries[draw_rows(len(entries), MOST_DOTS // (len(self.names) * len(groups)))]
            panel.scatter(dots, cluster + rng.uniform(-0.3, 0.3, len(dots)), s=5, color=colour(cluster),
                          alpha=0.35, linewidths=0)  # fmt: skip
            low, q1, median, q3, high = np.percentile(entries, [5, 25, 50, 75, 95])
            ends += [low, high]
            panel.plot([low, high], [cluster, cluster], color=colour(cluster), linewidth=1.2)
            inside = to_rgba(colour(cluster), 0.25)
            panel.add_patch(Rectangle((q1, cluster - 0.3), q3 - q1, 0.6, facecolor=inside,
                                      edgecolor=colour(cluster), linewidth=1.2))  # fmt: skip
            panel.plot([median, median], [cluster - 0.3, cluster + 0.3], color=colour(cluster), linewidth=2.4)
        panel.set_ylim(len(groups) - 0.4, -0.6)
        everything = np.concatenate([entries for entries in groups if len(entries)])
        if len(everything) >= 50:
            # Dots far out may lie beyond the frame, but no part of a box or of its whiskers.
            low, high = middle_part(everything)
            low, high = min(low, *ends), max(high, *ends)
            panel.set_xlim(low - 0.05 * (high - low or 1), high + 0.05 * (high - low or 1))
        panel.xaxis.set_major_locator(MaxNLocator(5))
        tidy(panel, grid="x")
        panel.tick_params(axis="y", length=0)
        panel.tick_params(labelsize=9)
