r"""`scale="auto"`: which columns are replaced by logarithms or limited before they are standardised.

k-means finds clusters of one width. So a column of positive numbers is replaced by its logarithm where
clusters of one width describe it clearly better then: where the log-likelihood of an entry,

.. math:: \max_K \; \log \sum_{l \le K} q_l \, N(t(x); \mu_l, \sigma^2) + \log |t'(x)|,

a mixture with one variance, less its BIC penalty, is larger for t = log than for t = 1 by `GAIN`, and that of
a single normal distribution, too (a small group far out is no long tail). A column in which a few values
still hold most of the variance is limited to a range about its median, unless many values lie beyond it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from kpod._common.notes import Note
from kpod._common.typing import AnyFloats, Floats

GAIN = 0.2
"""Of log-likelihood an entry: a factor of e for every five entries."""
LEAST_VALUES = 10
"""Different values that a column has at the least; fewer are steps, not a scale."""
LEAST_ENTRIES = 20
MOST_GROUPS = 5
MOST_ENTRIES = 500
"""Of more, as many quantiles stand for the column."""
STEPS = 50
SMALLEST_VARIANCE = 1e-3
"""Of the groups, as a share of the column's own."""
FEW = 0.02
"""The share of the entries that are a few, two at the least."""
FAR = 5.0
"""The range of a limited column, in robust standard deviations either side of the median."""
TO_NORMAL = 1.3489795003921634
"""The interquartile range of a normal distribution, in its standard deviations."""


@dataclass(frozen=True)
class Transforms:
    """The columns that are changed before they are scaled."""

    log: list[str]
    limited: list[str] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)


def choose_transforms(
    names: Sequence[str], values: AnyFloats, judged: Sequence[str], log: Sequence[str], *, limit: bool
) -> Transforms:
    """Decide about the columns `judged`; those in `log` are decided already."""
    found, limited = list(log), dict[str, tuple[int, float, float]]()
    for name, seen in observed(names, values, judged):
        logged = name in log or needs_logarithm(seen)
        found += [name] if logged and name not in log else []
        x = np.log(seen + log_offset(seen)) if logged else seen
        ends = limits(x) if limit else None
        if ends is not None:
            beyond = int(((x < ends[0]) | (x > ends[1])).sum())
            low, high = np.exp(ends) - log_offset(seen) if logged else ends
            limited[name] = beyond, float(low), float(high)
    added = tuple(found[len(log) :])
    notes = [Note("logarithms chosen", added)] if added else []
    if limited:
        n, low, high = (list(of) for of in zip(*limited.values(), strict=True))
        notes.append(Note("values limited", tuple(limited), {"n": n, "low": low, "high": high}))
    return Transforms(found, list(limited), notes)


def observed(names: Sequence[str], values: AnyFloats, judged: Sequence[str]) -> Iterator[tuple[str, Floats]]:
    for j, name in enumerate(names):
        if name in judged:
            yield name, np.asarray(values[:, j][~np.isnan(values[:, j])], np.float64)


def needs_logarithm(values: Floats) -> bool:
    """Whether clusters of one width describe the logarithms of a column clearly better than its values."""
    if len(values) < LEAST_ENTRIES or values.min() < 0 or len(np.unique(values)) <= LEAST_VALUES:
        return False
    logs = np.log(values + log_offset(values))
    if logs.std() <= 0:
        return False
    stretch = float(logs.mean() + np.log(logs.std()) - np.log(values.std()))  # of the density, in the mean
    if -stretch < GAIN:
        return False
    return groups_of_one_width(logs) - groups_of_one_width(values) - stretch >= GAIN


def log_offset(values: Floats) -> float:
    """What is added before the logarithm is taken: 1 where zero occurs."""
    return 1.0 if len(values) and values.min() <= 0 else 0.0


def groups_of_one_width(values: Floats) -> float:
    """The log-likelihood of a standardised entry under the best groups of one variance, less a penalty."""
    x = np.sort((values - values.mean()) / values.std())
    if len(x) > MOST_ENTRIES:
        x = np.quantile(x, (np.arange(MOST_ENTRIES) + 0.5) / MOST_ENTRIES)
    penalty = np.log(len(values)) / len(values)
    return max(mixture_of_one_width(x, k) - k * penalty for k in range(1, MOST_GROUPS + 1))


def mixture_of_one_width(x: Floats, k: int) -> float:
    """The mean log-likelihood of sorted values under k normal groups of one variance, by EM."""
    means = np.array([part.mean() for part in np.array_split(x, k)])
    shares, variance = np.full(k, 1 / k), max(SMALLEST_VARIANCE, x.var() / k**2)
    found = -np.inf
    for _ in range(STEPS):
        logs = np.log(shares) - 0.5 * ((x[:, None] - means) ** 2 / variance + np.log(2 * np.pi * variance))
        highest = logs.max(axis=1, keepdims=True)
        densities = np.exp(logs - highest)
        sums = densities.sum(axis=1, keepdims=True)
        before, found = found, float((np.log(sums) + highest).mean())
        if found - before < 1e-4:
            break
        belongs = densities / sums
        weights = np.maximum(belongs.sum(axis=0), 1e-300)
        means, shares = x @ belongs / weights, weights / len(x)
        variance = max(SMALLEST_VARIANCE, float((belongs * (x[:, None] - means) ** 2).sum()) / len(x))
    return found


def limits(values: Floats) -> tuple[float, float] | None:
    """The range of a column in which a few values hold more than half of the variance; None for another."""
    if len(values) < LEAST_ENTRIES or len(np.unique(values)) <= LEAST_VALUES:
        return None
    squares = (values - values.mean()) ** 2
    few = max(2, int(FEW * len(values)))
    if np.partition(squares, -few)[-few:].sum() <= squares.sum() / 2:
        return None
    low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
    reach = FAR * float(high - low) / TO_NORMAL
    if (np.abs(values - median) > reach).sum() > few:  # a long tail, or most values are equal
        return None
    return float(median) - reach, float(median) + reach
