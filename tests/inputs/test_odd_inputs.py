"""Anything but a table, at every public entry point: the right result, or an error in plain words.

Each input stands for a table of numbers, and then gives what that table gives, or for none, and then is
refused. Nobody gets to see a bare KeyError, or what NumPy says about arrays.
"""

import datetime as dt
import io
import subprocess
import sys
import textwrap
import types
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

import kpod
from kpod import KPOD, MiniBatchKPOD, ObservedScaler, TablePreparer, metrics, missingness

CLEAN = (ValueError, TypeError, NotImplementedError, MemoryError)

JARGON = (
    "setting an array element", "inhomogeneous", "ufunc", "float() argument", "could not convert",
    "object of type", "has no attribute", "subscriptable", "unhashable", "casting", "broadcast", "ravel",
    "too large to convert", "not in range", "array(", "array=", "dtype(", "<class", "object at 0x",
    "truth value", "unpack", "iterable", "unsupported operand", "expected str",
    "keyword argument", "'NoneType'", "NAType",
)  # fmt: skip

# Every column has its own unit, every entry is a whole number that a byte can hold, and there are no gaps.
X = np.array(
    [[1, 2, 30], [2, 1, 31], [1, 3, 32], [2, 2, 30], [9, 8, 80], [8, 9, 82], [9, 9, 81], [8, 8, 83]], float
)
LABELS = np.repeat([0, 1], 4)
NAMES = ["a", "b", "c"]
FRAME = pd.DataFrame(X, columns=NAMES)


def with_entry(value, at=(1, 1), dtype=object):
    """X with another entry, as objects."""
    out = X.astype(dtype)
    out[at] = value
    return out


def with_column(values, name="b"):
    return FRAME.assign(**{name: values})


class Spark:
    """What a DataFrame of Spark looks like from outside."""

    __module__ = "pyspark.sql.classic.dataframe"
    columns = NAMES
    sparkSession = None  # noqa: N815

    def toPandas(self):
        raise AssertionError("nobody asked for all rows")

    def __getattr__(self, name):
        raise AttributeError(name)

    def __getitem__(self, key):
        return key


class Relation:
    """What a relation of DuckDB, or a table of Ibis, looks like from outside."""

    columns = NAMES

    def df(self):
        raise AssertionError("nobody asked for all rows")


class Refusing:
    """Something on a graphics card: it has a shape, and does not turn into an array."""

    shape, ndim = X.shape, 2

    def __array__(self, *_, **__):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")


def packed():
    return np.array([tuple(row) for row in X], dtype=[(name, float) for name in NAMES])


def gaps(at=(1, 1)):
    out = X.copy()
    out[at] = np.nan
    return out


def periods():
    return pd.period_range("2020", periods=8, freq="M")


