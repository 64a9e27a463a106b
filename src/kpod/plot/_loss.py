"""How the loss fell, or the likelihood of a mixture rose."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from matplotlib.ticker import MaxNLocator
from sklearn.utils.validation import check_is_fitted

from kpod._common.typing import Floats
from kpod._findings.fitted_clusters.clustering import Clustering
from kpod._findings.fitted_clusters.models import Model, is_mixture, split
from kpod.plot._display import INK, PALETTE, Display, tidy


class LossDisplay(Display):
    """The loss by iteration: first of Lloyd's algorithm, then of single-row moves.

    For a mixture, the quantity that EM maximises: the log-likelihood per row, including the prior.

    Parameters
    ----------
    losses : ndarray
        The loss after each iteration, or the likelihood.
    n_iter : int
        Iterations before moves of single rows.
    of : {"loss", "likelihood"}, default="loss"
        What it is.

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

    def __init__(self, *, losses: Floats, n_iter: int, of: str = "loss") -> None:
        self.losses, self.n_iter, self.of = losses, n_iter, of

    @classmethod
    def of_model(cls, model: Model) -> LossDisplay:
        """What the best start went through."""
        if is_mixture(model):
            likelihoods = np.asarray(model.lower_bounds_)
            return cls(losses=likelihoods, n_iter=len(likelihoods), of="likelihood")
        if not hasattr(model, "loss_curve_"):
            raise TypeError(f"{type(model).__name__} keeps no losses of its iterations to draw.")
        return cls(losses=np.asarray(model.loss_curve_), n_iter=int(model.n_iter_))

    @classmethod
    def from_clustering(cls, clustering: Clustering) -> LossDisplay:
        """What the best start went through."""
        return cls.of_model(clustering.kpod)

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
        estimator : KPOD, GaussianMixture or Pipeline
            The fitted model; a pipeline must end in one.
        X : ignored
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **options : ignored

        Returns
        -------
        The display.
        """
        _, model = split(estimator)
        check_is_fitted(model)
        return cls.of_model(model).plot(ax=ax)

    size: ClassVar[tuple[float, float]] = (6.4, 3.0)

    def _draw(self, ax: Any) -> None:
        steps = np.arange(1, len(self.losses) + 1)
        n = self.n_iter
        dots = {"marker": "o", "markersize": 4.5 if len(steps) <= 60 else 0}
        if len(steps) > n:
            ax.plot(steps[n - 1 :], self.losses[n - 1 :], color=PALETTE[1], label="moves of single rows",
                    **{**dots, "marker": "s"})  # fmt: skip
        ax.plot(steps[:n], self.losses[:n], color=PALETTE[0], label="iterations", **dots)
        names = {"loss": "loss over observed entries", "likelihood": "log-likelihood of a row"}
        ax.set(xlabel="iteration", ylabel=names[self.of])
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        tidy(ax, grid="y")
        if len(steps) > n:
            ax.legend(frameon=False, fontsize=9, labelcolor=INK)
