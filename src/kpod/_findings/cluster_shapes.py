"""Round clusters, or another shape? The model that holds at a number of clusters, and why.

`shape_comparison` fits a Gaussian mixture beside the clusters of k-means, and judges it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from kpod._common.notebook import ReadsAsText
from kpod._common.notes import Note
from kpod._common.options import option
from kpod._common.sentences.formatting import listed
from kpod._estimators.kpod import KPOD
from kpod._findings.shape_comparison import ROUND, Compared
from kpod._inputs import collections
from kpod._mixture.covariance_shape import SHAPES

MOST_COLUMNS = 200  # of a table whose shapes "auto" compares
PLAIN = (
    "no better", "same clusters", "one cluster", "parameters", "categories", "sparse", "many columns",
    "in pieces",
)  # fmt: skip
"""Reasons for round clusters that need no explanation."""
NOT_NORMAL = ("skewed columns", "rows with scales of their own", "heavy tails")
"""Reasons for round clusters that say that no Gaussian fits the groups."""


@dataclass(frozen=True)
class ShapeChoice(ReadsAsText):
    """The shape of the clusters, and why it was chosen.

    Attributes
    ----------
    shape_ : str
        "round" for the clusters of `KPOD`; else the covariances of `GaussianMixture`, such as "tied" or
        "full, 1 factor".
    reason_ : str
        Why: "asked for", "better" (a mixture has the lower BIC), "no better", "same clusters", "rows with
        scales of their own", "skewed columns", "heavy tails", "a cluster of no row", "outlying rows", "one
        correlated group", "not separate", "one cluster", "parameters" (those that only round clusters have
        were set), "categories", "sparse", "many columns", "in pieces".
    compared_ : str
        The best shape of a mixture; empty if none was fitted.
    agreement_ : float
        Adjusted Rand index of the round clusters and those of that mixture; NaN if there is none.
    table_ : ndarray of shape (n_clusters, n_clusters) or None
        How many rows are in each round cluster (a row each) and each cluster of the mixture.
    columns_ : tuple of two lists
        The columns that the mixture separates better than round clusters do, and vice versa: by
        the share of their variance that lies between clusters. Names, or positions if there are none.
    bics_ : dict
        BIC of round clusters, of round clusters with heavy tails, and of the mixture.
    n_separate_ : int
        The number of separate groups that the clusters of a returned mixture form, in its shape; 0 if
        clusters are round, or the table is not dense.
    n_sampled_ : int
        The number of rows on which shapes were compared, if that is a sample of the table; else 0.
    degrees_ : float
        Degrees of freedom of the heavy tails that contradict a Gaussian shape; infinite if there are none.
    sentence_ : str
        A summary in words.
    """

    shape_: str
    reason_: str
    compared_: str = ""
    agreement_: float = np.nan
    table_: Any = None
    columns_: tuple[list[Any], list[Any]] = ((), ())  # type: ignore[assignment]
    bics_: Any = None
    degrees_: float = np.inf
    n_separate_: int = 0
    n_sampled_: int = 0

    @property
    def note(self) -> Note:
        """The same as a note, which has the words."""
        sizes: tuple[list[int], ...] = ([], [])
        if self.table_ is not None:
            sizes = tuple(sorted(map(int, self.table_.sum(axis=axis)), reverse=True) for axis in (1, 0))
        values = {
            "shape": self.shape_,
            "reason": self.reason_,
            "compared": self.compared_,
            "agreement": None if np.isnan(self.agreement_) else self.agreement_,
            "round_sizes": sizes[0],
            "mixture_sizes": sizes[1],
            "sampled": self.n_sampled_,
            "degrees": None if np.isinf(self.degrees_) else self.degrees_,
            "more_by_mixture": [str(name) for name in self.columns_[0]],
            "more_by_round": [str(name) for name in self.columns_[1]],
        }
        return Note("shape of the clusters", values=values)

    def named(self, names: Sequence[str]) -> ShapeChoice:
        """With the names of columns instead of their positions."""
        more, less = (
            [names[int(j)] if isinstance(j, Integral) else j for j in part] for part in self.columns_
        )
        return replace(self, columns_=(more, less))

    @property
    def is_plain(self) -> bool:
        """Whether clusters are round as anyone would expect, so that no note is needed."""
        return self.reason_ in PLAIN

    @property
    def is_refused(self) -> bool:
        """Whether a mixture has the lower BIC, but not because the groups are Gaussian."""
        return self.reason_ in (*NOT_NORMAL, "a cluster of no row")

    @property
    def sentence_(self) -> str:
        return self.note.text

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {**self.note.values, "sentence": self.sentence_}

    def __str__(self) -> str:
        return self.sentence_


def check_shape(shape: Any) -> None:
    if not isinstance(shape, str) or shape not in (ROUND, "auto", *SHAPES):
        raise ValueError(f"shape must be 'round', 'auto' or one of {list(SHAPES)}, got {shape!r}.")


def choose_shape(
    X: Any, kpod: KPOD, shape: str, sample_weight: Any = None, names: Any = None
) -> tuple[Any, ShapeChoice]:
    """The model of the shape that holds: the KPOD that was fitted to X, or a GaussianMixture.

    `shape` is "auto" or a type of covariance, which is then fitted whether or not it is better.
    """
    given = shape != "auto"
    reason = why_not(X, kpod, shape) or why_not_fitted(kpod, shape)
    if reason:
        return kpod, ShapeChoice(ROUND, reason)
    compared = Compared.of(X, kpod, shape, sample_weight, names)
    if given:
        return compared.mixture, choice_of(compared, compared.name, "asked for")
    reason, degrees = compared.refusal()
    if reason:
        return kpod, choice_of(compared, ROUND, reason, degrees)
    return compared.mixture, choice_of(compared, compared.name, "better")


def choice_of(compared: Compared, shape: str, reason: str, degrees: float = np.inf) -> ShapeChoice:
    return ShapeChoice(
        shape, reason, compared.name, compared.agreement, compared.table, compared.columns, compared.bics,
        degrees, 0 if shape == ROUND else compared.n_apart, compared.n_sampled,
    )  # fmt: skip


def why_not(X: Any, kpod: KPOD, shape: str) -> str:
    """Why shapes are not compared, as far as that is known before a fit; empty if they may be."""
    own = round_parameters(kpod)
    if shape != "auto":
        if own:
            raise ValueError(
                f"{listed(own)} {'is' if len(own) == 1 else 'are'} for round clusters only: use "
                f"{option('--shape', ROUND)}, or leave {'it' if len(own) == 1 else 'them'} out."
            )
        return ""
    if own or kpod.missingness != "ignore":
        return "parameters"
    if sparse.issparse(X):
        return "sparse"
    if hasattr(X, "blocks") or collections.is_collection(X):
        return "in pieces"
    return "many columns" if np.shape(X)[1] > MOST_COLUMNS else ""


def round_parameters(kpod: KPOD) -> list[str]:
    """Parameters that were set and that no mixture has, in the words of the user."""
    own = {"shrinkage": 0.0, "algorithm": "hartigan"}
    return [option(f"--{name}") for name, usual in own.items() if getattr(kpod, name) != usual]


def why_not_fitted(kpod: KPOD, shape: str) -> str:
    """Why shapes are not compared though they might be, now that a table was fitted."""
    groups, given = np.asarray(kpod.column_groups_), shape != "auto"
    if len(np.unique(groups)) < len(groups):
        if given:
            raise ValueError(
                "The table has categories, whose indicators no Gaussian fits: use "
                f"{option('--shape', ROUND)}, or leave them out."
            )
        return "categories"
    return "one cluster" if kpod.n_clusters_ == 1 and not given else ""