# What stands for no table, and is refused wherever it comes.
NOT_A_TABLE = {
    "None": lambda: None,
    "a number": lambda: 3.0,
    "NaN": lambda: np.nan,
    "a string": lambda: "table.csv",
    "bytes": lambda: b"table",
    "a dict": lambda: {"a": [1.0, 2.0], "b": [3.0, 4.0]},
    "a set": lambda: {1.0, 2.0},
    "a generator": lambda: (row for row in X.tolist()),
    "a map": lambda: map(list, X.tolist()),
    "a function": lambda: len,
    "a class": lambda: dict,
    "an object": object,
    "a module": lambda: types.ModuleType("table"),
    "an open file": lambda: io.StringIO("1,2\n3,4\n"),
    "Ellipsis": lambda: ...,
    "an empty list": list,
    "rows without columns": lambda: np.empty((8, 0)),
    "columns without rows": lambda: np.empty((0, 3)),
    "an empty frame": pd.DataFrame,
    "a frame without rows": lambda: FRAME.iloc[:0],
    "0-D": lambda: np.array(1.0),
    "1-D": lambda: X[:, 0],
    "3-D": lambda: X[None],
    "4-D": lambda: X[None, None],
    "a Series": lambda: FRAME["a"],
    "a polars Series": lambda: pl.Series(X[:, 0]),
    "a pyarrow array": lambda: pa.array(X[:, 0]),
    "ragged lists": lambda: [[1.0, 2.0], [3.0], [4.0, 5.0]],
    "ragged objects": lambda: np.array([[1.0, 2.0], [3.0]], dtype=object),
    "lists in entries": lambda: with_entry([1.0, 2.0]),
    "a list of dicts": lambda: [{"a": 1.0}, {"a": 2.0}],
    "a list of frames": lambda: [FRAME, FRAME],
    "nested lists": lambda: [[[1.0], [2.0]], [[3.0], [4.0]]],
    "a structured array": packed,
    "a lazy frame": lambda: pl.DataFrame({n: X[:, j] for j, n in enumerate(NAMES)}).lazy(),
    "a Spark frame": Spark,
    "a relation": Relation,
    "a grouped frame": lambda: FRAME.groupby("a"),
    "what refuses to be an array": Refusing,
    "1-D sparse": lambda: sparse.coo_array(X[:, 0]),
    "BSR": lambda: sparse.bsr_array(X),
    "DIA": lambda: sparse.dia_array(X),
    "an object array with infinity": lambda: with_entry(np.inf),
    "infinity": lambda: with_entry(np.inf, dtype=float),
    "beyond the largest": lambda: with_entry(1e308, dtype=float),
    "10**400": lambda: with_entry(10**400),
    "10**5000": lambda: with_entry(10**5000),
    "-10**400 in a list": lambda: with_entry(-(10**400)).tolist(),
    "10**400 in a frame": lambda: with_column(with_entry(10**400)[:, 1]),
    "masked 10**400": lambda: np.ma.MaskedArray(with_entry(10**400), np.zeros(X.shape)),
    "a huge fraction": lambda: with_entry(Fraction(10**400)),
    "a huge decimal": lambda: with_entry(Decimal("1e400")),
    "a long double": lambda: with_entry(np.longdouble("1e4000"), dtype=np.longdouble),
    "2^53 + 1": lambda: with_entry(2**53 + 1, dtype=np.int64),
    "2^64 - 1": lambda: with_entry(2**64 - 1, dtype=np.uint64),
    "2^53 + 1 as an object": lambda: with_entry(2**53 + 1),
    "2^53 + 1 in a list": lambda: with_entry(2**53 + 1).tolist(),
    "2^53 + 1 masked": lambda: np.ma.MaskedArray(with_entry(2**53 + 1, dtype=np.int64), np.zeros(X.shape)),
    "2^53 + 1 in pandas": lambda: with_column(with_entry(2**53 + 1, dtype=np.int64)[:, 1]),
    "2^53 + 1 in nullable pandas": lambda: with_column(
        pd.array(with_entry(2**53 + 1, dtype=np.int64)[:, 1], "Int64")
    ),
    "2^53 + 1 in polars": lambda: pl.DataFrame(with_entry(2**53 + 1, dtype=np.int64), schema=NAMES),
    "2^53 + 1 in pyarrow": lambda: pa.table(
        dict(zip(NAMES, with_entry(2**53 + 1, dtype=np.int64).T, strict=True))
    ),
    "complex numbers": lambda: X + 1j,
    "complex objects": lambda: with_entry(1 + 1j),
    "two columns of one name": lambda: FRAME.set_axis(["a", "b", "a"], axis=1),
    "two masked columns of one name": lambda: FRAME.astype("Float64").set_axis(["a", "b", "a"], axis=1),
}

