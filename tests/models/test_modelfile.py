"""Model files: safe to open, and refused in one line where they are not ours."""

import copy
import io
import json
import pickle
import random
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
import skops.io
from numpy.testing import assert_array_equal
from sklearn.cluster import KMeans
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler

from kpod import KPOD, TableEncoder, load, save
from kpod import report as kpod_report
from kpod._common.errors import InputError
from kpod._models import archive, schema
from kpod.datasets import load_incomplete_wine
from tests.helpers.command import kpod

WINE = load_incomplete_wine()


@pytest.fixture(scope="module")
def model():
    pipeline = Pipeline([("scale", StandardScaler()), ("kpod", KPOD(3, random_state=0))]).fit(WINE.data)
    return archive.Model(pipeline, WINE.feature_names, ["-9"])


@pytest.fixture
def path(model, tmp_path):
    archive.save(model, tmp_path / "m.kpod")
    return tmp_path / "m.kpod"


def save_as_it_is(model, path):
    """What somebody else might write, who does not look whether it can be opened."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(archive, "bare", lambda estimator: estimator)
        patch.setattr(archive, "check_readable", lambda archive: None)
        archive.save(model, path)


def repack(path, change, compression=zipfile.ZIP_STORED):
    """The archive with its members changed by a function from name and bytes to bytes."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, change(name, content))


def archive_of(content):
    archive = io.BytesIO(skops.io.dumps(content))
    with zipfile.ZipFile(archive, "a") as members:
        members.writestr("kpod.json", json.dumps({"format": "kpod model", "version": 1}))
    return archive.getvalue()


def test_what_is_saved_comes_back(model, path):
    loaded = archive.load(path)
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

    class Another(KPOD):
        pass

    with pytest.raises(TypeError, match="Only a KPOD can be saved"):
        save(Another(2).fit(WINE.data), tmp_path / "m.kpod")
    assert not (tmp_path / "m.kpod").exists()


def test_skops_opens_it_too(path):
    assert isinstance(skops.io.load(path, trusted=[schema.KPOD_CLASS])["pipeline"], Pipeline)


def test_a_model_of_0_1_0_still_opens(monkeypatch):
    written = Path(__file__).parents[1] / "data"
    table = pd.read_csv(written / "people-0.1.0.csv", dtype=str, keep_default_na=False)
    people = table.drop(columns="cluster").to_csv(index=False).encode()
    done = kpod(monkeypatch, "predict", written / "0.1.0.kpod", "-", "-q", stdin=people)
    assert done.out == (written / "people-0.1.0.csv").read_text()
    assert archive.load(written / "0.1.0.kpod").kpod_version == "0.1.0"


def test_the_file_does_not_grow_with_the_rows(model, path):
    """Labels are of the rows of the fit, which are nobody else's business."""
    assert not hasattr(archive.load(path).pipeline[-1], "labels_")
    assert hasattr(model.pipeline[-1], "labels_")


def test_it_can_be_reported_on_with_a_table(path):
    report = kpod_report(archive.load(path).pipeline, WINE.data)
    assert sum(cluster["rows"] for cluster in report.data["clusters"]) == len(WINE.data)


FOREIGN = {
    "a function": [("step", FunctionTransformer(random.shuffle))],
    "another estimator": [("step", PolynomialFeatures(9).fit(np.eye(13)))],
    "two scalers": [("one", StandardScaler().fit(WINE.data)), ("two", StandardScaler().fit(WINE.data))],
}


@pytest.mark.parametrize("steps", FOREIGN.values(), ids=FOREIGN)
def test_nothing_but_a_scaler_and_a_kpod_is_made(model, path, steps):
    other = Pipeline([*steps, ("kpod", model.pipeline[-1])])
    save_as_it_is(archive.Model(other, model.columns), path)
    with pytest.raises(InputError, match=r"holds .*, which a kpod model never contains; not opened"):
        archive.load(path)


def test_nothing_more_hangs_on_them(model, path):
    other = copy.deepcopy(model.pipeline)
    other[-1].callback = np.add
    save_as_it_is(archive.Model(other, model.columns), path)
    with pytest.raises(
        InputError, match=r"holds kpod._estimators.kpod.KPOD.callback, which a kpod model never"
    ):
        archive.load(path)
    other = Pipeline(model.pipeline.steps, memory="/tmp")
    path.write_bytes(archive_of({"pipeline": other, "columns": model.columns, "missing": []}))
    with pytest.raises(InputError, match="a pipeline with a memory"):
        archive.load(path)


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
    "a function to begin with": ("kpod", "init", lambda _: np.add),
    "losses like a table": ("kpod", "loss_curve_", lambda _: np.zeros((2, 2))),
    "losses without end": ("kpod", "loss_curve_", lambda _: np.zeros(1 << 18)),
    "an infinite loss": ("kpod", "inertia_", lambda _: np.inf),
    "half a column": ("kpod", "n_features_in_", lambda _: 6.5),
    "a scale of zero": ("scale", "scale_", one_in(0)),
    "a negative scale": ("scale", "scale_", one_in(-1)),
    "scales too short": ("scale", "scale_", lambda array: array[:1]),
    "a mean of infinity": ("scale", "mean_", one_in(np.inf)),
    "a mean that is missing": ("scale", "mean_", one_in(np.nan)),
    "columns of another table": ("scale", "n_features_in_", lambda p: p + 1),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_every_part_is_checked(model, path, name, monkeypatch):
    step, attribute, change = HOSTILE[name]
    other = copy.deepcopy(model.pipeline)
    setattr(other.named_steps[step], attribute, change(getattr(other.named_steps[step], attribute)))
    save_as_it_is(archive.Model(other, model.columns), path)
    done = kpod(monkeypatch, "predict", path, WINE.filename)
    assert done.code == 1
    assert "damaged" in done.err or "never contains" in done.err
    assert done.err.count("\n") == 1


