"""Rand score and seconds against percent missing: a panel a mechanism, standard errors as bands."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from paper.datasets import designs
from paper.methods import methods, titles
from paper.summary import Summary
from paper.tables import SCORES

COLORS = {
    "published": "#d55e00",
    "default": "#0072b2",
    "auto": "#00204d",
    "amelia": "#009e73",
    "mi": "#cc79a7",
    "mice": "#e69f00",
    "deletion": "#8c564b",
    "mean": "#56b4e9",
    "neighbours": "#7f3fbf",
    "iterative": "#b5bd22",
    "stepmix": "#7f7f7f",
    "complete": "#000000",
}


def draw(
    summary: Summary, table: str, folder: Path, scores: tuple[str, ...] = ("rand", "seconds")
) -> Path | None:
    """One figure for a table of the paper; None where nothing of it was run."""
    from matplotlib.figure import Figure

    design = designs()[table]
    mechanisms = list(design.percents)
    figure = Figure(figsize=(3.4 * len(mechanisms) + 2.2, 3.0 * len(scores)), layout="constrained")
    axes = figure.subplots(len(scores), len(mechanisms), sharey="row", squeeze=False)
    drawn = {}
    for line, score in enumerate(scores):
        for place, mechanism in enumerate(mechanisms):
            panel = axes[line][place]
            for row, color in COLORS.items():
                cells = [c for c in summary.cells(table, mechanism) if summary.at(c, row).complete]
                if not cells:
                    continue
                x = np.array([cell.percent for cell in cells])
                mean = np.array([summary.at(cell, row).mean(score) for cell in cells])
                error = np.nan_to_num([summary.at(cell, row).error(score) for cell in cells])
                style = "-" if is_ours_or_published(row) else "--"
                drawn[row] = panel.plot(x, mean, style, color=color, marker="o", markersize=3.5)[0]
                panel.fill_between(x, mean - error, mean + error, color=color, alpha=0.2, linewidth=0)
            if line == 0:
                panel.set_title(mechanism)
            if score == "seconds":
                panel.set_yscale("log")
            if line == len(scores) - 1:
                panel.set_xlabel("percent missing")
            panel.set_xticks(list(design.percents[mechanism]))
            panel.grid(alpha=0.3)
        axes[line][0].set_ylabel(SCORES[score].lower().replace("rand", "Rand"))
    if not drawn:
        return None
    names = [titles()[row] for row in drawn]
    figure.legend(list(drawn.values()), names, loc="outside right center", frameon=False)
    figure.suptitle(f"{design.title}: mean and standard error")
    path = folder / f"paper-{table}.png"
    figure.savefig(path, dpi=80, metadata={"Software": None})
    return path


def is_ours_or_published(row: str) -> bool:
    return row in ("default", "auto", "complete") or any(
        row in m.rows for m in methods().values() if m.published
    )
