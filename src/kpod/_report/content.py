"""The content of a report as plain values: facts, clusters, columns, gaps, the choice of their number.

A new figure is computed in `_findings/`, put into words here, and placed on the page in `report.html`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kpod._common.sentences.cluster_sentences import contrast_clause
from kpod._common.sentences.formatting import counted, number, percent, some
from kpod._findings.certainty import why_this_number
from kpod._findings.fitted_clusters import mixture_spread
from kpod._findings.fitted_clusters.clustering import Clustering
from kpod._findings.fitted_clusters.descriptions import FEW
from kpod._findings.fitted_clusters.models import is_mixture

if TYPE_CHECKING:
    from kpod._findings.stability import Stability
    from kpod._model_selection.number_of_clusters import KChoice

MOST_COLUMNS = 500
MOST_PATTERNS = 6


def facts(c: Clustering, missing: float) -> list[tuple[str, str]]:
    return [
        (f"{len(c.labels):,}", "row" if len(c.labels) == 1 else "rows"),
        (f"{len(c.sources):,}", "column clustered" if len(c.sources) == 1 else "columns clustered"),
        (percent(missing, 1), "of the entries missing"),
        (f"{c.source.n_complete:,}", "row complete" if c.source.n_complete == 1 else "rows complete"),
        (f"{c.k}", "cluster" if c.k == 1 else "clusters"),
        *([goodness_of_fit(c)] if c.k > 1 else []),
    ]


def goodness_of_fit(c: Clustering) -> tuple[str, str]:
    """How well the clusters fit: variance explained, or how sure the rows of a mixture are."""
    if c.explained is not None:
        return percent(c.explained), "of variance explained"
    assert c.sureness is not None
    placed = c.labels >= 0
    sure = float(c.sureness.confidence[placed].mean()) if placed.any() else float("nan")
    return percent(sure), "mean probability of a row's cluster"


def mixture(c: Clustering, row_names: Sequence[Any] | None = None) -> dict[str, Any] | None:
    """What a mixture has beside the centers of its clusters."""
    if not is_mixture(c.kpod):
        return None
    return {
        "shape": mixture_spread.shape_sentence(c.kpod),
        "chosen": mixture_spread.how_chosen(c.kpod),
        "own_spreads": c.kpod._shape().own_variances,
        "correlations": mixture_spread.correlation_sentences(c),
        "uninformative": mixture_spread.uninformative_sentence(c),
        "cells": [
            {
                "row": str(cell.row + 1 if row_names is None else row_names[cell.row]),
                "column": c.label(cell.column),
                "shown": c.shown(cell.column, cell.value),
            }
            for cell in mixture_spread.outlier_cells_of(c)
        ],
    }


def clusters(c: Clustering, row_names: Sequence[Any] | None = None) -> list[dict[str, Any]]:
    from kpod.plot._display import colour

    largest = max(1, int(c.sizes.max()))
    return [
        {
            "cluster": cluster,
            "colour": colour(cluster),
            "rows": int(c.sizes[cluster]),
            "share": float(c.sizes[cluster] / len(c.labels)),
            "bar": float(c.sizes[cluster] / largest),
            "sentence": c.sentence(cluster),
            "contrast": contrast_text(c, cluster),
            "typical": [str(i + 1 if row_names is None else row_names[i]) for i in c.typical(cluster)],
        }
        for cluster in range(c.k)
    ]


def contrast_text(c: Clustering, cluster: int) -> str:
    """How a cluster differs from the nearest other one; empty if its sentence has that already."""
    contrast = c.contrast(cluster) if c.k > 2 else None  # of two, the nearest is all others
    return "" if contrast is None or c.is_like_nearest(cluster) else contrast_clause(contrast)


def columns(c: Clustering) -> list[dict[str, Any]]:
    """A line for each column, those that separate most first; of very many, only those."""
    (means, stds), (lows, highs) = c.moments, c.table.ranges
    around = mixture_spread.spreads(c)
    uninformative = set(mixture_spread.uninformative_columns(c))
    out: list[dict[str, Any]] = []
    for j in c.by_separation[:MOST_COLUMNS]:
        out.append({
            "name": c.label(j),
            "means_of": c.means_of[j],
            "uninformative": j in uninformative,
            "separation": float(c.separation[j]),
            "missing": float(c.missing_by_column[j]),
            "mean": float(means[j]),
            "std": float(stds[j]),
            "min": float(lows[j]),
            "max": float(highs[j]),
            "shown": {},
            "centers": [
                {
                    "value": float(c.centers[m, j]),
                    "shown": c.shown(j, c.centers[m, j]),
                    "spread": mixture_spread.spread_shown(c, j, *around[:, m, j]),
                    "count": float(c.counts[m, j]),
                    "few": bool(c.counts[m, j] < FEW),
                }
                for m in range(c.k)
            ],
        })  # fmt: skip
        for key in ("mean", "std", "min", "max"):
            value = out[-1][key]
            out[-1]["shown"][key] = number(value) if key == "std" else c.shown(j, value)
    return out


def gaps(c: Clustering) -> dict[str, Any]:
    """What is missing and what to do about it."""
    total, commonest = c.source.patterns(MOST_PATTERNS)
    return {
        "patterns": total,
        "sentences": c.diagnosis.sentence_.splitlines(),
        "suggestion": decided_or_suggested(c),
        "commonest": [
            {"missing": some([c.source_names[j] for j in which]) or "nothing", "rows": counted(rows, "row")}
            for which, rows in commonest
        ],
    }


def decided_or_suggested(c: Clustering) -> str:
    """What was decided about the gaps, or what could be."""
    sentence = str(getattr(c.kpod, "missingness_decision_", ""))
    if sentence:
        return f"{sentence[0].upper()}{sentence[1:]}."
    if hasattr(c.kpod, "missing_rates_"):
        return "The gaps were used: the clusters depend on which values are missing, not only on the values."
    return c.diagnosis.suggestion


def outcome_of(outcome: dict[str, Any] | None) -> dict[str, Any] | None:
    """An outcome with its values as they are read."""
    if outcome is None:
        return None
    show = percent if outcome["is_share"] else number
    shown = [
        {
            **one,
            "value": "\N{EN DASH}" if one["value"] is None else show(one["value"]),
            "interval": "" if one["low"] is None else f"{show(one['low'])} to {show(one['high'])}",
        }
        for one in outcome["clusters"]
    ]
    return {**outcome, "clusters": shown}


def choice_of(choice: KChoice | None, stability: Stability | None) -> dict[str, Any] | None:
    """Why this number of clusters was chosen, if it was not given."""
    if choice is None:
        return None
    return {
        "sentence": why_this_number(choice, stability),
        "clear": choice.clear_,
        "hidden": f"{choice.n_hidden_:,}",
        "gaps": choice.gaps_,
        "rows": [
            {name: float(values[i]) for name, values in choice.table_.items()}
            for i in range(len(choice.table_["k"]))
        ],
        "correlated": bool(np.isfinite(choice.table_["correlated_error"]).any()),
    }