MIXTURES = {
    "no variance": ("noise_variance_", lambda _: 0.0),
    "a variance of NaN": ("noise_variance_", lambda _: np.nan),
    "a variance of infinity": ("noise_variance_", lambda _: np.inf),
    "a negative share": ("cluster_shares_", lambda shares: shares * [1, 1, -1]),
    "shares that add up to 2": ("cluster_shares_", lambda shares: 2 * shares),
    "a share too many": ("cluster_shares_", lambda shares: np.append(shares, 0.0)),
    "a center of NaN": ("mixture_centers_", one_in(np.nan)),
    "centers too short": ("mixture_centers_", lambda centers: centers[:, :1]),
    "no centers": ("mixture_centers_", None),
}


@pytest.mark.parametrize("name", MIXTURES)
def test_the_mixture_is_checked(model, path, name):
    attribute, change = MIXTURES[name]
    kpod = KPOD(3, probability=True, random_state=0).fit(WINE.data)
    save_as_it_is(archive.Model(Pipeline([("kpod", kpod)]), model.columns), path)
    opened = archive.load(path).pipeline
    assert_array_equal(opened.predict_proba(WINE.data), kpod.predict_proba(WINE.data))
    if change is None:
        delattr(kpod, attribute)
    else:
        setattr(kpod, attribute, change(getattr(kpod, attribute)))
    save_as_it_is(archive.Model(Pipeline([("kpod", kpod)]), model.columns), path)
    with pytest.raises(InputError, match="damaged"):
        archive.load(path)


