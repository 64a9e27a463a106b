"""How the loss fell."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from matplotlib.ticker import MaxNLocator

from kpod._report.summary import Clustering
from kpod._typing import Floats
from kpod.plot._display import INK, PALETTE, Display, tidy


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
