"""How clearly each row belongs to its cluster."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from kpod._common.typing import Floats
from kpod._findings.fitted_clusters.clustering import Clustering
from kpod._findings.fitted_clusters.models import is_mixture
from kpod.plot._display import INK, Display, colour, heading, spaced, tidy


class MarginsDisplay(Display):
    """The margin of each row: 1 on its center, 0 halfway to another.

    (b - a) / max(a, b), with a the distance of the row to its own center over its observed
    columns and b that to the nearest other center: a silhouette computed with centers. For a
    mixture, 1 - b / a, with a the probability of the row's cluster and b that of the next.

    Parameters
    ----------
    margins : list of ndarray
        The margins of the rows of each cluster, in descending order.
    by : {"distance", "probability"}, default="distance"
        What is compared.

    Examples
    --------
    >>> from kpod import KPOD
    >>> from kpod.datasets import load_incomplete_wine
    >>> from kpod.plot import MarginsDisplay
    >>> wine = load_incomplete_wine()
    >>> model = KPOD(3, random_state=0).fit(wine.data)
    >>> display = MarginsDisplay.from_estimator(model, wine.data)
    >>> display.figure_.savefig("margins.png")
    >>> sum(len(rows) for rows in display.margins)
    178
    """

    def __init__(self, *, margins: list[Floats], by: str = "distance") -> None:
        self.margins, self.by = margins, by

    @classmethod
    def from_clustering(cls, clustering: Clustering) -> MarginsDisplay:
        """Sort the margins of each cluster."""
        c = clustering
        if c.k < 2:
            raise ValueError("Margins need a second cluster to compare with; the model has one.")
        margins = [np.sort(c.margins[c.sampled_labels == cluster])[::-1] for cluster in range(c.k)]
        return cls(margins=margins, by="probability" if is_mixture(c.kpod) else "distance")

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
        far = spaced(np.array([at for at, _ in ticks]), 0.05 * start)
        named = [(at, name) for (at, keep), (_, name) in zip(far, ticks, strict=True) if keep]
        ax.set_yticks([at for at, _ in named], [name for _, name in named])
        ax.set_ylim(max(start, 1.0), -gap)
        ax.set_xlim(min([0.0, *(float(m.min()) for m in self.margins if len(m))]) - 0.01, 1)
        of_distances = "0: halfway to another center, 1: on its own center"
        of_probabilities = "0: another cluster is as likely, 1: no other is"
        ax.set_xlabel(f"margin ({of_probabilities if self.by == 'probability' else of_distances})")
        heading(ax, f"mean {mean:.2f} (dashed)" if total else "no row is in a cluster")
        tidy(ax, grid="x")
        ax.tick_params(axis="y", length=0)
