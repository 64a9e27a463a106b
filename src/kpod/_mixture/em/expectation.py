"""The E step over all rows of a table, a range of rows at a time on several threads.

What ranges add up is merged in their order, so that the number of threads changes no digit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kpod._common.typing import Floats, Labels, Positions
from kpod._engine.blocks import Block
from kpod._engine.executors import Executor
from kpod._engine.table import Table
from kpod._kernels import mixture as kernels
from kpod._kernels.mixture import Covariances, Factors
from kpod._kernels.rows import Rows, Workspace
from kpod._mixture.em.mixture_parameters import Parameters

ENTRIES_PER_RANGE = 1 << 15
MOST_RANGES = 64


class Sums(NamedTuple):
    """What an M step needs of all rows: see `expect_factors` and `expect_covariances`."""

    log_likelihood: float
    parts: tuple[Floats, ...]


class Expected(NamedTuple):
    """For each row: probabilities of the clusters (n, k), log-likelihood (n,), and moments of the factors.

    These are their means (n, q, k) and the lower triangles of their covariances (n, q (q + 1) / 2, k).
    """

    posterior: Floats
    evidence: Floats
    scores: Floats | None
    covariances: Floats | None


@dataclass
class Range:
    """Rows of a block, and their order by patterns of gaps, computed on access."""

    block: Block
    start: int
    stop: int
    rows: Rows | None = None  # where some entries are not to be looked at
    patterns: tuple[Positions, Positions] | None = None

    @contextmanager
    def opened(self) -> Iterator[tuple[Rows, Workspace]]:
        if self.rows is not None:
            yield self.rows, Workspace(self.rows, 0, 1)
            return
        with self.block.rows() as rows:
            yield rows, Workspace(rows, 0, 1)

    @property
    def at(self) -> slice:
        """Where its rows are in the table."""
        return slice(self.block.first + self.start, self.block.first + self.stop)

    def by_pattern(self, rows: Rows, space: Workspace) -> tuple[Positions, Positions]:
        if self.patterns is None:
            bits = np.zeros((self.stop - self.start, (rows.n_columns + 7) // 8), np.uint8)
            kernels.observed_bits(rows, self.start, self.stop, bits, space)
            whole = bits.view(np.dtype((np.void, bits.shape[1]))).ravel()
            order = np.argsort(whole, kind="stable")
            new = np.flatnonzero(whole[order][1:] != whole[order][:-1]) + 1
            self.patterns = order, np.concatenate([[0], new, [len(order)]])
        return self.patterns


class Entries:
    """The rows of a table in ranges, for EM."""

    def __init__(
        self, table: Table, executor: Executor, ignored: list[NDArray[np.uint8]] | None = None
    ) -> None:
        """`ignored` has a bitmap of entries not to be looked at for each block, as `Rows` takes them."""
        self.table, self.executor = table, executor
        self.ranges: list[Range] = []
        for number, block in enumerate(table.blocks):
            rows = None if ignored is None else block._open(ignored[number])
            n = min(MOST_RANGES, max(1, block.n_entries // ENTRIES_PER_RANGE)) if block.keeps_rows else 1
            for start, stop in pairwise(block.n_rows * i // n for i in range(n + 1)):
                self.ranges.append(Range(block, start, stop, rows))
        weights = table.weights
        self.weight = float(table.n_rows if weights is None else weights.sum())

    def each(self, function: Callable[[Range], Any]) -> list[Any]:
        if len(self.ranges) == 1:
            return [function(self.ranges[0])]
        return self.executor.map(function, self.ranges)

    def sums(self, parameters: Parameters, labels: Labels | None = None) -> Sums:
        """Those of the M step; with `labels`, of these clusters instead of the posterior."""
        model = parameters.model()

        def of(rows: Range) -> tuple[float, tuple[Floats, ...]]:
            own = None if labels is None else labels[rows.block.first :][: rows.block.n_rows]
            with rows.opened() as (opened, space):
                if isinstance(model, Factors):
                    parts = model.empty_sums()
                    found = kernels.expect_factors(
                        opened, rows.start, rows.stop, model, own, *parts, None, None, None, None, space
                    )
                    return found, parts
                k, p, m = model.k, model.n_columns, model.n_matrices
                sums = np.zeros(k), np.zeros((k, p)), np.zeros((m, p, p)), np.zeros((k, p))
                found = kernels.expect_covariances(
                    opened,
                    rows.start,
                    rows.stop,
                    model,
                    *rows.by_pattern(opened, space),
                    own,
                    *sums,
                    None,
                    None,
                    space,
                )
                return found, sums

        found = self.each(of)
        total = found[0][1]
        for _, more in found[1:]:
            for own, other in zip(total, more, strict=True):
                np.add(own, other, out=own)
        return Sums(math.fsum(likelihood for likelihood, _ in found), total)

    def posterior(self, parameters: Parameters) -> tuple[Floats, Floats]:
        """Probability of each cluster for each row (n, k), and the log-likelihood of each row."""
        found = self.expected(parameters)
        return found.posterior, found.evidence

    def expected(self, parameters: Parameters, *, factors: bool = False) -> Expected:
        """The E step for each row; also for its factors, if requested."""
        model, n, k, q = parameters.model(), self.table.n_rows, parameters.k, parameters.q
        posterior, evidence = np.empty((n, k)), np.empty(n)
        with_factors = factors and q > 0
        scores = np.empty((n, q, k)) if with_factors else None
        covariances = np.empty((n, q * (q + 1) // 2, k)) if with_factors else None

        def of(rows: Range) -> None:
            own_scores = None if scores is None else scores[rows.at]
            own_covariances = None if covariances is None else covariances[rows.at]
            of_rows = posterior[rows.at], evidence[rows.at], own_scores, own_covariances
            with rows.opened() as (opened, space):
                expect(opened, rows, model, *of_rows, space)

        self.each(of)
        return Expected(posterior, evidence, scores, covariances)


def expect(
    opened: Rows,
    rows: Range,
    model: Factors | Covariances,
    posterior: Floats,
    evidence: Floats,
    scores: Floats | None,
    covariances: Floats | None,
    space: Workspace,
) -> None:
    """Posteriors and likelihoods of some rows, and with factors their means and covariances."""
    at = opened, rows.start, rows.stop
    if isinstance(model, Factors):
        kernels.expect_factors(*at, model, None, None, None, posterior, evidence, scores, covariances, space)
        return
    patterns = rows.by_pattern(opened, space)
    nothing = (None,) * 5
    kernels.expect_covariances(*at, model, *patterns, *nothing, posterior, evidence, space)
