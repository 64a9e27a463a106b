"""The command line and Python give the same answer on the same table: decided once, fitted once."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from kpod import KPOD, ObservedScaler, choose_k
from kpod._engine.fit import Fit
from kpod._estimators.choices import Choices
from tests.conftest import FIRST_SEED
from tests.helpers.command import kpod
from tests.helpers.tables import clustered


def gappy(seed):
    """A small table of two to four groups, whose gaps may have something to do with them."""
    rng = np.random.default_rng((FIRST_SEED, seed))
    k = int(rng.integers(2, 5))
    X, truth = clustered(rng, int(rng.integers(30, 50)), 4, k, 0.0, rng.uniform(0.3, 0.9))
    rates = rng.uniform(0, 0.7, size=(k, X.shape[1]))[truth]
    gaps = rng.random(X.shape) < (rates if seed % 4 else 0.2)
    gaps[:, 0] = False
    return np.where(gaps, np.nan, X)


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """Tables as small as these are no quicker with several."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def write(path, X):
    columns = {f"v{j}": pa.array(values, from_pandas=True) for j, values in enumerate(X.T)}
    pa.csv.write_csv(pa.table(columns), path)


def summary_of(model):
    """What is said about the gaps, where that was decided."""
    return str(model.missingness_decision_) if hasattr(model, "missingness_decision_") else None


def python_model(X, numbers, missingness, seed):
    prepared = ObservedScaler().fit_transform(X)
    estimator = KPOD(n_clusters="auto", missingness=missingness, random_state=seed)
    if numbers == "auto":
        return estimator.fit(prepared)
    low, high = map(int, numbers.split("-"))
    return choose_k(prepared, range(low, high + 1), estimator=estimator).model_


@pytest.mark.filterwarnings("ignore:No clear choice")
@pytest.mark.parametrize("seed", range(8))  # of the first 20, four differed when it was decided twice
def test_command_line_and_python_agree(monkeypatch, tmp_path, seed):
    X = gappy(seed)
    numbers = "auto" if seed == 7 else "1-3"
    missingness = "ignore" if seed % 7 == 0 else "auto"
    write(tmp_path / "t.csv", X)
    options = ["-k", numbers, "--missingness", missingness, "--seed", seed]
    paths = ["-o", tmp_path / "out.csv", "--centers", tmp_path / "centers.csv"]
    result = kpod(monkeypatch, "fit", tmp_path / "t.csv", *options, *paths, "--json")
    assert result.code == 0, result.err
    summary = json.loads(result.out)
    model = python_model(X, numbers, missingness, seed)
    assert summary["settings"]["clusters"] == model.n_clusters_
    assert summary.get("missingness") == summary_of(model)
    found = pa.csv.read_csv(tmp_path / "out.csv")["cluster"].to_numpy()
    np.testing.assert_array_equal(found, model.labels_)
    centers = ObservedScaler().fit(X).inverse_transform(model.cluster_centers_)
    centers = np.where(model.counts_ > 0, centers, np.nan)
    written = pa.csv.read_csv(tmp_path / "centers.csv")
    for j in range(X.shape[1]):
        np.testing.assert_array_equal(written[f"v{j}"].to_numpy(), centers[:, j])


@pytest.mark.parametrize(("command", "numbers"), [("fit", "3"), ("fit", "1-3"), ("choose-k", "1-3")])
def test_whole_table_is_fitted_once(monkeypatch, tmp_path, command, numbers):
    X = gappy(1)
    write(tmp_path / "t.csv", X)
    decided, fitted = [], []
    decide, solve = Choices.decide, Fit.solve

    def counted_decide(self):
        found = decide(self)
        decided.append(found.plan)
        return found

    def counted_solve(self):
        if self.table.n_rows == len(X) and self.table.blocks[0].hidden is None and self.plan.n_starts is None:
            fitted.append((self.plan.n_clusters, self.plan.gaps, self.table.variances.tolist()))
        return solve(self)

    monkeypatch.setattr(Choices, "decide", counted_decide)
    monkeypatch.setattr(Fit, "solve", counted_solve)
    options = (
        ["--missingness", "auto", "--no-verdict", "-o", tmp_path / "out.csv"] if command == "fit" else []
    )
    report = ["--report", tmp_path / "report.html"]
    result = kpod(monkeypatch, command, tmp_path / "t.csv", "-k", numbers, *options, *report)
    assert result.code == 0, result.err
    first, *others = decided
    assert not others or command == "choose-k", (
        "which fits a table with clipped values, to look for long tails"
    )
    *_, variances = fitted[0]
    assert fitted.count((first.n_clusters, first.gaps, variances)) == 1


def test_choose_k_shows_warnings_once(monkeypatch, tmp_path):
    """As `kpod fit` does: rows and columns with nothing observed, for example."""
    X = gappy(3)
    X[4] = np.nan
    write(tmp_path / "t.csv", X)
    said = "1 row (row 5) with nothing observed could not be assigned"
    result = kpod(monkeypatch, "choose-k", tmp_path / "t.csv", "-k", "1-2")
    assert result.code == 0, result.err
    assert result.out.count(said) == 1
    result = kpod(monkeypatch, "choose-k", tmp_path / "t.csv", "-k", "1-2", "--json")
    assert [said in note["text"] for note in json.loads(result.out)["notes"]] == [True]
