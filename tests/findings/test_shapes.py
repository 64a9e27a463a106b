"""The shape of the clusters: chosen, said why, and handed out."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal, multivariate_t
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline

from kpod import KPOD, GaussianMixture, ObservedScaler, analyze, choose_k
from kpod._analysis.analyze import fitted
from kpod._common.progress import no_progress
from kpod._findings.cluster_shapes import choose_shape
from kpod._findings.shape_comparison import Compared, between
from kpod._mixture.em.mixture_parameters import Parameters
from kpod._mixture.tails import distances, gain_of_tails, round_with_tails
from kpod._model_selection.separation import n_apart_in_shape
from tests.helpers.command import kpod
from tests.helpers.tables import as_csr


def ridges(rng, n=200, missing=0.1):
    """Two parallel ridges, which k-means cuts across, with a third column that tells them apart."""
    side = np.arange(n) % 2
    along = rng.normal(size=n)
    X = np.column_stack([4 * along, 4 * along + 3 * side, 2 * side]) + 0.4 * rng.normal(size=(n, 3))
    X[rng.random(X.shape) < missing] = np.nan
    X[np.isnan(X).all(axis=1), 2] = 0.0
    return X, side


def own_scales(rng, n=500):
    """Round groups of rows with scales of their own, which no Gaussian fits."""
    y = rng.integers(3, size=n)
    X = 3 * np.kron(np.eye(3), np.ones(2))[y] + rng.normal(size=(n, 6)) / np.sqrt(rng.gamma(1, 1, (n, 1)))
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, y


def test_stretched_groups_are_handed_out_as_a_mixture(rng):
    X, side = ridges(rng)
    choice = choose_k(X, [2], shape="auto", random_state=0)
    model, about = choice.model_, choice.shape_
    assert isinstance(model, GaussianMixture)
    assert adjusted_rand_score(side, model.labels_) > 0.8
    assert (about.reason_, about.shape_) == ("better", about.compared_)
    round_model = KPOD(2, random_state=0).fit(X)
    assert about.agreement_ == adjusted_rand_score(round_model.labels_, model.labels_)
    assert_array_equal(about.table_.sum(axis=1), np.bincount(round_model.labels_))
    assert_array_equal(about.table_.sum(axis=0), np.bincount(model.labels_))
    assert about.columns_ == ([2], [0, 1])
    assert about.sentence_.startswith("The clusters are not round: ")
    assert about.sentence_ in str(choice)
    sizes = " and ".join(map(str, np.sort(np.bincount(round_model.labels_))[::-1]))
    assert f"Round clusters would group the rows differently: sizes {sizes} instead of" in about.sentence_


def test_without_the_word_clusters_are_round_and_the_sentence_says_where_to_get_others():
    X = load_iris().data.copy()
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    X[np.isnan(X).all(axis=1), 0] = 5.0
    X = ObservedScaler().fit_transform(X)
    plain, shaped = (choose_k(X, [2, 3], shape=shape, random_state=0) for shape in ("round", "auto"))
    assert plain.shape_ is None
    assert isinstance(plain.model_, KPOD)
    assert "`kpod.choose_k` with shape='auto' compares other shapes." in plain.sentence_
    assert "compares other shapes" not in shaped.sentence_
    assert plain.best_k_ == shaped.best_k_ == 3
    truth = load_iris().target
    assert adjusted_rand_score(truth, shaped.model_.labels_) > 0.75
    assert adjusted_rand_score(truth, plain.model_.labels_) < 0.7


def test_rows_with_scales_of_their_own_stay_round(rng):
    X, _ = own_scales(rng)
    model = KPOD(3, random_state=0).fit(X)
    found, about = choose_shape(X, model, "auto")
    assert found is model
    assert about.shape_ == "round"
    assert about.reason_ == "rows with scales of their own"
    assert about.degrees_ < 5
    assert about.bics_["round, heavy tails"] < about.bics_[about.compared_] < about.bics_["round"]
    assert "round clusters with heavy tails fit better" in about.sentence_


def test_a_shape_that_is_asked_for_is_handed_out(rng):
    X, _ = ridges(rng)
    names = ["a", "b", "c"]
    pipeline = make_pipeline(ObservedScaler(), KPOD())
    choice = choose_k(X, [2], shape="diag", estimator=pipeline, random_state=0)
    assert choice.model_[-1].covariance_type == choice.model_[-1].covariance_type_ == "diag"
    assert choice.shape_.reason_ == "asked for"
    kpod = KPOD(2, random_state=0).fit(X)
    _, about = choose_shape(as_csr(X), kpod, "tied")
    assert about.columns_ == ([], [])
    _, about = choose_shape(X, kpod, "tied", names=names)
    assert set(about.columns_[1]) <= set(names)
    with pytest.raises(ValueError, match="shape must be 'round', 'auto' or one of"):
        choose_k(X, [2], shape="oval")


def test_weights_are_repetition(rng):
    X, _ = ridges(rng, 120)
    times = rng.integers(1, 3, size=len(X))
    many = np.repeat(X, times, axis=0)
    kpod = KPOD(2, random_state=0)
    _, weighted = choose_shape(X, kpod.fit(X, sample_weight=times), "auto", times)
    _, repeated = choose_shape(many, kpod.fit(many), "auto")
    assert weighted.reason_ == repeated.reason_
    assert_allclose(list(weighted.bics_.values()), list(repeated.bics_.values()), rtol=0.02)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (as_csr, "sparse"),
        (lambda X: np.column_stack([X, X[:, 0] > 0, X[:, 0] <= 0]), "categories"),
        (lambda X: np.hstack([X] * 67), "many columns"),
    ],
)
def test_what_is_not_compared_stays_round_and_that_is_said(make, reason, rng):
    table = make(ridges(rng, missing=0.0)[0])
    model = KPOD(2, random_state=0).fit(table)
    found, about = choose_shape(table, model, "auto")
    assert found is model
    assert about.reason_ == reason
    assert about.sentence_.startswith("Round clusters were kept: ")
    assert np.isnan(about.agreement_)
    if reason == "categories":
        with pytest.raises(ValueError, match="categories, whose indicators no Gaussian fits"):
            choose_shape(table, model, "full")


def test_one_cluster_has_no_shape(rng):
    X = rng.normal(size=(60, 3))
    assert choose_k(X, [1], shape="auto", random_state=0).shape_.reason_ == "one cluster"


def test_distances_and_what_a_t_density_adds(rng):
    X = rng.normal(size=(200, 4)) @ rng.normal(size=(4, 4))
    X[rng.random(X.shape) < 0.3] = np.nan
    X[np.isnan(X).all(axis=1), 0] = 1.0
    whole = np.cov(rng.normal(size=(4, 50)))[None]
    one = Parameters(np.ones(1), rng.normal(size=(1, 4)), np.ones((1, 4)), np.zeros((1, 4, 0)), whole)
    found = distances(X, np.zeros(200, np.int32), one)
    for row, value in zip(X, found, strict=True):
        o = ~np.isnan(row)
        off = row[o] - one.means[0, o]
        assert value == pytest.approx(off @ np.linalg.solve(whole[0][np.ix_(o, o)], off))
    counts, weights = np.full(5000, 6.0), np.ones(5000)
    normal = rng.chisquare(6, 5000)
    assert gain_of_tails(normal, counts, weights)[0] < 0.002
    gain, degrees = gain_of_tails(normal / (rng.chisquare(4, 5000) / 4), counts, weights)
    assert gain > 0.03
    assert degrees in (3.0, 4.0, 5.0)


def test_round_clusters_with_tails_have_the_likelihood_of_the_t_density(rng):
    """One cluster with independent columns of its own scale: the density of SciPy at what was fitted."""
    X = rng.normal(size=(800, 3)) / np.sqrt(rng.chisquare(3, (800, 1)) / 3) * [1, 2, 3] + [5, 0, -2]
    found = round_with_tails(X, np.zeros(800, np.int32), 1, np.ones(800))
    best = max(
        multivariate_t(np.median(X, axis=0), np.diag(scale * X.var(axis=0)), df=df).logpdf(X).sum()
        for scale in (0.1, 0.2, 0.3, 0.4, 0.6)
        for df in (2, 3, 4)
    )
    assert found.log_likelihood > best - 1
    assert found.log_likelihood > multivariate_normal(X.mean(axis=0), np.diag(X.var(axis=0))).logpdf(X).sum()
    assert found.bic(800) == -2 * found.log_likelihood + found.n_parameters * np.log(800)


@pytest.mark.parametrize("numbers", [2, [2]], ids=["given", "chosen"])
def test_an_analysis_fits_the_shape_that_holds(numbers, rng):
    X, side = ridges(rng)
    kpod = KPOD(2 if numbers == 2 else "auto", random_state=0)
    model, choice, shaped = fitted(kpod, X, numbers, "auto", None, "table", no_progress)
    assert isinstance(model, GaussianMixture)
    assert adjusted_rand_score(side, model.labels_) > 0.8
    assert (choice is None) == (numbers == 2)
    note = shaped.named(["left", "right", "side"]).note
    assert note.kind == "shape of the clusters"
    assert note.values["more_by_round"] == ["left", "right"]
    assert "the mixture separates side better" in note.text


def test_where_no_mixture_can_be_compared_clusters_are_round_without_a_word(rng):
    X, _ = ridges(rng)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(d=np.where(X[:, 0] > 0, "u", "v"))
    frame["d"] = frame["d"].where(np.arange(len(frame)) % 3 > 0, "w")
    plain = {"verdict": False, "random_state": 0}
    assert analyze(frame, 2, **plain).shape.reason_ == "better"
    for parameters, reason in [
        ({"categories": "all"}, "categories"),
        ({"shrinkage": 1.0}, "parameters"),
        ({"algorithm": "lloyd"}, "parameters"),
        ({"missingness": "auto"}, "parameters"),
    ]:
        found = analyze(frame, 2, **parameters, **plain)
        assert (found.shape.shape_, found.shape.reason_) == ("round", reason)
        assert found.to_dict()["shape_choice"]["reason"] == reason
        assert not any(note.kind == "shape of the clusters" for note in found.notes)
        same = analyze(frame, 2, shape="round", **parameters, **plain)
        assert same.shape is None
        assert_array_equal(found.labels, same.labels)
    with pytest.raises(ValueError, match="shape must be"):
        analyze(frame, 2, shape="oval")
    with pytest.raises(ValueError, match="`shrinkage` is for round clusters only"):
        analyze(frame, 2, shape="tied", shrinkage=1.0)


def test_a_number_that_is_chosen_without_shapes_says_that_groups_are_not_round(rng):
    """Where shapes cannot be compared, nothing is left unsaid, and nothing offered that would not help."""
    X, _ = ridges(rng, 300)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    said = {
        reason: analyze(frame, range(1, 5), verdict=False, **parameters).choice.sentence_
        for reason, parameters in {
            "asked": {"shape": "round"}, "set": {"algorithm": "lloyd"}, "compared": {}
        }.items()
    }  # fmt: skip
    assert "match them only in part" in said["asked"]
    assert "shape='auto' compares other shapes" in said["asked"]
    assert "match them only in part" in said["set"]
    assert "shape='auto'" not in said["set"]
    assert "match them only in part" not in said["compared"]


def test_the_reason_for_a_shape_is_said_once(rng, tmp_path, monkeypatch):
    data = tmp_path / "ridges.csv"
    pd.DataFrame(ridges(rng)[0], columns=["a", "b", "c"]).to_csv(data, index=False)
    result = kpod(monkeypatch, "fit", str(data), "-k", "2", "-o", str(tmp_path / "o.csv"))
    said = " ".join(result.err.split())
    assert said.count("The clusters are not round: ") == 1
    assert "note: The clusters" not in said
    assert "All clusters have the same spread" not in said
    result = kpod(monkeypatch, "choose-k", str(data), "-k", "1-3", "--shape", "oval")
    assert result.code == 2
    assert "--shape" in result.err


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_groups_are_set_apart_along_the_line_of_their_shape(missing, rng):
    """Two ridges are apart where round clusters of them are not; halves of one ridge, and cores, never."""
    X, side = ridges(rng, 400, missing=missing)
    mixture = GaussianMixture(2, covariance_type="tied", n_factors=None, random_state=0).fit(X)
    assert adjusted_rand_score(side, mixture.labels_) > 0.8
    assert apart(X, mixture) == 2
    one = ridges(rng, 400, missing=0.0)[0][side == 0]
    cut = GaussianMixture(2, covariance_type="diag", n_factors=None, random_state=0).fit(one[:, :2])
    assert apart(one[:, :2], cut) == 1
    core = rng.normal(size=(400, 3)) * np.where(side, 1.0, 0.2)[:, None]
    within = GaussianMixture(2, covariance_type="spherical", random_state=0).fit(core)
    assert len(np.unique(within.labels_)) == 2
    assert apart(core, within) == 1


def apart(X, mixture):
    units = mixture._units()
    return n_apart_in_shape((X - units.shift) * units.scale, mixture.labels_, mixture._parameters(units))


@pytest.mark.parametrize(("missing", "seed"), [(0.1, 0), (0.25, 3)])
def test_groups_set_apart_in_their_shape_settle_what_round_clusters_leave_in_doubt(missing, seed):
    """The species of iris: round clusters of them are not set apart, those of a mixture are.

    With many gaps, log density cannot rule out one group any more, but squared errors do.
    """
    X, species = load_iris(return_X_y=True)
    X[np.random.default_rng([0, seed, int(100 * missing)]).random(X.shape) < missing] = np.nan
    X[np.isnan(X).all(axis=1), 0] = 5.0
    X = ObservedScaler().fit_transform(X)
    found = {shape: choose_k(X, range(1, 7), shape=shape, random_state=0) for shape in ("round", "auto")}
    assert not found["round"].clear_
    assert found["round"].n_separate_ < 3
    choice = found["auto"]
    assert choice.clear_
    assert choice.best_k_ == choice.n_separate_ == choice.shape_.n_separate_ == 3
    assert adjusted_rand_score(species, choice.model_.labels_) > (0.85 if missing < 0.2 else 0.7)


def test_a_sample_that_shapes_were_compared_on_is_named(rng, monkeypatch):
    X, _ = ridges(rng)
    model = KPOD(2, random_state=0).fit(X)
    assert choose_shape(X, model, "auto")[1].n_sampled_ == 0
    monkeypatch.setattr("kpod._mixture.starts.SAMPLE_ENTRIES", 360)
    monkeypatch.setattr("kpod._mixture.starts.FEWEST_ROWS", 100)
    about = choose_shape(X, model, "auto")[1]
    assert about.n_sampled_ == 120
    assert "(compared on a sample of 120 rows)" in about.sentence_
    assert "compared on" not in choose_shape(X, model, "tied")[1].sentence_


def test_between_is_the_share_of_variance_between_clusters(rng):
    X = rng.normal(size=(50, 3))
    X[:, 2] = 1.0
    labels = rng.integers(2, size=50)
    X[:, 1] = labels
    shares = between(X, labels)
    means = np.array([X[labels == c, 0].mean() for c in (0, 1)])[labels]
    assert_allclose(shares, [means.var() / X[:, 0].var(), 1.0, 0.0])


def test_each_reason_for_round_clusters_is_given(rng, monkeypatch):
    """A mixture that fits is refused for one thing at a time."""
    X, _ = ridges(rng)
    model = KPOD(2, random_state=0).fit(X)

    def reason(**changed):
        compared = Compared.of(X, model, "tied", None, None)
        for name, value in changed.items():
            if name == "labels_":
                compared.mixture.labels_ = value
            else:
                monkeypatch.setattr(Compared, name, value)
        found = compared.refusal()[0]
        monkeypatch.undo()
        return found

    def tails(self, model, clean, labels):
        return 1.0, 8.0

    assert reason() == ""
    assert reason(labels_=np.zeros(len(X), np.int32)) == "a cluster of no row"
    assert reason(bic=lambda self, fitted, weight: float(fitted.covariance_type_ == "tied")) == "no better"
    assert reason(labels_=np.where(np.arange(len(X)) < 2, 1, 0)) == "outlying rows"
    light = {"gain_of_tails": lambda *of: (0.0, 100.0)}
    assert reason(labels_=np.where(np.arange(len(X)) < 3, 1, 0), **light) == ""
    assert reason(is_one_group=lambda self: True) == "one correlated group"
    assert reason(any_apart=False) == "not separate"
    assert reason(gain_of_tails=tails, n_apart=1) == "heavy tails"
    assert reason(gain_of_tails=tails) == "one correlated group"  # with such tails as well
    assert reason(gain_of_tails=lambda *of: (1.0, 4.0)) == "heavy tails"
    assert reason(gain_of_transforms=lambda self, weights: 0.1, n_apart=1) == "skewed columns"
    # Separate groups are no pieces of a tail.
    assert reason(gain_of_transforms=lambda self, weights: 0.1) == ""


def test_a_mixture_of_one_correlated_group_stays_round(rng):
    """Height and weight: halves of one stretched group are no groups beside it, whatever the shape says."""
    along = rng.normal(size=300)
    X = along[:, None] * [1.0, 0.9, 1.1] + 0.3 * rng.normal(size=(300, 3))
    X[rng.random(X.shape) < 0.2] = np.nan
    model = KPOD(2, random_state=0).fit(X)
    found, about = choose_shape(X, model, "auto")
    assert found is model
    assert about.bics_[about.compared_] < about.bics_["round"]
    assert about.reason_ == "one correlated group"
    assert "a single group with correlated columns fits the table as well" in about.sentence_
    heavy = X / np.sqrt(rng.chisquare(4, size=(300, 1)) / 4)
    compared = Compared.of(heavy, KPOD(2, random_state=0).fit(heavy), "auto", None, None)
    assert compared.refusal()[0] != ""


def test_clusters_on_one_hill_are_no_groups(rng):
    """A spread that grows along the table is better described by two Gaussians, but is one group."""
    y = rng.random(500)
    X = y[:, None] * [2.0, 1.0, 0.5] + (0.2 + y[:, None]) * rng.normal(size=(500, 3))
    model = KPOD(2, random_state=0).fit(X)
    found, about = choose_shape(X, model, "auto")
    assert found is model
    assert about.bics_[about.compared_] < about.bics_["round"]
    assert about.reason_ == "not separate"
    assert "no two clusters of the best Gaussian mixture are separate" in about.sentence_


def test_skewed_groups_stay_round_and_that_is_said(rng):
    """Long tails on one side, which a mixture follows instead of the groups."""
    y = rng.integers(2, size=400)
    X = np.exp(0.9 * rng.normal(size=(400, 5)) + 1.3 * y[:, None])
    X[rng.random(X.shape) < 0.1] = np.nan
    model = KPOD(2, random_state=0).fit(X)
    found, about = choose_shape(X, model, "auto")
    assert found is model
    assert about.reason_ == "skewed columns"
    assert "within the clusters of the best Gaussian mixture, columns are skewed" in about.sentence_
    logs = np.log(X)
    assert choose_shape(logs, KPOD(2, random_state=0).fit(logs), "auto")[1].reason_ != "skewed columns"
