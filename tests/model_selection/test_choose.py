"""How many clusters: the right number where there is one, and a reason where there is none."""

import io
import json
import re
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from kpod import KPOD, ObservedScaler, TablePreparer, choose_k, load, save
from kpod._model_selection import number_search
from kpod._model_selection.correlated import NumberVerdict
from kpod._model_selection.holdout import Errors
from kpod._model_selection.number_of_clusters import rival, why_unclear
from kpod._model_selection.separation import n_apart
from kpod.datasets import make_mixture
from kpod.missingness import mcar
from kpod.plot import ChooseKDisplay
from tests.helpers.command import kpod
from tests.helpers.marks import INFORMATIVE_BY_HAND
from tests.helpers.tables import as_csr


def correlated(rng, n, p, r):
    """Noise of variance 1 whose columns all have correlation r."""
    return np.sqrt(r) * rng.normal(size=(n, 1)) + np.sqrt(1 - r) * rng.normal(size=(n, p))


def test_separate_clusters_are_counted(rng):
    X, _ = make_mixture(5, n_samples=300, n_features=20, random_state=rng)
    choice = choose_k(mcar(X, 0.4, rng), range(1, 9), random_state=0)
    assert (choice.best_k_, choice.clear_, choice.reason_) == (5, True, "")
    assert choice.model_.n_clusters == 5
    assert choice.sentence_.startswith("5 clusters: when observed values are hidden, 5 clusters")
    t = choice.table_
    assert_array_equal(t["k"], np.arange(1, 9))
    assert t["error"].argmin() == 4
    assert (np.diff(t["loss"]) < 0).all()
    assert (t["error"][4:] > t["loss"][4:]).all(), "what was not seen is harder to predict"
    assert np.isnan(t["silhouette"][0])
    assert t["silhouette"][1:].argmax() == 3
    assert_allclose(t["above_best"], t["error"] - t["error"].min())
    assert choice.column_errors_.shape == (8, 20)
    assert choice.n_rows_ == 300


def test_independent_columns_are_one_cluster(rng):
    choice = choose_k(mcar(rng.normal(size=(300, 10)), 0.2, rng), range(1, 6), random_state=0)
    assert choice.best_k_ == 1
    assert choice.sentence_.startswith("One cluster")


def test_correlated_columns_are_one_cluster_though_centers_count_pieces(rng):
    choice = choose_k(mcar(correlated(rng, 400, 12, 0.6), 0.2, rng), range(1, 8), random_state=0)
    assert choice.correlated_
    assert choice.centers_k_ > 2
    # One, with few exceptions: python -m benchmarks choose counts them.
    assert choice.best_k_ <= 2
    if choice.best_k_ == 1 and choice.clear_:
        assert f"cut it into {choice.centers_k_} pieces" in choice.sentence_
    else:
        assert not choice.clear_
        assert choice.sentence_.startswith("No clear choice: columns are correlated")


def test_clusters_with_correlated_columns_are_counted(rng):
    """Centers that draw N(0, 1.5^2) may lie too near for any method: a simplex does not."""
    truth = rng.integers(3, size=400)
    means = 4 * np.kron(np.eye(3), np.ones(4))
    X = mcar(means[truth] + correlated(rng, 400, 12, 0.5), 0.2, rng)
    choice = choose_k(X, range(1, 8), random_state=0)
    assert choice.best_k_ == 3 or not choice.clear_
    assert choice.correlated_
    if choice.clear_:
        assert "3 groups with correlated columns predict them best" in choice.sentence_
        assert f"would have chosen {choice.centers_k_}" in choice.sentence_


def test_a_curve_is_cut_into_pieces_and_that_is_said(rng):
    """Measurements of children by age: one group, whose columns rise along a curve."""
    age = rng.uniform(0, 20, 500)
    growth = np.column_stack(
        [age, 50 + 120 * (1 - np.exp(-age / 8)), 3 + 0.15 * age**2, 35 + 6 * np.sqrt(age)]
    )
    X = mcar(growth / growth.std(axis=0) + 0.1 * rng.normal(size=growth.shape), 0.1, rng)
    X[np.isnan(X).all(axis=1), 0] = 1.0
    choice = choose_k(X, range(1, 9), random_state=0)
    assert not choice.clear_ or choice.best_k_ == 1


