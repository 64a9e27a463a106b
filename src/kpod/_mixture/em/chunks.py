"""A table less its column means and its mask, some rows at a time: for products with small matrices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from kpod._common.typing import Floats

CHUNK = 4096


def chunks(X: Any, means: Floats) -> Iterator[tuple[Any, Any]]:
    """Values less the means, 0 where missing, and the mask; of a dense table with NaN or a CSR array."""
    for start in range(0, X.shape[0], CHUNK):
        yield centered(X[start : start + CHUNK], means)


def centered(X: Any, means: Floats) -> tuple[Any, Any]:
    if not sparse.issparse(X):
        mask = (~np.isnan(X)).astype(np.float64)
        return np.where(mask > 0, X, means) - means, mask
    values, mask = sparse.csr_array(X, dtype=np.float64, copy=True), sparse.csr_array(X, dtype=np.float64)
    seen = ~np.isnan(values.data)
    mask.data = seen.astype(np.float64)
    values.data = np.where(seen, values.data - means[values.indices], 0.0)
    return values, mask
