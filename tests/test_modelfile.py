"""Model files: safe to open, and refused in one line where they are not ours."""

import io
import json
import pickle
import random
import zipfile

import numpy as np
import pytest
import skops.io
from numpy.testing import assert_array_equal
from sklearn.cluster import KMeans
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from kpod import KPOD
from kpod._io import modelfile
from kpod._io.files import InputError
from kpod.datasets import load_incomplete_wine

WINE = load_incomplete_wine()


@pytest.fixture(scope="module")
def model():
    pipeline = Pipeline([("scale", StandardScaler()), ("kpod", KPOD(3, random_state=0))]).fit(WINE.data)
    return modelfile.Model(pipeline, WINE.feature_names, ["-9"])


@pytest.fixture
def path(model, tmp_path):
    modelfile.save(model, tmp_path / "m.kpod")
    return tmp_path / "m.kpod"


def repack(path, change):
    """The archive with its members changed by a function from name and bytes to bytes."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, change(name, content))


def test_what_is_saved_comes_back(model, path):
    loaded = modelfile.load(path)
    assert_array_equal(loaded.pipeline.predict(WINE.data), model.pipeline.predict(WINE.data))
    assert loaded.pipeline[-1].get_params() == model.pipeline[-1].get_params()
    assert (loaded.columns, loaded.missing) == (model.columns, model.missing)


def test_skops_opens_it_too(path):
    assert isinstance(skops.io.load(path, trusted=modelfile.TRUSTED)["pipeline"], Pipeline)


def test_nothing_but_listed_types_is_made(model, tmp_path, monkeypatch):
    """A function in the pipeline would be imported and called: it is named, and not opened."""
    step = FunctionTransformer(random.shuffle)
    other = Pipeline([("step", step), ("kpod", model.pipeline[-1])])
    modelfile.save(modelfile.Model(other, model.columns), tmp_path / "m.kpod")
    monkeypatch.setattr(skops.io, "load", lambda *_, **__: pytest.fail("it was opened"))
    with pytest.raises(InputError, match=r"holds random.* which is no part of a kpod model; not opened"):
        modelfile.load(tmp_path / "m.kpod")


def test_a_pickle_is_not_opened(tmp_path):
    class Harm:
        def __reduce__(self):
            return (pytest.fail, ("it was run",))

    (tmp_path / "m.kpod").write_bytes(pickle.dumps(Harm()))
    with pytest.raises(InputError, match="is not a kpod model"):
        modelfile.load(tmp_path / "m.kpod")


def test_a_newer_one_is_refused(path):
    header = {"format": "kpod model", "version": 2, "kpod": "9.0"}
    repack(path, lambda name, content: json.dumps(header) if name == "kpod.json" else content)
    with pytest.raises(InputError, match=r"was written by a newer kpod \(9.0\).*upgrade"):
        modelfile.load(path)


def test_other_archives_are_refused(path, tmp_path, model):
    skops.io.dump({"a": 1}, tmp_path / "plain.skops")
    with pytest.raises(InputError, match="is not a kpod model"):
        modelfile.load(tmp_path / "plain.skops")
    for content in (
        {"pipeline": KMeans(2).fit(np.eye(4)), "columns": list("abcd"), "missing": []},
        {"pipeline": model.pipeline, "columns": ["one"], "missing": []},
        {"pipeline": model.pipeline, "columns": [1] * 13, "missing": []},
        {"pipeline": Pipeline([("kpod", KPOD(3))]), "columns": ["a"], "missing": []},
        {"columns": []},
        [1, 2],
    ):
        archive = io.BytesIO(skops.io.dumps(content))
        with zipfile.ZipFile(archive, "a") as members:
            members.writestr("kpod.json", json.dumps({"format": "kpod model", "version": 1}))
        path.write_bytes(archive.getvalue())
        with pytest.raises(InputError, match="is damaged"):
            modelfile.load(path)


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
            loaded = modelfile.load(path)
        except InputError as error:
            assert "\n" not in str(error)
        else:
            assert_array_equal(loaded.pipeline.predict(WINE.data), expected)