# What a table of text and dates may be: refused by all but the encoder.
NOT_NUMBERS = {
    "text": lambda: with_entry("x"),
    "a text array": lambda: np.full(X.shape, "x"),
    "bytes among numbers": lambda: with_entry(b"\xff"),
    "an object among numbers": lambda: with_entry(object()),
    "dates": lambda: X.astype("datetime64[D]"),
    "a date": lambda: with_entry(dt.date(2020, 1, 1)),
    "time spans": lambda: X.astype("timedelta64[D]"),
    "a column of text": lambda: with_column(list("stuvwxyz")),
    "a column of lists": lambda: with_column([[1], [2], [3], [4], [5], [6], [7], [8]]),
    "a column of dicts": lambda: with_column([{"a": 1}] * 8),
    "a category column": lambda: with_column(pd.Categorical(list("aabbccdd"))),
    "a category column of numbers": lambda: with_column(pd.Categorical([1, 2, 3, 2, 8, 9, 9, 8])),
    "an interval column": lambda: with_column(pd.interval_range(0, 8)),
    "a period column": lambda: with_column(periods()),
    "a date column": lambda: with_column(pd.to_datetime(["2020-01-01"] * 8)),
    "a date column with a zone": lambda: with_column(pd.to_datetime(["2020-01-01"] * 8).tz_localize("UTC")),
    "a column of times": lambda: with_column([dt.time(1)] * 8),
    "a binary column": lambda: pa.table({"a": X[:, 0], "b": [b"x"] * 8}),
    "a struct column": lambda: pa.table({"a": X[:, 0], "b": [{"x": 1}] * 8}),
    "a list column of polars": lambda: pl.DataFrame({"a": X[:, 0], "b": [[1]] * 8}),
}

# Tables as odd as can be, and the numbers they stand for.
A_TABLE = {
    "lists": (X.tolist, X),
    "tuples": (lambda: tuple(map(tuple, X.tolist())), X),
    "a list of arrays": (lambda: list(X), X),
    "a list of Series": (lambda: [pd.Series(row) for row in X], X),
    "whole numbers": (lambda: X.astype(np.int8), X),
    "booleans": (lambda: X > 5, (X > 5).astype(float)),
    "half precision": (lambda: X.astype(np.float16), X),
    "long doubles": (lambda: X.astype(np.longdouble), X),
    "objects": (lambda: X.astype(object), X),
    "fractions": (lambda: with_entry(Fraction(3, 2)), with_entry(1.5, dtype=float)),
    "decimals": (lambda: with_entry(Decimal("1.5")), with_entry(1.5, dtype=float)),
    "a decimal NaN": (lambda: with_entry(Decimal("NaN")), gaps()),
    "a signaling decimal": (lambda: with_entry(Decimal("sNaN")), gaps()),
    "a column of nulls": (
        lambda: pa.table({"a": X[:, 0], "b": pa.nulls(8), "c": X[:, 2]}), gaps(at=np.s_[:, 1])
    ),
    "None among numbers": (lambda: with_entry(None), gaps()),
    "pd.NA among numbers": (lambda: with_entry(pd.NA), gaps()),
    "pd.NaT among numbers": (lambda: with_entry(pd.NaT), gaps()),
    "None in lists": (lambda: with_entry(None).tolist(), gaps()),
    "huge but exact": (lambda: with_entry(2**60, dtype=np.int64), with_entry(2.0**60, dtype=float)),
    "exact in pyarrow": (
        lambda: pa.table(dict(zip(NAMES, with_entry(2**60, dtype=np.int64).T, strict=True))),
        with_entry(2.0**60, dtype=float),
    ),
    "subnormal numbers": (lambda: X * 5e-324, X * 5e-324),
    "a matrix": (lambda: np.asmatrix(X), X),
    "a masked array": (lambda: np.ma.MaskedArray(X, np.isnan(gaps())), gaps()),
    "masked objects": (lambda: np.ma.MaskedArray(X.astype(object), np.isnan(gaps())), gaps()),
    "masked text": (lambda: np.ma.MaskedArray(with_entry("x"), np.isnan(gaps())), gaps()),
    "masked whole numbers": (lambda: np.ma.MaskedArray(X.astype(np.int64), np.isnan(gaps())), gaps()),
    "several levels of names": (
        lambda: FRAME.set_axis(pd.MultiIndex.from_product([["x"], NAMES]), axis=1), X
    ),
    "names that are numbers": (lambda: FRAME.set_axis([3, 1, 2], axis=1), X),
    "names that are dates": (lambda: FRAME.set_axis(pd.to_datetime(["2020", "2021", "2022"]), axis=1), X),
    "odd row names": (lambda: FRAME.set_index(pd.Index(["x"] * 8)), X),
    "a frame of objects": (lambda: FRAME.astype(object), X),
    "a nullable frame": (lambda: pd.DataFrame(gaps(), columns=NAMES).convert_dtypes(), gaps()),
    "a nullable boolean": (
        lambda: with_column(pd.array([True, False, None, True, False, True, False, True], "boolean")),
        np.column_stack([X[:, 0], [1, 0, np.nan, 1, 0, 1, 0, 1], X[:, 2]]),
    ),
    "a sparse frame": (lambda: FRAME.astype(pd.SparseDtype(float, np.nan)), X),
    "a sparse frame of zeros": (
        lambda: (FRAME * (FRAME > 5)).astype(pd.SparseDtype(float, 0.0)), X * (X > 5)
    ),
    "decimals of pyarrow": (
        lambda: pa.table({n: pa.array([Decimal(int(v)) for v in X[:, j]]) for j, n in enumerate(NAMES)}), X
    ),
    "nulls of pyarrow": (
        lambda: pa.table({n: pa.array(gaps()[:, j], from_pandas=True) for j, n in enumerate(NAMES)}), gaps()
    ),
    "a record batch": (lambda: pa.record_batch(dict(zip(NAMES, X.T, strict=True))), X),
    "COO": (lambda: sparse.coo_array(X), X),
    "CSC": (lambda: sparse.csc_array(X), X),
    "LIL": (lambda: sparse.lil_array(X), X),
    "DOK": (lambda: sparse.dok_array(X), X),
    "a sparse matrix": (lambda: sparse.csr_matrix(X), X),
    "sparse whole numbers": (lambda: sparse.csr_array(X.astype(np.int64)), X),
}  # fmt: skip

