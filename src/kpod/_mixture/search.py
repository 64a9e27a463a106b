"""Several starts of one shape, and the best of several shapes by BIC."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from kpod._common.typing import Labels
from kpod._engine.executors import Executor
from kpod._mixture.covariance_shape import WITH_FACTORS, Shape
from kpod._mixture.em.iteration import Solution, from_labels, with_factors
from kpod._mixture.em.maximisation import Constraints
from kpod._mixture.em.mixture_parameters import Parameters, Prior
from kpod._mixture.starts import FEW, Sample, around, best_of, one_cluster, prior_of

N_CLUSTERINGS = 10  # starts of KPOD, the best few of which EM starts from
KEPT_CLUSTERINGS = 3
AUTO_STARTS = 40  # of rows far apart, with variances in common,
SHAPED_STARTS = 20  # and with the shape that is chosen
TRIAL_STARTS = 2  # that shapes are compared from
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
    clusterings : labels to start from
    own_clusterings : whether to start from those of KPOD on the sample as well
    """

    sample: Sample
    k: int
    within: Constraints
    prior_rows: float
    executor: Executor
    rng: np.random.Generator
    clusterings: list[Labels] = field(default_factory=list)
    own_clusterings: bool = True
    tried: dict[Shape, float] = field(default_factory=dict)
    solutions: dict[Shape, Solution] = field(default_factory=dict)
    priors: dict[Shape, Prior] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.own_clusterings:
            return
        seed = int(self.rng.integers(2**31 - 1))
        kept = self.sample.clusterings(self.k, N_CLUSTERINGS, seed)[:KEPT_CLUSTERINGS]
        self.clusterings = [*self.clusterings, *kept]

    @property
    def n_rows(self) -> float:
        return self.sample.entries.weight

    def constraints(self, shape: Shape) -> Constraints:
        """With the prior of a shape."""
        if not shape.own_variances:
            return self.within
        if shape.tied not in self.priors:
            entries, labels = self.sample.entries, self.clusterings[0]
            self.priors[shape.tied] = prior_of(entries, shape, labels, self.k, self.within, self.prior_rows)
        return replace(self.within, prior=self.priors[shape.tied])

    def fit(
        self, shape: Shape, n_starts: int, n_steps: int, tol: float, tried: Parameters | None = None
    ) -> Solution:
        """The best of so many starts of a shape: clusterings, or where EM ended from the first, and rows."""
        entries, within = self.sample.entries, self.constraints(shape)
        clusterings = self.clusterings[: max(1, n_starts)]
        starts = [] if tried is None else [tried]
        others = clusterings if tried is None else clusterings[TRIAL_STARTS:]
        starts += [self.start(shape, labels, within) for labels in others]
        n_seeds = n_starts - len(self.clusterings)
        if n_seeds > 0 and self.k > 1:
            one = one_cluster(entries, shape, within)
            means = self.sample.means_far_apart(self.k, n_seeds, self.rng)
            starts += [around(seeds, one, shape) for seeds in means]
        return best_of(entries, shape, starts, within, self.executor, n_steps, tol)

    def start(self, shape: Shape, labels: Labels, within: Constraints) -> Parameters:
        return from_labels(self.sample.entries, shape, labels, self.k, within)

    def trial(self, shape: Shape, fewer_factors: Parameters | None = None) -> Solution:
        """A fit by which shapes are compared, from two starts."""
        within = self.constraints(shape)
        starts = [] if fewer_factors is None else [with_factors(fewer_factors, 1)]
        clusterings = self.clusterings[: TRIAL_STARTS - len(starts)]
        starts += [self.start(shape, labels, within) for labels in clusterings]
        solution = best_of(
            self.sample.entries, shape, starts, within, self.executor, TRIAL_STEPS, TRIAL_TOL, FEW
        )
        self.tried[shape], self.solutions[shape] = solution.bic(self.n_rows, self.within), solution
        return solution

    def final(self, shape: Shape, n_starts: int, n_steps: int, tol: float) -> Solution:
        """The fit of a shape that was chosen or given; the fit it was compared by is one of its starts."""
        trial = self.solutions.get(shape)
        if trial is None:
            return self.fit(shape, n_starts, n_steps, tol)
        return self.fit(shape, min(n_starts, SHAPED_STARTS), n_steps, tol, trial.parameters)

    def labels(self, solution: Solution) -> Labels:
        posterior, _ = self.sample.entries.posterior(solution.parameters)
        return np.where(self.sample.table.observed > 0, posterior.argmax(axis=1), -1).astype(np.int32)

    def choose(self, shapes: list[list[Shape]], n_starts: int) -> Shape:
        """The shape with the least BIC: chains of shapes are followed for as long as the next is better.

        Rows far apart are tried with variances in common first, and where that ends is a start for all. The
        first chain with factors decides with how many the others begin.
        """
        if n_starts > len(self.clusterings) and self.k > 1:
            first = self.fit(Shape("tied_diag"), n_starts, TRIAL_STEPS, TRIAL_TOL)
            self.clusterings = [self.labels(first), *self.clusterings]
        n_factors = 0
        for chain in shapes:
            if n_factors and chain[0].q:
                self.climb(chain, min(n_factors, len(chain)) - 1)
            else:
                found = self.follow(chain)
                n_factors = found.q
        return min(self.tried, key=lambda shape: self.tried[shape])

    def follow(self, chain: list[Shape]) -> Shape:
        """The best shape of a chain, from its first on for as long as the next is better."""
        best: Shape | None = None
        last: Parameters | None = None
        for shape in chain:
            last = self.trial(shape, last).parameters
            if best is not None and self.tried[shape] >= self.tried[best]:
                break
            best = shape
        assert best is not None
        return best

    def climb(self, chain: list[Shape], at: int) -> None:
        """Try shapes of a chain from one of them on, upwards and else downwards while that is better.

        Not where the first is so much worse that a factor more or less could not make up for it.
        """
        p = self.sample.table.n_columns
        before = min(self.tried.values())
        last = self.trial(chain[at]).parameters
        price = np.log(self.n_rows) * (
            chain[at].n_parameters(self.k, p) - Shape("tied", chain[at].q).n_parameters(self.k, p)
        )
        if self.tried[chain[at]] > before + price / chain[at].q:
            return
        up = at
        while up + 1 < len(chain):
            last = self.trial(chain[up + 1], last).parameters
            if self.tried[chain[up + 1]] >= self.tried[chain[up]]:
                break
            up += 1
        while up == at and at > 0:
            self.trial(chain[at - 1])
            if self.tried[chain[at - 1]] >= self.tried[chain[at]]:
                break
            at = up = at - 1


def candidates(covariance_type: str, n_factors: int | str | None, p: int, k: int) -> list[list[Shape]]:
    """The shapes that are compared, in chains of more and more factors.

    "auto" compares those that do not depend on the units of the columns, which spherical ones do; a single
    cluster has everything in common.
    """
    types = list(WITH_FACTORS) if covariance_type == "auto" else [covariance_type]
    if covariance_type == "auto" and k == 1:
        alike = [[s for s in chain if s == s.tied] for chain in candidates("auto", n_factors, p, 2)]
        return [chain for chain in alike if chain]
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
