"""What missingness in a table is related to."""

from __future__ import annotations

from typing import Any

import numpy as np

from kpod._common.typing import Floats
from kpod._findings.fitted_clusters.clustering import Clustering
from kpod.missingness import Diagnosis
from kpod.plot._display import INK, Display, fading, heading, short, short_names, tidy

MOST_NAMED = 40
LARGEST = 1.5
"""Standard deviations at which colours end."""


class DiagnosisDisplay(Display):
    """A line for each column with gaps: how its gaps are related to the values of the others.

    Orange: the other column is higher in rows where this one is missing; blue: lower;
    blank: no difference beyond chance. The share missing is shown beside the name.

    Parameters
    ----------
    difference : ndarray of shape (n_with_gaps, n_columns)
        In standard deviations.
    lacking : list of str
        The columns with gaps.
    missing : ndarray of shape (n_with_gaps,)
        Share missing of each.
    names : list of str
        All columns compared.

    Examples
    --------
    >>> from kpod.datasets import load_incomplete_wine
    >>> from kpod.missingness import diagnose
    >>> from kpod.plot import DiagnosisDisplay
    >>> found = diagnose(load_incomplete_wine().data)
    >>> display = DiagnosisDisplay.from_diagnosis(found)
    >>> display.figure_.savefig("diagnosis.png")
    >>> len(display.lacking)
    13
    """

    def __init__(self, *, difference: Floats, lacking: list[str], missing: Floats, names: list[str]) -> None:
        self.difference, self.lacking, self.missing, self.names = difference, lacking, missing, names

    @classmethod
    def from_diagnosis(cls, diagnosis: Diagnosis, *, ax: Any = None) -> DiagnosisDisplay:
        """Draw the result of `kpod.missingness.diagnose`.

        Parameters
        ----------
        diagnosis : Diagnosis
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        The display.
        """
        display: DiagnosisDisplay = cls.of(diagnosis).plot(ax=ax)
        return display

    @classmethod
    def of(cls, diagnosis: Diagnosis) -> DiagnosisDisplay:
        """Work out what is to be shown, and draw nothing."""
        missing = diagnosis.missing[diagnosis.columns]
        lines = np.argsort(-missing, kind="stable")[: int((missing > 0).sum())][:MOST_NAMED]
        # Columns with which nothing goes are left out where there are too many to name.
        weight = np.abs(diagnosis.values[lines]).sum(axis=0)
        shown = np.sort(np.argsort(-weight, kind="stable")[:MOST_NAMED])
        names = [diagnosis.names[j] for j in diagnosis.columns]
        return cls(
            difference=diagnosis.values[np.ix_(lines, shown)],
            lacking=[names[j] for j in lines],
            missing=missing[lines],
            names=[names[j] for j in shown],
        )

    @classmethod
    def from_clustering(cls, clustering: Clustering) -> DiagnosisDisplay:
        """Of the table of a clustering, the levels of a category but once."""
        return cls.of(clustering.diagnosis)

    def figsize(self) -> tuple[float, float]:
        """Larger for more columns."""
        longest = max(map(len, map(short, [*self.lacking, *self.names])), default=1)
        return (
            min(11.0, 2.6 + 0.08 * longest + 0.3 * len(self.names)),
            min(11.0, 1.4 + 0.07 * longest + 0.28 * max(len(self.lacking), 1)),
        )

    def _draw(self, ax: Any) -> None:
        tidy(ax)
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0)
        if not self.lacking:
            ax.set_xticks([])
            ax.set_yticks([])
            heading(ax, "nothing missing")
            return
        ramp = fading("difference", ["#0072B2"], ["#D55E00"])
        shown = ax.pcolormesh(
            self.difference[::-1], cmap=ramp, vmin=-LARGEST, vmax=LARGEST, edgecolors="white", linewidth=1
        )
        ax.set_xticks(np.arange(len(self.names)) + 0.5, short_names(self.names), rotation=90)
        lines = [
            f"{short(name)}  {share:.0%}" for name, share in zip(self.lacking, self.missing, strict=True)
        ]
        ax.set_yticks(np.arange(len(lines)) + 0.5, lines[::-1])
        ax.set(xlabel="are different in", ylabel="rows that lack")
        bar = ax.figure.colorbar(shown, ax=ax, shrink=0.8, pad=0.02)
        bar.set_label("standard deviations", color=INK)
        bar.outline.set_visible(False)
        bar.ax.tick_params(length=0, labelcolor=INK)
        heading(ax, "What the gaps are related to")