MODEL = KPOD(2, random_state=0).fit(X)
SCALER = ObservedScaler().fit(X)


def learnt(X):
    model = KPOD(2, random_state=0, n_init=2).fit(X)
    return model.labels_, model.cluster_centers_


def streamed(X):
    return MiniBatchKPOD(2, random_state=0, n_init=1).partial_fit(X).predict(X)


def dense(values):
    """An array, with NaN for what a sparse one does not store."""
    if not sparse.issparse(values):
        return np.asarray(values, float)
    values = values.tocoo()
    out = np.full(values.shape, np.nan)
    out[values.coords] = values.data
    return out


def entries(frame):
    return np.asarray(frame.to_pandas() if hasattr(frame, "to_pandas") else frame, float)


# Only what takes the table itself; each gives an array, or several.
CALLS = {
    "KPOD.fit": learnt,
    "KPOD.predict": MODEL.predict,
    "KPOD.transform": MODEL.transform,
    "KPOD.score": MODEL.score,
    "KPOD(auto).fit": lambda X: KPOD("auto", random_state=0, n_init=1).fit(X).labels_,
    "KPOD(init=X).fit": lambda X: KPOD(8, init=X).fit(globals()["X"]).labels_,
    "MiniBatchKPOD.fit": lambda X: MiniBatchKPOD(2, random_state=0, n_init=1).fit(X).labels_,
    "MiniBatchKPOD.partial_fit": streamed,
    "ObservedScaler.fit": lambda X: ObservedScaler().fit(X).mean_,
    "ObservedScaler.transform": lambda X: dense(SCALER.transform(X)),
    "ObservedScaler.inverse_transform": lambda X: dense(SCALER.inverse_transform(X)),
    "ObservedScaler.row_means": SCALER.row_means,
    "choose_k": lambda X: kpod.choose_k(X, [1, 2], estimator=KPOD(), random_state=0).model_.labels_,
    "stability": lambda X: kpod.stability(MODEL, X, n_resamples=1, random_state=0).ari_,
    "summary": lambda X: kpod.summary(MODEL, X).within_ss_,
    "diagnose": lambda X: missingness.diagnose(X).missing,
    "silhouette_score": lambda X: metrics.silhouette_score(X, LABELS),
    "silhouette_samples": lambda X: metrics.silhouette_samples(X, LABELS),
    "calinski_harabasz_score": lambda X: metrics.calinski_harabasz_score(X, LABELS),
    "davies_bouldin_score": lambda X: metrics.davies_bouldin_score(X, LABELS),
}
DENSE_CALLS = {
    "KPOD.impute": lambda X: entries(MODEL.impute(X)),
    "TablePreparer.fit": lambda X: TablePreparer(categories="all").fit_transform(X),
    "mcar": lambda X: entries(missingness.mcar(X, 0.2, random_state=0)),
}
DENSE_CALLS["by_class"] = lambda X: entries(missingness.by_class(X, 0.2, random_state=0, labels=LABELS))
for _name in set(missingness.__all__) - {"Diagnosis", "by_class", "diagnose"}:
    DENSE_CALLS[_name] = lambda X, name=_name: entries(getattr(missingness, name)(X, 0.1, random_state=0))
