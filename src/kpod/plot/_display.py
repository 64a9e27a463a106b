"""What the displays have in common: how one is made and drawn, colours, markers and type."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile
from typing import Any, ClassVar

import numpy as np

from kpod._common.errors import printable
from kpod._common.typing import Floats, Labels
from kpod._findings.fitted_clusters.clustering import Clustering

PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D31"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*", "<", ">"]
INK = "#24292f"
MUTED = "#6e7781"
FAINT = "#d0d7de"
OBSERVED = "#e3eaf1"
FADED = "00"
"""Two digits of opacity."""
NO_CLUSTER = "#8c959f"


def colour(cluster: int) -> str:
    """The colour of a cluster."""
    return NO_CLUSTER if cluster < 0 else PALETTE[cluster % len(PALETTE)]


def marker(cluster: int) -> str:
    """The marker of a cluster: colours come again after seven clusters, pairs after seventy."""
    return MARKERS[cluster % len(MARKERS)]


def fading(name: str, low: Sequence[str], high: Sequence[str]) -> Any:
    """A scale of colours around zero, which is see-through: pale on white paper, and dim on a dark page."""
    from matplotlib.colors import LinearSegmentedColormap  # noqa: PLC0415

    below = zip(np.linspace(0.0, 0.5, len(low) + 1), [*low, low[-1] + FADED], strict=True)
    above = zip(np.linspace(0.5, 1.0, len(high) + 1), [high[0] + FADED, *high], strict=True)
    return LinearSegmentedColormap.from_list(name, [*below, *above])


def spaced(positions: Floats, least: float) -> list[tuple[float, bool]]:
    """Positions, and whether each is far enough from the last one kept to bear a label."""
    kept, last = [], -np.inf
    for position in positions:
        keep = bool(position - last >= least)
        last = float(position) if keep else last
        kept.append((float(position), keep))
    return kept


class Display:
    """What the displays have in common."""

    ax_: Any
    figure_: Any
    size: ClassVar[tuple[float, float]] = (6.4, 4.0)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        ax: Any = None,
        column_names: Sequence[str] | None = None,
        **options: Any,
    ) -> Any:
        """Draw for a fitted model and a table.

        Parameters
        ----------
        estimator : KPOD, GaussianMixture or Pipeline
            The fitted model; a pipeline must end in one.
        X : array-like, dataframe or sparse matrix of shape (n_samples, n_features)
            The table, of the kind that `estimator` was fitted on.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        column_names : sequence of str, default=None
            Names of the columns, if neither the model nor `X` has them.
        **options
            Given to `from_clustering`.

        Returns
        -------
        The display.
        """
        return cls.from_clustering(Clustering.of(estimator, X, column_names), **options).plot(ax=ax)

    @classmethod
    def from_clustering(cls, clustering: Clustering) -> Any:
        """Work out what is to be shown, and draw nothing."""
        raise NotImplementedError

    def plot(self, ax: Any = None) -> Any:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        self
        """
        if ax is None:
            from matplotlib import pyplot as plt  # noqa: PLC0415

            _, ax = plt.subplots(figsize=self.figsize(), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        self._draw(ax)
        return self

    def figsize(self) -> tuple[float, float]:
        """Of a new figure, in inches."""
        return self.size

    def _draw(self, ax: Any) -> None:
        raise NotImplementedError


def tidy(ax: Any, *, grid: str | None = None) -> None:
    """Leave out decoration."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(FAINT)
    ax.tick_params(colors=MUTED, labelcolor=INK, length=3)
    for label in (ax.xaxis.label, ax.yaxis.label):
        label.set_color(INK)
    if grid:
        ax.grid(axis=grid, color=FAINT, linewidth=0.6)
        ax.set_axisbelow(True)


def heading(ax: Any, text: str) -> None:
    """What is to be seen, above the picture."""
    ax.set_title(text, loc="left", fontsize=10.5, color=INK)


def short(name: str, most: int = 28) -> str:
    """A shortened name, in which `$` is not taken for mathematics."""
    name = printable(name)
    return (name if len(name) <= most else name[: most - 1] + "…").replace("$", r"\$")


LEAST_BEGINNING = 6


def short_names(names: Sequence[str], most: int = 28) -> list[str]:
    """Short names; of those that would be the same, what they begin with alike is left out.

    >>> short_names(["Number of full-time workers, men", "Number of full-time workers, women", "Year"], 24)
    ['Number of full-tim…men', 'Number of full-tim…women', 'Year']
    """
    texts = [short(name, most) for name in names]
    for text, times in Counter(texts).items():
        alike = [j for j, other in enumerate(texts) if other == text]
        same = takewhile(
            lambda letters: len(set(letters)) == 1, zip(*(names[j] for j in alike), strict=False)
        )
        begin = re.sub(r"[^\W_]*$", "", "".join(letters[0] for letters in same))
        rest = [names[j][len(begin) :] for j in alike]
        if times == 1 or not all(rest):
            continue
        room = max(LEAST_BEGINNING, most - 1 - max(map(len, rest)))
        for j, end in zip(alike, rest, strict=True):
            texts[j] = short(f"{begin[:room].rstrip()}\N{HORIZONTAL ELLIPSIS}{end}", most)
    return texts


def draw_rows(n: int, most: int) -> np.ndarray[Any, Any]:
    """All rows, or a fixed sample where there are too many to draw."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False))


def draw_members(labels: Labels, most: int, least: int = 12) -> np.ndarray[Any, Any]:
    """The same from rows that have a cluster, with at least a few of every cluster."""
    rows = np.flatnonzero(labels >= 0)
    drawn = rows[draw_rows(len(rows), most)]
    if len(drawn) == len(rows):
        return rows
    missed = [m for m in np.unique(labels[rows]) if (labels[drawn] == m).sum() < least]
    more = [np.flatnonzero(labels == m) for m in missed]
    return np.unique(np.concatenate([drawn, *(r[draw_rows(len(r), least)] for r in more)]))


def middle_part(values: Floats) -> tuple[float, float]:
    """The range of nearly all points, with a margin; of all of them unless a few are far out."""
    low, high = np.quantile(values, [0.005, 0.995])
    margin = 0.25 * (high - low) if high > low else 1.0
    inside = values[(values >= low - margin) & (values <= high + margin)]
    return float(inside.min()), float(inside.max())