def test_clusters_set_apart_are_told_from_one_that_was_cut(rng):
    """With 900 rows: of 300, some forty at the border, chance made it look thin once in a few dozen seeds."""
    X = rng.normal(size=(900, 4))
    X[:300] += 8
    X[300:, 0] *= 5  # one long group, cut in two
    X[rng.random(X.shape) < 0.2] = np.nan
    X[np.isnan(X).all(axis=1), 0] = 0.0
    three = KPOD(3, random_state=0).fit(X)
    assert n_apart(X, three.labels_, three.cluster_centers_) == 2
    assert n_apart(as_csr(X), three.labels_, three.cluster_centers_) == 2
    two = KPOD(2, random_state=0).fit(np.vstack([X[:300], X[300:] * [0.2, 1, 1, 1]]))
    assert n_apart(np.vstack([X[:300], X[300:] * [0.2, 1, 1, 1]]), two.labels_, two.cluster_centers_) == 2


def test_auto_goes_on_while_more_clusters_help(rng):
    X, _ = make_mixture(13, n_samples=400, n_features=20, random_state=rng)
    choice = choose_k(mcar(X, 0.2, rng), random_state=0)
    assert choice.best_k_ == 13
    assert choice.clear_
    assert choice.table_["k"][-1] == 20


def test_a_range_that_ends_too_early_is_no_clear_choice(rng):
    X, _ = make_mixture(8, n_samples=300, n_features=20, random_state=rng)
    choice = choose_k(mcar(X, 0.2, rng), range(2, 5), random_state=0)
    assert not choice.clear_
    assert "still falling at 4 clusters" in choice.reason_
    assert choice.sentence_.startswith("No clear choice")
    assert choice.best_k_ == choice.model_.n_clusters == 4


def test_dense_sparse_and_dataframes_agree(rng):
    X, _ = make_mixture(3, n_samples=120, n_features=8, random_state=rng)
    X = mcar(X, 0.3, rng)
    X[np.isnan(X).all(axis=1), 0] = 0.0
    first = choose_k(X, [1, 2, 3, 4], random_state=0)
    again = choose_k(X, [4, 3, 2, 1, 1], random_state=0)
    csr = choose_k(as_csr(X), [1, 2, 3, 4], random_state=0)
    frame = choose_k(pd.DataFrame(X).rename(columns=str), [1, 2, 3, 4], random_state=0)
    for other in (again, csr, frame):
        assert other.best_k_ == first.best_k_ == 3
        assert_allclose(other.table_["error"], first.table_["error"], rtol=1e-6)
    assert list(frame.model_.feature_names_in_) == [str(j) for j in range(8)]


def test_rows_without_weight_do_not_matter(rng):
    X, _ = make_mixture(3, n_samples=150, n_features=8, random_state=rng)
    noise = 100 * rng.normal(size=(50, 8))
    weights = np.r_[np.ones(150), np.zeros(50)]
    with_noise = choose_k(np.vstack([X, noise]), range(1, 6), sample_weight=weights, random_state=0)
    without = choose_k(X, range(1, 6), random_state=0)
    assert with_noise.best_k_ == without.best_k_ == 3
    assert_allclose(with_noise.table_["error"], without.table_["error"])
    assert with_noise.model_.labels_.shape == (200,)


def test_large_tables_are_chosen_on_a_sample(rng, monkeypatch):
    monkeypatch.setattr(number_search, "MOST_ROWS", 150)
    X, _ = make_mixture(3, n_samples=600, n_features=8, random_state=rng)
    choice = choose_k(X, range(1, 6), random_state=0)
    assert choice.n_rows_ == 150
    assert choice.best_k_ == 3
    assert "random sample of 150 rows" in choice.sentence_
    assert choice.model_.labels_.shape == (600,)


