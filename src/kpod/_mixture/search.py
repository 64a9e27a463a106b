"""Several starts of one shape, and the best of several shapes by BIC."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from kpod._common.typing import Labels
from kpod._engine.executors import Executor
from kpod._mixture.em.iteration import Solution, from_labels, with_factors
from kpod._mixture.em.maximisation import Constraints
from kpod._mixture.em.parameters import Parameters
from kpod._mixture.shape import WITH_FACTORS, Shape
from kpod._mixture.starts import Sample, around, best_of, one_cluster, prior_of

N_CLUSTERINGS = 10  # starts of KPOD, the best few of which EM starts from
KEPT_CLUSTERINGS = 3
AUTO_STARTS = 60  # of rows far apart
MOST_FACTORS = 4  # that "auto" tries
WIDEST_WHOLE = 100  # columns of a table whose covariance matrices are written out,
WIDEST_WHOLE_AUTO = 12  # and up to which "auto" tries to
TRIAL_STEPS, TRIAL_TOL = 60, 1e-3


@dataclass
class Search:
    """Mixtures of k clusters on a sample, in the units of the sample.

    Parameters
    ----------
    sample : rows of the table, standardised
    k : number of clusters
    within : what parameters are kept to, but for the prior
    prior_rows : rows of what clusters have in common behind each cluster's own variances
    executor : on which starts run side by side
    rng : where the starts come from
    """

    sample: Sample
    k: int
    within: Constraints
    prior_rows: float
    executor: Executor
    rng: np.random.Generator
    clusterings: list[Labels] = field(default_factory=list)
    tried: dict[Shape, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        seed = int(self.rng.integers(2**31 - 1))
        kept = self.sample.clusterings(self.k, N_CLUSTERINGS, seed)[:KEPT_CLUSTERINGS]
        self.clusterings = [*self.clusterings, *kept]

    @property
    def n_rows(self) -> float:
        return self.sample.entries.weight

    def constraints(self, shape: Shape) -> Constraints:
        """With the prior of a shape."""
        entries, labels = self.sample.entries, self.clusterings[0]
        prior = prior_of(entries, shape, labels, self.k, self.within, self.prior_rows)
        return replace(self.within, prior=prior)

    def fit(
        self, shape: Shape, n_starts: int, n_steps: int, tol: float, more: Iterable[Parameters] = ()
    ) -> Solution:
        """The best of so many starts of a shape, the clusterings of KPOD and what more there is."""
        entries, within = self.sample.entries, self.constraints(shape)
        starts = [self.start(shape, labels, within) for labels in self.clusterings]
        starts = [*starts[: max(1, n_starts)], *more]
        n_seeds = n_starts - len(self.clusterings)
        if n_seeds > 0 and self.k > 1:
            one = one_cluster(entries, shape, within)
            means = self.sample.means_far_apart(self.k, n_seeds, self.rng)
            starts += [around(seeds, one, shape) for seeds in means]
        return best_of(entries, shape, starts, within, self.executor, n_steps, tol)

    def start(self, shape: Shape, labels: Labels, within: Constraints) -> Parameters:
        return from_labels(self.sample.entries, shape, labels, self.k, within)

    def trial(self, shape: Shape, more: Iterable[Parameters] = ()) -> Solution:
        """A fit by which shapes are compared, from few starts."""
        solution = self.fit(shape, len(self.clusterings), TRIAL_STEPS, TRIAL_TOL, more)
        self.tried[shape] = solution.bic(self.n_rows, self.within)
        return solution

    def labels(self, solution: Solution) -> Labels:
        posterior, _ = self.sample.entries.posterior(solution.parameters)
        return np.where(self.sample.table.observed > 0, posterior.argmax(axis=1), -1).astype(np.int32)

    def choose(self, shapes: list[list[Shape]], n_starts: int) -> Shape:
        """The shape with the least BIC: chains of shapes are followed for as long as the next is better.

        Rows far apart are tried with variances in common first, and where that ends is a start for all.
        """
        if n_starts > len(self.clusterings) and self.k > 1:
            first = self.fit(Shape("tied_diag"), n_starts, TRIAL_STEPS, TRIAL_TOL)
            self.clusterings = [self.labels(first), *self.clusterings]
        for chain in shapes:
            before = np.inf
            more: list[Parameters] = []
            for shape in chain:
                last = self.trial(shape, more)
                more = [with_factors(last.parameters, 1)]
                if self.tried[shape] >= before:
                    break
                before = self.tried[shape]
        return min(self.tried, key=lambda shape: self.tried[shape])


def candidates(covariance_type: str, n_factors: int | str | None, p: int) -> list[list[Shape]]:
    """The shapes that are compared, in chains of more and more factors.

    "auto" compares those that do not depend on the units of the columns, which spherical ones do.
    """
    types = list(WITH_FACTORS) if covariance_type == "auto" else [covariance_type]
    if isinstance(n_factors, int):
        return [[Shape(name, n_factors)] for name in types]
    most = max(1, min(MOST_FACTORS, p - 1 if p < 6 else p // 2))
    if n_factors is None:
        narrow = p <= WIDEST_WHOLE
        names = ["tied_diag", "diag", *(["tied", "full"] if narrow else [])]
        return [[Shape(name)] for name in (names if covariance_type == "auto" else [covariance_type])]
    chains: list[list[Shape]] = []
    if covariance_type == "auto":
        chains = [[Shape("tied_diag")], [Shape("diag")]]
    elif covariance_type not in WITH_FACTORS or covariance_type == "diag":
        chains = [[Shape(covariance_type)]]
    if p >= 3:
        chains += [[Shape(name, q) for q in range(1, most + 1)] for name in types if name in WITH_FACTORS]
    if p <= WIDEST_WHOLE_AUTO and p >= 2:
        chains += [[Shape(name)] for name in types if name in ("tied", "full")]
    if not chains:
        chains = [[Shape(covariance_type)]]
    return chains
