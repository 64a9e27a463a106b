"""How many clusters: the error on hidden entries by number of clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from matplotlib.ticker import MaxNLocator

from kpod._common.typing import Floats, Positions
from kpod._findings.choose_k import choose_k
from kpod._findings.fitted_clusters.models import model_and_table
from kpod._model_selection.number_of_clusters import KChoice
from kpod.plot._display import INK, MUTED, PALETTE, Display, tidy


class ChooseKDisplay(Display):
    """The error on hidden entries by number of clusters, and the number chosen.

    The bars are standard errors of the difference to the smallest error: a number whose bar reaches
    down to the dashed line is as good as the best.

    Parameters
    ----------
    k : ndarray
        The numbers of clusters.
    error : ndarray
        The mean squared error of hidden entries, predicted by the centers.
    above_best_se : ndarray
        The standard error of the difference to the smallest.
    correlated_error : ndarray
        The error of mixtures with correlated columns; NaN where there is none.
    best_k : int
        The number chosen.
    clear : bool
        Whether the choice is clear.
    gaps : bool, default=False
        Whether gaps were predicted, too.

    Examples
    --------
    >>> from kpod import choose_k
    >>> from kpod.datasets import make_mixture
    >>> from kpod.plot import ChooseKDisplay
    >>> X, _ = make_mixture(3, n_samples=100, n_features=6, random_state=0)
    >>> display = ChooseKDisplay.from_choice(choose_k(X, range(1, 6), random_state=0))
    >>> display.figure_.savefig("choice.png")
    >>> display.best_k
    3
    """

    size: ClassVar[tuple[float, float]] = (6.4, 3.4)

    def __init__(
        self,
        *,
        k: Positions,
        error: Floats,
        above_best_se: Floats,
        correlated_error: Floats,
        best_k: int,
        clear: bool,
        gaps: bool = False,
    ) -> None:
        self.k, self.error, self.above_best_se = k, error, above_best_se
        self.correlated_error, self.best_k, self.clear, self.gaps = correlated_error, best_k, clear, gaps

    @classmethod
    def from_choice(cls, choice: KChoice, *, ax: Any = None) -> ChooseKDisplay:
        """Draw the result of `choose_k`.

        Parameters
        ----------
        choice : KChoice
            The result of `kpod.choose_k`.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        The display.
        """
        display: ChooseKDisplay = cls.of(choice).plot(ax=ax)
        return display

    @classmethod
    def of(cls, choice: KChoice) -> ChooseKDisplay:
        """Work out what is to be shown, and draw nothing."""
        names = ["k", "error", "above_best_se", "correlated_error"]
        about = {name: choice.table_[name] for name in names}
        return cls(**about, best_k=choice.best_k_, clear=choice.clear_, gaps=choice.gaps_)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        ax: Any = None,
        column_names: Sequence[str] | None = None,  # noqa: ARG003
        **options: Any,
    ) -> ChooseKDisplay:
        """Choose the number of clusters for a KPOD and a table, and draw.

        Parameters
        ----------
        estimator : KPOD or Pipeline
            The fitted model; a pipeline must end in a KPOD.
        X : array-like, dataframe or sparse matrix of shape (n_samples, n_features)
            The table.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        column_names : ignored
        **options
            Given to `kpod.choose_k`.

        Returns
        -------
        The display.
        """
        kpod, seen = model_and_table(estimator, X)
        return cls.from_choice(choose_k(seen, estimator=kpod, **options), ax=ax)

    def _draw(self, ax: Any) -> None:
        best = float(np.min(self.error))
        ax.axhline(best, color=MUTED, linewidth=0.8, linestyle="--", zorder=1)
        bars = np.where(np.isfinite(self.above_best_se), self.above_best_se, 0.0)
        ax.errorbar(self.k, self.error, yerr=bars, color=PALETTE[0], marker="o", markersize=4.5,
                    linewidth=1.4, elinewidth=1.0, capsize=2.5, label="k-means")  # fmt: skip
        known = np.isfinite(self.correlated_error)
        if known.any():
            ax.plot(self.k[known], self.correlated_error[known], color=PALETTE[1], marker="s", markersize=4,
                    linewidth=1.4, label="groups with correlated columns")  # fmt: skip
        text = f"{self.best_k} chosen" if self.clear else f"{self.best_k} used, no clear choice"
        ax.axvline(self.best_k, color=INK, linewidth=0.9, linestyle=":" if self.clear else "--", label=text)
        of = "hidden entries and gaps" if self.gaps else "hidden entries"
        ax.set(xlabel="number of clusters", ylabel=f"squared error on {of}")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        tidy(ax, grid="y")
        ax.legend(frameon=False, fontsize=9, labelcolor=INK)