ENCODER, SCALER_CALLS = "TablePreparer.fit", [name for name in CALLS if name.startswith("ObservedScaler.")]
ALL_CALLS = CALLS | DENSE_CALLS | {"report": lambda X: kpod.report(MODEL, X)}

# What some take for good reasons: infinity stays infinity where nothing is learnt from it, measures do not
# depend on the scale, objects of any kind can be categories, and a function can draw centers.
INFINITE = {*SCALER_CALLS, "diagnose", "report"} - {"ObservedScaler.fit"}
TAKEN = {
    "an object array with infinity": INFINITE,
    "infinity": INFINITE,
    "a huge decimal": INFINITE,
    "a long double": INFINITE,
    "beyond the largest": set(ALL_CALLS),
    "lists in entries": {ENCODER},
    # Numbers of more digits than a float holds are an identifier to one, and words to the other.
    **{f"2^53 + 1 in {kind}": {ENCODER} for kind in ("pandas", "nullable pandas", "polars", "pyarrow")},
    "10**400 in a frame": {ENCODER, "diagnose"},
    "complex objects": {ENCODER},
    # Which is read in batches, as kpod.scan does.
    "a lazy frame": {name for name in CALLS if "KPOD" in name and "init" not in name} | {"choose_k"},
    "a list of dicts": {"MiniBatchKPOD.partial_fit"},
    "a function": {"KPOD(init=X).fit"},
    "a class": {"KPOD(init=X).fit"},
}


def check_message(error):
    """A sentence or two, that a stranger to NumPy understands."""
    text = str(error)
    assert text.endswith((".", ")")), text
    assert "\n" not in text, text
    assert not [word for word in JARGON if word in text], text


def refused(call, table):
    try:
        call(table)
    except CLEAN as error:
        check_message(error)
        return True
    return False


@pytest.fixture(autouse=True)
def without_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("odd", NOT_A_TABLE)
def test_what_is_no_table_is_refused_in_plain_words(odd):
    for name, call in ALL_CALLS.items():
        if name not in TAKEN.get(odd, ()):
            assert refused(call, NOT_A_TABLE[odd]()), name


@pytest.mark.parametrize("odd", NOT_NUMBERS)
def test_what_are_no_numbers_is_refused_in_plain_words(odd):
    for name, call in ALL_CALLS.items():
        assert refused(call, NOT_NUMBERS[odd]()) or name in (ENCODER, "diagnose"), name


SLOW = {"KPOD(auto).fit", "choose_k", "stability"}  # which see the same table as `KPOD.fit`


def flat(found):
    """All numbers of a result."""
    return np.hstack([np.ravel(part) for part in (found if isinstance(found, tuple) else [found])])


@pytest.mark.parametrize("odd", A_TABLE)
def test_an_odd_table_is_the_table_it_stands_for(odd):
    make, plain = A_TABLE[odd]
    is_sparse = sparse.issparse(make())
    for name, call in (CALLS if is_sparse else CALLS | DENSE_CALLS).items():
        if name in SLOW or (is_sparse and "init" in name):
            continue
        if name == ENCODER and odd == "a column of nulls":  # in which nothing can be clustered by
            continue
        try:
            expected = call(plain)
        except CLEAN as error:
            check_message(error)
            assert refused(call, make()), name
            continue
        np.testing.assert_allclose(flat(call(make())), flat(expected), err_msg=name, rtol=1e-6)


@pytest.mark.parametrize("exponent", [-600, -1030, -1060])
@pytest.mark.parametrize("other", [np.nan, 0.0])
def test_rows_of_tiny_numbers_after_others(exponent, other):
    """The first rows looked at tell nothing of the size of the rest."""
    plain = np.round(50 * np.random.default_rng(0).normal(size=(30, 3)))
    plain[::2] = other
    tiny = np.ldexp(plain, exponent)
    np.testing.assert_array_equal(
        KPOD(2, random_state=0).fit(tiny).labels_, KPOD(2, random_state=0).fit(plain).labels_
    )


