"""Where the gaps are."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Rectangle

from kpod._report.summary import Clustering
from kpod._typing import Floats
from kpod.plot._display import Display, colour, heading, short, tidy

MOST_IMAGE_ROWS = 600


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
