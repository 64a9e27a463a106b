import os

import numpy as np
import pytest
from scipy import sparse

from kpod._blocks import make_table
from kpod._executors import Executor

# Any seed must pass: the first one is drawn by whoever runs the suite, see the header.
FIRST_SEED = int(os.environ.get("KPOD_TEST_SEED", np.random.SeedSequence().entropy % 10_000))


def pytest_report_header():
    return f"KPOD_TEST_SEED={FIRST_SEED}"


@pytest.fixture(params=range(3))
def rng(request):
    return np.random.default_rng(FIRST_SEED + request.param)


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def dtype(request):
    return request.param


def clustered(rng, n_rows=300, n_columns=8, k=5, missing=0.3, spread=0.6, dtype=np.float64):
    """Normal clusters with gaps, every row and column with something observed; and the truth."""
    truth = rng.integers(k, size=n_rows)
    X = rng.normal(size=(k, n_columns))[truth] + spread * rng.normal(size=(n_rows, n_columns))
    gaps = rng.random(X.shape) < missing
    gaps[np.arange(n_rows), rng.integers(n_columns, size=n_rows)] = False
    gaps[rng.integers(n_rows), :] = False
    X[gaps] = np.nan
    return X.astype(dtype), truth


def table_of(X, k, weights=None, n_threads=1, **about):
    values = X if sparse.issparse(X) else np.ascontiguousarray(X)
    return make_table(values, Executor(n_threads), n_clusters=k, weights=weights, **about)