@pytest.mark.parametrize(
    ("odd", "do"),
    [
        ("a Spark frame", "X.toPandas()"), ("a relation", "X.df()"),
        ("a dict", "pandas.DataFrame(X)"), ("a generator", "list(X)"), ("a string", "kpod.scan"),
        ("a structured array", "pandas.DataFrame(X)"), ("1-D", "X.reshape(-1, 1)"),
        ("BSR", "X.tocsr()"), ("DIA", "X.eliminate_zeros()"), ("2^53 + 1 in pyarrow", "Column 'b'"),
        ("2^53 + 1", "Column 1"), ("10**400 in a frame", "Column 'b'"), ("ragged lists", "row 1 has 1"),
    ],
)  # fmt: skip
def test_a_refusal_says_what_to_do(odd, do):
    with pytest.raises(CLEAN) as caught:
        KPOD(2).fit(NOT_A_TABLE[odd]())
    assert do in str(caught.value)


@pytest.mark.parametrize(
    "weights",
    [
        "x", "heavy", [1, 2], [[1.0]] * 8, [1, None, 1, 1, 1, 1, 1, 1], {}, object(), [10**400] * 8,
        [1j] * 8, np.array(["a"] * 8), np.full(8, "2020", "datetime64[Y]"), [[1], [2, 3]], FRAME, set(),
        (1.0 for _ in range(8)), sparse.csr_array(X), pd.Series(list("abcdefgh")),
    ],
    ids=lambda weights: type(weights).__name__,
)  # fmt: skip
def test_odd_weights_are_refused_in_plain_words(weights):
    for call in (
        lambda w: KPOD(2).fit(X, sample_weight=w),
        lambda w: MiniBatchKPOD(2).fit(X, sample_weight=w),
        lambda w: MODEL.score(X, sample_weight=w),
        lambda w: kpod.summary(MODEL, X, sample_weight=w),
        lambda w: kpod.stability(MODEL, X, sample_weight=w),
        lambda w: kpod.choose_k(X, [1, 2], sample_weight=w),
    ):
        assert refused(call, weights)


@pytest.mark.parametrize(
    "labels",
    [
        None, 3, "labels", [0, 1], [[0]] * 8, {}, object(), [0, "a", None, 1, 2, 3, 4, 5], [[0], [1, 2]],
        [1j, 1] * 4, [np.nan] * 8, [{}] * 8, (0 for _ in range(8)), sparse.csr_array(X), FRAME,
        [object()] * 8,
    ],
    ids=lambda labels: type(labels).__name__,
)  # fmt: skip
def test_odd_labels_are_refused_in_plain_words(labels):
    for call in (
        lambda y: metrics.silhouette_score(X, y),
        lambda y: metrics.silhouette_samples(X, y),
        lambda y: metrics.calinski_harabasz_score(X, y),
        lambda y: metrics.davies_bouldin_score(X, y),
        lambda y: missingness.diagnose(X, y) if y is not None else 1 / 0,
        lambda y: missingness.by_class(X, 0.1, labels=y) if y is not None else 1 / 0,
    ):
        try:
            assert refused(call, labels)
        except ZeroDivisionError:
            assert labels is None


@pytest.mark.parametrize(
    "path",
    [None, 3, b"x", [], {}, object(), "", ".", X, FRAME, [None], [3], "\0"],
    ids=lambda path: f"{type(path).__name__} {path!s:.4}",
)
def test_odd_paths_are_refused_in_plain_words(path):
    for call in (kpod.scan, kpod.load, lambda path: kpod.save(MODEL, path)):
        try:
            assert refused(call, path)
        except OSError as error:
            assert error.strerror


@pytest.mark.parametrize(
    "path", ["absent.csv", "absent.npz", "absent.npy", "*.absent", "absent/", "a\nb"], ids=str
)
def test_absent_files_are_refused_in_plain_words(path):
    for call in (kpod.scan, kpod.load):
        assert refused(call, path)


