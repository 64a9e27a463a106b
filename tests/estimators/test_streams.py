"""Streams: rows by name of column, one or many at a time, saved half-way, and drift that is reported."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError

import kpod
from kpod import MiniBatchKPOD
from kpod._common.warnings import EmptyRowsWarning
from kpod._estimators.streams import generator_of, words_of
from tests.helpers.tables import clustered

NAMES = list("abcd")
STATE = ("cluster_centers_", "counts_", "column_means_", "labels_", "inertia_", "batch_losses_", "drift_")


def batches(rng, n=5, n_rows=60):
    X, _ = clustered(rng, n * n_rows, len(NAMES), k=3, missing=0.2, spread=0.5)
    X[np.isnan(X).all(axis=1), 0] = 0.0
    return np.split(X, n)


def stream(batches, **settings):
    model = MiniBatchKPOD(3, random_state=0, **settings)
    for batch in batches:
        model.partial_fit(batch)
    return model


def same(one, other):
    for name in STATE:
        assert_array_equal(getattr(one, name), getattr(other, name))


def frame(X, kind="pandas", names=NAMES):
    columns = dict(zip(names, X.T, strict=True))
    if kind == "pandas":
        return pd.DataFrame(columns)
    if kind == "polars":
        return pl.DataFrame(columns, nan_to_null=True)
    if kind == "pyarrow":
        return pa.table({name: pa.array(x, from_pandas=True) for name, x in columns.items()})
    return [dict(zip(names, [None if np.isnan(v) else v for v in row.tolist()], strict=True)) for row in X]


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "dicts"])
def test_rows_by_name_are_the_rows_of_an_array(rng, kind):
    parts = batches(rng)
    expected = stream(parts)
    named = stream([frame(part, kind) for part in parts])
    same(named, expected)
    assert_array_equal(named.feature_names_in_, NAMES)
    turned = stream([frame(parts[0], kind), *(frame(p[:, ::-1], kind, NAMES[::-1]) for p in parts[1:])])
    same(turned, expected)


def test_a_row_at_a_time(rng):
    """Rows are kept until there are ten for each cluster; from then on each one is learnt."""
    rows = np.vstack(batches(rng))
    model = MiniBatchKPOD(3, random_state=0)
    for n, row in enumerate(frame(rows, "dicts")[:29], 1):
        assert model.partial_fit(row) is model
        assert model.n_buffered_ == n
        with pytest.raises(NotFittedError):
            model.predict(frame(rows[:3]))
    model.partial_fit(frame(rows[29:30], "dicts"))
    same(model, stream([rows[:30]]))
    assert model.n_buffered_ == 0
    for row in frame(rows[30:40], "dicts"):
        model.partial_fit(row)
    same(model, stream([rows[:30], *rows[30:40, None]]))
    assert_array_equal(model.predict(frame(rows, "dicts")), model.predict(frame(rows)))


def test_a_batch_that_has_enough_by_itself_begins(rng):
    rows = np.vstack(batches(rng))
    model = MiniBatchKPOD(3, random_state=0).partial_fit(rows[:2], sample_weight=[2.0, 1.0])
    assert model.n_buffered_ == 2
    again = pickle.loads(pickle.dumps(model))
    for one in (model, again):
        one.partial_fit(rows[2:50])
    weighted = MiniBatchKPOD(3, random_state=0).partial_fit(rows[:50], sample_weight=[2.0] + [1.0] * 49)
    same(model, weighted)
    same(again, weighted)


@pytest.mark.parametrize("kind", ["pandas", "dicts"])
def test_columns_that_are_new_or_absent(rng, kind):
    """As if they had been there all along, with nothing observed."""
    parts = batches(rng)
    late = [part.copy() for part in parts]
    late[0][:, 3] = late[1][:, 3] = np.nan
    late[3][:, 1] = np.nan
    with pytest.warns(UserWarning, match="No observed entries in column 3"):
        expected = stream(late)
    given = [frame(late[0][:, :3], kind, NAMES[:3]), frame(late[1][:, :3], kind, NAMES[:3])]
    given += [frame(late[2], kind), frame(late[3][:, [0, 2, 3]], kind, list("acd")), frame(late[4], kind)]
    found = stream(given)
    assert_array_equal(found.feature_names_in_, NAMES)
    np.testing.assert_allclose(found.cluster_centers_, expected.cluster_centers_)
    np.testing.assert_allclose(found.counts_, expected.counts_)
    assert_array_equal(found.labels_, expected.labels_)
    assert_array_equal(found.predict({"d": 1.0, "unheard of": 5.0}), found.predict({"d": 1.0}))


def test_rows_that_do_not_belong_are_refused(rng):
    parts = batches(rng)
    model = stream([frame(part) for part in parts])
    before = pickle.dumps(model)
    for odd, said in (
        ({"x": 1.0}, "X has none of the columns of the model"),
        ({"a": "high"}, "column 'a' holds 'high' in row 0"),
        ({1: 2.0}, "names of columns, text, as its keys"),
        (frame(parts[0]).assign(a=np.inf), "infinity"),
    ):
        with pytest.raises((ValueError, TypeError), match=said):
            model.partial_fit(odd)
        assert pickle.dumps(model) == before
    with pytest.raises(ValueError, match="fitted on an array without any"):
        stream(parts).partial_fit({"a": 1.0})


@pytest.mark.parametrize("kind", ["pandas", "array"])
def test_saved_half_way_it_goes_on_as_if_never_stopped(rng, kind, tmp_path):
    parts = batches(rng, 8)
    given = [frame(part) for part in parts] if kind == "pandas" else parts
    model = stream(given[:4], reassignment_ratio=0.9)
    kpod.save(model, tmp_path / "m.kpod")
    opened = kpod.load(tmp_path / "m.kpod")
    assert_array_equal(opened.predict(given[0]), model.predict(given[0]))
    for batch in given[4:]:
        model.partial_fit(batch)
        opened.partial_fit(batch)
    same(opened, model)
    kpod.save(opened, tmp_path / "n.kpod")
    kpod.save(model, tmp_path / "o.kpod")
    assert (tmp_path / "n.kpod").read_bytes() == (tmp_path / "o.kpod").read_bytes()


def test_rows_with_nothing_observed_do_not_count():
    """They are no rows to begin with, however many come."""
    model = MiniBatchKPOD(3, random_state=0).partial_fit([{"a": 1.0}, *[{"a": None}] * 40])
    assert model.n_buffered_ == 1
    with pytest.raises(NotFittedError):
        model.predict({"a": 1.0})
    with pytest.warns(EmptyRowsWarning, match="40 of 71 rows"):
        model.partial_fit([{"a": float(value)} for value in range(30)])
    assert model.n_buffered_ == 0
    assert model.predict({"a": 1.0}).shape == (1,)


def test_a_generator_goes_on_from_its_words():
    random = np.random.default_rng(3)
    random.integers(10, dtype=np.uint32)  # which takes half a word, and leaves the other half
    again = generator_of(words_of(random))
    drawn = [one.integers(1 << 31, size=9, dtype=np.uint32) for one in (random, again)]
    assert_array_equal(*drawn)


def test_drift_is_reported_by_column(rng):
    """The share of the variance between batches, with a half-life, too."""
    even = stream(batches(rng, 8, 300))
    assert (even.drift_ < 0.05).all()
    assert np.isnan(stream(batches(rng, 2)).drift_).all()
    moved = [part + np.array([0, 0, 5.0 * i, 0]) for i, part in enumerate(batches(rng, 8, 300))]
    for settings in ({}, {"half_life": 500}):
        if settings:
            model = stream(moved, **settings)
        else:
            with pytest.warns(UserWarning, match="The batches are not alike: .*column 2"):
                model = stream(moved)
        assert model.drift_[2] > 0.5
        assert (model.drift_[[0, 1, 3]] < 0.05).all()


# Raw rows, with a preparer before the model


def orders(rng, n, towns):
    group = rng.integers(3, size=n)
    return pd.DataFrame({
        "amount": rng.normal(size=n) + 4 * group,
        "items": rng.integers(1, 9, size=n) + 10 * group,
        "town": np.array(list(towns))[rng.integers(len(towns), size=n)],
    })  # fmt: skip


def test_levels_and_codes_that_come_later(rng):
    preparer = kpod.TablePreparer(categories=["town"], missing_values={"items": [-9]})
    preparer.set_output(transform="pandas")
    model = MiniBatchKPOD(3, random_state=0)
    first = orders(rng, 200, "abc")
    prepared = preparer.partial_fit(first).transform(first)
    pd.testing.assert_frame_equal(prepared, kpod.TablePreparer(categories=["town"]).set_output(
        transform="pandas").fit_transform(first))  # fmt: skip
    model.partial_fit(prepared)
    scales = preparer.scale_.copy()
    later = orders(rng, 200, "abcd")
    later.loc[:20, "items"] = -9
    prepared = preparer.partial_fit(later).transform(later)
    assert list(prepared) == ["amount", "items", "town=a", "town=b", "town=c", "town=d"]
    assert prepared["items"].isna().sum() == 21
    assert_array_equal(prepared["town=d"] > 0, later["town"] == "d")
    assert_array_equal(preparer.scale_, scales)
    model.partial_fit(prepared)
    assert_array_equal(model.feature_names_in_, list(prepared))
    # Rows as dicts, some without a column, are the rows of a frame with gaps.
    rows = later.head(5).to_dict("records")
    del rows[1]["town"]
    frame = later.head(5).copy()
    frame.loc[1, "town"] = None
    one, other = preparer.transform(rows), preparer.transform(frame)
    pd.testing.assert_frame_equal(pd.DataFrame(one), pd.DataFrame(other))
    without = preparer.transform(later.drop(columns="items"))
    assert without["items"].isna().all()
    assert_array_equal(without["amount"], prepared["amount"])
    with pytest.raises(ValueError, match="X has no column 'items'"):
        preparer.transform(later[[]].assign(other=1.0))


def test_a_fitted_preparer_still_needs_its_columns(rng):
    preparer = kpod.TablePreparer(categories=["town"]).fit(orders(rng, 100, "abc"))
    with pytest.raises(ValueError, match="is missing columns the model needs: 'items'"):
        preparer.transform(orders(rng, 9, "abc").drop(columns="items"))
