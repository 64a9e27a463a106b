"""A KPOD beside a mixture of the same table with as many clusters, and whether its shape is to be trusted.

BIC compares the mixture behind k-means with Gaussian shapes. A Gaussian shape is refused, and clusters stay
round, where it describes the distribution of one group rather than several: where a single correlated group
explains the table as well, or the clusters of the mixture lie on one hill; where round clusters with a t
density explain the table better (rows with scales of their own); and, unless all of its clusters are
separate, where columns are skewed within them or a t density would fit them clearly better; one of very heavy
tails contradicts separate clusters as well.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from kpod._common.typing import Floats, Labels, Positions
from kpod._estimators.kpod import KPOD
from kpod._estimators.mixture.gaussian_mixture import GaussianMixture
from kpod._inputs import validation
from kpod._mixture.covariance_shape import Shape
from kpod._mixture.skewness import gain_of_transforms
from kpod._mixture.starts import most_rows
from kpod._mixture.tails import HeavyTails, distances, gain_of_tails, round_with_tails
from kpod._model_selection.separation import any_apart_in_shape, n_apart_in_shape

ROUND = "round"
MOST_ROWS = 2_000  # that tails and skewness are judged by
SKEWED_GAIN = 0.07  # of log-likelihood an entry, that transforms of the columns add within clusters
HEAVY_DEGREES = 10.0  # of freedom, the most of a t density that contradicts a Gaussian shape,
VERY_HEAVY_DEGREES = 5.0  # that contradict it even if all clusters are separate
HEAVY_GAIN = 0.02  # and the least of log-likelihood an entry that it adds to that of a mixture
FEWEST_ROWS = 2.5  # of a cluster that is a group, and not rows that are outliers
ONE_GROUP_STEPS, ONE_GROUP_TOL = 60, 1e-3  # of EM for a single group
NEAR = 2.5  # robust standard deviations from the middle, beyond which a table is clipped
SAME = 0.9  # adjusted Rand index: round clusters are those of a mixture without correlation and own spreads
DIFFERS = 0.1  # of the variance of a column that one clustering explains and the other does not
MOST_LISTED = 3


@dataclass(frozen=True)
class Compared:
    """A KPOD and a mixture of the same table, with as many clusters."""

    values: Any
    kpod: KPOD
    mixture: GaussianMixture
    weights: Floats
    names: Any = None

    @classmethod
    def of(cls, X: Any, kpod: KPOD, shape: str, sample_weight: Any, names: Any) -> Compared:
        auto = shape == "auto"
        mixture = GaussianMixture(
            int(kpod.n_clusters_),
            covariance_type=shape,
            missingness=kpod.missingness_,
            outlier_cells="auto" if auto and not sparse.issparse(X) else False,
            select_columns="auto" if auto else False,
            random_state=kpod.random_state,
            n_threads=kpod.n_threads,
        )
        with warnings.catch_warnings():  # of rows and columns that the KPOD has warned of
            warnings.simplefilter("ignore")
            mixture._fit(X, sample_weight, [kpod.labels_])
        weights = np.ones(len(kpod.labels_)) if sample_weight is None else np.asarray(sample_weight, float)
        if names is None:
            names = getattr(kpod, "feature_names_in_", None)
        return cls(X, kpod, mixture, weights, names)

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
    def of_rows(self) -> Floats:
        """These rows, dense with NaN, in columns with observed entries."""
        return np.asarray(validation.as_table(self.values, self.mixture)[self.rows], np.float64)

    @cached_property
    def seen(self) -> Floats:
        """The same in the units of the mixture."""
        return self.seen_by(self.mixture)

    def seen_by(self, model: GaussianMixture) -> Floats:
        units = model._units()
        return np.asarray((self.of_rows - units.shift) * units.scale)

    @cached_property
    def clean(self) -> Floats:
        """The same without outlying cells."""
        return self.clean_of(self.mixture)

    def clean_of(self, model: GaussianMixture) -> Floats:
        units, seen = model._units(), self.seen_by(model)
        if model._prices is None:
            return seen
        return np.where(model._in_units(units).outliers(seen, model._parameters(units)), np.nan, seen)

    @cached_property
    def bics(self) -> dict[str, float]:
        """By shape; where a model was fitted to some of the rows, the others are taken to be like these."""
        of_round = self.fitted_to_rows(
            int(self.kpod.n_clusters_),
            self.kpod.labels_,
            covariance_type="tied_spherical",
            n_factors=None,
            missingness=self.kpod.missingness_,
        )
        some = float(self.weights[self.kpod.labels_ >= 0].sum()) if self.is_dense else self.total
        return {ROUND: self.bic(of_round, some), self.name: self.bic(self.mixture, self.total)}

    @property
    def total(self) -> float:
        return float(self.weights.sum())

    def bic(self, model: GaussianMixture, weight: float) -> float:
        """Of rows of that weight in all, with weights as repetition, which `bic` of a table has not."""
        return -2 * weight * model.lower_bound_ + model._n_parameters() * float(np.log(self.total))

    def fitted_to_rows(self, k: int, labels: Labels, **parameters: Any) -> GaussianMixture:
        """A mixture of the rows that tails are judged by, from labels of all; of all rows if not dense."""
        settings = {"random_state": self.kpod.random_state, "n_threads": self.kpod.n_threads, **parameters}
        model, values, weights = GaussianMixture(k, n_init=1, **settings), self.values, self.weights
        if self.is_dense:
            values, weights, labels = self.of_rows, weights[self.rows], labels[self.rows]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model._fit(values, weights, [labels])

    def refusal(self) -> tuple[str, float]:
        """Why round clusters are kept, empty if they are not; and the degrees of freedom of heavy tails."""
        reason = self.no_better()
        if reason:
            return reason, np.inf
        reason, degrees = self.not_normal()
        if reason:
            return reason, degrees
        if self.is_one_group():
            return "one correlated group", np.inf
        return ("" if self.any_apart else "not separate"), np.inf

    def no_better(self) -> str:
        """Why the mixture is not to be preferred as far as its BIC and its labels tell."""
        labels, shape = self.mixture.labels_, Shape(self.mixture.covariance_type_, self.mixture.n_factors_)
        if len(np.unique(labels[labels >= 0])) < self.kpod.n_clusters_:
            return "a cluster of no row"
        if self.bics[self.name] >= self.bics[ROUND]:
            return "no better"
        if shape == shape.tied and not shape.whole and not shape.q and self.agreement >= SAME:
            return "same clusters"
        few = self.smallest(self.mixture) < FEWEST_ROWS <= self.smallest(self.kpod)
        return "outlying rows" if few else ""

    def smallest(self, model: KPOD | GaussianMixture) -> float:
        """The weight of the smallest cluster."""
        placed = model.labels_ >= 0
        return float(np.bincount(model.labels_[placed], self.weights[placed]).min())

    def is_one_group(self) -> bool:
        """Whether one group with any correlation and tails explains some rows as well, without clusters.

        By AIC: BIC would take one group where groups overlap, though their number is given.
        """
        together, weights = np.zeros(len(self.kpod.labels_), np.int32), self.weights[self.rows]
        limits = {"max_iter": ONE_GROUP_STEPS, "tol": ONE_GROUP_TOL}
        one = self.fitted_to_rows(1, together, outlier_cells="auto", **limits)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            likelihoods = self.mixture.score_samples(self.of_rows)
        clean = self.clean_of(one)
        gain = self.gain_of_tails(one, clean, together[self.rows])[0]
        tails = gain * float(weights @ (~np.isnan(clean)).sum(axis=1))
        explained = one.lower_bound_ * float(weights.sum()) + max(0.0, tails - 1.0)
        more = self.mixture._n_parameters() - one._n_parameters()
        return float(weights @ likelihoods) - explained <= more

    def not_normal(self) -> tuple[str, float]:
        """Why no Gaussian shape is to be trusted: columns are skewed, or rows have heavy tails.

        Clusters that are all separate in their shape are no pieces of a tail, unless it is very heavy.
        """
        weights, in_pieces = self.weights[self.rows], self.n_apart < self.kpod.n_clusters_
        if in_pieces and self.gain_of_transforms(weights) > SKEWED_GAIN:
            return "skewed columns", np.inf
        if self.mixture.missingness_ == "ignore":
            tails = self.tails(~np.isnan(self.mixture.column_means_), weights)
            # In the units of the table, and of all its rows.
            scale = float(np.log(self.mixture._units().scale))
            observed = float(weights @ (~np.isnan(self.seen)).sum(axis=1))
            share = self.total / float(weights.sum())
            found = share * (tails.log_likelihood + observed * scale)
            self.bics["round, heavy tails"] = -2 * found + tails.n_parameters * float(np.log(self.total))
            if tails.degrees <= HEAVY_DEGREES and self.bics["round, heavy tails"] < self.bics[self.name]:
                return "rows with scales of their own", tails.degrees
        gain, degrees = self.gain_of_tails(self.mixture, self.clean, self.mixture.labels_[self.rows])
        most = HEAVY_DEGREES if in_pieces else VERY_HEAVY_DEGREES
        return ("heavy tails", degrees) if gain > HEAVY_GAIN and degrees <= most else ("", np.inf)

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

    def gain_of_tails(self, model: GaussianMixture, clean: Floats, labels: Labels) -> tuple[float, float]:
        """What a t density would add for each entry, given the clusters of a mixture."""
        off = distances(clean, labels, model._parameters(model._units()))
        return gain_of_tails(off, (~np.isnan(clean)).sum(axis=1).astype(np.float64), self.weights[self.rows])

    def gain_of_transforms(self, weights: Floats) -> float:
        """What monotone transforms of the columns would add for each entry, given the same clusters."""
        return gain_of_transforms(self.clean, self.mixture.labels_[self.rows], weights)

    @property
    def table(self) -> NDArray[np.int64]:
        """How many rows are in each round cluster (a row each) and each cluster of the mixture."""
        k = int(self.kpod.n_clusters_)
        found = np.zeros((k, k), np.int64)
        both = (self.kpod.labels_ >= 0) & (self.mixture.labels_ >= 0)
        np.add.at(found, (self.kpod.labels_[both], self.mixture.labels_[both]), 1)
        return found

    @property
    def n_sampled(self) -> int:
        most = most_rows(int(self.kpod.n_features_in_))
        return most if int((self.kpod.labels_ >= 0).sum()) > most else 0

    @property
    def is_dense(self) -> bool:
        return not (sparse.issparse(self.values) or hasattr(self.values, "blocks"))

    @cached_property
    def n_apart(self) -> int:
        """How many separate groups the clusters of the mixture form; 0 of a table that is not dense."""
        if not self.is_dense:
            return 0
        parameters = self.mixture._parameters(self.mixture._units())
        return n_apart_in_shape(self.clean, self.mixture.labels_[self.rows], parameters)

    @property
    def any_apart(self) -> bool:
        """Whether any two clusters of the mixture are separate, so that it has more than one group."""
        parameters = self.mixture._parameters(self.mixture._units())
        return self.n_apart > 1 or any_apart_in_shape(self.clean, self.mixture.labels_[self.rows], parameters)

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