def csr_members():
    """What scipy.sparse.save_npz writes."""
    table = sparse.csr_array(X)
    parts = {"data": table.data, "indices": table.indices, "indptr": table.indptr}
    return {"format": np.array(b"csr"), "shape": np.array(table.shape), **parts}


ODD_MEMBERS = {
    "a shape of one": {"shape": np.array([8])},
    "no shape": {"shape": np.array(8)},
    "a shape of text": {"shape": np.array(["8", "x"])},
    "a negative shape": {"shape": np.array([-8, 3])},
    "a huge shape": {"shape": np.array([2**62, 3])},
    "two formats": {"format": np.array([b"csr", b"csc"])},
    "a number as format": {"format": np.array(3)},
    "another format": {"format": np.array(b"bsr")},
    "data without dimensions": {"data": np.array(1.0)},
    "data in a matrix": {"data": np.ones((5, 5))},
    "data of text": {"data": np.array(["x"] * 24)},
    "data of dates": {"data": np.full(24, "2020", "datetime64[Y]")},
    "complex data": {"data": np.ones(24, complex)},
    "structured data": {"data": np.zeros(24, [("a", float)])},
    "indices without dimensions": {"indices": np.array(1)},
    "indices of floats": {"indices": np.full(24, np.nan)},
    "indptr without dimensions": {"indptr": np.array(1)},
    "an empty indptr": {"indptr": np.empty(0, np.int32)},
    "no data": {"data": None},
    "no format": {"format": None},
}


@pytest.mark.parametrize("odd", ODD_MEMBERS)
def test_odd_archives_are_refused_in_plain_words(odd, tmp_path):
    members = {name: value for name, value in (csr_members() | ODD_MEMBERS[odd]).items() if value is not None}
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "x.npz", **members)
        with pytest.raises(ValueError, match=r"x\.npz: ") as caught:
            kpod.scan(tmp_path / "x.npz", scratch=tmp_path)
        check_message(caught.value)


def test_whole_numbers_in_files_are_not_rounded(tmp_path):
    np.save(tmp_path / "x.npy", np.repeat(with_entry(2**53 + 1, dtype=np.int64), 2, axis=0))
    with pytest.raises(
        ValueError, match=r"x\.npy: Column 1 holds whole numbers beyond 2\^53 \(first in row 2\)"
    ):
        kpod.scan(tmp_path / "x.npy", scratch=tmp_path)
    np.save(tmp_path / "x.npy", with_entry(2**60, dtype=np.int64))
    with kpod.scan(tmp_path / "x.npy", scratch=tmp_path) as table:
        np.testing.assert_array_equal(table.values, with_entry(2.0**60, dtype=float))


def npy(**header):
    """A file of NumPy with a header of one's own."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": "<f8", "fortran_order": False, "shape": (2, 2)} | header
    )
    return file.getvalue() + bytes(32)


ODD_ARRAYS = {
    "empty": b"",
    "text": b"1,2\n3,4\n",
    "an archive": b"PK\x05\x06" + bytes(18),
    "half a header": npy()[:40],
    "too short": npy()[:-8],
    "a huge shape": npy(shape=(2**62, 2**62)),
    "a negative shape": npy(shape=(-2, 2)),
    "no dimensions": npy(shape=()),
    "three dimensions": npy(shape=(1, 2, 2)),
    "objects": npy(descr="|O"),
    "dates": npy(descr="<M8[D]"),
    "complex numbers": npy(descr="<c16", shape=(1, 2)),
    "a pickle": b"\x80\x04K\x01.",
}


@pytest.mark.parametrize("odd", ODD_ARRAYS)
def test_odd_array_files_are_refused_in_plain_words(odd, tmp_path):
    (tmp_path / "x.npy").write_bytes(ODD_ARRAYS[odd])
    with pytest.raises(ValueError, match=r"x\.npy: ") as caught:
        kpod.scan(tmp_path / "x.npy")
    assert "\n" not in str(caught.value)


def test_memory_that_runs_out_is_a_memory_error():
    code = """
        import resource
        from kpod._common.system import own_memory
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        try:
            own_memory(1 << 32)
        except MemoryError as error:
            print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    assert done.stdout == "Not enough memory: Cannot allocate memory.\n", done.stderr
