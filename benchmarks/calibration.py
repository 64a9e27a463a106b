"""Calibration of the probabilities of KPOD and GaussianMixture, for clusters that are round or not.

Tables of 2,000 x 8 with four normal clusters that overlap, 30 % missing; means are drawn anew for each. The
calibration error is the mean distance of confidence and accuracy over tenths of the confidence. `N_TABLES` in
the environment asks for fewer tables of each kind.
"""

from __future__ import annotations

import os

import numpy as np

from benchmarks.choose import calibration_error, matched
from benchmarks.harness import Sheet, progress, timed
from kpod import KPOD, GaussianMixture
from kpod._mixture.roundness import roundness
from kpod.missingness import mcar

FIRST_SEED = 7000
N_TABLES = int(os.environ.get("N_TABLES", "8"))
N, P, K = 2000, 8, 4
UNEQUAL = np.array([0.55, 0.25, 0.15, 0.05])
SPREADS = np.array([0.4, 0.8, 1.2, 2.0])[:, None]
DESIGNS = {
    "round, equal sizes": {},
    "round, sizes 55 / 25 / 15 / 5": {"shares": UNEQUAL},
    "spreads 0.4 / 0.8 / 1.2 / 2": {"spreads": SPREADS},
    "these spreads and sizes": {"spreads": SPREADS, "shares": UNEQUAL},
    "columns with variances of their own": {"spreads": np.geomspace(0.5, 2, P)},
    "a common factor": {"factor": 1.0},
    "a common factor, these sizes": {"factor": 1.0, "shares": UNEQUAL},
}


def draw(
    rng: np.random.Generator,
    shares: np.ndarray | None = None,
    spreads: np.ndarray | float = 1.0,
    factor: float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    truth = rng.choice(K, size=N, p=shares)
    noise = np.broadcast_to(spreads, (K, P))[truth] * rng.normal(size=(N, P))
    X = rng.normal(size=(K, P))[truth] + noise + factor * rng.normal(size=(N, 1))
    X = mcar(X, 0.3, random_state=int(rng.integers(2**31)))
    seen = ~np.isnan(X).all(axis=1)
    return X[seen], truth[seen]


def judged(posterior: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Accuracy and calibration error."""
    found = posterior.argmax(axis=1)
    hit = matched(found, truth, K)[found] == truth
    return float(hit.mean()), calibration_error(posterior.max(axis=1), hit)


def run() -> None:
    sheet = Sheet(
        "calibration",
        f"Probabilities of KPOD and GaussianMixture, {N_TABLES} tables each",
        ["clusters", "KPOD, accuracy", "calibration error", "said", "warned", "mixture, accuracy",
         "its calibration error", "largest"],
    )  # fmt: skip
    for number, (name, design) in enumerate(DESIGNS.items()):
        results = []
        for seed in range(FIRST_SEED, FIRST_SEED + N_TABLES):
            progress(f"calibration: {name}, table {seed - FIRST_SEED + 1}")
            X, truth = draw(np.random.default_rng([number, seed]), **design)
            kpod, _ = timed(lambda X=X: KPOD(K, probability=True, random_state=0).fit(X))
            mixture, _ = timed(lambda X=X: GaussianMixture(K, random_state=0).fit(X))
            chances = kpod.predict_proba(X)
            about = roundness(X, kpod.labels_, chances)
            of_mixture = judged(mixture.predict_proba(X), truth)
            results.append((*judged(chances, truth), about.error, about.contradicted, *of_mixture))
        means = np.mean(results, axis=0)
        sheet.add(
            name, *(round(float(mean), 3) for mean in means), round(float(np.max(results, axis=0)[-1]), 3)
        )
        sheet.save()
    sheet.show()