def test_the_settings_of_the_estimator_are_used_and_it_stays_as_it_was(rng):
    X, _ = make_mixture(3, n_samples=100, n_features=6, random_state=rng)
    estimator = KPOD(algorithm="lloyd", shrinkage=2.0)
    choice = choose_k(X, [2, 3, 4], estimator=estimator, random_state=0)
    assert choice.model_.algorithm == "lloyd"
    assert choice.model_.shrinkage == 2.0
    assert not hasattr(estimator, "labels_")


def test_the_seed_of_the_estimator_counts_unless_another_is_given(rng):
    X, _ = make_mixture(3, n_samples=120, n_features=5, random_state=rng)
    first, same, other = (
        choose_k(X, range(1, 4), estimator=KPOD(random_state=3), random_state=seed).table_["error"]
        for seed in (None, 3, 4)
    )
    assert_array_equal(first, same)
    assert (first != other).any()


def test_progress_is_told_and_ends_at_the_total(rng):
    X, _ = make_mixture(2, n_samples=60, n_features=5, random_state=rng)
    told = []
    choose_k(X, [1, 2, 3], random_state=0, progress=lambda *args: told.append(args))
    assert [done for done, _, _ in told] == list(range(1, len(told) + 1))
    assert all(done <= total for done, total, _ in told)
    assert told[-1][0] == told[-1][1]
    assert told[0][2] == "1 cluster"


def test_the_table_as_text_marks_the_choice(rng):
    X, _ = make_mixture(3, n_samples=100, n_features=6, random_state=rng)
    choice = choose_k(X, range(1, 5), random_state=0)
    lines = str(choice).splitlines()
    assert lines[0].split()[:3] == ["k", "held-out", "error"]
    (marked,) = [line for line in lines if line.endswith("<-")]
    assert marked.split()[0] == str(choice.best_k_)
    assert lines[-1] == choice.sentence_


def test_equal_rows_and_constant_columns(rng):
    choice = choose_k(np.ones((40, 5)), range(1, 4), random_state=0)
    assert choice.best_k_ == 1
    X, _ = make_mixture(3, n_samples=100, n_features=6, random_state=rng)
    X[:, 2] = 5.0
    assert choose_k(X, range(1, 6), random_state=0).best_k_ == 3


@pytest.mark.parametrize(
    ("k", "message"),
    [
        ([], "k is empty"),
        (range(0), "k is empty"),
        ([1, 2.5], "whole numbers from 1 up, got 2.5"),
        ([0, 1], "whole numbers from 1 up, got 0"),
        ([True, 2], "got True"),
        (3, "For a fixed number use KPOD"),
        ("many", "k must be 'auto'"),
        (range(1, 100), "k goes up to 99, but only 40 rows"),
    ],
)
def test_bad_ranges_are_refused(k, message):
    with pytest.raises(ValueError, match=message):
        choose_k(np.random.default_rng(0).normal(size=(40, 4)), k)


def test_tables_that_nothing_can_be_hidden_in_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="one column"):
        choose_k(rng.normal(size=(100, 1)), [1, 2])
    with pytest.raises(ValueError, match="too few observed entries"):
        choose_k(rng.normal(size=(4, 3)), [1, 2])
    with pytest.raises(ValueError, match="infinity"):
        choose_k(np.full((30, 3), np.inf), [1, 2])
    with pytest.raises(TypeError, match="estimator must be a KPOD or a pipeline that ends in one, got str"):
        choose_k(rng.normal(size=(30, 3)), [1, 2], estimator="KPOD")


def curve(rng, *means):
    """Errors of 1, 2, ... clusters on 400 rows; their differences have a standard error of about .07."""
    noise = rng.normal(size=(len(means), 400))
    rows = np.array(means)[:, None] + noise - noise.mean(axis=1, keepdims=True)
    return {k: Errors(row, np.ones(1), 400.0, np.ones(1), np.arange(400)) for k, row in enumerate(rows, 1)}


def test_two_numbers_with_worse_ones_between_are_rivals(rng):
    assert rival(curve(rng, 5.0, 3.0, 4.0, 4.0, 3.0, 3.5), 2) == 5
    assert rival(curve(rng, 5.0, 3.0, 4.0, 4.0, 3.0, 3.5), 5) == 2
    assert rival(curve(rng, 5.0, 3.0, 4.0, 4.0, 4.0, 4.0), 2) is None, "one minimum"
    assert rival(curve(rng, 5.0, 3.0, 3.0, 3.0, 3.0, 3.0), 2) is None, "none in between is worse"
    assert rival(curve(rng, 5.0, 3.0, 4.0, 4.0, 3.6, 4.0), 2) is None, "the other minimum is clearly higher"