def test_as_many_clusters_as_columns(path):
    """What is of one length and what of the other must not be taken for each other."""
    data = np.column_stack([WINE.data[:, :2], np.full(len(WINE.data), np.nan)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kpod = KPOD(3, probability=True, n_init=3, random_state=0).fit(data)
    kpod.cluster_shares_[2] = np.nan
    save_as_it_is(archive.Model(Pipeline([("kpod", kpod)]), ["a", "b", "c"]), path)
    with pytest.raises(InputError, match="cluster_shares_ holds nan"):
        archive.load(path)


def test_a_column_of_nothing_may_be_missing_throughout(path):
    data = np.column_stack([WINE.data, np.full(len(WINE.data), np.nan)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline = Pipeline([("scale", StandardScaler()), ("kpod", KPOD(3, random_state=0))]).fit(data)
    archive.save(archive.Model(pipeline, [*WINE.feature_names, "nothing"]), path)
    assert_array_equal(archive.load(path).pipeline.predict(data), pipeline.predict(data))


@pytest.mark.parametrize("attribute", ["column_means_", "counts_", "n_features_in_", "tol"])
def test_a_part_that_is_not_there(model, path, attribute):
    other = copy.deepcopy(model.pipeline)
    delattr(other[-1], attribute)
    content = {"pipeline": other, "columns": model.columns, "missing": []}
    path.write_bytes(archive_of(content))
    with pytest.raises(InputError, match=f"damaged \\({attribute} is missing"):
        archive.load(path)


def test_what_later_versions_keep(model, path):
    """Attributes that are listed and may be lacking: read if there, of the shape they should have."""
    other = copy.deepcopy(model.pipeline)
    other[-1]._shift, other[-1]._scale = np.arange(13.0), 0.5
    archive.save(archive.Model(other, model.columns), path)
    kept = archive.load(path).pipeline[-1]
    assert_array_equal(kept._shift, np.arange(13.0))
    assert kept._scale == 0.5
    for wrong in ({"_shift": np.arange(12.0)}, {"_scale": -1.0}, {"_scale": np.ones(2)}, {"_shift": 0.0}):
        vars(other[-1]).update({"_shift": np.arange(13.0), "_scale": 0.5} | wrong)
        save_as_it_is(archive.Model(other, model.columns), path)
        with pytest.raises(InputError, match="damaged"):
            archive.load(path)


def test_one_thread_is_a_number_of_threads(model, path):
    other = copy.deepcopy(model.pipeline).set_params(kpod__n_threads=1)
    archive.save(archive.Model(other, model.columns), path)
    assert archive.load(path).pipeline[-1].n_threads == 1


@pytest.mark.parametrize("content", [b"[1]", b"{}", b"{", b"9e9999"])
def test_a_setting_that_is_not_one_value(path, content):
    """As skops would never write it."""
    repack(path, lambda _, member: member.replace(b'"content": "0.0001"', b'"content": "' + content + b'"'))
    with pytest.raises(InputError, match="damaged"):
        archive.load(path)


def test_a_part_that_is_there_twice(path):
    with warnings.catch_warnings(), zipfile.ZipFile(path, "a") as file:
        warnings.simplefilter("ignore")
        file.writestr("schema.json", b"{}")
    with pytest.raises(InputError, match="a part appears twice"):
        archive.load(path)


def peak_of_loading(path):
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as raised:
            archive.load(path)
        return tracemalloc.get_traced_memory()[1], str(raised.value)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["kpod.json", "schema.json"])
@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_small_file_does_not_unpack_to_a_large_one(path, name, compression):
    bomb = b'{"format": "kpod model", "version": 1, "x": [' + b"[]," * 10_000_000 + b"[]]}"
    repack(path, lambda member, content: bomb if member == name else content, compression)
    peak, message = peak_of_loading(path)
    assert peak < 2_000_000
    assert ("compressed" if compression else "longer than") in message


def test_labels_of_an_old_model_are_not_unpacked(path):
    other = copy.deepcopy(archive.load(path).pipeline)
    other[-1].labels_ = np.zeros(5_000_000, np.int32)
    path.write_bytes(archive_of({"pipeline": other, "columns": WINE.feature_names, "missing": []}))
    tracemalloc.start()
    archive.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000


def test_an_array_that_claims_more_than_it_holds_takes_no_room(path):
    about = io.BytesIO()
    claimed = {"shape": (3, 10**13), "fortran_order": False, "descr": "<f8"}
    np.lib.format.write_array_header_1_0(about, claimed)
    repack(
        path, lambda _, content: about.getvalue() + content[-312:] if b"(3, 13)" in content[:128] else content
    )
    peak, message = peak_of_loading(path)
    assert "an array whose length does not match its header" in message
    assert peak < 2_000_000


def test_many_columns_have_room_for_their_names(path):
    names = [f"a rather long name of a column, as surveys have them ({j})" for j in range(20_000)]
    data = np.random.default_rng(0).normal(size=(4, len(names)))
    archive.save(archive.Model(Pipeline([("kpod", KPOD(1, n_init=1).fit(data))]), names), path)
    assert archive.load(path).columns == names


def test_a_pickle_is_not_opened(tmp_path):
    class Harm:
        def __reduce__(self):
            return (pytest.fail, ("it was run",))

    (tmp_path / "m.kpod").write_bytes(pickle.dumps(Harm()))
    with pytest.raises(InputError, match="not a kpod model"):
        archive.load(tmp_path / "m.kpod")


def test_a_newer_one_is_refused(path):
    header = {"format": "kpod model", "version": 3, "kpod": "9.0"}
    repack(path, lambda name, content: json.dumps(header) if name == "kpod.json" else content)
    with pytest.raises(InputError, match=r"written by a newer version of kpod \(9.0; this is .*\); upgrade"):
        archive.load(path)


def test_other_archives_are_refused(path, tmp_path, model):
    skops.io.dump({"a": 1}, tmp_path / "plain.skops")
    with pytest.raises(InputError, match="not a kpod model"):
        archive.load(tmp_path / "plain.skops")
    for content in (
        {"pipeline": KMeans(2).fit(np.eye(4)), "columns": list("abcd"), "missing": []},
        {"pipeline": model.pipeline, "columns": ["one"], "missing": []},
        {"pipeline": model.pipeline, "columns": list(range(13)), "missing": []},
        {"pipeline": model.pipeline, "columns": ["same"] * 13, "missing": []},
        {"pipeline": Pipeline([("kpod", KPOD(3))]), "columns": ["a"], "missing": []},
        {"columns": []},
        [1, 2],
    ):
        path.write_bytes(archive_of(content))
        with pytest.raises(InputError, match=r"damaged|never contains"):
            archive.load(path)


def test_damage_anywhere_is_one_line_or_harmless(model, path, rng):
    """Flipped bytes and cut ends: refused, or the model as it was; never another exception."""
    whole = path.read_bytes()
    expected = model.pipeline.predict(WINE.data)
    for _ in range(60):
        data = bytearray(whole)
        if rng.random() < 0.3:
            data = data[: rng.integers(len(data))]
        else:
            data[rng.integers(len(data))] ^= 1 << rng.integers(8)
        path.write_bytes(data)
        try:
            loaded = archive.load(path)
        except InputError as error:
            assert "\n" not in str(error)
        else:
            assert_array_equal(loaded.pipeline.predict(WINE.data), expected)


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
        lambda X: Pipeline([("e", TableEncoder()), ("k", KPOD(2, random_state=0))]).fit(X * 1e140),
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
