"""Model files: safe to open, and refused in one line where they are not ours."""

import io
import json
import math
import pickle
import tracemalloc
import warnings
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.testing import assert_array_equal
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from kpod import KPOD, GaussianMixture, ObservedScaler, TablePreparer, load, save
from kpod import report as kpod_report
from kpod._common.errors import InputError
from kpod._saved_models import model_file_format, saved_classes, values
from kpod.datasets import load_incomplete_wine
from tests.helpers.command import kpod

WINE = load_incomplete_wine()
DATA = Path(__file__).parents[1] / "data"


@pytest.fixture(scope="module")
def model():
    pipeline = Pipeline([("scale", StandardScaler()), ("kpod", KPOD(3, random_state=0))]).fit(WINE.data)
    return model_file_format.Model(pipeline, WINE.feature_names, ["-9"])


@pytest.fixture
def path(model, tmp_path):
    model_file_format.save(model, tmp_path / "m.kpod")
    return tmp_path / "m.kpod"


def members_of(path):
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def write_members(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in members.items():
            file.writestr(name, content)


def with_content(path, change):
    """What somebody else might write: the model with its JSON changed by a function."""
    members = members_of(path)
    content = json.loads(members["model.json"])
    change(content, members)
    write_members(path, members | {"model.json": json.dumps(content)})


def state_in(content, step):
    (state,) = dict(content["steps"])[step].values()
    return state


def with_attribute(path, step, attribute, change):
    """The model with an attribute changed by a function from the value in the file to another."""

    def changed(content, members):
        state = state_in(content, step)
        node = state[attribute]
        is_array = isinstance(node, dict) and "array" in node
        value = change(np.load(io.BytesIO(members[node["array"]])) if is_array else node)
        if isinstance(value, np.ndarray | np.generic):
            file = io.BytesIO()
            np.save(file, value, allow_pickle=True)
            members["other.npy"], value = file.getvalue(), {"array": "other.npy"}
        state[attribute] = value

    with_content(path, changed)


def test_what_is_saved_comes_back(model, path):
    loaded = model_file_format.load(path)
    assert_array_equal(loaded.pipeline.predict(WINE.data), model.pipeline.predict(WINE.data))
    assert loaded.pipeline[-1].get_params() == model.pipeline[-1].get_params()
    assert (loaded.columns, loaded.missing) == (model.columns, model.missing)


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({"init": np.nan_to_num(WINE.data[:3])}, {"init": "k-means++"}),
        ({"init": lambda X, k, random_state: np.nan_to_num(X[:k]), "n_init": 1}, {"init": "k-means++"}),
        ({"random_state": np.random.RandomState(0)}, {"random_state": None}),
        (
            {"tol": np.float32(0.5), "n_init": np.int64(2), "probability": np.True_, "shrinkage": 1},
            {"tol": 0.5, "n_init": 2, "probability": True, "shrinkage": 1},
        ),
        ({"n_clusters": np.int32(3), "max_iter": np.uint8(200)}, {"n_clusters": 3, "max_iter": 200}),
    ],
    ids=["an array to start from", "a function", "a generator", "numbers of NumPy", "a number of clusters"],
)
def test_a_model_of_any_parameters_opens_again(settings, kept, tmp_path):
    """What only a fit needs is replaced by its default."""
    model = KPOD(**({"n_clusters": 3, "random_state": 0} | settings)).fit(WINE.data)
    save(model, tmp_path / "m.kpod")
    loaded = load(tmp_path / "m.kpod")
    assert_array_equal(loaded.predict(WINE.data), model.labels_)
    assert loaded.get_params() == {"random_state": 0} | model.get_params() | kept
    assert {type(value) for value in loaded.get_params().values()} <= {int, float, bool, str, type(None)}


def test_a_number_of_clusters_set_for_the_next_fit(tmp_path):
    model = KPOD(3, random_state=0).fit(WINE.data)
    save(model.set_params(n_clusters=5), tmp_path / "m.kpod")
    assert_array_equal(load(tmp_path / "m.kpod").predict(WINE.data), model.labels_)


def test_a_subclass_is_not_saved(tmp_path):
    """It could not be opened again."""

    for name in ("Another", "KPOD"):
        with pytest.raises(TypeError, match="Only a KPOD, GaussianMixture or MiniBatchKPOD can be saved"):
            save(type(name, (KPOD,), {})(2).fit(WINE.data), tmp_path / "m.kpod")
    assert not (tmp_path / "m.kpod").exists()


def test_a_model_of_0_1_0_still_opens(monkeypatch):
    table = pd.read_csv(DATA / "people-0.1.0.csv", dtype=str, keep_default_na=False)
    people = table.drop(columns="cluster").to_csv(index=False).encode()
    done = kpod(monkeypatch, "predict", DATA / "0.1.0.kpod", "-", "-q", stdin=people)
    assert done.out == (DATA / "people-0.1.0.csv").read_text()
    assert model_file_format.load(DATA / "0.1.0.kpod").kpod_version == "0.1.0"