def test_separate_clusters_raise_doubts_about_one_correlated_group(rng):
    def reason(one, two, apart):
        errors = curve(rng, one, two)
        trials = SimpleNamespace(by_k=errors, errors=errors)
        search = SimpleNamespace(trials=trials, gaps=False, n_apart=lambda k: apart)
        doubt, reason = why_unclear(search, NumberVerdict(1, 2, True, errors, "common", ""), True)
        assert doubt == ("correlation" if reason else "")
        return reason

    assert "these are separate" in reason(3.0, 3.1, apart=2)
    assert reason(3.0, 3.1, apart=1) == ""
    assert reason(3.0, 3.6, apart=2) == "", "one group predicts clearly better"


def test_what_was_not_tried_is_not_said_to_be_worse(rng):
    X, _ = make_mixture(3, n_samples=120, n_features=8, random_state=rng)
    X = mcar(X, 0.2, rng)
    assert "fewer do worse" in choose_k(X, range(2, 6), random_state=0).sentence_
    choice = choose_k(X, range(3, 6), random_state=0)
    assert choice.best_k_ == 3
    assert "fewer were not tried" in choice.sentence_
    assert "nothing to choose from" in choose_k(X, [3], random_state=0).sentence_


# On the command line


def three_groups(rng):
    """As far apart whatever the seed: drawn centers may lie side by side."""
    return 12 * np.eye(3)[np.arange(90) % 3].repeat(2, axis=1) + 2 * rng.normal(size=(90, 6))


@pytest.fixture
def table(tmp_path, rng):
    X = three_groups(rng)
    X[:, 1:] = mcar(X[:, 1:], 0.2, rng)  # no row without any entry
    path = tmp_path / "data.csv"
    pd.DataFrame(X).rename(columns="c{}".format).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("numbers", [[], ["-k", "auto"], ["-k", "2-5"]])
def test_the_command_line_chooses_where_no_number_is_given(monkeypatch, table, numbers):
    done = kpod(monkeypatch, "fit", table, *numbers)
    assert done.code == 0
    assert done.err.count("Why: 3 clusters predict hidden values best") == 1
    without = kpod(monkeypatch, "fit", table, *numbers, "--no-verdict")
    assert "3 clusters: when observed values are hidden, 3 clusters predict them best" in without.err
    assert set(pd.read_csv(io.StringIO(done.out))["cluster"]) == {0, 1, 2}
    given = kpod(monkeypatch, "fit", table, "-k", 3)
    assert given.out == done.out
    assert "are hidden" not in given.err


def test_choose_k_shows_table_curve_and_sentence(monkeypatch, table, tmp_path):
    report = tmp_path / "r.html"
    done = kpod(monkeypatch, "choose-k", table, "-k", "1-5", "--report", report)
    assert done.code == 0
    lines = done.out.splitlines()
    rows = [line for line in lines if "###" in line]
    assert [int(row.split()[0]) for row in rows] == [1, 2, 3, 4, 5]
    assert [row.rstrip().endswith("<") for row in rows] == [False, False, True, False, False]
    assert rows[0].count("#") > rows[2].count("#")
    page = report.read_text()
    assert "Why this number of clusters" in page
    assert re.search(
        r"A tenth of the observed entries was hidden at a time, [\d,]+ in all, and predicted", page
    )
    assert "3 clusters predict them best" in page
    assert "3 chosen" in page
    summary = json.loads(kpod(monkeypatch, "choose-k", table, "-k", "1-5", "--json").out)
    assert summary["clusters"] == 3
    assert summary["clear"]
    assert [row["clusters"] for row in summary["tried"]] == [1, 2, 3, 4, 5]
    assert summary["tried"][0]["silhouette"] is None


