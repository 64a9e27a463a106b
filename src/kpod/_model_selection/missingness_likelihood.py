"""Minus twice the log-likelihood of which entries of a row are missing."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from kpod._common.typing import Floats, Positions
from kpod._mixture.em.mixture_parameters import SMALLEST_RATE

COLUMNS_AT_ONCE = 256


def missingness_deviance(
    seen: Any, posterior: Floats, rates: Floats, weights: Floats, informative: Positions
) -> Floats:
    r"""The deviance of which entries of each row are missing (n,).

    .. math:: -2 \sum_j \log \sum_l P(l \mid \text{row } i \text{ but for the gap in } j)\, P(o_{ij} \mid l)

    Each row is left out of the rates that it is judged by. `seen` is the mask (n, p), dense or CSR, of which
    the columns `informative` count; `posterior` (n, k) and `rates` (k, p) are those of a mixture.
    """
    r = posterior * weights[:, None]
    total = r.sum(axis=0)
    per = posterior / (total - r + 1)
    out = np.zeros(len(posterior))
    for start in range(0, len(informative), COLUMNS_AT_ONCE):
        some = informative[start : start + COLUMNS_AT_ONCE]
        here = seen[:, some]
        here = here.toarray() if sparse.issparse(here) else here
        overall = (weights @ here) / max(float(weights.sum()), 1e-300)
        # Without the gap of a column, the posterior is what it is with it, over how likely the gap was.
        seen_there, rate = r.T @ here + overall, rates[:, some]
        if_seen = (per @ (seen_there / rate) - (per * r) @ (1 / rate)) / (posterior @ (1 / rate))
        missing = posterior @ (1 / (1 - rate))
        if_missing = 1 - per @ (seen_there / (1 - rate)) / missing
        chance = np.where(here > 0, if_seen, if_missing)
        out -= 2 * np.log(np.maximum(chance, SMALLEST_RATE)).sum(axis=1)
    return out
