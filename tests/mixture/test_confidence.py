"""How sure: predict_proba, the columns of the command line, and what the report says of rows and starts."""

import io
import json
import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kpod
from kpod import KPOD
from kpod._common.sentences.formatting import best_found, starts_text
from kpod.missingness import mcar
from tests.helpers.command import kpod as command
from tests.helpers.tables import as_csr, clustered


def brute_force(model, X):
    """The posterior, a row and a cluster at a time."""
    out = np.empty((len(X), model.n_clusters_))
    for i, row in enumerate(X):
        seen = ~np.isnan(row)
        for c in range(model.n_clusters_):
            distance = ((row[seen] - model.mixture_centers_[c, seen]) ** 2).sum()
            out[i, c] = np.log(model.cluster_shares_[c]) - distance / (2 * model.noise_variance_)
    out = np.exp(out - out.max(axis=1, keepdims=True))
    return out / out.sum(axis=1, keepdims=True)


def test_it_is_the_posterior_and_rows_sum_to_one(rng, dtype):
    X, _ = clustered(rng, missing=0.4, dtype=dtype)
    model = KPOD(5, probability=True, random_state=0).fit(X)
    new = mcar(clustered(rng, missing=0)[0], 0.7, rng).astype(dtype)
    new[0] = np.nan
    found = model.predict_proba(new)
    assert_allclose(found.sum(axis=1), 1)
    assert_allclose(found, brute_force(model, new.astype(float)), rtol=1e-6, atol=1e-9)
    assert_allclose(found[0], model.cluster_shares_)
    assert_allclose(model.cluster_shares_.sum(), 1)


def test_it_is_not_there_unless_asked_for(rng):
    X, _ = clustered(rng)
    model = KPOD(5, random_state=0).fit(X)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(NotFittedError):
        KPOD(5, probability=True).predict_proba(X)
    asked = model.set_params(probability=True).fit(X)
    assert asked.predict_proba(X).shape == (300, 5)
    plain = asked.set_params(probability=False).fit(X)
    assert not hasattr(plain, "mixture_centers_"), "of another fit"


def test_clustering_is_the_same_with_and_without(rng):
    X, _ = clustered(rng)
    one, other = (KPOD(5, probability=p, random_state=0).fit(X) for p in (False, True))
    assert_array_equal(one.labels_, other.labels_)
    assert_array_equal(one.cluster_centers_, other.cluster_centers_)


def test_sparse_tables_get_the_same(rng):
    X, _ = clustered(rng, missing=0.6)
    dense, csr = (KPOD(5, probability=True, random_state=0).fit(table) for table in (X, as_csr(X)))
    assert_allclose(csr.mixture_centers_, dense.mixture_centers_, rtol=1e-6)
    assert_allclose(csr.predict_proba(as_csr(X)), dense.predict_proba(X), atol=1e-6)


def test_rows_without_weight_do_not_matter_and_rows_with_nothing_get_the_shares(rng):
    X, _ = clustered(rng)
    more = np.vstack([X, 100 * rng.normal(size=(20, 8)), np.full((2, 8), np.nan)])
    weights = np.r_[np.ones(300), np.zeros(20), np.ones(2)]
    plain = KPOD(5, probability=True, random_state=0).fit(X)
    with pytest.warns(UserWarning, match="2 of 322 rows have nothing observed"):
        weighted = KPOD(5, probability=True, random_state=0).fit(more, sample_weight=weights)
    order = linear_sum_assignment(
        ((plain.cluster_centers_[:, None] - weighted.cluster_centers_[None]) ** 2).sum(axis=2)
    )[1]
    if np.allclose(plain.cluster_centers_, weighted.cluster_centers_[order], atol=1e-6):  # the same optimum
        assert_allclose(weighted.mixture_centers_[order], plain.mixture_centers_, atol=1e-4)
        assert_allclose(weighted.noise_variance_, plain.noise_variance_, rtol=1e-4)
    assert_array_equal(weighted.labels_[-2:], [-1, -1])
    assert_allclose(weighted.predict_proba(more)[-2:], np.tile(weighted.cluster_shares_, (2, 1)))


