"""The number of clusters of any shape: the choice by squared errors, checked by held-out log density.

Where clusters need not be round, correlation is no reason for doubt, and groups that differ in spread, or
have a few outlying cells, are groups all the same. Held-out log density (`_model_selection/density.py`) sees
them: it may settle a doubt, contradict a choice that seemed clear, or find several groups where squared
errors find one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from kpod._common.sentences.formatting import counted
from kpod._engine.executors import threads
from kpod._estimators.kpod import KPOD
from kpod._findings.cluster_shapes import NOT_NORMAL, ShapeChoice, choose_shape
from kpod._inputs import validation
from kpod._model_selection.density import MOST_COLUMNS, DensityChoice, DensitySearch
from kpod._model_selection.number_of_clusters import KChoice
from kpod._model_selection.separation import n_apart

SUSPECTED = 2.0  # standard errors by which several groups are better than one, where one seemed clear,
CERTAIN = 3.0  # and by which there is no doubt of it


def check_by_density(
    X: Any, kpod: KPOD, choice: KChoice, shape: str, sample_weight: Any = None
) -> tuple[KPOD, KChoice]:
    """The choice after a check by log density, and the KPOD of its number: the one that is given, or another.

    If only clusters of another shape are separate, the choice has the model of that shape.
    """
    density = density_choice(X, kpod, choice, sample_weight)
    if density is None:
        return kpod, choice
    shaped = Shaped(X, kpod, shape, sample_weight)
    found = with_density(choice, density)
    if found.sentence_ != choice.sentence_ and choice.best_k_ > 1 and shaped.is_refused(density.k):
        found = replace(choice, table_=found.table_)
    else:
        found = with_groups_apart(choice, found, density, shaped)
    if density.n_rows < (kpod.labels_ >= 0).sum() and found.sentence_ != choice.sentence_:
        text = f"{found.sentence_} The density is that of a random sample of {density.n_rows:,} rows."
        found = replace(found, sentence_=text)
    other = shaped.round(found.best_k_)
    if other is kpod or found.model_ is not None:
        return other, found
    apart = n_apart(validation.as_array(X, other), other.labels_, other.cluster_centers_)
    return other, replace(found, n_separate_=apart)


@dataclass
class Shaped:
    """Clusters of a table, round and in the shape that holds, of any number; each is fitted once."""

    X: Any
    kpod: KPOD
    shape: str
    sample_weight: Any
    fitted: dict[int, tuple[KPOD, Any, ShapeChoice]] = field(default_factory=dict)

    def round(self, k: int) -> KPOD:
        if k == self.kpod.n_clusters_:
            return self.kpod
        if k in self.fitted:
            return self.fitted[k][0]
        return clone(self.kpod).set_params(n_clusters=k).fit(self.X, sample_weight=self.sample_weight)

    def at(self, k: int) -> tuple[Any, ShapeChoice]:
        """The model of k clusters, and about its shape."""
        if k not in self.fitted:
            kpod = self.round(k)
            self.fitted[k] = kpod, *choose_shape(self.X, kpod, self.shape, self.sample_weight)
        return self.fitted[k][1:]

    def is_refused(self, k: int) -> bool:
        """Whether groups are such that no Gaussian fits them, so that log density counts their pieces."""
        return k > 1 and self.at(k)[1].reason_ in NOT_NORMAL

    def is_apart(self, k: int) -> bool:
        return self.at(k)[1].n_separate_ == k

    def bic(self, k: int) -> float:
        """Of the mixture of k clusters."""
        about = self.at(k)[1]
        return float(about.bics_[about.compared_])


def with_groups_apart(choice: KChoice, found: KChoice, density: DensityChoice, shaped: Shaped) -> KChoice:
    """What was found, or the most groups that are set apart in their shape.

    There is no doubt of these if centers ask for as many and only seemed not to be separate, or if other
    numbers have a higher BIC.
    """
    numbers = perhaps_apart(choice, density)
    k = next(filter(shaped.is_apart, numbers), None)
    if k is None:
        return found
    clear = (k == choice.best_k_ and choice.doubt_ == "separation") or k == min(numbers, key=shaped.bic)
    model, about = shaped.at(k)
    in_shape = set_apart(choice, k, clear=clear)
    return replace(in_shape, table_=found.table_, n_separate_=k, model_=model, shape_=about)


def density_choice(X: Any, kpod: KPOD, choice: KChoice, sample_weight: Any) -> DensityChoice | None:
    """The number by log density; None where there is nothing to choose, or no Gaussian to expect."""
    numbers = [int(k) for k in choice.table_["k"]]
    groups = np.asarray(kpod.column_groups_)
    in_memory = not (sparse.issparse(X) or hasattr(X, "blocks") or validation.is_dask(X))
    if (
        len(numbers) == 1
        or not in_memory
        or choice.gaps_
        or len(np.unique(groups)) < len(groups)
        or not 1 < kpod.n_features_in_ <= MOST_COLUMNS
    ):
        return None
    values = np.asarray(validation.as_array(X, kpod), np.float64)
    weights = validation.check_weights(sample_weight, len(values))
    with threads(kpod._n_threads()) as executor:
        search = DensitySearch.of(values, weights, executor)
        return search.choice(numbers) if search.enough else None


def with_density(choice: KChoice, density: DensityChoice) -> KChoice:
    """The choice that follows from squared errors and log density together."""
    by_k = {k: float(of.mean()) for k, of in density.by_k.items()}
    table = choice.table_ | {"log_density": np.array([by_k.get(int(k), np.nan) for k in choice.table_["k"]])}
    choice = replace(choice, table_=table)
    if choice.best_k_ == 1:
        return instead_of_one(choice, density)
    return contradicted(choice, density) if choice.clear_ else of_doubt(choice, density)


def instead_of_one(choice: KChoice, density: DensityChoice) -> KChoice:
    """One cluster, or several where log density is better with them."""
    kd = density.k
    if kd == 1 or density.above(density.best, 1) <= SUSPECTED:
        return choice
    fewer = min(density.above(kd, k) for k in density.by_k if k < kd)
    if kd == density.best and fewer > CERTAIN:
        return settled(choice, kd, by_centers=False)
    return unsettled(choice, kd, f"one cluster predicts hidden values as well as more do, but {better(kd)}")


def contradicted(choice: KChoice, density: DensityChoice) -> KChoice:
    """A clear choice of several clusters, unless log density is clearly better with others."""
    k = choice.best_k_
    several = density.above(density.best, 1) > CERTAIN and not density.still_rising
    if not several or k not in density.by_k or density.above(density.best, k) <= CERTAIN:
        return choice
    return unsettled(choice, k, f"{k} clusters predict hidden values best, but {better(density.k)}")


def of_doubt(choice: KChoice, density: DensityChoice) -> KChoice:
    """Several clusters that were in doubt, with the evidence of log density.

    A curve cut into pieces, and numbers that end too early, are no matter of shape.
    """
    k, kd, above_one = choice.best_k_, density.k, density.above(density.best, 1)
    agrees = kd == k and above_one > SUSPECTED
    last, separate = k == max(choice.table_["k"]), choice.n_separate_ >= k
    if (above_one <= CERTAIN and not agrees) or (density.still_rising and not density.supports(k)):
        return choice
    if not separate and kd < k:
        return unsettled(choice, kd, f"{choice.reason_}; {better(kd)}")
    if not separate or last:
        return choice
    if density.supports(k):
        return settled(choice, k, by_centers=True)
    return unsettled(choice, kd, f"{k} clusters predict hidden values best, but {better(kd)}")


def perhaps_apart(choice: KChoice, density: DensityChoice) -> list[int]:
    """Numbers of clusters that may be groups set apart in a shape of their own, though round ones are not.

    From what squared errors ask for downwards, those that log density has nothing against. One group is ruled
    out by log density, or was by squared errors where they doubt nothing but that clusters are separate.
    """
    k = choice.best_k_
    in_doubt = not choice.clear_ and k < max(choice.table_["k"])
    settled_otherwise = choice.n_separate_ >= k and density.supports(k)
    several = choice.doubt_ == "separation" or density.above(density.best, 1) > SUSPECTED
    if not in_doubt or settled_otherwise or not several:
        return []
    return [m for m in range(k, 1, -1) if m in choice.table_["k"] and density.supports(m)]


def set_apart(choice: KChoice, k: int, *, clear: bool) -> KChoice:
    """The choice if k clusters are separate in their shape."""
    dense = "held-out rows have as high a density as with any number"
    if not clear:
        also = f"{k} groups of any shape are separate, and {dense}"
        return unsettled(choice, k, f"{choice.reason_}; {also}")
    text = f"{counted(k, 'cluster')}: "
    if k == choice.best_k_:
        text += f"as many centers predict hidden values best, and {k} groups that are not round are "
        text += f"separate; {dense}."
    else:
        text += f"{k} groups that are not round are separate; {dense}, and a mixture of as many has the "
        text += f"lowest BIC. Round clusters would have to be {choice.best_k_}."
    return replace(choice, best_k_=k, clear_=True, reason_="", sentence_=text)


def better(k: int) -> str:
    return f"held-out rows have a higher density with {k} groups of any shape"


def settled(choice: KChoice, k: int, *, by_centers: bool) -> KChoice:
    """A clear choice."""
    also = "the centers predict hidden values best with as many"
    alone = "squared errors alone do not distinguish these groups"
    text = (
        f"{counted(k, 'cluster')}: held-out rows have the highest density with {k} groups of any shape, "
        f"fewer do worse, and more do no better; {also if by_centers else alone}."
    )
    return replace(choice, best_k_=k, clear_=True, reason_="", sentence_=text)


def unsettled(choice: KChoice, k: int, reason: str) -> KChoice:
    """A guess."""
    text = f"No clear choice: {reason}. {counted(k, 'cluster')} are used as the best guess."
    return replace(choice, best_k_=k, clear_=False, reason_=reason, sentence_=text)