def test_choose_k_says_which_of_its_columns_decides(monkeypatch, tmp_path, rng):
    truth = np.arange(300) % 3
    X = 4 * np.kron(np.eye(3), np.ones(3))[truth] + correlated(rng, 300, 9, 0.6)
    path = tmp_path / "data.csv"
    pd.DataFrame(mcar(X, 0.1, rng)).rename(columns="c{}".format).to_csv(path, index=False)
    done = kpod(monkeypatch, "choose-k", path, "-k", "1-5")
    summary = json.loads(kpod(monkeypatch, "choose-k", path, "-k", "1-5", "--json").out)
    assert summary["correlated"]
    assert "which is what the choice rests on and the bars show" in " ".join(done.out.split())
    bars = {int(line.split()[0]): line.count("#") for line in done.out.splitlines() if "#" in line}
    errors = {row["clusters"]: row["correlated_error"] for row in summary["tried"]}
    known = {k: error for k, error in errors.items() if error is not None}
    assert_allclose([bars[k] / bars[1] for k in known], [e / known[1] for e in known.values()], atol=0.03)


def test_rows_that_follow_each_other_in_time_are_recognised(monkeypatch, tmp_path, rng):
    """Tracks of storms: when and how often one is measured is different for each."""
    lengths = rng.integers(5, 20, 30)
    frame = pd.DataFrame({"name": np.repeat([f"storm {i % 20}" for i in range(30)], lengths)})
    frame["month"] = np.repeat(rng.integers(5, 10, 30), lengths)
    frame["day"] = np.concatenate([rng.integers(1, 8) + np.arange(n) for n in lengths])
    frame["wind"], frame["pressure"] = rng.normal(size=(2, len(frame)))
    path = tmp_path / "storms.csv"
    frame.to_csv(path, index=False)
    length = np.median(lengths)
    track = f"rows of the same name follow one another in time, in runs of about {length:.0f} rows."
    assert track in " ".join(kpod(monkeypatch, "fit", path, "-k", 2).err.split())
    frame.sample(frac=1, random_state=0).to_csv(path, index=False)
    assert track not in " ".join(kpod(monkeypatch, "fit", path, "-k", 2).err.split())


def test_large_numbers_do_not_run_together(rng):
    choice = choose_k(2e4 * rng.normal(size=(60, 3)), range(1, 4), random_state=0)
    header, *lines = choice.text_table().splitlines()
    assert header.split() == ["k", "held-out", "error", "above", "best", "loss", "silhouette"]
    for line, loss in zip(lines, choice.table_["loss"], strict=True):
        cells = line.replace("±", " ").split()
        assert cells[5] == f"{loss:.4g}"


def test_repeated_measurements_are_recognised(monkeypatch, tmp_path, rng):
    """One row for each country and year: clusters are countries."""
    frame = pd.DataFrame(
        np.kron(10 * np.eye(3), np.ones((12, 2))) + rng.normal(size=(36, 6)), columns=list("abcdef")
    )
    frame.insert(0, "country", np.repeat(["Chad", "Mali", "Niger"], 12))
    frame.insert(1, "year", np.tile(np.arange(2001, 2013), 3))
    path = tmp_path / "panel.csv"
    frame.to_csv(path, index=False)
    panel = "note: there is one row for each country and year."
    done = kpod(monkeypatch, "choose-k", path, "-k", "1-4")
    assert panel in done.out
    assert "not used: country (category); year (date)" in done.out
    done = kpod(monkeypatch, "fit", path)
    assert panel in done.err
    follow = "the clusters largely follow country, which was not clustered: 100% of the rows"
    assert follow in " ".join(done.err.split())
    numbered = tmp_path / "panel.parquet"
    frame.astype({"country": "category"}).to_parquet(numbered)
    assert panel in kpod(monkeypatch, "choose-k", numbered, "-k", "1-4").out
    frame["country"] = rng.permutation(frame["country"])
    frame.to_csv(path, index=False)
    done = kpod(monkeypatch, "fit", path)
    assert "largely follow" not in done.err
    assert panel not in done.err


