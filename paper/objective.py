"""The only place where a clustering is judged. No method grades itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.metrics import adjusted_rand_score, rand_score

OK, FAILED, OVER_TIME, UNAVAILABLE = "ok", "failed", "over time", "unavailable"


@dataclass(frozen=True)
class Outcome:
    """What came of one method on one table; scores are NaN where it gave no clustering.

    `seconds` are those of filling in and clustering, on one thread, without loading packages.
    """

    status: str
    reason: str = ""
    rand: float = float("nan")
    ari: float = float("nan")
    loss: float = float("nan")
    seconds: float = float("nan")


def judge(X: np.ndarray, truth: np.ndarray, labels: np.ndarray, seconds: float) -> Outcome:
    """Score labels against the truth. A label of -1 is a group of its own, like any other."""
    labels = np.asarray(labels)
    if labels.shape != truth.shape:
        return Outcome(FAILED, f"{labels.shape} labels for {truth.shape} rows")
    return Outcome(
        OK,
        rand=float(rand_score(truth, labels)),
        ari=float(adjusted_rand_score(truth, labels)),
        loss=observed_loss(X, labels),
        seconds=seconds,
    )


def observed_loss(X: np.ndarray, labels: np.ndarray) -> float:
    """Sum of squares over observed entries, with the best centers for the labels, whoever found them."""
    total = 0.0
    for label in np.unique(labels):
        rows = X[labels == label].astype(np.float64)
        observed = ~np.isnan(rows)
        counts = observed.sum(axis=0)
        centers = np.where(observed, rows, 0).sum(axis=0) / np.maximum(counts, 1)
        total += float(((np.where(observed, rows, centers) - centers) ** 2).sum())
    return total
