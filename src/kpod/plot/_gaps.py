"""Where the gaps are."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, to_rgba
from matplotlib.patches import Rectangle

from kpod._common.sentences.formatting import counted, percent
from kpod._common.typing import Floats
from kpod._findings.fitted_clusters.clustering import Clustering
from kpod._findings.fitted_clusters.entries import DenseEntries
from kpod.plot._display import (
    OBSERVED,
    Display,
    colour,
    draw_members,
    heading,
    short,
    short_names,
    spaced,
    tidy,
)

MOST_IMAGE_ROWS = 600
GAP = "#b45309"


class GapsDisplay(Display):
    """The pattern of gaps: a line for each row, sorted by cluster, gaps orange.

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
    missing : float
        The share missing of all entries.

    Examples
    --------
    >>> from kpod import KPOD
    >>> from kpod.datasets import load_incomplete_wine
    >>> from kpod.plot import GapsDisplay
    >>> wine = load_incomplete_wine()
    >>> model = KPOD(3, random_state=0).fit(wine.data)
    >>> display = GapsDisplay.from_estimator(model, wine.data, column_names=wine.feature_names)
    >>> display.figure_.savefig("gaps.png")
    >>> round(display.missing, 2)
    0.25
    """

    def __init__(
        self,
        *,
        observed: Floats,
        bounds: Floats,
        groups: list[int],
        n_rows: int,
        names: list[str],
        missing: float,
    ) -> None:
        self.observed, self.bounds, self.groups = observed, bounds, groups
        self.n_rows, self.names, self.missing = n_rows, names, missing

    @classmethod
    def from_clustering(cls, clustering: Clustering) -> GapsDisplay:
        """Sort rows by cluster, then by how much was observed, and average the lines of long tables."""
        c = clustering
        table, labels, by_row = c.source, c.labels, c.source.by_row
        if c.sample is not None:
            rows = np.union1d(c.sample, draw_members(c.labels, 1))
            table, labels, by_row = DenseEntries(c.source.rows(rows)), c.labels[rows], by_row[rows]
        group = np.where(labels < 0, c.k, labels)
        order = np.lexsort((-by_row, group))
        groups = [int(g) for g in np.unique(group)]
        starts = np.searchsorted(group[order], groups)
        edges = np.linspace(0, len(order), min(len(order), MOST_IMAGE_ROWS) + 1).astype(int)
        line = np.empty(len(order), np.int32)
        line[order] = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
        lines = table.by_group(line, len(edges) - 1) / np.diff(edges)[:, None]
        bounds = np.append(starts, len(order)) / len(order)
        return cls(
            missing=c.source.share_missing,
            observed=lines,
            bounds=bounds,
            groups=[-1 if g == c.k else g for g in groups],
            n_rows=len(c.labels),
            names=c.source_names,
        )

    def figsize(self) -> tuple[float, float]:
        """Wider for more columns."""
        longest = max(map(len, map(short, self.names)))
        return min(10.0, max(5.0, 1.6 + 0.3 * len(self.names))), 3.4 + 0.07 * longest

    def _draw(self, ax: Any) -> None:
        n_columns = len(self.names)
        # Gaps cover what was observed, which a dark page can show darker.
        ax.add_patch(Rectangle((0, 0), n_columns, 1, facecolor=OBSERVED, linewidth=0, zorder=-1))
        ramp = LinearSegmentedColormap.from_list("gaps", [to_rgba(GAP, 0.0), to_rgba(GAP)])
        # A few gaps among the rows of one line must not vanish.
        ax.imshow(
            np.sqrt(1 - self.observed), cmap=ramp, vmin=0, vmax=1, aspect="auto", interpolation="none",
            extent=(0, n_columns, 1, 0),
        )  # fmt: skip
        for j in range(1, n_columns if n_columns <= 200 else 0):
            ax.axvline(j, color="white", linewidth=min(1.0, 20 / n_columns))
        for bound in self.bounds[1:-1]:
            ax.axhline(bound, color="white", linewidth=2.5)
        bar = 0.06 / ax.figure.get_figwidth()  # inches, whatever the width
        for group, low, high in zip(self.groups, self.bounds[:-1], self.bounds[1:], strict=True):
            ax.add_patch(
                Rectangle((-2 * bar, low), bar, high - low, transform=ax.get_yaxis_transform(),
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
        ax.tick_params(axis="y", pad=11)
        every = int(np.ceil(n_columns / 60))
        ax.set_xticks(np.arange(0, n_columns, every) + 0.5, short_names(self.names[::every]))
        ax.tick_params(
            axis="x", labelrotation=90 if crowded(self.names) else 0, labelsize=9 if n_columns <= 30 else 7
        )
        rows = counted(self.n_rows, "row")
        text = (
            f"{percent(self.missing)} of the entries missing (orange)" if self.missing else "nothing missing"
        )
        heading(ax, f"{rows}, {text}")


def crowded(names: list[str]) -> bool:
    """Whether names side by side would run into each other."""
    return len(names) > 5 or sum(len(short(name)) for name in names) > 40