def test_probabilities_are_right_as_often_as_they_say(rng):
    """Two clusters that overlap: of the rows at 60 to 70 %, about 65 % are right, and so on."""
    truth = rng.choice(2, p=[0.7, 0.3], size=4000)
    X = mcar(1.2 * truth[:, None] + rng.normal(size=(4000, 6)), 0.3, rng)
    X[np.isnan(X).all(axis=1), 0] = 0.0
    model = KPOD(2, probability=True, random_state=0).fit(X)
    large = model.cluster_shares_.argmax()
    of_small = model.predict_proba(X)[:, 1 - large]
    tenth = np.minimum((10 * of_small).astype(int), 9)
    gaps = [
        (tenth == b).mean() * abs(of_small[tenth == b].mean() - truth[tenth == b].mean())
        for b in np.unique(tenth)
    ]
    assert sum(gaps) < 0.03
    assert abs(model.cluster_shares_.max() - 0.7) < 0.06


def test_models_in_files_keep_their_probabilities(rng, tmp_path):
    X, _ = clustered(rng)
    model = make_pipeline(StandardScaler(), KPOD(5, probability=True, random_state=0)).fit(X)
    kpod.save(model, tmp_path / "m.kpod")
    opened = kpod.load(tmp_path / "m.kpod")
    assert_array_equal(opened.predict_proba(X), model.predict_proba(X))
    assert_array_equal(opened[-1].mixture_centers_, model[-1].mixture_centers_)


# On the command line


@pytest.fixture
def table(tmp_path):
    """Two overlapping clusters of different size, a row between them, a row with nothing."""
    rng = np.random.default_rng(0)
    truth = rng.choice(2, p=[0.8, 0.2], size=200)
    X = 2.5 * truth[:, None] + rng.normal(size=(200, 4))
    X[5], X[7] = np.nan, 1.3
    path = tmp_path / "data.csv"
    pd.DataFrame(X, columns=list("abcd")).to_csv(path, index=False)
    return path


def test_columns_say_how_sure(monkeypatch, table, tmp_path):
    model = tmp_path / "m.kpod"
    done = command(monkeypatch, "fit", table, "-k", 2, "--confidence", "--model", model)
    assert done.code == 0
    out = pd.read_csv(io.StringIO(done.out))
    assert list(out.columns) == ["a", "b", "c", "d", "cluster", "confidence", "second"]
    assert out["confidence"].isna().tolist() == (out["cluster"] < 0).tolist()
    placed = out[out["cluster"] >= 0]
    assert (placed["second"] == 1 - placed["cluster"]).all()
    assert out["second"].isna()[5]
    fitted = kpod.load(model)
    assert fitted[-1].cluster_shares_[0] > fitted[-1].cluster_shares_[1], "numbered by size, shares too"
    probabilities = fitted.predict_proba(out[list("abcd")])
    rows = placed.index.to_numpy()
    assert_allclose(placed["confidence"], probabilities[rows, placed["cluster"]], atol=1e-4)
    again = command(monkeypatch, "predict", model, table, "--confidence")
    assert again.out == done.out
    assert "confidence" not in command(monkeypatch, "predict", model, table).out


def test_where_another_cluster_is_more_probable_that_is_said(monkeypatch, table, tmp_path):
    done = command(monkeypatch, "fit", table, "-k", 2, "--confidence", "--json", "-o", tmp_path / "o.csv")
    about = json.loads(done.out)["confidence"]
    out = pd.read_csv(tmp_path / "o.csv")
    assert about["another_more_probable"] == (out["confidence"] < 0.5).sum() > 0
    of_another = out["confidence"] <= 0.4  # which that one is sure of
    assert of_another.any()
    assert about["unplaceable"] == ((out["confidence"] < 0.6) & ~of_another).sum() > 0
    assert about["sentences"][1].startswith(
        f"{about['another_more_probable']} rows belong more probably to another cluster"
    )
    assert "cannot be assigned with confidence" in about["sentences"][2]
    told = re.search(
        r"rows? (\d+) \(in cluster (\d), (\d+)%; (?:more likely|or else) cluster", about["sentences"][2]
    )
    row, cluster, share = map(int, told.groups())
    assert out["cluster"][row - 1] == cluster
    assert abs(100 * out["confidence"][row - 1] - share) <= 1
    assert not [c for c in json.loads(done.out)["cautions"] if "contradict" in c["title"]]