@pytest.mark.parametrize("name", ["mixture", "gaps"])
def test_models_of_the_format_before_this_still_open(monkeypatch, name, tmp_path):
    """And say what they said when they were written."""
    table = pd.read_csv(DATA / "people-0.2.0.dev0.csv", dtype=str, keep_default_na=False)
    people = table.drop(columns=["categories", "mixture", "gaps"]).to_csv(index=False).encode()
    path = DATA / f"0.2.0.dev0-{name}.kpod"
    command = ("-", "-q", "--missing", "-9", "--label", name)
    done = kpod(monkeypatch, "predict", path, *command, stdin=people)
    assert list(pd.read_csv(io.StringIO(done.out))[name].astype(str)) == list(table[name])
    opened = model_file_format.load(path)
    model_file_format.save(opened, tmp_path / "m.kpod")
    assert kpod(monkeypatch, "predict", tmp_path / "m.kpod", *command, stdin=people).out == done.out
    assert hasattr(opened.pipeline[-1], "choice_") == (name == "gaps")


@pytest.mark.parametrize("path", sorted(DATA.glob("*.kpod")), ids=lambda path: path.stem)
def test_every_array_of_an_old_file_is_as_it_was(path):
    pipeline = model_file_format.load(path).pipeline
    members = members_of(path)
    (*_, steps), found = old_nodes(json.loads(members["schema.json"])), 0
    for node in steps:
        name, step = node["content"]
        for attribute, value in step["content"]["content"].items():
            if value["__loader__"] == "NdArrayNode" and attribute != "labels_":
                kept = getattr(pipeline.named_steps[json.loads(name["content"])], attribute)
                assert_array_equal(kept, np.load(io.BytesIO(members[value["file"]])))
                found += 1
    assert found > 5


def old_nodes(schema):
    """The nodes on the way to the steps of a pipeline that skops has written, and those steps."""
    pipeline = schema["content"]["pipeline"]
    state = pipeline["content"]["content"]
    return schema, pipeline, state, state["steps"]["content"]


OLD_AND_ODD = {
    "another class": lambda pipeline, state, steps: steps[0]["content"][1].update(__class__="KMeans"),
    "another pipeline": lambda pipeline, state, steps: pipeline.update(__class__="FeatureUnion"),
    "a memory": lambda pipeline, state, steps: state["memory"].update(content='"/tmp"'),
    "a function": lambda pipeline, state, steps: state["memory"].update(__loader__="FunctionNode"),
    "two scalers": lambda pipeline, state, steps: steps.insert(0, steps[0]),
}


@pytest.mark.parametrize("name", OLD_AND_ODD)
def test_an_old_file_holds_nothing_else_either(name, path):
    members = members_of(DATA / "0.1.0.kpod")
    schema = json.loads(members["schema.json"])
    OLD_AND_ODD[name](*old_nodes(schema)[1:])
    write_members(path, members | {"schema.json": json.dumps(schema)})
    with pytest.raises(InputError, match=r"m\.kpod: holds .*, which a kpod model never contains; not opened"):
        model_file_format.load(path)


def test_the_file_does_not_grow_with_the_rows(model, path):
    """Labels are of the rows of the fit, which are nobody else's business."""
    assert not hasattr(model_file_format.load(path).pipeline[-1], "labels_")
    assert hasattr(model.pipeline[-1], "labels_")


def test_it_can_be_reported_on_with_a_table(path):
    report = kpod_report(model_file_format.load(path).pipeline, WINE.data)
    assert sum(cluster["rows"] for cluster in report.data["clusters"]) == len(WINE.data)


def renamed(content, members):
    content["steps"][0][1] = {"FunctionTransformer": {"func": "os.system"}}


def doubled(content, members):
    content["steps"].insert(0, content["steps"][0])


def backwards(content, members):
    content["steps"].reverse()


def twice_a_kpod(content, members):
    content["steps"][0] = content["steps"][1]


def with_callback(content, members):
    state_in(content, "kpod")["callback"] = 1


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (renamed, "FunctionTransformer"),
        (doubled, "StandardScaler, StandardScaler, KPOD"),
        (backwards, "KPOD, StandardScaler"),
        (twice_a_kpod, "KPOD, KPOD"),
        (with_callback, "KPOD.callback"),
    ],
)
def test_nothing_but_a_scaler_and_a_kpod_is_made(path, change, what):
    with_content(path, change)
    with pytest.raises(
        InputError, match=rf"m\.kpod: holds {what}, which a kpod model never contains; not opened"
    ):
        model_file_format.load(path)


