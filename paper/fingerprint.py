"""Whether tables and scores are still what they were: a few digits that change when they do.

Tables, their gaps and the scores come from this package, from kpod and from NumPy, of which versions come
and go without touching them. So it is the outcome that is compared, not the versions: the first trial of
every cell, its gaps exactly, values and the scores of a made-up clustering to the digits that every
machine agrees on.
"""

from __future__ import annotations

import hashlib
from functools import cache

import numpy as np

from paper.datasets import Cell, designs, make_problem
from paper.objective import judge


@cache
def fingerprints(seed: int) -> dict[str, str]:
    """Of each table, with its gaps and its scores."""
    return {name: fingerprint(name, seed) for name in designs()}


def fingerprint(table: str, seed: int) -> str:
    design, digest = designs()[table], hashlib.sha256()
    for mechanism, percents in design.percents.items():
        for percent in percents:
            problem, truth = make_problem(design, Cell(table, mechanism, percent), 0, seed)
            outcome = judge(problem.X, truth, np.arange(len(truth)) % design.n_clusters, 0.0)
            gaps = np.isnan(problem.X)
            digest.update(np.packbits(gaps).tobytes())
            digest.update(np.where(gaps, 0, problem.X).astype("<f4").tobytes())
            digest.update(problem.complete.astype("<f4").tobytes())
            digest.update(truth.astype("<i4").tobytes())
            scores = (
                f"{problem.n_clusters} {problem.seed} {outcome.rand:.6g} {outcome.ari:.6g} {outcome.loss:.6g}"
            )
            digest.update(scores.encode())
    return digest.hexdigest()[:16]