def test_a_cluster_that_the_probabilities_contradict_is_the_first_caution(monkeypatch, tmp_path):
    rng = np.random.default_rng(0)
    trend, tails = (
        rng.normal(size=(400, 1)) + rng.normal(size=(400, 2)),
        rng.lognormal(sigma=1.2, size=(400, 2)),
    )
    pd.DataFrame(np.hstack([trend, tails]), columns=list("abcd")).to_csv(tmp_path / "d.csv", index=False)
    done = command(
        monkeypatch, "fit", tmp_path / "d.csv", "-k", 3, "--shape", "round", "--confidence", "--json",
        "-o", tmp_path / "o.csv",
    )  # fmt: skip
    out = pd.read_csv(tmp_path / "o.csv")
    of_cluster = out[out["cluster"] == 2]
    moved = of_cluster[of_cluster["confidence"] < 0.5]
    first = json.loads(done.out)["cautions"][0]
    assert first["title"] == "The probabilities contradict cluster 2"
    assert first["text"].startswith(
        f"{len(moved)} of the {len(of_cluster)} rows of cluster 2 belong more probably to another cluster "
        f"(mostly {moved['second'].mode()[0]:.0f})."
    )


def test_the_report_names_rows_that_cannot_be_assigned_with_confidence(monkeypatch, table, tmp_path):
    report = tmp_path / "r.html"
    done = command(monkeypatch, "fit", table, "-k", 2, "--report", report, "-o", tmp_path / "o.csv")
    assert done.code == 0
    page = report.read_text()
    assert "cannot be assigned with confidence (no cluster reaches 60%)" in page
    assert "clusters are stable in 50 resampled tables" in page or "resampled tables" in page
    assert "The best loss was found in" in page
    assert "confidence" not in (tmp_path / "o.csv").read_text()


def test_names_that_are_taken_and_models_without(monkeypatch, table, tmp_path):
    frame = pd.read_csv(table).rename(columns={"d": "second"})
    frame.to_csv(tmp_path / "taken.csv", index=False)
    done = command(monkeypatch, "fit", tmp_path / "taken.csv", "-k", 2, "--confidence")
    assert done.code == 1
    assert "already has a column 'second'; choose another name with --label" in done.err
    done = command(
        monkeypatch, "fit", tmp_path / "taken.csv", "-k", 2, "--confidence", "--label", "group", "-q"
    )
    assert done.out.splitlines()[0].endswith("group,group_confidence,group_second")
    model = tmp_path / "m.kpod"
    command(monkeypatch, "fit", table, "-k", 2, "--model", model, "-o", tmp_path / "o.csv")
    done = command(monkeypatch, "predict", model, table, "--confidence")
    assert done.code == 1
    assert "m.kpod: no probabilities in this model; fit it again with kpod fit --confidence" in done.err


# Starts


def test_how_often_the_best_loss_was_found():
    assert best_found([3.0, 1.0, 1.0 + 1e-9, 2.0]) == 2
    assert starts_text([3.0, 1.0, 1.0]) == "The best loss was found in 2 of 3 starts."
    assert starts_text([1.0]) == ""
    assert starts_text([0.0, 0.0]) == "The best loss was found in 2 of 2 starts."


def test_verbose_and_json_say_it(monkeypatch, rng, capsys, table, tmp_path):
    X, _ = clustered(rng)
    model = KPOD(5, random_state=0, verbose=1).fit(X)
    assert capsys.readouterr().out.splitlines()[-1] == starts_text(model.losses_)
    done = command(monkeypatch, "fit", table, "-k", 2, "--json", "--starts", 4, "-o", tmp_path / "o.csv")
    starts = json.loads(done.out)["starts"]
    assert starts["starts"] == 4
    assert starts["sentence"] == f"The best loss was found in {starts['found_best']} of 4 starts."
    one = command(monkeypatch, "fit", table, "-k", 2, "--starts", 1)
    assert "best loss" not in one.err


def test_starts_that_disagree_are_a_caution(rng):
    X, _ = clustered(rng)
    model = KPOD(5, random_state=0).fit(X)
    model.losses_ = np.array([100.0, 102.0, 103.0])
    said = {c["title"]: c["text"] for c in kpod.report(model, X).data["cautions"]}
    assert said["Starts disagree"].startswith(
        "The best loss was found in 1 of 3 starts; the next is 2% higher."
    )
    model.losses_ = np.array([100.0, 100.05, 103.0])
    assert "Starts disagree" not in {c["title"] for c in kpod.report(model, X).data["cautions"]}


def test_stability_on_request(monkeypatch, table, tmp_path):
    done = command(monkeypatch, "fit", table, "-k", 2, "--stability", "--json", "-o", tmp_path / "o.csv")
    about = json.loads(done.out)["stability"]
    assert len(about["jaccard"]) == 2
    assert "in 50 resampled tables" in about["sentence"]
    assert "stability" not in json.loads(
        command(monkeypatch, "fit", table, "-k", 2, "--json", "-o", tmp_path / "o2.csv").out
    )