def lone(value):
    return lambda array: np.full_like(array, value)


def one_in(value):
    def changed(array):
        array = np.array(array, dtype=float)
        array.flat[-1] = value
        return array

    return changed


HOSTILE = {
    "means far too long": ("kpod", "column_means_", lambda _: np.zeros(100_000)),
    "a single mean": ("kpod", "column_means_", lambda _: np.zeros(1)),
    "a mean without a shape": ("kpod", "column_means_", lambda _: np.float64(0)),
    "means of integers": ("kpod", "column_means_", lambda array: np.zeros(len(array), np.int64)),
    "means of text": ("kpod", "column_means_", lambda array: np.array(["a"] * len(array))),
    "means of objects": ("kpod", "column_means_", lambda array: array.astype(object)),
    "no threads": ("kpod", "n_threads", lambda _: 0),
    "no means": ("kpod", "column_means_", lambda _: None),
    "means of a list": ("kpod", "column_means_", list),
    "means in a dict": ("kpod", "column_means_", lambda array: {"dict": [["a", array.tolist()]]}),
    "every mean missing": ("kpod", "column_means_", lone(np.nan)),
    "centers missing": ("kpod", "cluster_centers_", lone(np.nan)),
    "an infinite center": ("kpod", "cluster_centers_", one_in(np.inf)),
    "a huge center": ("kpod", "cluster_centers_", one_in(1e200)),
    "centers on their side": ("kpod", "cluster_centers_", np.transpose),
    "centers in half precision": ("kpod", "cluster_centers_", lambda array: array.astype(np.float16)),
    "centers of the other order": ("kpod", "cluster_centers_", lambda array: array.astype(">f8")),
    "negative counts": ("kpod", "counts_", one_in(-1)),
    "a cluster too many": ("kpod", "n_clusters", lambda k: k + 1),
    "clusters by the word": ("kpod", "n_clusters", lambda _: "three"),
    "a million threads": ("kpod", "n_threads", lambda _: 1_000_000),
    "an array to begin with": ("kpod", "init", lambda _: np.zeros((3, 13))),
    "losses like a table": ("kpod", "loss_curve_", lambda _: np.zeros((2, 2))),
    "an infinite loss": ("kpod", "inertia_", lambda _: {"float": "inf"}),
    "a loss that is not of JSON": ("kpod", "inertia_", lambda _: math.inf),
    "groups out of order": ("kpod", "column_groups_", lambda array: array[::-1].copy()),
    "a choice of something": ("kpod", "n_clusters", lambda _: {"eval": "1"}),
    "a value that is two": ("kpod", "tol", lambda _: {"float": "1", "int64": 1}),
    "half a column": ("kpod", "n_features_in_", lambda _: 6.5),
    "columns without number": ("kpod", "n_features_in_", lambda _: 10**30),
    "a scale of zero": ("scale", "scale_", one_in(0)),
    "a negative scale": ("scale", "scale_", one_in(-1)),
    "scales too short": ("scale", "scale_", lambda array: array[:1]),
    "a mean of infinity": ("scale", "mean_", one_in(np.inf)),
    "a mean that is missing": ("scale", "mean_", one_in(np.nan)),
    "columns of another table": ("scale", "n_features_in_", lambda p: p + 1),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_every_part_is_checked(path, name, monkeypatch):
    with_attribute(path, *HOSTILE[name])
    done = kpod(monkeypatch, "predict", path, WINE.filename)
    assert done.code == 1
    assert "damaged" in done.err or "never contains" in done.err
    assert done.err.count("\n") == 1
    assert "m.kpod" in done.err


MIXTURES = {
    "no variance": ("noise_variance_", lambda _: 0.0),
    "a variance of NaN": ("noise_variance_", lambda _: {"float": "nan"}),
    "a variance of infinity": ("noise_variance_", lambda _: {"float": "inf"}),
    "a negative share": ("cluster_shares_", lambda shares: shares * [1, 1, -1]),
    "shares that add up to 2": ("cluster_shares_", lambda shares: 2 * shares),
    "a share too many": ("cluster_shares_", lambda shares: np.append(shares, 0.0)),
    "a center of NaN": ("mixture_centers_", one_in(np.nan)),
    "centers too short": ("mixture_centers_", lambda centers: centers[:, :1]),
    "no centers": ("mixture_centers_", None),
}


@pytest.fixture(scope="module")
def mixture():
    return KPOD(3, probability=True, random_state=0).fit(WINE.data)


@pytest.mark.parametrize("name", MIXTURES)
def test_the_mixture_is_checked(mixture, tmp_path, name):
    attribute, change = MIXTURES[name]
    path = tmp_path / "m.kpod"
    save(mixture, path)
    assert_array_equal(load(path).predict_proba(WINE.data), mixture.predict_proba(WINE.data))
    if change is None:
        with_content(path, lambda content, _: state_in(content, "kpod").pop(attribute))
    else:
        with_attribute(path, "kpod", attribute, change)
    with pytest.raises(InputError, match="damaged"):
        load(path)


GAUSSIANS = {
    "a share too many": ("weights_", lambda shares: np.append(shares, 0.0)),
    "shares that add up to 2": ("weights_", lambda shares: 2 * shares),
    "a mean of NaN": ("means_", one_in(np.nan)),
    "a huge mean": ("means_", one_in(1e300)),
    "no variance": ("_variances", lambda variances: 0 * variances),
    "variances too short": ("_variances", lambda variances: variances[:, :1]),
    "another shape": ("covariance_type_", lambda _: "tied"),
    "no shape": ("covariance_type_", lambda _: "ring"),
    "factors that are not there": ("n_factors_", lambda _: 2),
    "an infinite loading": ("loadings_", lambda _: np.full((2, 3, 1), np.inf)),
    "matrices without an end": ("_whole", lambda whole: whole[:, :-1]),
    "a matrix too few": ("_whole", lambda whole: whole[:1]),
    "matrices that are not positive definite": ("_whole", lambda whole: -whole),
    "matrices that are not symmetric": ("_whole", np.triu),
    "no matrices": ("_whole", lambda _: None),
    "a component too many": ("n_components", lambda k: k + 1),
    "rates that are none": ("_rates", lambda _: np.ones((2, 3))),
    "prices of nothing": ("_prices", lambda _: np.zeros((3, 3))),
    "a missing part": ("selected_", None),
    "bics that are none": ("shape_bics_", lambda _: [1]),
}


@pytest.mark.parametrize("name", GAUSSIANS)
def test_a_gaussian_mixture_is_checked(tmp_path, name):
    attribute, change = GAUSSIANS[name]
    path = tmp_path / "m.kpod"
    save(fitted("a mixture of half the precision"), path)
    load(path)
    if change is None:
        with_content(path, lambda content, _: state_in(content, "kpod").pop(attribute))
    else:
        with_attribute(path, "kpod", attribute, change)
    with pytest.raises(InputError, match="damaged"):
        load(path)


def test_components_set_for_the_next_fit(tmp_path):
    model = fitted("a mixture").set_params(n_components=5)
    save(model, tmp_path / "m.kpod")
    model.set_params(n_components=2)
    assert load(tmp_path / "m.kpod").n_components == 2


def test_the_command_line_takes_a_mixture(tmp_path, monkeypatch):
    """predict, with probabilities, and impute: what the model says in Python, whatever comes before it."""
    frame = pd.DataFrame(incomplete(), columns=["a", "b", "ä"]).assign(name=[f"row {i}" for i in range(52)])
    frame.to_csv(tmp_path / "data.csv", index=False)
    X = pd.DataFrame(incomplete(), columns=["a", "b", "ä"])
    model = Pipeline([("e", TablePreparer()), ("m", GaussianMixture(2, covariance_type="diag", **ROUGHLY))])
    model.fit(X)
    save(model, tmp_path / "m.kpod")
    done = kpod(monkeypatch, "predict", tmp_path / "m.kpod", tmp_path / "data.csv", "--confidence",
                "-o", tmp_path / "out.csv")  # fmt: skip
    assert done.code == 0, done.err
    out = pd.read_csv(tmp_path / "out.csv")
    assert_array_equal(out["cluster"], model.predict(X))
    probabilities = model.predict_proba(X).max(axis=1)
    np.testing.assert_allclose(out["confidence"], probabilities, atol=1e-3)
    done = kpod(
        monkeypatch, "impute", tmp_path / "m.kpod", tmp_path / "data.csv", "-o", tmp_path / "full.csv"
    )
    assert done.code == 0, done.err
    filled = model[0].inverse_transform(model[1].impute(model[0].transform(X)))
    np.testing.assert_allclose(pd.read_csv(tmp_path / "full.csv")[["a", "b", "ä"]], filled, rtol=1e-3)


def test_as_many_clusters_as_columns(path):
    """What is of one length and what of the other must not be taken for each other."""
    data = np.column_stack([WINE.data[:, :2], np.full(len(WINE.data), np.nan)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kpod = KPOD(3, probability=True, n_init=3, random_state=0).fit(data)
    save(kpod, path)
    with_attribute(path, "kpod", "cluster_shares_", one_in(np.nan))
    with pytest.raises(InputError, match="cluster_shares_ holds nan"):
        model_file_format.load(path)


def test_a_column_of_nothing_may_be_missing_throughout(path):
    data = np.column_stack([WINE.data, np.full(len(WINE.data), np.nan)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline = Pipeline([("scale", StandardScaler()), ("kpod", KPOD(3, random_state=0))]).fit(data)
    model_file_format.save(model_file_format.Model(pipeline, [*WINE.feature_names, "nothing"]), path)
    assert_array_equal(model_file_format.load(path).pipeline.predict(data), pipeline.predict(data))


@pytest.mark.parametrize("attribute", ["column_means_", "counts_", "n_features_in_"])
def test_a_part_that_is_not_there(path, attribute):
    with_content(path, lambda content, _: state_in(content, "kpod").pop(attribute))
    with pytest.raises(InputError, match=f"damaged \\({attribute} is missing"):
        model_file_format.load(path)


def test_a_parameter_that_came_later_is_at_its_default(path):
    with_content(path, lambda content, _: state_in(content, "kpod").pop("shrinkage"))
    assert model_file_format.load(path).pipeline[-1].shrinkage == KPOD().shrinkage


@pytest.mark.parametrize(
    ("attribute", "wrong"),
    [("_shift", np.arange(12.0)), ("_shift", 0.0), ("_scale", -1.0), ("_scale", np.ones(2))],
)
def test_attributes_that_may_be_lacking_are_checked(path, attribute, wrong):
    with_attribute(path, "kpod", attribute, lambda _: wrong)
    with pytest.raises(InputError, match=f"damaged \\({attribute}"):
        model_file_format.load(path)
    with_content(path, lambda content, _: state_in(content, "kpod").pop(attribute))
    assert not hasattr(model_file_format.load(path).pipeline[-1], attribute)


def test_one_thread_is_a_number_of_threads(tmp_path):
    save(KPOD(3, n_threads=1, random_state=0).fit(WINE.data), tmp_path / "m.kpod")
    assert load(tmp_path / "m.kpod").n_threads == 1


@pytest.mark.parametrize("content", [b"{}", b"{", b"9e9999", b"NaN", b"-Infinity"])
def test_a_setting_that_is_not_one_value(path, content):
    members = members_of(path)
    changed = members["model.json"].replace(b'"tol": 0.0001', b'"tol": ' + content)
    assert changed != members["model.json"]
    write_members(path, members | {"model.json": changed})
    with pytest.raises(InputError, match="damaged"):
        model_file_format.load(path)


def test_a_part_that_is_there_twice(path):
    with warnings.catch_warnings(), zipfile.ZipFile(path, "a") as file:
        warnings.simplefilter("ignore")
        file.writestr("model.json", b"{}")
    with pytest.raises(InputError, match="a part appears twice"):
        model_file_format.load(path)


def peak_of_loading(path):
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as raised:
            model_file_format.load(path)
        return tracemalloc.get_traced_memory()[1], str(raised.value)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["kpod.json", "model.json"])
@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_small_file_does_not_unpack_to_a_large_one(path, name, compression):
    bomb = b'{"format": "kpod model", "version": 3, "x": [' + b"[]," * 10_000_000 + b"[]]}"
    write_members(path, members_of(path) | {name: bomb}, compression)
    peak, message = peak_of_loading(path)
    assert peak < 2_000_000
    assert ("compressed" if compression else "longer than") in message


def test_labels_of_an_old_model_are_not_read(path):
    """Of which there may be as many as the table had rows."""
    members = members_of(DATA / "0.1.0.kpod")
    schema = json.loads(members["schema.json"])
    state = old_nodes(schema)[-1][-1]["content"][1]["content"]["content"]
    state["labels_"] = state["column_means_"] | {"file": "labels.npy"}
    write_members(path, members | {"labels.npy": bytes(20_000_000), "schema.json": json.dumps(schema)})
    tracemalloc.start()
    model_file_format.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000


def test_an_array_that_claims_more_than_it_holds_takes_no_room(path):
    about = io.BytesIO()
    claimed = {"shape": (3, 10**13), "fortran_order": False, "descr": "<f8"}
    np.lib.format.write_array_header_1_0(about, claimed)
    members = members_of(path)
    (name,) = [name for name, content in members.items() if b"(3, 13)" in content[:128]][:1]
    write_members(path, members | {name: about.getvalue() + members[name][-312:]})
    peak, message = peak_of_loading(path)
    assert "an array whose length does not match its header" in message
    assert peak < 2_000_000


def test_many_columns_have_room_for_their_names(path):
    names = [f"a rather long name of a column, as surveys have them ({j})" for j in range(20_000)]
    data = np.random.default_rng(0).normal(size=(4, len(names)))
    model = Pipeline([("kpod", KPOD(1, n_init=1).fit(data))])
    model_file_format.save(model_file_format.Model(model, names), path)
    assert model_file_format.load(path).columns == names


def test_a_pickle_is_not_opened(tmp_path):
    class Harm:
        def __reduce__(self):
            return (pytest.fail, ("it was run",))

    (tmp_path / "m.kpod").write_bytes(pickle.dumps(Harm()))
    with pytest.raises(InputError, match="not a kpod model"):
        model_file_format.load(tmp_path / "m.kpod")


def test_a_newer_one_is_refused(path):
    header = {"format": "kpod model", "version": 4, "kpod": "9.0"}
    write_members(path, members_of(path) | {"kpod.json": json.dumps(header)})
    with pytest.raises(InputError, match=r"written by a newer version of kpod \(9.0; this is .*\); upgrade"):
        model_file_format.load(path)


def test_another_archive_is_not_a_model(path):
    write_members(path, {"a.json": "{}"})
    with pytest.raises(InputError, match="not a kpod model"):
        model_file_format.load(path)
    write_members(path, {"kpod.json": "[1]"})
    with pytest.raises(InputError, match="not a kpod model"):
        model_file_format.load(path)


@pytest.mark.parametrize(
    "other",
    [
        {"columns": ["one"]},
        {"columns": list(range(13))},
        {"columns": ["same"] * 13},
        {"columns": "abcdefghijklm"},
        {"columns": []},
        {"missing": [1]},
        {"kinds": ["number"]},
        {"kinds": ["else"] * 13},
        {"steps": []},
        {"steps": [["kpod", 1]]},
        {"steps": [["kpod", {"KPOD": {"n_clusters": 3}}]]},
        {"something": 1},
    ],
    ids=str,
)
def test_what_goes_with_the_model_is_checked(path, other):
    with_content(path, lambda content, _: content.update(other))
    with pytest.raises(InputError, match=r"damaged|never contains"):
        model_file_format.load(path)
    with_content(path, lambda content, _: content.pop(next(iter(other))))
    if "something" not in other:
        with pytest.raises(InputError, match="damaged"):
            model_file_format.load(path)


def test_damage_anywhere_is_one_line_or_harmless(path, rng):
    """Flipped bits and cut ends: refused, or the model as it was; never another exception."""
    whole = path.read_bytes()
    for _ in range(130):
        data = bytearray(whole)
        if rng.random() < 0.3:
            data = data[: rng.integers(len(data))]
        else:
            data[rng.integers(len(data))] ^= 1 << rng.integers(8)
        path.write_bytes(data)
        try:
            loaded = model_file_format.load(path)
        except InputError as error:
            assert "\n" not in str(error)
            assert "m.kpod" in str(error)
        else:
            assert model_file_format.written(loaded) == whole


def with_set_output(X):
    return (
        Pipeline([("s", StandardScaler()), ("k", KPOD(2, random_state=0))])
        .set_output(transform="pandas")
        .fit(X)
    )


def with_own_attribute(X):
    model = KPOD(2, random_state=0).fit(X)
    model.note = "of the user's own"
    return model


def with_routing(X):
    with sklearn.config_context(enable_metadata_routing=True):
        return KPOD(2, random_state=0).set_fit_request(sample_weight=True).fit(X)


@pytest.mark.parametrize(
    "fit",
    [
        with_set_output,
        with_own_attribute,
        with_routing,
        lambda X: KPOD(2, random_state=0).fit(X * 1e-160),
        lambda X: KPOD(2, random_state=0).fit(X * 1e-290),
        lambda X: Pipeline([("e", TablePreparer(categories="all")), ("k", KPOD(2, random_state=0))]).fit(
            X * 1e140
        ),
    ],
)
def test_what_can_be_saved_can_be_loaded(tmp_path, fit):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=list("abc"))
    X.iloc[:30] += 9
    model = fit(X)
    save(model, tmp_path / "m.kpod")
    opened = load(tmp_path / "m.kpod")
    for scale in (1.0, 1e-160, 1e-290, 1e140):
        assert_array_equal(opened.predict(X * scale), model.predict(X * scale))


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    model = KPOD(2, random_state=0).fit(np.arange(12.0).reshape(6, 2))
    model.counts_ = -model.counts_
    (tmp_path / "m.kpod").write_text("as it was")
    with pytest.raises(ValueError, match=r"cannot be saved: counts_ holds -"):
        save(model, tmp_path / "m.kpod")
    assert (tmp_path / "m.kpod").read_text() == "as it was"


@pytest.mark.parametrize("names", [["x1", "x2"], ["x0", "x1"]])
def test_columns_called_x_keep_their_names(tmp_path, names):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=names)
    save(KPOD(2, random_state=0).fit(X), tmp_path / "m.kpod")
    opened = load(tmp_path / "m.kpod")
    assert list(opened.feature_names_in_) == names
    with pytest.raises(ValueError, match="same order"):
        opened.predict(X[names[::-1]])


def test_an_array_has_no_names(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 2))
    save(KPOD(2, random_state=0).fit(X), tmp_path / "m.kpod")
    opened = load(tmp_path / "m.kpod")
    assert not hasattr(opened, "feature_names_in_")
    opened.predict(X)


def incomplete():
    """Two clusters, of which the second often lacks the last column."""
    rng = np.random.default_rng(1)
    second = rng.integers(2, size=(60, 1))
    X = rng.normal(size=(60, 3)) + 6 * second
    X[rng.random(X.shape) < [0.1, 0.1, 0.1] + second * [0, 0, 0.6]] = np.nan
    return X[~np.isnan(X).all(axis=1)][:52]


def with_words(X):
    frame = pd.DataFrame(X, columns=["a", "b", "ä"])
    return frame.assign(
        kind=np.where(X[:, 0] > 3, "x", "y"),
        size=pd.Categorical.from_codes([0, 1, -1, 2] * 13, list("SML"), ordered=True),
    )


ROUGHLY = {"n_init": 2, "max_iter": 20, "tol": 1e-2, "random_state": 0}
FITTED = {
    "alone": lambda X: KPOD(2, random_state=0).fit(X),
    "of half the precision": lambda X: KPOD(2, random_state=0).fit(X.astype(np.float32)),
    "with probabilities": lambda X: KPOD(2, probability=True, shrinkage="auto", random_state=0).fit(X),
    "with gaps": lambda X: KPOD(2, missingness="informative", random_state=0).fit(X),
    "with gaps or not": lambda X: KPOD(2, missingness="auto", random_state=0).fit(X),
    "of a chosen number": lambda X: KPOD("auto", random_state=0).fit(X),
    "scaled": lambda X: Pipeline([("s", StandardScaler()), ("k", KPOD(2, random_state=0))]).fit(X),
    "centred only": lambda X: Pipeline([("s", StandardScaler(with_std=False)), ("k", KPOD(2))]).fit(X),
    "not scaled at all": lambda X: Pipeline(
        [("s", StandardScaler(with_mean=False, with_std=False)), ("k", KPOD(2))]
    ).fit(X),
    "scaled by rows": lambda X: Pipeline([("s", ObservedScaler(rows="center")), ("k", KPOD(2))]).fit(X),
    "encoded": lambda X: Pipeline([
        (
            "e",
            TablePreparer(
                categories="all", roles={"size": ["S", "M", "L"]}, column_weights={"a": 2.0}, clip=0.1
            ),
        ),
        ("k", KPOD(2, random_state=0)),
    ]).fit(with_words(X)),
    "a mixture": lambda X: GaussianMixture(2, **ROUGHLY).fit(X),
    "a mixture of half the precision": lambda X: GaussianMixture(2, covariance_type="full", n_factors=None,
                                                                 **ROUGHLY).fit(X.astype(np.float32)),
    "a mixture with factors": lambda X: GaussianMixture(2, covariance_type="full", n_factors=1, **ROUGHLY)
    .fit(X),
    "a mixture with gaps": lambda X: GaussianMixture(2, covariance_type="diag", missingness="auto", **ROUGHLY)
    .fit(X),
    "a mixture with wild cells": lambda X: GaussianMixture(
        2, covariance_type="diag", outlier_cells=True, select_columns=True, **ROUGHLY
    ).fit(X),
    "a scaled mixture": lambda X: Pipeline(
        [("s", StandardScaler()), ("m", GaussianMixture(2, covariance_type="tied", **ROUGHLY))]
    ).fit(X),
    "a mixture scaled by rows": lambda X: Pipeline(
        [("s", ObservedScaler()), ("m", GaussianMixture(2, covariance_type="spherical", **ROUGHLY))]
    ).fit(X),
    "a mixture of a file": lambda X: Pipeline(
        [("e", TablePreparer()), ("m", GaussianMixture(2, covariance_type="diag", **ROUGHLY))]
    ).fit(with_words(X)),
}  # fmt: skip


@cache
def fitted(name):
    return FITTED[name](incomplete())


@pytest.mark.parametrize("name", FITTED)
def test_the_same_model_has_the_same_bytes(name, tmp_path):
    """After loading as before, and if fitted again; and it computes the same bits."""
    X, model = incomplete(), fitted(name)
    save(model, tmp_path / "m.kpod")
    opened = load(tmp_path / "m.kpod")
    save(opened, tmp_path / "again.kpod")
    whole = (tmp_path / "m.kpod").read_bytes()
    assert (tmp_path / "again.kpod").read_bytes() == whole
    table = with_words(X) if name in ("encoded", "a mixture of a file") else X
    for method in ("predict", "transform", "predict_proba", "score_samples"):
        if hasattr(model, method):
            assert_array_equal(getattr(opened, method)(table), getattr(model, method)(table), strict=True)
    (kept, was) = (one[-1] if isinstance(one, Pipeline) else one for one in (opened, model))
    encoded = model[:-1].transform(table) if isinstance(model, Pipeline) else table
    assert_array_equal(kept.impute(encoded), was.impute(encoded), strict=True)
    if name == "encoded":
        assert opened[0].get_params() == model[0].get_params()


def test_a_model_that_is_fitted_again_has_the_same_bytes(tmp_path):
    for file in ("one", "two"):
        save(FITTED["scaled"](incomplete()), tmp_path / file)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize("name", FITTED)
def test_every_fitted_attribute_has_its_place(name):
    """In the file, or among what is left out; a new attribute has to choose."""
    model = fitted(name)
    for step in [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]:
        entry = saved_classes.CLASSES[type(step).__name__]
        known = {*step.get_params(), *entry.described, *entry.not_kept, "feature_names_in_"}
        assert set(vars(step)) <= known


def test_the_choice_of_a_number_comes_back(path):
    model = fitted("of a chosen number")
    save(model, path)
    opened = load(path)
    assert str(opened.choice_) == str(model.choice_)
    assert opened.choice_.column_errors_ is None
    choice = (
        "choice_",
        lambda node: {"KChoice": {**node["KChoice"], "table_": {"dict": [["k", [1, 2]], ["error", 1]]}}},
    )
    with_attribute(path, "kpod", *choice)
    with pytest.raises(InputError, match="numbers of clusters tried"):
        load(path)


@pytest.mark.parametrize(
    ("attribute", "other", "message"),
    [
        ("kinds_", ["number", "magic"], "kinds of columns"),
        ("kinds_", ["number"], "kinds of columns"),
        ("levels_", [[], [1, 2]], "levels are not text"),
        ("levels_", [[], ["a", "a"]], "levels appear twice"),
        ("levels_", [[], ["a", "b", "c"]], "levels and columns do not match"),
        ("scale_", np.array([0.0, 1]), "scale_ holds 0"),
        ("mean_", np.array([np.nan, 1]), "mean_ holds nan"),
        ("mean_", np.array([1.0]), "has the wrong shape"),
        ("offset_", np.array([np.inf, np.nan]), "offset_ holds inf"),
        ("high_", np.array([-np.inf, np.inf]), "high_ holds -inf"),
        ("low_", np.array([np.nan, 0]), "low_ holds nan"),
        ("low_", np.array([9.0, 0]), "settings of the preparer"),
        ("_frame", "os", "settings of the preparer"),
        ("clip", {"float": "nan"}, "clip must lie"),
        ("clip", -1, "clip must lie"),
        ("scale", "magic", "scale must be"),
    ],
)
def test_an_encoder_is_checked(attribute, other, message, path):
    X = pd.DataFrame({"x": [1.5, 2, 4, 5] * 3, "c": ["a", "b", None, "b"] * 3})
    save(Pipeline([("e", TablePreparer(categories="all", clip=0.1)), ("k", KPOD(1, n_init=1))]).fit(X), path)
    with_attribute(path, "e", attribute, lambda _: other)
    with pytest.raises(InputError, match=message):
        load(path)


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.sampled_from([np.int64(-3), np.float32(0.1), np.float64("inf"), np.bool_(True), np.uint8(7)])
    | arrays.arrays(st.sampled_from([np.float64, np.float32, np.int32, np.bool_, "U3"]), (2, 3)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text() | st.integers() | st.tuples(st.text(), st.none()), inner, max_size=3)
        | st.frozensets(st.integers() | st.text(), max_size=3)
        | st.lists(inner, min_size=2, max_size=2).map(lambda pair: np.array([*pair, None], dtype=object)[:2])
    ),
    max_leaves=8,
)


def same(one, other):
    """The same type and value, arrays to the bit."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray) and one.dtype != object:
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, dict):
        return all(same(*pair) for pair in zip(one.items(), other.items(), strict=True))
    if isinstance(one, list | tuple | np.ndarray):
        return len(one) == len(other) and all(same(*pair) for pair in zip(one, other, strict=True))
    return one == other


@given(PLAIN)
def test_plain_values_come_back(value):
    found = []
    text = json.dumps(values.to_json(value, found), allow_nan=False)
    assert same(values.from_json(json.loads(text), lambda name: found[int(name[:-4])]), value)


@pytest.mark.parametrize(
    "value", [print, object(), b"a", 1j, np.zeros(2, complex), np.datetime64(1, "D"), range(3)]
)
def test_other_values_are_refused_by_name(value):
    with pytest.raises(saved_classes.ForeignError):
        values.to_json([value], [])


def test_nan_comes_back():
    node = values.to_json([math.nan, -math.inf, -0.0], [])
    assert repr(values.from_json(json.loads(json.dumps(node, allow_nan=False)), None)) == "[nan, -inf, -0.0]"


def test_sets_have_one_order():
    assert values.to_json({0, 8}, []) == values.to_json({8, 0}, []), "whatever they were made from"
