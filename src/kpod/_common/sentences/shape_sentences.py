"""The shape of the clusters in words: which, why, and where shapes disagree."""

from __future__ import annotations

from collections.abc import Sequence

from kpod._common.errors import printable
from kpod._common.notes import Note
from kpod._common.sentences.formatting import listed, number, some

SAME_CLUSTERS = 0.9
"""Adjusted Rand index from which on two clusterings are the same to a reader."""
SHAPE_WORDS = {
    "tied_spherical": "round clusters that differ in size",
    "spherical": "round clusters that differ in size and spread",
    "tied_diag": "clusters that differ in size, with a spread of each column",
    "diag": "clusters with spreads of their own",
    "tied": "clusters with correlated columns, alike in all of them",
    "full": "clusters with spreads and correlations of their own",
}
ROUND_REASONS = {
    "no better": "no other shape fits the table better",
    "same clusters": "the best other shape has nearly the same clusters",
    "one cluster": "there is only one",
    "categories": "the table has categories, and no Gaussian fits their indicators",
    "parameters": "a parameter was set that only round clusters have",
    "sparse": "shapes are not compared for sparse tables",
    "in pieces": "shapes are compared for tables in memory only",
    "many columns": "shapes are not compared for tables of more than 200 columns",
    "a cluster of no row": "the best other shape leaves a cluster without rows",
    "outlying rows": "the best other shape makes a cluster of one or two outlying rows",
    "one correlated group": "a single group with correlated columns fits the table as well as the best "
    "Gaussian mixture",
    "not separate": "no two clusters of the best Gaussian mixture are separate, so that they may only "
    "describe the distribution of one group",
    "rows with scales of their own": "rows differ in scale, and round clusters with heavy tails fit better "
    "than any Gaussian mixture",
    "skewed columns": "within the clusters of the best Gaussian mixture, columns are skewed, so that its "
    "shape may only follow long tails (logarithms of such columns may help)",
    "heavy tails": "within the clusters of the best Gaussian mixture, more rows lie far out than in a normal "
    "distribution",
}


def shape_words(shape: str) -> str:
    kind, _, factors = shape.partition(", ")
    words = SHAPE_WORDS[kind]
    if factors and kind == "diag":
        words = "clusters with spreads of their own, and columns correlated alike in all of them"
    return f"{words} ({shape})"


def shape_of_clusters(
    _: Note,
    shape: str,
    reason: str,
    compared: str,
    agreement: float | None,
    round_sizes: Sequence[int],
    mixture_sizes: Sequence[int],
    sampled: int,
    degrees: float | None,
    more_by_mixture: Sequence[str],
    more_by_round: Sequence[str],
) -> str:
    """Which shape, why, and where shapes disagree about who belongs with whom."""
    if shape == "round":
        tails = "" if degrees is None else f" ({compared}; t with {number(degrees)} degrees of freedom)"
        text = f"Round clusters were kept: {ROUND_REASONS[reason]}{tails}."
    elif reason == "asked for":
        text = f"As asked for: {shape_words(shape)}."
    else:
        text = f"The clusters are not round: {shape_words(shape)} fit the table better."
    if sampled and reason != "asked for":
        text = f"{text[:-1]} (compared on a sample of {sampled:,} rows)."
    if agreement is None or agreement >= SAME_CLUSTERS:
        return printable(text)
    one, other = ("Round clusters", round_sizes), ("Clusters of the mixture", mixture_sizes)
    (who, theirs), (__, ours) = (one, other) if shape != "round" else (other, one)
    text += (
        f" {who} would group the rows differently: sizes {listed([f'{n:,}' for n in theirs])} instead of "
        f"{listed([f'{n:,}' for n in ours])} (adjusted Rand index {agreement:.2f})"
    )
    parts = [
        f"{by} {verb} {some(list(names))} better"
        for by, verb, names in (
            ("the mixture", "separates", more_by_mixture),
            ("round clusters", "separate", more_by_round),
        )
        if names
    ]
    return printable(text + (f"; {', '.join(parts)}." if parts else "."))
