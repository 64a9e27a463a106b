"""TableEncoder: mixed columns on one scale, with the properties that scaling promises."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from kpod import KPOD, TableEncoder


@parametrize_with_checks([TableEncoder(), TableEncoder(scale="robust", clip=0.05)])
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


def blocks(encoder, encoded):
    """The encoded columns of each column."""
    starts = [name.partition("=")[0] for name in encoder.get_feature_names_out()]
    return {name: encoded[:, [s == name for s in starts]] for name in dict.fromkeys(starts)}


def test_every_column_has_variance_one():
    frame = mixed()
    encoder = TableEncoder()
    for block in blocks(encoder, encoder.fit_transform(frame)).values():
        assert_allclose(np.nanvar(block, axis=0).sum(), 1)


def test_two_levels_count_as_their_standardised_indicator():
    frame = mixed(missing=0)
    encoded = TableEncoder().fit_transform(frame[["two"]])
    indicator = StandardScaler().fit_transform((frame[["two"]] == "b").astype(float))
    for i, j in ((0, 1), (3, 40), (7, 100)):
        assert_allclose(((encoded[i] - encoded[j]) ** 2).sum(), ((indicator[i] - indicator[j]) ** 2).sum())
    both = [KPOD(2, random_state=0).fit(X) for X in (encoded, indicator)]
    assert_allclose(both[0].inertia_, both[1].inertia_, atol=1e-9)


def test_gaps_stay_gaps_in_every_indicator():
    frame = mixed()
    encoder = TableEncoder()
    for name, block in blocks(encoder, encoder.fit_transform(frame)).items():
        gaps = frame[name].isna().to_numpy()
        assert np.isnan(block[gaps]).all()
        assert not np.isnan(block[~gaps]).any()


def test_loss_is_the_scaled_gini_impurity_and_centers_are_shares():
    frame = mixed(missing=0.3)[["colour"]]
    model = make_pipeline(TableEncoder(), KPOD(3, random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows with nothing observed
        model.fit(frame)
    encoder, kpod = model
    levels, scale = encoder.levels_[0], encoder.scale_[0]
    loss = 0.0
    for cluster, shares in enumerate(encoder.shares(kpod.cluster_centers_)["colour"]):
        inside = frame["colour"][kpod.labels_ == cluster].dropna()
        found = np.array([(inside == level).mean() for level in levels])
        assert_allclose(shares, found, atol=1e-12)
        loss += len(inside) * (1 - (found**2).sum()) / scale**2
    assert_allclose(kpod.inertia_, loss, rtol=1e-9, atol=1e-9)


def test_frames_of_all_kinds_are_encoded_alike():
    frame = mixed()
    frame["size"] = frame["size"].astype(object)
    encoder = TableEncoder(ordered={"size": ["S", "M", "L"]})
    expected = encoder.fit_transform(frame)
    clean = frame.astype(object).where(frame.notna(), None)
    for table in (pl.DataFrame(clean.to_dict("list"), strict=False), pa.table(clean.to_dict("list"))):
        other = TableEncoder(ordered={"size": ["S", "M", "L"]})
        assert_allclose(other.fit_transform(table), expected)
        assert_array_equal(other.get_feature_names_out(), encoder.get_feature_names_out())
        assert type(other.inverse_transform(expected[:2])) is type(table)


def test_back_again():
    frame = mixed()
    encoder = TableEncoder(clip=None, log=[], scale="robust").fit(frame)
    back = encoder.inverse_transform(encoder.transform(frame))
    assert_allclose(back["x"], frame["x"])
    for name in ("colour", "two", "size"):
        kept = frame[name].notna()
        assert (back[name][kept] == frame[name][kept].astype(object)).all()
        assert back[name][~kept].isna().all()


def test_impute_gives_the_most_common_category():
    frame = mixed(missing=0.3)
    encoder = TableEncoder()
    X = encoder.fit_transform(frame)
    kpod = KPOD(2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kpod.fit(X)
    filled = encoder.inverse_transform(kpod.impute(X))
    gaps = frame["colour"].isna() & (kpod.labels_ >= 0)
    for cluster in range(2):
        here = kpod.labels_ == cluster
        mode = frame["colour"][here].mode()[0]
        assert (filled["colour"][here & gaps] == mode).all()


def test_weights_count_as_repeated_columns():
    frame = mixed(missing=0)
    once = TableEncoder(column_weights={"colour": 2}).fit_transform(frame[["x", "colour"]])
    twice = frame[["x", "colour"]].assign(again=frame["colour"])
    encoded = TableEncoder().fit_transform(twice)
    distance = ((encoded[0] - encoded[1:]) ** 2).sum(axis=1)
    assert_allclose(((once[0] - once[1:]) ** 2).sum(axis=1), distance)


def test_log_clip_and_robust():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"income": rng.lognormal(10, 1, 500), "n": rng.poisson(2, 500), "y": rng.normal(size=500)}
    )
    encoder = TableEncoder(log=["income", "n"]).fit(frame)
    expected = (np.log(frame["income"]) - np.log(frame["income"]).mean()) / np.log(frame["income"]).std(
        ddof=0
    )
    assert_allclose(encoder.transform(frame)[:, 0], expected)
    assert_allclose(encoder.inverse_transform(encoder.transform(frame))["n"], frame["n"], atol=1e-9)
    clipped = TableEncoder(clip=0.01, scale="none").fit_transform(frame)
    assert_allclose(clipped[:, 2].max(), np.quantile(frame["y"], 0.99))
    frame.loc[0, "y"] = 1e9
    robust = TableEncoder(scale="robust").fit(frame)
    assert 0.8 < robust.scale_[2] < 1.2
    with pytest.raises(ValueError, match=r"Column 'y' holds -.*which has no logarithm"):
        TableEncoder(log=["y"]).fit(frame)


def test_dates_are_refused_or_numbers_of_days():
    frame = pd.DataFrame(
        {"when": pd.to_datetime(["1970-01-02T00:00", None, "1970-01-11T12:00"]), "x": [1.0, 2, 3]}
    )
    with pytest.raises(ValueError, match="Column 'when' holds dates"):
        TableEncoder().fit(frame)
    encoder = TableEncoder(dates="number", scale="none").fit(frame)
    assert_allclose(encoder.transform(frame)[:, 0], [1, np.nan, 10.5])
    assert_allclose(encoder.transform(pl.from_pandas(frame))[:, 0], [1, np.nan, 10.5])


def test_levels_not_seen_before_are_like_none():
    encoder = TableEncoder().fit(pd.DataFrame({"c": ["a", "b", "c", None]}))
    assert_array_equal(encoder.transform(pd.DataFrame({"c": ["z", None]})), [[0] * 3, [np.nan] * 3])


def test_numbers_that_stand_for_categories():
    frame = pd.DataFrame({"region": [1, 2, 3, 2, None], "x": [1.0, 2, 3, 4, 5]})
    encoder = TableEncoder(categories=["region"]).fit(frame)
    assert list(encoder.get_feature_names_out()) == ["region=1", "region=2", "region=3", "x"]
    back = encoder.inverse_transform(encoder.transform(frame))["region"]
    assert back[:4].tolist() == ["1", "2", "3", "2"]
    assert back.isna().tolist() == [False] * 4 + [True]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": "big"}, "scale must be one of"),
        ({"dates": "yes"}, "dates must be"),
        ({"clip": 0.7}, "clip must lie between"),
        ({"categories": ["nope"]}, "categories names 'nope'"),
        ({"column_weights": {"x": -1}}, "column_weights must be"),
        ({"ordered": {"two": ["a"]}}, "holds 'b', which is not among its ordered levels"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        TableEncoder(**options).fit(mixed())


def test_infinity_is_refused_by_name():
    with pytest.raises(ValueError, match="infinity in column 'x'"):
        TableEncoder().fit(pd.DataFrame({"x": [1.0, np.inf]}))


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
                labels = make_pipeline(TableEncoder(), KPOD(3, random_state=0)).fit_predict(table)
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
                make_pipeline(TableEncoder(categories=names), KPOD(2, random_state=0)).fit_predict(
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
    assert_allclose(TableEncoder().fit_transform(wine), StandardScaler().fit_transform(wine), atol=1e-12)


@pytest.mark.parametrize("name", ["ordered", "column_weights"])
@pytest.mark.parametrize("value", ["a", 2.0, ["a"]])
def test_what_must_be_a_dict(name, value):
    with pytest.raises(TypeError, match=f"{name} must be a dict"):
        TableEncoder(**{name: value}).fit(np.ones((3, 2)))


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
    frame = pd.DataFrame({"size": size, "x": np.arange(15.0)})
    encoder = TableEncoder().fit(frame)
    rows = frame[frame["size"] != "mid"] if "unused" in given.__code__.co_names[-1] else frame
    assert_array_equal(encoder.transform(given(rows)), encoder.transform(rows))


@pytest.mark.parametrize("as_array", [False, True])
def test_text_where_numbers_were_is_refused(as_array):
    frame = pd.DataFrame({"a": np.arange(6.0), "b": np.arange(6.0)})
    other = frame.astype({"b": object})
    other.loc[2, "b"] = "many"
    encoder = TableEncoder().fit(frame.to_numpy() if as_array else frame)
    given = other.to_numpy() if as_array else other
    message = r"holds text \('many'\), but the encoder was fitted on numbers there"
    with pytest.raises(ValueError, match=message):
        encoder.transform(given)
    if not as_array:
        with pytest.raises(ValueError, match=r"'b' holds text \('0\.0'\)"):
            encoder.transform(frame.astype({"b": str}))


def test_a_text_column_with_nothing_in_it_is_missing():
    frame = pd.DataFrame({"a": np.arange(6.0), "b": np.arange(6.0)})
    encoded = TableEncoder().fit(frame).transform(frame.assign(b=pd.array([None] * 6, dtype="string")))
    assert np.isnan(encoded[:, 1]).all()


def test_columns_that_name_the_rows_are_warned_of():
    frame = pd.DataFrame({"bird": [f"N{i}" for i in range(40)], "island": ["a", "b"] * 20, "x": range(40)})
    with pytest.warns(
        UserWarning, match="half of the values are different in column 'bird': identifiers"
    ) as caught:
        encoder = TableEncoder().fit(frame)
    assert caught[0].filename == __file__
    assert len(encoder.get_feature_names_out()) == 42
    TableEncoder().fit(frame.head(15))  # few rows are often all different
