"""Little's test of data missing completely at random."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from kpod._common.typing import Floats, Positions
from kpod._missing.association import _sample
from kpod._missing.between_groups import Gaps

LITTLE_ROWS, LITTLE_COLUMNS = 2_000, 30
EM_STEPS, EM_TOLERANCE = 200, 1e-6


@dataclass(frozen=True)
class LittleTest:
    """Little's test of values missing completely at random (MCAR).

    `p` is small if rows with different columns missing differ in the other columns. If the test cannot be
    computed, the numbers are NaN and `reason` says why.
    """

    statistic: float
    df: int
    p: float
    patterns: int
    reason: str = ""


def little_test(values: Floats) -> LittleTest:
    """Little's test over the columns that vary, on a sample of the rows where there are many."""
    rows = values[~np.isnan(values).all(axis=1)]
    drawn = rows[_sample(len(rows), LITTLE_ROWS)]
    x = drawn[:, _varies(drawn)]
    x = x[~np.isnan(x).all(axis=1)]
    reason = _why_not(x, _why_no_gaps(values, x))
    if not reason:
        x = (x - np.nanmean(x, axis=0)) / np.nanstd(x, axis=0)
        kept, which = np.unique(~np.isnan(x), axis=0, return_inverse=True)
        which = np.asarray(which).ravel()
        try:
            return _little_statistic(x, kept, which, *normal_by_em(x, kept, which))
        except np.linalg.LinAlgError:
            reason = "some columns are combinations of others"
    return LittleTest(np.nan, 0, np.nan, 0, reason)


def _why_not(x: Floats, no_gaps: str) -> str:
    """Why Little's test cannot be computed; empty if it can."""
    seen = (~np.isnan(x)).astype(np.float64)
    reasons = {
        "fewer than two columns of numbers vary": x.shape[1] < 2,
        no_gaps: bool(no_gaps),
        f"there are more than {LITTLE_COLUMNS} columns": x.shape[1] > LITTLE_COLUMNS,
        "there are too few rows for so many columns": len(x) <= 2 * x.shape[1],
        "two of the columns are hardly ever observed in the same row": bool((seen.T @ seen < 3).any()),
        f"fewer than {LEAST_ROWS} rows have gaps": int((seen.min(axis=1, initial=1) == 0).sum()) < LEAST_ROWS,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


LEAST_ROWS = 5
"""Rows with gaps, from which on the test says something about more than single rows."""


def _varies(values: Floats) -> Gaps:
    """Which columns have different values."""
    known = ~np.isnan(values)
    low = np.where(known, values, np.inf).min(axis=0, initial=np.inf)
    high = np.where(known, values, -np.inf).max(axis=0, initial=-np.inf)
    return np.asarray(high > low)


def _why_no_gaps(values: Floats, x: Floats) -> str:
    """Why nothing is missing in `x`, the part of the table that Little's test is about; empty if it is."""
    numbers, lacking = values[:, ~np.isnan(values).all(axis=0)], np.isnan(values[:, _varies(values)])
    if np.isnan(x).any():
        return ""
    if not np.isnan(numbers).any():
        return "none of the columns of numbers has gaps"
    if not lacking.any():
        return "the columns of numbers that have gaps do not vary"
    if (lacking.all(axis=1) == lacking.any(axis=1)).all():
        return "every row has either all of the columns of numbers or none"
    return "there are so few gaps that a random sample of the rows has none"


def _little_statistic(
    x: Floats, kept: Gaps, which: Positions, mean: Floats, covariance: Floats
) -> LittleTest:
    inverse = _inverses(kept, covariance)
    z = np.where(kept[which], x - mean, 0.0)
    sums = np.zeros(kept.shape)
    np.add.at(sums, which, z)
    rows = np.bincount(which, minlength=len(kept))
    statistic = float((np.einsum("sij,sj->si", inverse, sums) * sums).sum(axis=1) @ (1 / rows))
    df = int(kept.sum() - kept.shape[1])
    return LittleTest(statistic, df, float(special.chdtrc(df, statistic)), len(kept))


def normal_by_em(x: Floats, kept: Gaps, which: Positions) -> tuple[Floats, Floats]:
    """Mean and covariance of a normal distribution, by maximum likelihood over the observed entries.

    `kept` are the patterns of observed columns, `which` that of each row.
    """
    n, p = x.shape
    filled = np.where(kept[which], x, 0.0)
    mean, covariance = filled.sum(axis=0) / kept[which].sum(axis=0), np.eye(p)
    rows = np.bincount(which, minlength=len(kept)).astype(np.float64)
    for _ in range(EM_STEPS):
        inverse = _inverses(kept, covariance)
        weights = covariance @ inverse  # of each pattern: from observed deviations to every column
        residual = np.where(kept[which], filled - mean, 0.0)
        expected = np.einsum("nij,nj->ni", weights[which], residual)
        spare = covariance - weights @ covariance
        both = ~kept[:, :, None] & ~kept[:, None, :]
        new_mean = mean + expected.mean(axis=0)
        step = expected - (new_mean - mean)
        new = step.T @ step / n + np.einsum("s,sij->ij", rows, np.where(both, spare, 0.0)) / n
        moved = max(float(np.abs(new - covariance).max()), float(np.abs(new_mean - mean).max()))
        mean, covariance = new_mean, (new + new.T) / 2
        if moved < EM_TOLERANCE:
            break
    if np.linalg.eigvalsh(covariance)[0] < 1e-8:
        raise np.linalg.LinAlgError
    return mean, covariance


def _inverses(kept: Gaps, covariance: Floats) -> Floats:
    """The inverse covariance of each pattern's columns, 0 elsewhere."""
    both = kept[:, :, None] & kept[:, None, :]
    inner = np.where(both, covariance, np.eye(len(covariance)))
    return np.asarray(np.where(both, np.linalg.inv(inner), 0.0))