def test_one_cluster_is_reported_without_empty_phrases(monkeypatch, tmp_path, rng):
    path = tmp_path / "noise.csv"
    pd.DataFrame(rng.normal(size=(150, 4)), columns=list("abcd")).to_csv(path, index=False)
    done = kpod(monkeypatch, "fit", path, "-k", "1-3", "--confidence", "-o", tmp_path / "o.csv")
    assert "No separate groups: the rows are one group" in done.err
    assert "kpod fit -k 3" in done.err
    assert "probability" not in done.err
    assert "starts" not in done.err
    assert "cluster 0" not in done.err


def test_the_report_of_a_given_number_does_not_say_why(monkeypatch, table, tmp_path):
    report = tmp_path / "r.html"
    assert kpod(monkeypatch, "fit", table, "-k", 3, "-o", tmp_path / "o.csv", "--report", report).code == 0
    assert "Why this number" not in report.read_text()


@pytest.mark.parametrize(
    ("args", "message", "code"),
    [
        (["fit", "-k", "0"], "neither a number from 1 up, nor a range such as 2-8, nor auto", 2),
        (["fit", "-k", "8-2"], "neither a number", 2),
        (["fit", "-k", "2-500"], "data.csv: k goes up to 500, but only 90 rows", 1),
        (["choose-k", "-k", "3"], "-k needs numbers to choose from", 2),
        (["fit", "--columns", "c1"], "data.csv: X has one column", 1),
    ],
)
def test_the_command_line_refuses_with_a_reason(monkeypatch, table, args, message, code):
    command, *options = args
    done = kpod(monkeypatch, command, table, *options)
    assert done.code == code
    assert message in done.err
    assert done.out == ""


def test_the_display_draws_the_curve_and_the_choice(rng):
    X = three_groups(rng)
    choice = choose_k(X, range(1, 6), random_state=0)
    display = ChooseKDisplay.from_choice(choice)
    (line,) = [line for line in display.ax_.lines if len(line.get_xdata()) == 5][:1]
    assert_array_equal(line.get_xdata(), [1, 2, 3, 4, 5])
    assert_allclose(line.get_ydata(), choice.table_["error"])
    assert "3 chosen" in [text.get_text() for text in display.ax_.get_legend().get_texts()]
    plt.close(display.figure_)
    again = ChooseKDisplay.from_estimator(KPOD(3, random_state=0).fit(X), X, k=range(1, 6), random_state=0)
    assert_allclose(again.error, display.error)
    plt.close(again.figure_)


@pytest.mark.parametrize("power", [-400, 400])
def test_the_scale_does_not_matter(power):
    X, _ = make_mixture(3, n_samples=150, n_features=8, random_state=0)
    X = mcar(X, 0.2, 0)
    here, there = (choose_k(X * 2.0**e, range(1, 6), random_state=0) for e in (0, power))
    assert (there.best_k_, there.clear_) == (here.best_k_, here.clear_)
    for name in ("above_best", "above_best_se"):
        assert_allclose(there.table_[name] / 4.0**power, here.table_[name], rtol=1e-6)
    assert_allclose(there.table_["silhouette"], here.table_["silhouette"], rtol=1e-6)


def speaking(rng, container=np.asarray):
    """Three classes whose values hardly differ, and whose gaps do."""
    truth = rng.integers(3, size=400)
    X = 0.2 * rng.normal(size=(3, 9))[truth] + rng.normal(size=(400, 9))
    rates = np.where(np.arange(9) % 3 == np.arange(3)[:, None], 0.7, 0.15)
    X[rng.random(X.shape) < rates[truth]] = np.nan
    return container(X), truth


@pytest.mark.parametrize("container", [np.asarray, as_csr])
@INFORMATIVE_BY_HAND
def test_where_gaps_count_they_are_predicted_too(container):
    X, truth = speaking(np.random.default_rng(3), container)
    plain, informed = (
        choose_k(X, range(1, 6), estimator=KPOD(missingness=word), random_state=0)
        for word in ("ignore", "informative")
    )
    assert plain.best_k_ < 3  # values alone do not show the classes
    assert informed.best_k_ == 3
    assert adjusted_rand_score(truth, informed.model_.labels_) > 0.6
    assert not plain.gaps_
    assert informed.gaps_
    assert "predict them and the gaps best" in informed.sentence_
    labels = [ChooseKDisplay.from_choice(choice).ax_.get_ylabel() for choice in (plain, informed)]
    plt.close("all")
    assert labels == [f"squared error on hidden entries{more}" for more in ("", " and gaps")]


