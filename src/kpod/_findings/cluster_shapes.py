"""Round clusters, or another shape? A Gaussian mixture against what k-means assumes, at a number of clusters.

BIC compares the mixture behind k-means with Gaussian shapes. A Gaussian shape is refused, and clusters stay
round, where rows have heavy tails: where round clusters with a t density explain the table better (rows with
scales of their own), or where a t density would fit the clusters of the mixture itself clearly better.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from kpod._common.notebook import ReadsAsText
from kpod._common.notes import Note
from kpod._common.options import option
from kpod._common.sentences.formatting import listed
from kpod._common.typing import Floats, Labels, Positions
from kpod._estimators.kpod import KPOD
from kpod._estimators.mixture.gaussian_mixture import GaussianMixture
from kpod._inputs import collections, validation
from kpod._mixture.covariance_shape import SHAPES, Shape
from kpod._mixture.skewness import gain_of_transforms
from kpod._mixture.starts import most_rows
from kpod._mixture.tails import HeavyTails, distances, gain_of_tails, round_with_tails
from kpod._model_selection.separation import n_apart_in_shape

ROUND = "round"
MOST_COLUMNS = 200  # of a table whose shapes "auto" compares
MOST_ROWS = 2_000  # that tails and skewness are judged by
SKEWED_GAIN = 0.07  # of log-likelihood an entry, that transforms of the columns add within clusters
HEAVY_DEGREES = 10.0  # of freedom, the most of a t density that contradicts a Gaussian shape,
HEAVY_GAIN = 0.02  # and the least of log-likelihood an entry that it adds to that of a mixture
NEAR = 2.5  # robust standard deviations from the middle, beyond which a table is clipped
SAME = 0.9  # adjusted Rand index: round clusters are those of a mixture without correlation and own spreads
DIFFERS = 0.1  # of the variance of a column that one clustering explains and the other does not
MOST_LISTED = 3
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
        scales of their own", "skewed columns", "heavy tails", "a cluster of no row", "one cluster",
        "parameters" (those that only round clusters have were set), "categories", "sparse", "many columns",
        "in pieces".
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
        return compared.mixture, compared.choice(compared.name, "asked for")
    reason, degrees = compared.refusal()
    if reason:
        return kpod, compared.choice(ROUND, reason, degrees)
    return compared.mixture, compared.choice(compared.name, "better")


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


@dataclass(frozen=True)
class Compared:
    """A KPOD and a mixture of the same table, with as many clusters."""

    values: Any
    kpod: KPOD
    mixture: GaussianMixture
    round: GaussianMixture
    weights: Floats
    names: Any = None

    @classmethod
    def of(cls, X: Any, kpod: KPOD, shape: str, sample_weight: Any, names: Any) -> Compared:
        settings = {
            "random_state": kpod.random_state,
            "missingness": kpod.missingness_,
            "n_threads": kpod.n_threads,
        }
        k, auto = int(kpod.n_clusters_), shape == "auto"
        outliers: Any = "auto" if auto and not sparse.issparse(X) else False
        mixture = GaussianMixture(
            k,
            covariance_type=shape,
            outlier_cells=outliers,
            select_columns="auto" if auto else False,
            **settings,
        )
        plain = GaussianMixture(k, covariance_type="tied_spherical", n_factors=None, n_init=1, **settings)
        with warnings.catch_warnings():  # of rows and columns that the KPOD has warned of
            warnings.simplefilter("ignore")
            for model in (mixture, plain):
                model._fit(X, sample_weight, [kpod.labels_])
        weights = np.ones(len(kpod.labels_)) if sample_weight is None else np.asarray(sample_weight, float)
        if names is None:
            names = getattr(kpod, "feature_names_in_", None)
        return cls(X, kpod, mixture, plain, weights, names)

    @property
    def name(self) -> str:
        return str(Shape(self.mixture.covariance_type_, self.mixture.n_factors_))

    @cached_property
    def agreement(self) -> float:
        return float(adjusted_rand_score(self.kpod.labels_, self.mixture.labels_))

    @cached_property
    def rows(self) -> Positions:
        """Those that tails are judged by."""
        usable = np.flatnonzero((self.kpod.labels_ >= 0) & (self.weights > 0))
        n = min(MOST_ROWS, len(usable))
        return usable[np.linspace(0, len(usable) - 1, n).astype(np.intp)]

    @cached_property
    def seen(self) -> Floats:
        """These rows, dense with NaN, in the units of the mixture, in columns with observed entries."""
        values = np.asarray(validation.as_table(self.values, self.mixture)[self.rows], np.float64)
        units = self.mixture._units()
        return (values - units.shift) * units.scale

    @cached_property
    def clean(self) -> Floats:
        """The same without outlying cells."""
        units = self.mixture._units()
        if self.mixture._prices is None:
            return self.seen
        outliers = self.mixture._in_units(units).outliers(self.seen, self.mixture._parameters(units))
        return np.where(outliers, np.nan, self.seen)

    def bic(self, model: GaussianMixture) -> float:
        """With weights as repetition, which `bic` of a table has not."""
        total = float(self.weights.sum())
        return -2 * total * model.lower_bound_ + model._n_parameters() * float(np.log(total))

    @cached_property
    def bics(self) -> dict[str, float]:
        return {ROUND: self.bic(self.round), self.name: self.bic(self.mixture)}

    def refusal(self) -> tuple[str, float]:
        """Why round clusters are kept, empty if they are not; and the degrees of freedom of heavy tails."""
        labels, shape = self.mixture.labels_, Shape(self.mixture.covariance_type_, self.mixture.n_factors_)
        if len(np.unique(labels[labels >= 0])) < self.kpod.n_clusters_:
            return "a cluster of no row", np.inf
        if self.bics[self.name] >= self.bics[ROUND]:
            return "no better", np.inf
        if shape == shape.tied and not shape.whole and not shape.q and self.agreement >= SAME:
            return "same clusters", np.inf
        return self.not_normal()

    def not_normal(self) -> tuple[str, float]:
        """Why no Gaussian shape is to be trusted: columns are skewed, or rows have heavy tails."""
        live = ~np.isnan(self.mixture.column_means_)
        weights = self.weights[self.rows]
        if self.gain_of_transforms(weights) > SKEWED_GAIN:
            return "skewed columns", np.inf
        if self.mixture.missingness_ == "ignore":
            tails = self.tails(live, weights)
            # In the units of the table, and of all its rows.
            scale = float(np.log(self.mixture._units().scale))
            observed = float(weights @ (~np.isnan(self.seen)).sum(axis=1))
            share = float(self.weights.sum() / weights.sum())
            found = share * (tails.log_likelihood + observed * scale)
            self.bics["round, heavy tails"] = -2 * found + tails.n_parameters * float(
                np.log(self.weights.sum())
            )
            if tails.degrees <= HEAVY_DEGREES and self.bics["round, heavy tails"] < self.bics[self.name]:
                return "rows with scales of their own", tails.degrees
        gain, degrees = self.gain_of_tails(weights)
        if gain > HEAVY_GAIN and degrees <= HEAVY_DEGREES:
            return "heavy tails", degrees
        return "", np.inf

    def tails(self, live: Any, weights: Floats) -> HeavyTails:
        """Round clusters with heavy tails, from those of both models and of the table without its tails."""
        k, values = int(self.kpod.n_clusters_), self.seen[:, live]
        low, middle, high = np.nanpercentile(values, [25, 50, 75], axis=0)
        spread = NEAR * np.where(high > low, high - low, np.nanstd(values, axis=0)) / 1.349
        clipped = KPOD(k, random_state=self.kpod.random_state, n_threads=self.kpod.n_threads)
        clipped.fit(np.clip(values, middle - spread, middle + spread), sample_weight=weights)
        models = (self.kpod.labels_[self.rows], self.mixture.labels_[self.rows], clipped.labels_)
        found = (round_with_tails(values, labels, k, weights) for labels in models)
        return max(found, key=lambda tails: tails.log_likelihood)

    def gain_of_tails(self, weights: Floats) -> tuple[float, float]:
        """What a t density would add for each entry, given the clusters of the mixture."""
        clean, parameters = self.clean, self.mixture._parameters(self.mixture._units())
        off = distances(clean, self.mixture.labels_[self.rows], parameters)
        return gain_of_tails(off, (~np.isnan(clean)).sum(axis=1).astype(np.float64), weights)

    def gain_of_transforms(self, weights: Floats) -> float:
        """What monotone transforms of the columns would add for each entry, given the same clusters."""
        return gain_of_transforms(self.clean, self.mixture.labels_[self.rows], weights)

    def choice(self, shape: str, reason: str, degrees: float = np.inf) -> ShapeChoice:
        k = int(self.kpod.n_clusters_)
        table = np.zeros((k, k), np.int64)
        both = (self.kpod.labels_ >= 0) & (self.mixture.labels_ >= 0)
        np.add.at(table, (self.kpod.labels_[both], self.mixture.labels_[both]), 1)
        return ShapeChoice(
            shape, reason, self.name, self.agreement, table, self.columns, self.bics, degrees,
            0 if shape == ROUND else self.n_apart, self.n_sampled,
        )  # fmt: skip

    @property
    def n_sampled(self) -> int:
        most = most_rows(int(self.kpod.n_features_in_))
        return most if int((self.kpod.labels_ >= 0).sum()) > most else 0

    @property
    def is_dense(self) -> bool:
        return not (sparse.issparse(self.values) or hasattr(self.values, "blocks"))

    @property
    def n_apart(self) -> int:
        """How many separate groups the clusters of the mixture form; 0 of a table that is not dense."""
        if not self.is_dense:
            return 0
        parameters = self.mixture._parameters(self.mixture._units())
        return n_apart_in_shape(self.clean, self.mixture.labels_[self.rows], parameters)

    @cached_property
    def columns(self) -> tuple[list[Any], list[Any]]:
        """Columns that one clustering separates better than the other."""
        if not self.is_dense:
            return [], []
        by_mixture, by_round = (
            between(self.seen, model.labels_[self.rows]) for model in (self.mixture, self.kpod)
        )
        names = np.arange(len(by_round)) if self.names is None else np.asarray(self.names, object)

        def most(gain: Floats) -> list[Any]:
            first = np.argsort(-gain)[:MOST_LISTED]
            return [names[j] for j in first if gain[j] > DIFFERS]

        return most(by_mixture - by_round), most(by_round - by_mixture)


def between(values: Floats, labels: Labels) -> Floats:
    """The share of the variance of each column between clusters."""
    out = np.zeros(values.shape[1])
    for j, column in enumerate(values.T):
        seen = ~np.isnan(column)
        x, of = column[seen], np.unique(labels[seen], return_inverse=True)[1]
        total = float(((x - x.mean()) ** 2).sum()) if len(x) else 0.0
        if total > 0:
            means = np.bincount(of, x) / np.bincount(of)
            out[j] = 1 - float(((x - means[of]) ** 2).sum()) / total
    return out
