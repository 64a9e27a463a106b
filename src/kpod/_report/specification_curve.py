"""A specification curve: how well the clusters agree with those of every other choice, at a glance.

After Simonsohn, Simmons & Nelson (2020), Specification curve analysis: all choices side by side, sorted by
what came of them, rather than the one that was made. Here a line each, as there are few and they have names.
"""

from __future__ import annotations

from typing import Any

from kpod._common.sentences.formatting import counted
from kpod.plot._display import INK, MUTED, PALETTE, Display, short, tidy

WIDTH = 8.6
LINE = 0.3
"""The height of a choice, in inches."""
MOST_LETTERS = 46


class SpecificationCurve(Display):
    """The other choices of a verdict by their agreement, the highest first.

    Parameters
    ----------
    others : list of dict
        The choices, as in `Verdict.to_dict`.
    n_clusters : int
        The clusters of the analysis.
    threshold : float
        The agreement from which clusterings are the same, if they have as many clusters.
    """

    def __init__(self, *, others: list[dict[str, Any]], n_clusters: int, threshold: float) -> None:
        self.others = sorted(others, key=lambda other: (-other["agreement"], not other["same"]))
        self.n_clusters, self.threshold = n_clusters, threshold

    def figsize(self) -> tuple[float, float]:
        return WIDTH, 0.9 + LINE * len(self.others)

    def _draw(self, ax: Any) -> None:
        agreements = [other["agreement"] for other in self.others]
        left = min(0.0, *agreements)
        ax.axvline(self.threshold, color=MUTED, linewidth=1.0, linestyle="--", zorder=1)
        for line, other in enumerate(self.others):
            at, same = other["agreement"], other["same"]
            ax.hlines(line, left, at, color=PALETTE[0] if same else PALETTE[1], linewidth=1.2,
                      linestyle="-" if same else ":", zorder=2)  # fmt: skip
            found = counted(other["n_clusters"], "cluster")
            ax.annotate(found, (1.0, line), xycoords=("axes fraction", "data"), xytext=(6, 0),
                        textcoords="offset points", va="center", fontsize=9,
                        color=MUTED if other["n_clusters"] == self.n_clusters else INK,
                        weight="normal" if other["n_clusters"] == self.n_clusters else "bold")  # fmt: skip
        # Filled or hollow, round or square: neither colour nor sharp eyes are needed to tell them apart.
        for same, how in ((True, {"marker": "o", "color": PALETTE[0], "label": "the same"}),
                          (False, {"marker": "D", "facecolor": "#ffffff", "edgecolor": PALETTE[1],
                                   "linewidth": 1.6, "label": "not the same"})):  # fmt: skip
            lines = [line for line, other in enumerate(self.others) if other["same"] == same]
            if lines:
                ax.scatter([agreements[line] for line in lines], lines, s=44, zorder=3, clip_on=False, **how)
        texts = [short(other["text"], MOST_LETTERS) for other in self.others]
        ax.set_yticks(range(len(texts)), texts, fontsize=9)
        ax.set_ylim(len(texts) - 0.4, -0.6)
        ax.set_xlim(left - 0.02 if left < 0 else 0.0, 1.03)
        ax.set_xticks([0.0, 0.2, 0.4, 0.6, self.threshold, 1.0])
        ax.set_xlabel("agreement (adjusted Rand index)")
        tidy(ax)
        ax.tick_params(axis="y", length=0, pad=9)  # room for a marker at 0
        ax.legend(frameon=False, fontsize=9, labelcolor=INK, ncols=2, loc="lower left",
                  bbox_to_anchor=(0.0, 1.0), borderaxespad=0.1, handletextpad=0.2)  # fmt: skip