@INFORMATIVE_BY_HAND
def test_gaps_that_say_nothing_change_no_number(rng):
    X, _ = make_mixture(3, n_samples=200, n_features=8, random_state=rng)
    X = mcar(X, 0.3, rng)
    for word in ("ignore", "informative", "auto"):
        assert choose_k(X, range(1, 6), estimator=KPOD(missingness=word), random_state=0).best_k_ == 3


@INFORMATIVE_BY_HAND
def test_weights_are_repetition_where_gaps_count(rng):
    X, _ = speaking(rng)
    X = X[:120]
    one, two = (
        choose_k(X, range(1, 4), estimator=KPOD(missingness="informative"), sample_weight=w, random_state=0)
        for w in (None, np.full(120, 2.0))
    )
    assert_allclose(one.table_["error"], two.table_["error"], rtol=0.03)


@INFORMATIVE_BY_HAND
def test_choices_in_files_know_whether_gaps_counted(tmp_path):
    X, _ = speaking(np.random.default_rng(3))
    model = KPOD("auto", missingness="informative", random_state=0, n_init=2).fit(X[:100])
    file = tmp_path / "model.kpod"
    save(model, file)
    assert load(file).choice_.gaps_


def test_choose_k_takes_shrinkage_and_a_checkpoint(monkeypatch, table, tmp_path):
    command = ("choose-k", table, "-k", "1-4", "--json")
    plain = json.loads(kpod(monkeypatch, *command).out)
    shrunk = json.loads(kpod(monkeypatch, *command, "--shrinkage", 1000).out)
    assert shrunk["tried"][2]["error"] > 1.5 * plain["tried"][2]["error"], "centers are kept near the means"
    kept = tmp_path / "kept"
    kept.write_text("a file")
    refused = kpod(monkeypatch, *command, "--checkpoint", kept)
    assert refused.code == 1
    assert "kept" in refused.err


def test_a_pipeline_is_chosen_for_and_handed_out():
    X, _ = make_mixture(3, n_samples=100, n_features=4, random_state=1)
    X = mcar(X * [1, 10, 100, 1000], 0.2, random_state=1)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(name=[f"r{i}" for i in range(100)])
    pipeline = make_pipeline(
        FunctionTransformer(lambda f: f.drop(columns="name")), "passthrough", ObservedScaler(), KPOD()
    )
    choice = choose_k(frame, [2, 3], estimator=pipeline, random_state=0)
    scaled = ObservedScaler().fit_transform(X)
    alone = choose_k(scaled, [2, 3], random_state=0)
    assert str(choice) == str(alone)
    assert_array_equal(choice.model_.predict(frame), alone.model_.predict(scaled))
    assert not hasattr(pipeline[-1], "labels_")  # what was given is left as it is
    with pytest.raises(TypeError, match="pipeline that ends in one, got ObservedScaler"):
        choose_k(X, [2, 3], estimator=make_pipeline(ObservedScaler()))


def test_raw_frames_are_prepared():
    """Text and identifiers beside numbers: as a preparer before KPOD, and the model takes such frames."""
    X, _ = make_mixture(3, n_samples=60, n_features=4, random_state=0)
    raw = pd.DataFrame(mcar(X, 0.1, random_state=0), columns=list("abcd"))
    raw.insert(0, "id", [f"N{i}" for i in range(len(raw))])
    raw["d"] = raw["d"].map("{:.3f}".format).replace("nan", "?")
    choice = choose_k(raw, [2, 3], random_state=0)
    said = choose_k(raw, [2, 3], estimator=make_pipeline(TablePreparer(), KPOD()), random_state=0)
    assert choice.sentence_ == said.sentence_
    assert list(choice.model_[0].columns_) == list("abcd")
    assert_array_equal(choice.model_.predict(raw), said.model_[-1].labels_)
