"""TablePreparer: mixed columns on one scale, with the properties that scaling promises; roles and notes."""

import pickle
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from kpod import KPOD, TablePreparer

ALL = {"categories": "all"}


@parametrize_with_checks([TablePreparer(), TablePreparer(scale="robust", clip=0.05)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def mixed(n=300, seed=0, missing=0.2):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "x": rng.normal(5, 3, n),
        "flag": rng.random(n) < 0.3,
        "colour": rng.choice(["red", "green", "blue", "grey"], n, p=[0.5, 0.3, 0.15, 0.05]),
        "two": rng.choice(["a", "b"], n, p=[0.8, 0.2]),
        "size": pd.Categorical(rng.choice(["S", "M", "L"], n), ["S", "M", "L"], ordered=True),
    })  # fmt: skip
    frame["flag"] = frame["flag"].astype("boolean")
    return frame.mask(rng.random(frame.shape) < missing)


def blocks(preparer, encoded):
    """The encoded columns of each column."""
    starts = [name.partition("=")[0] for name in preparer.get_feature_names_out()]
    return {name: encoded[:, [s == name for s in starts]] for name in dict.fromkeys(starts)}


def test_every_column_has_variance_one():
    frame = mixed()
    preparer = TablePreparer(**ALL)
    for block in blocks(preparer, preparer.fit_transform(frame)).values():
        assert_allclose(np.nanvar(block, axis=0).sum(), 1)


def test_two_levels_count_as_their_standardised_indicator():
    frame = mixed(missing=0)
    encoded = TablePreparer(**ALL).fit_transform(frame[["two"]])
    indicator = StandardScaler().fit_transform((frame[["two"]] == "b").astype(float))
    for i, j in ((0, 1), (3, 40), (7, 100)):
        assert_allclose(((encoded[i] - encoded[j]) ** 2).sum(), ((indicator[i] - indicator[j]) ** 2).sum())
    both = [KPOD(2, random_state=0).fit(X) for X in (encoded, indicator)]
    assert_allclose(both[0].inertia_, both[1].inertia_, atol=1e-9)


def test_gaps_stay_gaps_in_every_indicator():
    frame = mixed()
    preparer = TablePreparer(**ALL)
    for name, block in blocks(preparer, preparer.fit_transform(frame)).items():
        gaps = frame[name].isna().to_numpy()
        assert np.isnan(block[gaps]).all()
        assert not np.isnan(block[~gaps]).any()


