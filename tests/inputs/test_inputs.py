"""The same table in every container gives the same clustering, and comes back in its own."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from kpod import KPOD, MiniBatchKPOD, ObservedScaler, TablePreparer, missingness
from kpod._inputs import validation
from tests.helpers.marks import INFORMATIVE_BY_HAND
from tests.helpers.tables import clustered

NAMES = list("abcd")
X = clustered(np.random.default_rng(1), 60, 4, k=3)[0]
NONES = [[None if np.isnan(x) else float(x) for x in row] for row in X]
COLUMNS = {name: [row[j] for row in NONES] for j, name in enumerate(NAMES)}


def polars_with_null_and_nan():
    frame = pl.DataFrame(COLUMNS)
    return frame.with_columns(pl.col("a").fill_null(float("nan")))


CONTAINERS = {
    "list with None": lambda: NONES,
    "object array": lambda: np.array(NONES, dtype=object),
    "Fortran order": lambda: np.asfortranarray(X),
    "every second row of a larger array": lambda: np.repeat(X, 2, axis=0)[::2],
    "read-only": lambda: np.frombuffer(X.tobytes()).reshape(X.shape),
    "big-endian": lambda: X.astype(">f8"),
    "masked array": lambda: np.ma.masked_invalid(X),
    "masked array with values under the mask": lambda: np.ma.MaskedArray(
        np.where(np.isnan(X), 99.0, X), mask=np.isnan(X)
    ),
    "pandas": lambda: pd.DataFrame(X, columns=NAMES),
    "pandas nullable": lambda: pd.DataFrame(COLUMNS, dtype="Float64"),
    "pandas arrow": lambda: pd.DataFrame(COLUMNS).astype("double[pyarrow]"),
    "pandas objects": lambda: pd.DataFrame(COLUMNS, dtype=object),
    "pandas with NA objects": lambda: pd.DataFrame(COLUMNS, dtype=object).map(
        lambda v: pd.NA if v is None else v
    ),
    "pandas with integer names": lambda: pd.DataFrame(X),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "polars null and NaN": polars_with_null_and_nan,
    "pyarrow": lambda: pa.table(COLUMNS),
}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_every_container_is_the_same_table(kind):
    plain = KPOD(3, random_state=0).fit(X)
    table = CONTAINERS[kind]()
    model = KPOD(3, random_state=0).fit(table)
    assert_array_equal(model.labels_, plain.labels_)
    assert_allclose(model.cluster_centers_, plain.cluster_centers_)
    assert_array_equal(model.predict(table), plain.labels_)
    named = kind.startswith("p") and "integer" not in kind
    assert hasattr(model, "feature_names_in_") == named
    if named:
        assert list(model.feature_names_in_) == NAMES


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint16, np.float16, bool])
def test_other_numbers_are_taken_as_floats(dtype):
    table = np.arange(24).reshape(12, 2).astype(dtype)
    model = KPOD(2, random_state=0).fit(table)
    assert model.cluster_centers_.dtype == np.float64
    assert_array_equal(model.labels_, KPOD(2, random_state=0).fit(table.astype(float)).labels_)


def test_masked_integers():
    table = np.ma.MaskedArray([[1, 2], [1, 99], [8, 9], [9, 9]], mask=[[0, 0], [0, 1], [0, 0], [0, 0]])
    model = KPOD(2, random_state=0).fit(table)
    assert_allclose(np.sort(model.cluster_centers_, axis=0), [[1, 2], [8.5, 9]])


@pytest.mark.parametrize(
    "kind", ["pandas", "pandas nullable", "pandas arrow", "polars", "polars null and NaN", "pyarrow"]
)
def test_impute_keeps_the_container(kind):
    table = CONTAINERS[kind]()
    model = KPOD(3, random_state=0).fit(table)
    filled = model.impute(table)
    assert type(filled) is type(table)
    expected = KPOD(3, random_state=0).fit(X).impute(X)
    columns = filled.column_names if kind == "pyarrow" else list(filled.columns)
    assert columns == NAMES
    for j, name in enumerate(NAMES):
        assert_allclose(np.asarray(filled[name], dtype=float), expected[:, j])


def test_impute_keeps_index_and_untouched_columns():
    frame = pd.DataFrame({"a": [1.0, np.nan, 3.0], "b": [1, 2, 3]}, index=["x", "y", "z"])
    filled = KPOD(1).fit(frame).impute(frame)
    assert list(filled.index) == ["x", "y", "z"]
    assert filled["b"].dtype == frame["b"].dtype
    assert filled.loc["y", "a"] == 2.0


def test_single_precision_frames_stay_single():
    frame = pl.DataFrame(
        {"a": [1.0, None, 3.0], "b": [1.0, 2.0, 9.0]}, schema={"a": pl.Float32, "b": pl.Float32}
    )
    assert KPOD(2, random_state=0).fit(frame).cluster_centers_.dtype == np.float32


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pd.DataFrame({"a": [1.0, 2.0], "city": ["Rome", None]}), "not numeric: 'city'"),
        (pd.DataFrame({"a": [1.0, 2.0], "when": pd.to_datetime(["2020", "2021"])}), r"'when' \(dates\)"),
        (pd.DataFrame({"a": [1.0, 2.0], "c": pd.Categorical(["x", "y"])}), "not numeric: 'c'"),
        (
            pd.DataFrame({"a": [1.0, 2.0], "o": np.array([1, "x"], dtype=object)}),
            "column 'o' holds 'x' in row 1",
        ),
        (pl.DataFrame({"a": [1.0, 2.0], "city": ["Rome", None]}), "not numeric: 'city'"),
        (pa.table({"a": [1.0, 2.0], "city": ["Rome", None]}), "not numeric: 'city'"),
        (np.array([[1, "x"], [2, "y"]], dtype=object), "column 1 holds 'x' in row 0"),
        ([[1.0, None], ["two", 3.0]], "column 0 holds 'two' in row 1"),
    ],
    ids=["text", "dates", "categories", "objects", "polars", "pyarrow", "array", "list"],
)
def test_text_columns_are_named(table, message):
    with pytest.raises(ValueError, match=message):
        KPOD(1).fit(table)


DAYS = np.array([["2020-01-01", "NaT"], ["2021-01-01", "2021-06-01"]], dtype="datetime64[D]")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (DAYS, "X holds dates"),
        (DAYS - DAYS[1, 0], "X holds time spans"),
        (DAYS.tolist(), "column 0 holds datetime.date"),
        ([list(row) for row in DAYS], "X holds dates"),
        (np.ma.MaskedArray(DAYS, np.isnat(DAYS)), "X holds dates"),
        (np.array([[1.0, DAYS[0, 0]], [2.0, 3.0]], dtype=object), r"column 1 holds .*2020-01-01.* in row 0"),
        (np.array([[1.0, 2 + 1j]]), "Complex data not supported"),
        (np.ma.MaskedArray([[1.0, 2 + 1j]]), "complex numbers"),
        (np.array([[1.0, 2 + 1j]], dtype=object), r"column 1 holds \(2\+1j\) in row 0"),
        (pd.DataFrame({"a": [1.0, 2.0], "z": [1 + 1j, 2]}), "column 'z' holds complex numbers"),
        (pd.DataFrame({"a": [1.0, 2.0], "z": np.array([1 + 1j, 2], object)}), r"'z' holds \(1\+1j\) in row"),
        (pd.DataFrame({"a": [1.0, 2.0], "d": np.array([DAYS[0, 0], 2], object)}), "column 'd' holds"),
        (pd.DataFrame({"a": [1.0, 2.0], "d": pd.to_timedelta([1, None])}), "not numeric: 'd'"),
    ],
    ids=["dates", "spans", "date objects", "lists", "masked", "a date among numbers", "complex",
         "masked complex", "complex objects", "pandas complex", "pandas complex objects",
         "pandas date objects", "pandas spans"],
)  # fmt: skip
def test_dates_and_complex_numbers_are_not_taken_for_numbers(table, message):
    with pytest.raises((TypeError, ValueError), match=message):
        KPOD(1).fit(table)


@pytest.mark.parametrize("gap", [np.datetime64("NaT"), np.timedelta64("NaT"), pd.NaT, pd.NA, None], ids=repr)
def test_na_and_nat_among_numbers_are_gaps(gap):
    table = np.array([[1.0, 2.0], [gap, 4.0], [5.0, gap]], dtype=object)
    plain = KPOD(1).fit([[1.0, 2.0], [np.nan, 4.0], [5.0, np.nan]])
    for same in (table, pd.DataFrame(table), table.tolist()):
        assert_array_equal(KPOD(1).fit(same).cluster_centers_, plain.cluster_centers_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_lies_askew_in_memory_is_copied(dtype):
    def askew(array):
        return np.frombuffer(b"x" + array.tobytes(), np.uint8)[1:].view(array.dtype).reshape(array.shape)

    dense = askew(np.arange(12, dtype=dtype).reshape(4, 3))
    assert not dense.flags.aligned
    assert validation.as_array(dense, None).flags.aligned
    csr = sparse.csr_array(np.arange(1, 13, dtype=dtype).reshape(4, 3))
    csr.data, csr.indices, csr.indptr = map(askew, (csr.data, csr.indices, csr.indptr.astype(np.int64)))
    out = validation.as_csr(csr, None)
    assert out.data.flags.aligned
    assert out.indices.flags.aligned
    assert out.indptr.flags.aligned
    assert_array_equal(out.toarray(), np.arange(1, 13).reshape(4, 3))


def test_infinity_is_named_by_column_name():
    with pytest.raises(ValueError, match=r"infinity.* in column 'b'"):
        KPOD(1).fit(pd.DataFrame({"a": [1.0, 2.0], "b": [np.inf, 1.0]}))


def test_other_column_order_at_predict():
    model = KPOD(3).fit(pd.DataFrame(X, columns=NAMES))
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        model.predict(pd.DataFrame(X[:, ::-1], columns=NAMES[::-1]))


def test_ragged_lists():
    with pytest.raises(ValueError, match=r"row 0 has 2 entries, row 1 has 1\."):
        KPOD(1).fit([[1.0, 2.0], [3.0]])


def test_one_value_too_large_is_refused_without_a_warning():
    X = np.arange(8.0).reshape(4, 2)
    X[2, 1] = 1e300
    with pytest.raises(
        ValueError, match=r"too large to compute with in float64, in column 1 \(first in row 2"
    ):
        KPOD(1).fit(X)


@pytest.mark.parametrize("estimator", [KPOD(2), ObservedScaler(), TablePreparer(categories="all")])
def test_columns_of_the_same_name_are_refused(estimator):
    """Which of them a name means could not be told."""
    X = np.arange(12.0).reshape(4, 3)
    frames = [pd.DataFrame(X, columns=["a", "b", "a"]), pa.table([*X.T], names=["a", "b", "a"])]
    for frame in frames:
        with pytest.raises(ValueError, match=r"^X has several columns named 'a'\. Rename or drop them\.$"):
            estimator.fit(frame)


@pytest.mark.parametrize(
    "make",
    [
        lambda entries: pd.DataFrame({"x": pd.array(entries, "Int64"), "y": range(4)}),
        lambda entries: pl.DataFrame({"x": entries, "y": range(4)}),
    ],
)
def test_impute_loses_no_digits(make):
    exact, long = make([1, None, 3, 2**60]), make([2**60 + 1, None, 2**60 + 3, 5])
    assert KPOD(1).fit(exact).impute(exact)["x"][3] == 2**60
    with pytest.raises(ValueError, match=r"'x' holds whole numbers beyond 2\^53 \(first in row 0\)"):
        KPOD(1).fit(long)


def test_impute_keeps_names_of_several_levels():
    X = np.array([[1.0, np.nan], [1, 2], [9, 8], [np.nan, 8]])
    frame = pd.DataFrame(X, columns=pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")]))
    filled = KPOD(2, random_state=0).fit(frame).impute(frame)
    assert filled.columns.equals(frame.columns)
    assert_array_equal(filled, [[1, 2], [1, 2], [9, 8], [9, 8]])


def with_all_stored(X):
    n, p = X.shape
    return sparse.csr_array((X.ravel(), np.tile(np.arange(p), n), p * np.arange(n + 1)), shape=X.shape)


@pytest.mark.parametrize(
    ("dtype", "bits"), [(np.float64, np.uint64(0x7FF00000000007A2)), (np.float32, np.uint32(0x7F800001))]
)
@INFORMATIVE_BY_HAND
def test_a_nan_that_signals_is_a_gap_like_any_other(dtype, bits):
    """NA of R is one: arithmetic on it sets off a warning, which is an error in this suite."""
    plain = (40 * X + 700).astype(dtype)
    signalling = plain.copy()
    signalling.view(bits.dtype)[np.isnan(plain)] = bits
    for use in (
        lambda X: KPOD(3, random_state=0).fit(X).cluster_centers_,
        lambda X: KPOD(3, missingness="informative", random_state=0).fit(X).transform(X),
        lambda X: MiniBatchKPOD(3, random_state=0).fit(X).cluster_centers_,
        lambda X: KPOD(3, random_state=0).fit(with_all_stored(X)).cluster_centers_,
        lambda X: ObservedScaler().fit_transform(X),
        lambda X: ObservedScaler(rows="center").fit(X).inverse_transform(X),
        lambda X: TablePreparer(categories="all").fit_transform(X),
        lambda X: TablePreparer(categories="all", scale="robust", clip=0.1).fit_transform(pd.DataFrame(X)),
        lambda X: missingness.diagnose(X).missing,
    ):
        assert_array_equal(use(signalling), use(plain))


def test_errors_on_text_say_what_to_do():
    frame = pd.DataFrame({"who": list("abcdef"), "x": [1.0, 2, 3, 8, 9, 10], "smokes": [0, 1, 0, 1, 0, 1]})
    with pytest.raises(
        ValueError, match=r"'who' \(\w+\). Drop such columns, or encode text with kpod.TablePrep"
    ):
        KPOD(2).fit(frame)
    with pytest.raises(
        ValueError, match=r"column 0 holds 'a' in row 0. Drop the column, .* kpod.TablePreparer"
    ):
        KPOD(2).fit(frame.to_numpy())
    model = KPOD(2, random_state=0).fit(frame[["x", "smokes"]])
    with pytest.raises(ValueError, match=r"fitted on: X\[list\(model.feature_names_in_\)\]"):
        model.predict(frame)
    assert_array_equal(model.predict(frame[list(model.feature_names_in_)]), model.labels_)
    with pytest.raises(ValueError, match=r"It was fitted on numbers in 'smokes': .* \(yes as 1, no as 0\)"):
        model.predict(frame[["x", "smokes"]].replace({"smokes": {0: "no", 1: "yes"}}))


def test_predict_proba_says_what_it_needs():
    model = KPOD(2)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError) as error:
        model.predict_proba([[1.0]])
    assert "probability=True" in str(error.value.__cause__)
