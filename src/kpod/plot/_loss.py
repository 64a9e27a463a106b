"""How the loss fell."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from matplotlib.ticker import MaxNLocator
from sklearn.utils.validation import check_is_fitted

from kpod._common.typing import Floats
from kpod._findings.clustering import Clustering, split
from kpod.plot._display import INK, PALETTE, Display, tidy


class LossDisplay(Display):
    """The loss by iteration: of Lloyd first, then of moving single rows.

    Parameters
    ----------
    losses : ndarray
        The loss after each iteration.
    n_iter : int
        Iterations before moves of single rows.

    Examples
    --------
    >>> from kpod import KPOD
    >>> from kpod.datasets import load_incomplete_wine
    >>> from kpod.plot import LossDisplay
    >>> wine = load_incomplete_wine()
    >>> model = KPOD(3, random_state=0).fit(wine.data)
    >>> display = LossDisplay.from_estimator(model, wine.data)
    >>> display.figure_.savefig("loss.png")
    >>> bool((display.losses[1:] <= display.losses[:-1]).all())
    True
    """

    def __init__(self, *, losses: Floats, n_iter: int) -> None:
        self.losses, self.n_iter = losses, n_iter

    @classmethod
    def from_clustering(cls, clustering: Clustering) -> LossDisplay:
        """What the best start went through."""
        return cls(losses=np.asarray(clustering.kpod.loss_curve_), n_iter=int(clustering.kpod.n_iter_))

    @classmethod
    def from_estimator(  # the signature is that of the other displays
        cls,
        estimator: Any,
        X: Any = None,  # noqa: ARG003
        *,
        ax: Any = None,
        **options: Any,  # noqa: ARG003
    ) -> LossDisplay:
        """Draw for a fitted model; the table is not needed, and not looked at.

        Parameters
        ----------
        estimator : KPOD or Pipeline
            The fitted model; a pipeline must end in a KPOD.
        X : ignored
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **options : ignored

        Returns
        -------
        The display.
        """
        _, kpod = split(estimator)
        check_is_fitted(kpod)
        if not hasattr(kpod, "loss_curve_"):
            raise TypeError(f"{type(kpod).__name__} keeps no losses of its iterations to draw.")
        return cls(losses=np.asarray(kpod.loss_curve_), n_iter=int(kpod.n_iter_)).plot(ax=ax)

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
