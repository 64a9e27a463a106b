"""Hostile calls, at random: a result or a clean error, and under `make sanitize` no report.

KPOD_HOSTILE sets how many; KPOD_TEST_SEED where they begin.
"""

import copy
import os
import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse

from kpod import KPOD, MiniBatchKPOD, ObservedScaler, metrics
from tests.conftest import FIRST_SEED

N_CASES = int(os.environ.get("KPOD_HOSTILE", "300"))
N_PARTS = 10
CLEAN = (ValueError, TypeError)
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-320, 1e308, -1e308, 1e154, 1e38, 1.0, -1.0])


class Case:
    """One sequence of calls, made from a seed."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def one_of(self, *options):
        return options[self.rng.integers(len(options))]

    def array(self, n=None, p=None):
        """Numbers of any size and layout, with holes."""
        rng = self.rng
        n = int(rng.integers(0, 40)) if n is None else n
        p = int(rng.integers(0, 24)) if p is None else p
        X = rng.normal(size=(n, p)) * 10.0 ** self.one_of(0, 0, 0, 3, -30, 30, 140, -140)
        X[rng.random(X.shape) < self.one_of(0, 0.3, 0.9, 1.0)] = np.nan
        if rng.random() < 0.2 and X.size:
            X.flat[rng.integers(X.size, size=3)] = rng.choice(SPECIAL, 3)
        if rng.random() < 0.3:
            X = np.round(X)
        with np.errstate(all="ignore"):
            X = X.astype(self.one_of(np.float64, np.float64, np.float32, np.float16, np.int64, ">f8", object))
        layout = self.one_of(
            "C", "C", "F", "strided", "reversed", "unaligned", "readonly", "masked", "3d", "1d"
        )
        if layout == "F":
            X = np.asfortranarray(X)
        elif layout == "strided":
            X = np.repeat(X, 2, axis=0)[::2]
        elif layout == "reversed":
            X = X[::-1, ::-1]
        elif layout == "unaligned" and X.dtype != object:
            X = np.frombuffer(b"x" + X.tobytes(), np.uint8)[1:].view(X.dtype).reshape(X.shape)
        elif layout == "readonly":
            X.flags.writeable = False
        elif layout == "masked" and X.dtype != object:
            X = np.ma.masked_array(X, rng.random(X.shape) < 0.3)
        elif layout == "3d":
            X = X[None]
        elif layout == "1d":
            X = X.ravel()
        return X

    def csr(self, p=None):
        """A sparse table, as often as not with parts that do not fit together."""
        rng = self.rng
        n, p = int(rng.integers(1, 30)), int(rng.integers(1, 20)) if p is None else p
        X = sparse.random_array((n, p), density=0.4, format="csr", rng=rng)
        X.data = X.data.astype(self.one_of(np.float64, np.float32))
        if rng.random() < 0.5:
            what = self.one_of("indices", "indptr", "data", "both")
            if what in ("indices", "both") and X.nnz:
                X.indices[rng.integers(X.nnz, size=2)] = rng.choice([-1, p, 2**31 - 1, 0, p - 1], 2)
            if what in ("indptr", "both"):
                X.indptr[rng.integers(len(X.indptr))] = self.one_of(-1, X.nnz + 5, 2**31 - 1, 0)
            if what == "data":
                X.data = X.data[: max(0, X.nnz - 2)]
        return X

    def table(self, p=None):
        return self.csr(p) if self.rng.random() < 0.3 else self.array(p=p)

    def weights(self, n):
        rng = self.rng
        return self.one_of(
            None, None, np.ones(n), rng.random(n), 10.0 ** rng.uniform(-200, 200, n), np.zeros(n),
            -np.ones(n), rng.random(n + 1), np.full(n, np.nan), rng.random((n, 1)), "x", 3.0,
        )  # fmt: skip

    def model(self):
        rng = self.rng
        k = int(self.one_of(1, 2, 3, 8, 17, 30))
        init = self.one_of("k-means++", "random", "mean-fill", "array")
        if init == "array":
            init = rng.normal(size=(k, int(rng.integers(1, 24))))
            init[rng.random(init.shape) < 0.2] = self.one_of(np.nan, 1e30, np.inf)
        if rng.random() < 0.25:
            return MiniBatchKPOD(
                k,
                init=init,
                n_init=1,
                batch_size=int(self.one_of(1, 5, 100)),
                n_epochs=int(self.one_of(1, 2)),
                full_passes=int(self.one_of(0, 2)),
                half_life=self.one_of(None, 1e-3, 50.0, 1e300),
                reassignment_ratio=self.one_of(0.0, 0.01, 1.0),
                random_state=0,
                n_threads=int(self.one_of(1, 2)),
            )
        algorithm = self.one_of("hartigan", "lloyd", "mm")
        return KPOD(
            k,
            init=init,
            n_init=1,
            algorithm=algorithm,
            missingness="ignore" if algorithm == "mm" else self.one_of("ignore", "ignore", "informative"),
            probability=bool(self.one_of(False, False, True)),
            max_iter=int(self.one_of(1, 5, 30)),
            tol=self.one_of(0.0, 1e-4, 1e300),
            shrinkage=self.one_of(0.0, 0.0, 2.5, 1e200),
            random_state=0,
            n_threads=int(self.one_of(1, 2)),
        )

    def attempt(self, call):
        """Call; whatever is refused must be refused cleanly."""
        try:
            return call()
        except CLEAN as error:
            assert str(error), repr(error)
            return None

    def spoil(self, model):
        """Replace or reshape something fitted, as a pickle from elsewhere might have it."""
        fitted = [name for name in vars(model) if name.endswith("_") or name.startswith("_s")]
        name = self.one_of(*fitted)
        value = getattr(model, name)
        if isinstance(value, np.ndarray) and value.size:
            other = [
                value[..., :1].copy(), np.repeat(value, 7, axis=-1), value.astype(np.float32), np.zeros(()),
                np.full(100_000, 1.0), value[:0], value.tolist(), np.full(value.shape, np.nan),
                np.asfortranarray(value), value.astype(object),
            ]  # fmt: skip
            value = self.one_of(*other)
        else:
            value = self.one_of(0, -1, 1e300, np.nan, None, "x", 7)
        setattr(model, name, value)

    def run(self):
        model = self.model()
        if self.rng.random() < 0.1:
            self.attempt(lambda: ObservedScaler(rows=self.one_of(None, "center")).fit_transform(self.table()))
        for _ in range(int(self.rng.integers(1, 4))):
            X = self.table()
            n = X.shape[0] if X.ndim else 1
            learn = getattr(model, self.one_of("fit", "partial_fit"), model.fit)
            self.attempt(lambda X=X, n=n, learn=learn: learn(X, sample_weight=self.weights(n)))
            if not hasattr(model, "labels_"):
                continue
            measure = self.one_of(*(getattr(metrics, name) for name in metrics.__all__))
            self.attempt(lambda X=X, measure=measure: measure(X, model.labels_))
            tried = copy.deepcopy(model)
            if self.rng.random() < 0.4:
                self.spoil(tried)
            if self.rng.random() < 0.2:
                tried = pickle.loads(pickle.dumps(tried))
            p = self.one_of(None, int(model.n_features_in_))
            for method in ("predict", "transform", "score", "impute", "predict_proba"):
                if hasattr(tried, method):
                    self.attempt(
                        lambda method=method, p=p, tried=tried: getattr(tried, method)(self.table(p))
                    )


@pytest.mark.parametrize("part", range(N_PARTS))
def test_hostile_calls(part):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(N_CASES // N_PARTS):
            seed = FIRST_SEED * 1_000_003 + part * 100_003 + number
            try:
                Case(seed).run()
            except Exception as error:
                error.add_note(f"Case({seed})")
                raise
