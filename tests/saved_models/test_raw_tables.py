"""Models that were made in Python take the command line's tables as `kpod.load` takes arrays."""

import io

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kpod
from tests.helpers.command import kpod as run
from tests.helpers.tables import clustered


@pytest.mark.parametrize(
    "scaler",
    [
        None,
        StandardScaler(),
        StandardScaler(with_mean=False),
        StandardScaler(with_std=False),
        kpod.ObservedScaler(),
        kpod.ObservedScaler(rows="center"),
    ],
    ids=str,
)
def test_the_command_line_applies_what_comes_before_the_model(scaler, rng, monkeypatch, tmp_path):
    X, _ = clustered(rng, 80, 4, k=2, missing=0.2)
    X = X + 20 * rng.normal(size=(80, 1))  # which rows="center" takes off
    X[np.isnan(X).all(axis=1), 0] = 1.0
    frame = pd.DataFrame(X, columns=list("abcd"))
    kmeans = kpod.KPOD(2, random_state=0)
    model = (kmeans if scaler is None else make_pipeline(scaler, kmeans)).fit(frame)
    kpod.save(model, tmp_path / "m.kpod")
    frame.to_csv(tmp_path / "t.csv", index=False)
    done = run(monkeypatch, "predict", tmp_path / "m.kpod", tmp_path / "t.csv", "-q")
    assert done.code == 0, done.err
    assert_array_equal(pd.read_csv(io.StringIO(done.out))["cluster"], model.predict(frame))
    in_pieces = ["--scratch", tmp_path, "-q"]
    done = run(monkeypatch, "predict", tmp_path / "m.kpod", tmp_path / "t.csv", *in_pieces)
    assert done.code == 0, done.err
    assert_array_equal(pd.read_csv(io.StringIO(done.out))["cluster"], model.predict(frame))
    done = run(monkeypatch, "impute", tmp_path / "m.kpod", tmp_path / "t.csv", "-q")
    assert done.code == 0, done.err
    filled = pd.read_csv(io.StringIO(done.out)).to_numpy()
    complete = np.asarray(kmeans.impute(frame if scaler is None else scaler.transform(frame)))
    expected = complete if scaler is None else scaler.inverse_transform(complete)
    assert_allclose(filled[np.isnan(X)], expected[np.isnan(X)], rtol=1e-3)