def test_loss_is_the_scaled_gini_impurity_and_centers_are_shares():
    frame = mixed(missing=0.3)[["colour"]]
    model = make_pipeline(TablePreparer(**ALL), KPOD(3, random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows with nothing observed
        model.fit(frame)
    preparer, kpod = model
    levels, scale = preparer.levels_[0], preparer.scale_[0]
    loss = 0.0
    for cluster, shares in enumerate(preparer.shares(kpod.cluster_centers_)["colour"]):
        inside = frame["colour"][kpod.labels_ == cluster].dropna()
        found = np.array([(inside == level).mean() for level in levels])
        assert_allclose(shares, found, atol=1e-12)
        loss += len(inside) * (1 - (found**2).sum()) / scale**2
    assert_allclose(kpod.inertia_, loss, rtol=1e-9, atol=1e-9)


def test_frames_of_all_kinds_are_encoded_alike():
    frame = mixed()
    frame["size"] = frame["size"].astype(object)
    preparer = TablePreparer(**ALL, roles={"size": ["S", "M", "L"]})
    expected = preparer.fit_transform(frame)
    clean = frame.astype(object).where(frame.notna(), None)
    for table in (pl.DataFrame(clean.to_dict("list"), strict=False), pa.table(clean.to_dict("list"))):
        other = TablePreparer(**ALL, roles={"size": ["S", "M", "L"]})
        assert_allclose(other.fit_transform(table), expected)
        assert_array_equal(other.get_feature_names_out(), preparer.get_feature_names_out())
        assert type(other.inverse_transform(expected[:2])) is type(table)


def test_back_again():
    frame = mixed()
    preparer = TablePreparer(**ALL, scale="robust").fit(frame)
    back = preparer.inverse_transform(preparer.transform(frame))
    assert_allclose(back["x"], frame["x"])
    for name in ("colour", "two", "size"):
        kept = frame[name].notna()
        assert (back[name][kept] == frame[name][kept].astype(object)).all()
        assert back[name][~kept].isna().all()


def test_impute_gives_the_most_common_category():
    frame = mixed(missing=0.3)
    preparer = TablePreparer(**ALL)
    X = preparer.fit_transform(frame)
    kpod = KPOD(2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kpod.fit(X)
    filled = preparer.inverse_transform(kpod.impute(X))
    gaps = frame["colour"].isna() & (kpod.labels_ >= 0)
    for cluster in range(2):
        here = kpod.labels_ == cluster
        mode = frame["colour"][here].mode()[0]
        assert (filled["colour"][here & gaps] == mode).all()


def test_weights_count_as_repeated_columns():
    frame = mixed(missing=0)
    once = TablePreparer(**ALL, column_weights={"colour": 2}).fit_transform(frame[["x", "colour"]])
    twice = frame[["x", "colour"]].assign(again=frame["colour"])
    encoded = TablePreparer(**ALL).fit_transform(twice)
    distance = ((encoded[0] - encoded[1:]) ** 2).sum(axis=1)
    assert_allclose(((once[0] - once[1:]) ** 2).sum(axis=1), distance)


def test_log_clip_and_robust():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"income": rng.lognormal(10, 1, 500), "n": rng.poisson(2, 500), "y": rng.normal(size=500)}
    )
    preparer = TablePreparer(log=["income", "n"]).fit(frame)
    expected = (np.log(frame["income"]) - np.log(frame["income"]).mean()) / np.log(frame["income"]).std(
        ddof=0
    )
    assert_allclose(preparer.transform(frame)[:, 0], expected)
    assert_allclose(preparer.inverse_transform(preparer.transform(frame))["n"], frame["n"], atol=1e-9)
    clipped = TablePreparer(clip=0.01, scale="none").fit_transform(frame)
    assert_allclose(clipped[:, 2].max(), np.quantile(frame["y"], 0.99))
    frame.loc[0, "y"] = 1e9
    robust = TablePreparer(scale="robust").fit(frame)
    assert 0.8 < robust.scale_[2] < 1.2
    with pytest.raises(ValueError, match=r"X: row \d+.*: column 'y' holds -.*which has no logarithm"):
        TablePreparer(log=["y"]).fit(frame)


def test_dates_are_set_aside_or_numbers_of_days():
    frame = pd.DataFrame(
        {"when": pd.to_datetime(["1970-01-02T00:00", None, "1970-01-11T12:00"]), "x": [1.5, 2, 3.1]}
    )
    assert TablePreparer().fit(frame).roles_["when"].role == "date"
    assert TablePreparer().fit(frame).columns_ == ["x"]
    preparer = TablePreparer(roles={"when": "number"}, scale="none").fit(frame)
    assert_allclose(preparer.transform(frame)[:, 0], [1, np.nan, 10.5])
    assert_allclose(preparer.transform(pl.from_pandas(frame))[:, 0], [1, np.nan, 10.5])


def test_levels_not_seen_before_are_like_none():
    preparer = TablePreparer(**ALL).fit(pd.DataFrame({"c": ["a", "b", "c", None] * 3}))
    with pytest.warns(UserWarning, match="'z' .* not among the categories"):
        found = preparer.transform(pd.DataFrame({"c": ["z", None]}))
    assert_array_equal(found, [[0] * 3, [np.nan] * 3])


def test_numbers_that_stand_for_categories():
    frame = pd.DataFrame({"region": [1, 2, 3, 2, None], "x": [1.5, 2, 3, 4, 5]})
    preparer = TablePreparer(categories=["region"]).fit(frame)
    assert list(preparer.get_feature_names_out()) == ["region=1", "region=2", "region=3", "x"]
    back = preparer.inverse_transform(preparer.transform(frame))["region"]
    assert back[:4].tolist() == ["1", "2", "3", "2"]
    assert back.isna().tolist() == [False] * 4 + [True]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": "big"}, "scale must be one of"),
        ({"clip": 0.7}, "clip must lie between"),
        ({"categories": ["nope"]}, "there is no column 'nope'"),
        ({"column_weights": {"x": -1}}, "column_weights must be"),
        ({"roles": {"two": ["a"]}}, "the value 'b' is not in the order given"),
        ({"roles": {"two": "animal"}}, "with a role of number, boolean, category"),
        ({"log": ["colour"]}, "not among the columns clustered as numbers"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        TablePreparer(**{**ALL, **options}).fit(mixed())


def test_infinity_is_refused_by_name():
    with pytest.raises(ValueError, match="row 2, column 'x': inf is infinite"):
        TablePreparer().fit(pd.DataFrame({"x": [1.0, np.inf, 0.3]}))


def simulated(seed):
    """Three clusters in 4 numbers and 8 categories, of which half say something."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, 400)
    numbers = rng.normal(size=(400, 4))
    numbers[:, :2] += 1.2 * rng.normal(size=(3, 2))[truth]
    frame = pd.DataFrame(numbers, columns=[f"x{j}" for j in range(4)])
    for j in range(8):
        levels = rng.integers(3, 6)
        shares = rng.dirichlet(np.full(levels, 0.5 if j < 6 else 50.0), 3)
        frame[f"c{j}"] = [f"l{rng.choice(levels, p=shares[t])}" for t in truth]
    return frame, truth


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_categories_help_where_they_carry_the_clusters(missing):
    both = []
    for seed in range(6):
        frame, truth = simulated(seed)
        frame = frame.mask(np.random.default_rng(seed).random(frame.shape) < missing)
        scores = []
        for table in (frame[[f"x{j}" for j in range(4)]], frame):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                labels = make_pipeline(TablePreparer(**ALL), KPOD(3, random_state=0)).fit_predict(table)
            scores.append(adjusted_rand_score(truth, labels))
        both.append(scores)
    numbers, everything = np.mean(both, axis=0)
    assert everything > numbers + 0.3


@pytest.mark.parametrize(
    ("missing", "numbers", "everything"), [(0.0, 0.14, 0.32), (0.2, 0.12, 0.31), (0.4, 0.09, 0.28)]
)
def test_heart(missing, numbers, everything):
    """Statlog heart (UCI, CC BY 4.0): at least the scores that indicators were known to reach."""
    heart = pd.read_csv(Path(__file__).parents[1] / "data" / "heart.csv")
    truth = heart.pop("disease")
    measured = ["age", "blood_pressure", "cholesterol", "heart_rate", "oldpeak", "vessels"]
    categories = [name for name in heart if name not in measured]
    scores = []
    for seed in range(5 if missing else 1):
        table = heart.mask(np.random.default_rng(seed).random(heart.shape) < missing)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*(has|have) nothing observed")
            found = [
                make_pipeline(TablePreparer(categories=names), KPOD(2, random_state=0)).fit_predict(
                    table[columns]
                )
                for columns, names in ((measured, []), (list(heart), categories))
            ]
        scores.append([adjusted_rand_score(truth, labels) for labels in found])
    alone, together = np.mean(scores, axis=0)
    assert alone >= numbers
    assert together >= everything
    assert together > alone + 0.1


def test_numbers_alone_are_standardised_as_scikit_learn_does():
    wine = load_wine().data
    assert_allclose(TablePreparer().fit_transform(wine), StandardScaler().fit_transform(wine), atol=1e-12)


@pytest.mark.parametrize("name", ["roles", "column_weights"])
@pytest.mark.parametrize("value", ["a", 2.0, ["a"]])
def test_what_must_be_a_dict(name, value):
    with pytest.raises(TypeError, match=f"{name} must be a dict"):
        TablePreparer(**{name: value}).fit(np.ones((3, 2)))


# Columns of another type than at fit


LEVELS = ["low", "mid", "high"]


@pytest.mark.parametrize(
    "given",
    [
        lambda frame: frame.astype({"size": str}),
        lambda frame: frame.astype({"size": object}),
        lambda frame: frame.assign(size=frame["size"].cat.remove_unused_categories()),
        lambda frame: frame.assign(size=frame["size"].cat.reorder_categories(LEVELS[::-1])),
        lambda frame: pl.DataFrame({"size": frame["size"].astype(str).to_list(), "x": frame["x"].to_numpy()}),
    ],
)
def test_ordered_levels_are_those_of_the_fit(given):
    size = pd.Categorical(["low", "mid", "high"] * 5, categories=LEVELS, ordered=True)
    frame = pd.DataFrame({"size": size, "x": np.arange(15.0) % 7})
    preparer = TablePreparer(**ALL).fit(frame)
    rows = frame[frame["size"] != "mid"] if "unused" in given.__code__.co_names[-1] else frame
    assert_array_equal(preparer.transform(given(rows)), preparer.transform(rows))


@pytest.mark.parametrize("as_array", [False, True])
def test_text_where_numbers_were_is_refused(as_array):
    frame = pd.DataFrame({"a": np.arange(6.0) % 4, "b": np.arange(6.0) % 5})
    other = frame.astype({"b": object})
    other.loc[2, "b"] = "many"
    preparer = TablePreparer(strict=True).fit(frame.to_numpy() if as_array else frame)
    name = "x1" if as_array else "b"
    with pytest.raises(ValueError, match=f"row 3, column '{name}': 'many' is not a number"):
        preparer.transform(other.to_numpy() if as_array else other)
    tolerant = TablePreparer().fit(frame.to_numpy() if as_array else frame)
    with pytest.warns(
        UserWarning, match=rf"{name}: 'many' \(row 3\) is not a number and was taken as missing"
    ):
        prepared = tolerant.transform(other.to_numpy() if as_array else other)
    assert_array_equal(np.argwhere(np.isnan(prepared)), [[2, 1]])
    if not as_array:  # numbers in text are numbers
        assert_array_equal(preparer.transform(frame.astype({"b": str})), preparer.transform(frame))


def test_a_text_column_with_nothing_in_it_is_missing():
    frame = pd.DataFrame({"a": np.arange(6.0) % 4, "b": np.arange(6.0) % 5})
    prepared = TablePreparer().fit(frame).transform(frame.assign(b=pd.array([None] * 6, dtype="string")))
    assert np.isnan(prepared[:, 1]).all()


# What columns mean


def raw():
    """A table as people have it."""
    rng = np.random.default_rng(0)
    n = 60
    return pd.DataFrame({
        "patient": [f"P{i:03d}" for i in range(n)],
        "visit": pd.date_range("2024-01-01", periods=n).strftime("%Y-%m-%d"),
        "weight_kg": [f"{value:.1f}" if i % 7 else "?" for i, value in enumerate(rng.normal(70, 9, n))],
        "score": np.where(rng.random(n) < 0.2, 99, rng.integers(0, 11, n)),
        "smoker": rng.choice(["yes", "no"], n),
        "ward": rng.choice(["north", "south", "east"], n),
        "height": rng.normal(170, 8, n).round(1),
    })  # fmt: skip


def test_roles_are_found_and_can_be_printed_and_edited():
    preparer = TablePreparer().fit(raw())
    assert preparer.columns_ == ["weight_kg", "score", "smoker", "height"]
    assert preparer.kinds_ == ["number", "number", "boolean", "number"]
    assert preparer.roles_.to_dict() == {
        "patient": "identifier", "visit": "date", "weight_kg": "number", "score": "number",
        "smoker": "boolean", "ward": "category", "height": "number",
    }  # fmt: skip
    line = str(preparer.roles_).splitlines()[1].split()
    assert line[:4] == ["patient", "identifier", "no", "codes,"]
    edited = preparer.roles_.to_dict() | {"ward": "category", "score": "text"}
    assert TablePreparer(roles=edited).fit(raw()).columns_ == ["weight_kg", "smoker", "ward", "height"]


def test_a_suspected_code_is_noted_and_taken_out():
    preparer = TablePreparer().fit(raw())
    (note,) = (note for note in preparer.notes_ if note.kind == "possible code")
    assert (note.columns, note.values["codes"]) == (("score",), ["99"])
    assert "missing_values={'score': [99]}" in note.text
    cleaned = TablePreparer(missing_values={"score": [99]}).fit(raw())
    assert not [note for note in cleaned.notes_ if note.kind == "possible code"]
    gaps = np.isnan(cleaned.transform(raw())[:, 1])
    assert_array_equal(gaps, raw()["score"] == 99)


@pytest.mark.parametrize("given", [99, "99", [99], {"score": 99}, {"sc*": ["99"]}, {"*": [99.0]}])
def test_missing_values_in_any_form(given):
    gaps = np.isnan(TablePreparer(missing_values=given).fit_transform(raw())[:, 1])
    assert_array_equal(gaps, raw()["score"] == 99)


def test_new_tables_are_taken_by_name():
    frame = raw()
    preparer = TablePreparer(categories="all").fit(frame)
    expected = preparer.transform(frame)
    assert_array_equal(preparer.fit_transform(frame), expected)
    other = frame[["height", "ward", "smoker", "score", "weight_kg"]].assign(more="words")
    assert_array_equal(preparer.transform(other), expected)
    for same in (pl.from_pandas(frame), pa.Table.from_pandas(frame, preserve_index=False)):
        assert_array_equal(preparer.transform(same), expected)
    with pytest.raises(ValueError, match="is missing columns the model needs: 'smoker'"):
        preparer.transform(frame.drop(columns="smoker"))


def test_set_output_clone_and_weights():
    frame = raw()
    preparer = TablePreparer(weight="height").set_output(transform="pandas")
    out = preparer.fit_transform(frame)
    assert list(out) == ["weight_kg", "score", "smoker"]
    assert_array_equal(preparer.row_weights(frame), frame["height"])
    again = pickle.loads(pickle.dumps(clone(preparer).fit(frame)))
    assert again.get_params() == preparer.get_params()
    assert_array_equal(again.transform(frame), out)


def test_a_failed_fit_leaves_a_fitted_preparer_as_it_was():
    preparer = TablePreparer().fit(raw())
    before = preparer.transform(raw())
    with pytest.raises(ValueError, match="no numeric columns"):
        preparer.fit(raw()[["patient", "ward"]])
    assert_array_equal(preparer.transform(raw()), before)
