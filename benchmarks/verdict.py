"""The verdict on tables whose truth is known: groups, a continuum, one group, a few odd rows, a code.

The number of clusters is left open. A verdict is right if it says of groups that there are so many, set
apart, and of everything else that there are none, or names the choice without which they are gone.
`N_TABLES` in the environment asks for another number of tables of each kind.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import kpod
from benchmarks.harness import Sheet, progress

FIRST_SEED = 9900
N_TABLES = int(os.environ.get("N_TABLES", "10"))
N, P = 150, 5


def normal(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(N, P))


def grouped(rng: np.random.Generator, shares: list[float]) -> np.ndarray:
    """Groups whose centers are six standard deviations apart, or more."""
    k = len(shares)
    truth = np.repeat(np.arange(k), np.round(np.array(shares) * N).astype(int))
    centers = rng.normal(size=(k, P))
    apart = min(np.linalg.norm(a - b) for i, a in enumerate(centers) for b in centers[:i])
    return centers[truth] * 6 / apart + rng.normal(size=(len(truth), P))


def with_gaps(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    return np.where(rng.random(X.shape) < 0.1, np.nan, X)


def curve(rng: np.random.Generator) -> np.ndarray:
    t = rng.uniform(0, 3, N)
    return np.column_stack([np.cos(t), np.sin(t), t, t**2, np.exp(t / 2)]) + rng.normal(0, 0.05, (N, P))


def correlated(rng: np.random.Generator) -> np.ndarray:
    return normal(rng) * 0.5 + rng.normal(size=(N, 1)) * np.array([1, 1, -1, 1, -1])


def skewed(rng: np.random.Generator) -> np.ndarray:
    return np.exp(1.2 * normal(rng))


def outliers(rng: np.random.Generator) -> np.ndarray:
    X = normal(rng)
    X[:2] += 40
    return X


def by_code(rng: np.random.Generator) -> np.ndarray:
    """One group, and a number that stands for one of three kinds without any other difference."""
    return np.column_stack([normal(rng)[:, :-1], rng.choice([10.0, 55.0, 99.0], N)])


def says_groups(k: int) -> Callable[[Any], bool]:
    return lambda verdict: (
        verdict.groups == "separate"
        and verdict.n_clusters == k
        and sum(one.same for one in verdict.others) > len(verdict.others) / 2
    )


def says_none(verdict: Any) -> bool:
    return verdict.n_clusters == 1 or verdict.groups in ("continuum", "unclear")


def says_none_without(kind: str) -> Callable[[Any], bool]:
    return lambda verdict: (
        says_none(verdict) or any(one.kind == kind and not one.same for one in verdict.others)
    )


DESIGNS: dict[str, tuple[Callable[[np.random.Generator], np.ndarray], Callable[[Any], bool]]] = {
    "3 groups": (lambda rng: grouped(rng, [1 / 3] * 3), says_groups(3)),
    "3 groups of 60, 30 and 10 %": (lambda rng: grouped(rng, [0.6, 0.3, 0.1]), says_groups(3)),
    "2 groups, 10 % missing": (lambda rng: with_gaps(rng, grouped(rng, [0.5, 0.5])), says_groups(2)),
    "a curve": (curve, says_none),
    "one group": (normal, says_none),
    "one group, columns correlated": (correlated, says_none),
    "one group with long tails": (skewed, says_none_without("logarithms")),
    "one group and two extreme rows": (outliers, says_none_without("extreme rows")),
    "one group and a code": (by_code, says_none_without("column")),
}


def run() -> None:
    title = f"The verdict on tables of {N} x {P} whose truth is known, {N_TABLES} each"
    sheet = Sheet("verdict", title, ["table", "right", "said most often"])
    for name, (draw, is_right) in DESIGNS.items():
        n_right, said = 0, []
        for i in range(N_TABLES):
            X = draw(np.random.default_rng((FIRST_SEED, i)))
            frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(P)])
            verdict = kpod.analyze(frame).verdict
            n_right += is_right(verdict)
            said.append(verdict.groups)
            progress(f"verdict: {name}, {n_right} of {i + 1} right")
        sheet.add(name, f"{n_right} of {N_TABLES}", max(said, key=said.count))
        sheet.save()
    sheet.show()
