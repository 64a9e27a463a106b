"""What diagnose says of gaps whose cause is known, and that its numbers agree with slower ways to them."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib import pyplot as plt
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats

import kpod
from kpod import missingness
from kpod._missing import association, diagnosis, little
from kpod._missing.association import gaps_by_value, gaps_together
from kpod._missing.between_groups import compare_gaps
from kpod._missing.little import little_test
from kpod.missingness import by_class, by_driver, by_row, diagnose, dropout, mcar, modules
from kpod.plot import DiagnosisDisplay


def correlated(rng, n=400, p=5):
    return rng.normal(size=(n, p)) @ rng.normal(size=(p, p)) + rng.normal(size=p)


def test_little_agrees_with_a_fit_by_hand(rng):
    X = mcar(correlated(rng, 120, 3), 0.25, rng)
    X = X[~np.isnan(X).all(axis=1)]
    mean, covariance = np.nanmean(X, axis=0), np.diag(np.nanvar(X, axis=0))
    for _ in range(200):  # the textbook's EM, a row at a time
        sums, squares = np.zeros(3), np.zeros((3, 3))
        for row in X:
            o, m = ~np.isnan(row), np.isnan(row)
            filled, spare = row.copy(), np.zeros((3, 3))
            back = covariance[np.ix_(m, o)] @ np.linalg.inv(covariance[np.ix_(o, o)])
            filled[m] = mean[m] + back @ (row[o] - mean[o])
            spare[np.ix_(m, m)] = covariance[np.ix_(m, m)] - back @ covariance[np.ix_(o, m)]
            sums += filled
            squares += np.outer(filled, filled) + spare
        mean = sums / len(X)
        covariance = squares / len(X) - np.outer(mean, mean)
    statistic, df = 0.0, -3
    for pattern in np.unique(~np.isnan(X), axis=0):
        rows = X[(~np.isnan(X) == pattern).all(axis=1)][:, pattern]
        off = rows.mean(axis=0) - mean[pattern]
        statistic += len(rows) * off @ np.linalg.solve(covariance[np.ix_(pattern, pattern)], off)
        df += pattern.sum()
    found = little_test(X)
    assert_allclose(found.statistic, statistic, rtol=1e-3)
    assert found.df == df
    assert_allclose(found.p, stats.chi2.sf(statistic, df), rtol=0.02)


def test_little_holds_its_level_and_sees_a_driver():
    p = [little_test(mcar(correlated(np.random.default_rng(s), 300, 4), 0.1, s)).p for s in range(40)]
    assert 0.3 < np.mean(p) < 0.7
    assert np.mean(np.array(p) < 0.05) < 0.2
    X = np.random.default_rng(0).normal(size=(300, 4))
    assert little_test(by_driver(X, 0.2, 0)).p < 1e-4


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda X: X, "none of the columns of numbers has gaps"),
        (
            lambda X: np.where(np.arange(100)[:, None] < 8, np.nan, X),
            "either all of the columns of numbers or none",
        ),
        (lambda X: np.column_stack([X, np.where(X[:, 0] > 0, 1, np.nan)]), "that have gaps do not vary"),
        (lambda X: mcar(X[:, :1], 0.1, 0), "fewer than two columns"),
        (lambda X: mcar(X[:8], 0.1, 0), "too few rows"),
        (lambda X: mcar(np.tile(X, 7), 0.1, 0), "more than 30 columns"),
        (lambda X: np.where(np.arange(5) == np.arange(100)[:, None] % 5, X, np.nan), "in the same row"),
        (lambda X: mcar(np.column_stack([X, X[:, 0] + X[:, 1]]), 0.05, 0), "combinations of others"),
    ],
)
def test_little_says_when_it_cannot_be_computed(make, reason):
    found = little_test(make(np.random.default_rng(0).normal(size=(100, 5))))
    assert reason in found.reason
    assert np.isnan(found.p)


def test_little_leaves_out_columns_that_do_not_vary_in_its_sample(rng):
    X = np.column_stack([rng.normal(size=5000), mcar(rng.normal(size=(5000, 2)), 0.1, rng)])
    rare = np.zeros((5000, 1))
    rare[np.setdiff1d(np.arange(5000), association._sample(5000, little.LITTLE_ROWS))[0]] = 1
    assert little_test(np.hstack([X, rare])) == little_test(X)


def test_gaps_by_value_agrees_with_welch(rng):
    X = by_driver(rng.normal(size=(300, 4)), 0.2, rng, column=1)
    gaps = np.isnan(X)
    found = gaps_by_value(gaps, X)
    for j in (0, 2, 3):
        lacking, having = X[gaps[:, j], 1], X[~gaps[:, j], 1]
        assert_allclose(found[j, 1], (lacking.mean() - having.mean()) / X[:, 1].std())
        assert stats.ttest_ind(lacking, having, equal_var=False).pvalue < 0.001
    assert_array_equal(found[1], 0)


def test_nothing_is_said_of_chance():
    """The false discovery rate holds over many tables."""
    found = []
    for seed in range(30):
        X = mcar(np.random.default_rng(seed).normal(size=(300, 8)), 0.2, seed)
        found.append(bool(gaps_by_value(np.isnan(X), X).any() or gaps_together(np.isnan(X)).any()))
    assert sum(found) <= 3


def test_correlations_of_gaps(rng):
    gaps = np.isnan(modules(np.zeros((500, 6)), 0.3, rng, size=2))
    found = gaps_together(gaps)
    expected = np.corrcoef(gaps.T.astype(float))
    assert_allclose(found[[0, 2, 4], [1, 3, 5]], expected[[0, 2, 4], [1, 3, 5]])
    assert np.abs(found[0, 2:]).max() == 0


def test_a_permuted_grouping_differs_by_chance_and_classes_do(rng):
    labels = rng.integers(3, size=400)
    p = []
    for seed in range(40):
        gaps = np.isnan(by_row(np.zeros((100, 8)), 0.3, seed))  # gaps of a row hang together
        groups = np.random.default_rng(seed).integers(3, size=100)
        p.append(compare_gaps(gaps, groups, np.random.default_rng(seed), 49).p)
    assert np.mean(np.array(p) < 0.1) < 0.3
    assert 0.3 < np.mean(p) < 0.7
    gaps = np.isnan(by_class(np.zeros((400, 8)), 0.3, rng, labels=labels))
    found = compare_gaps(gaps, labels, np.random.default_rng(0))
    assert found.p == 1 / 200
    assert found.excess > 3
    assert compare_gaps(gaps, np.zeros(400, int), rng).p == 1
    assert compare_gaps(np.zeros((400, 3), bool), labels, rng).p == 1


SPOKEN = {
    "chance": (
        lambda X, y: mcar(X, 0.2, 0),
        ["There is no evidence against values", "no sign that the gaps carry information"],
    ),
    "a driver": (
        lambda X, y: by_driver(X, 0.2, 0),
        ["are higher in column 0, by", "gaps are related to the values"],
    ),
    "modules": (
        lambda X, y: modules(X, 0.2, 0, size=3),
        ["column 3, column 4 and column 5 are nearly always"],
    ),
    "rows": (lambda X, y: by_row(X, 0.3, 0, spread=3), ["Some rows have far more gaps than others"]),
    "dropout": (
        lambda X, y: dropout(X, 0.3, 0),
        ["Some rows have far more gaps than others", "most in column 5"],
    ),
    "nothing": (lambda X, y: X, ["Nothing is missing in 600 rows.", "no gaps to decide"]),
}


@pytest.mark.parametrize("cause", SPOKEN)
def test_sentences(cause):
    make, expected = SPOKEN[cause]
    rng = np.random.default_rng(3)
    found = diagnose(make(rng.normal(size=(600, 6)), None))
    for words in expected:
        assert words in str(found), str(found)


def test_two_forms_of_a_questionnaire_are_missing_in_turn_not_together(rng):
    X = rng.normal(size=(300, 5))
    form = np.arange(300) % 2 == 0
    X[np.ix_(form, [0, 1])] = X[np.ix_(~form, [2, 3])] = np.nan
    said = diagnose(X).sentence_.splitlines()
    assert "Where one is missing, the other tends to be present (correlation of gaps): " in str(said)
    assert "column 0 and column 2 (-1.00)." in str(said)
    assert not [sentence for sentence in said if sentence.startswith("Columns often missing together")]


def test_the_overall_test_speaks_of_differences_only_where_some_were_found():
    rng = np.random.default_rng(0)
    together = diagnose(modules(rng.normal(size=(300, 4)), 0.2, 0, size=2))
    assert "missing together" in str(together)
    assert together.little.p > 0.05
    assert "There is no evidence against values being missing completely at random" in str(together)


def test_a_suggestion_is_made_only_where_it_matters(rng):
    X = rng.normal(size=(2000, 4))
    X[(X[:, 0] > 1) & (rng.random(2000) < 0.2), 1] = np.nan  # 3 % of a column
    few = diagnose(X)
    assert "Rows that lack column 1 are higher in column 0" in str(few)
    assert few.suggestion == ""
    assert str(few).endswith(few.sentence_.splitlines()[-1])
    labels = (X[:, 0] > 1).astype(int)
    X[(X[:, 0] > 1) & (rng.random(2000) < 0.5), 1] = np.nan
    assert diagnose(X, labels).suggestion.startswith("The gaps are related to the clusters: find out why")


def test_columns_missing_together_are_so_every_two_of_them():
    """Weeks in the charts: each is missing nearly where the one before is, and the last far more often."""
    weeks = np.random.default_rng(0).integers(5, 30, size=600)
    X = np.where(np.arange(30) < weeks[:, None], 1.0, np.nan)
    gaps = np.corrcoef(np.isnan(X[:, 5:29]).T)
    said = [
        sentence
        for sentence in diagnose(X).sentence_.splitlines()
        if "nearly always missing together" in sentence
    ]
    assert said
    for sentence in said:
        assert "more" not in sentence
        columns = [int(name) - 5 for name in re.findall(r"column (\d+)", sentence)]
        assert gaps[np.ix_(columns, columns)].min() > 0.9


def test_clusters_that_differ_in_their_gaps():
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=500)
    X = by_class(rng.normal(size=(500, 4)), 0.3, 2, labels=labels, spread=2.5)
    found = diagnose(X, np.where(np.arange(500) < 10, -1, labels))
    assert "The clusters differ in which values are missing, most in " in str(found)
    assert found.group_test.p == 1 / 200
    assert "of cluster 0" in str(found)
    assert "The gaps are related to the clusters" in found.suggestion
    assert_allclose(found.by_group[1], np.isnan(X)[10:][labels[10:] == 1].mean(axis=0))
    other = diagnose(X, np.where(rng.random(500) < 0.5, "north", "south"))
    assert "The groups do not differ in which values are missing." in str(other)
    assert other.groups == ["north", "south"]


def test_frames_and_sparse_tables_say_the_same():
    X = by_driver(np.random.default_rng(0).normal(size=(300, 4)), 0.2, 0)
    found = diagnose(pd.DataFrame(X, columns=list("abcd")))
    assert found.table["depends_on"] == ["a", "a", "a"]
    assert str(diagnose(pl.DataFrame(X, schema=list("abcd")).fill_nan(None))) == str(found)
    rows, columns = np.nonzero(~np.isnan(X))
    stored = sparse.csr_array((X[rows, columns], (rows, columns)), shape=X.shape)
    assert str(diagnose(stored)) == str(diagnose(X))
    stored.data[::7] = np.nan
    dense = np.full(X.shape, np.nan)
    dense[rows, columns] = stored.data
    assert_array_equal(diagnose(stored).missing, diagnose(dense).missing)
    assert diagnose(stored).n_complete == diagnose(dense).n_complete == (~np.isnan(dense).any(axis=1)).sum()


def test_the_table_has_a_line_for_each_column_with_gaps():
    X = mcar(np.random.default_rng(0).normal(size=(100, 3)), 0.2, 0)
    X[:, 1] = 1.0
    X[:90, 2] = np.nan
    table = diagnose(X).table
    assert table["column"] == ["column 2", "column 0"]
    assert table["missing"][0] >= 0.9
    assert all(len(values) == 2 for values in table.values())


def test_large_tables_are_sampled_and_say_so(monkeypatch):
    monkeypatch.setattr(diagnosis, "MOST_ROWS", 200)
    monkeypatch.setattr(association, "MOST_COLUMNS", 4)
    X = np.random.default_rng(0).normal(size=(500, 6))
    holed = mcar(X, 0.3, 0)
    holed[:, 2] = X[:, 2]
    found = diagnose(holed, np.arange(500) % 2)
    assert "is based on 200 rows drawn at random and the 4 columns whose gaps vary most" in str(found)
    assert found.n_rows == 500
    assert len(found.missing) == 6
    assert 2 not in found.columns
    assert found.by_group.shape == (2, 4)
    assert len(found.table["column"]) == 5


@pytest.mark.parametrize(
    ("X", "labels", "message"),
    [
        (np.ones((5, 2)), [0, 1], "one label for each of the 5 rows"),
        (np.ones((5, 2)), [0, 1, np.nan, 0, 1], "labels contains NaN"),
        (np.ones((5, 2)), [-1] * 5, "-1 throughout"),
        ([["a", 1.0]], None, "column 0 holds 'a'"),
    ],
)
def test_bad_input(X, labels, message):
    with pytest.raises(ValueError, match=message):
        diagnose(X, labels)


def test_odd_tables_are_diagnosed():
    for X in (
        np.full((5, 3), np.nan),
        [[1.0, np.nan]],
        [[np.nan]],
        np.where(np.eye(6) > 0, np.nan, 1.0),
        [[np.inf, 1.0], [np.nan, 2.0], [1.0, np.nan]],
    ):
        found = diagnose(X)
        assert found.suggestion
        DiagnosisDisplay.from_diagnosis(found).figure_.canvas.draw()
        plt.close("all")


def test_the_picture_shows_the_drivers():
    X = by_driver(np.random.default_rng(0).normal(size=(400, 4)), 0.2, 0)
    display = DiagnosisDisplay.from_diagnosis(diagnose(pd.DataFrame(X, columns=list("abcd"))))
    assert sorted(display.lacking) == ["b", "c", "d"]
    assert (display.difference[:, 0] > 0.5).all()
    assert np.abs(display.difference[:, 1:]).max() < 0.5
    texts = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert any(text.startswith("b  ") for text in texts)
    plt.close("all")


def test_kpod_missingness_is_there_without_an_import_of_its_own():
    assert kpod.missingness is missingness


@pytest.mark.parametrize("as_given", [lambda f: f, pl.from_pandas], ids=["pandas", "polars"])
def test_of_text_and_dates_the_gaps_are_looked_at(as_given):
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    frame = pd.DataFrame(
        {
            "word": np.where(x > 1, None, "a"),
            "x": x,
            "day": pd.Series(pd.to_datetime(["2024-01-01"] * 400)).where(rng.random(400) < 0.8),
            "kind": pd.Categorical(np.where(rng.random(400) < 0.5, "u", "v")),
        }
    )
    found = diagnose(as_given(frame))
    assert found.names == list(frame.columns)
    assert_allclose(found.missing, frame.isna().mean())
    assert dict(zip(found.table["column"], found.table["depends_on"], strict=True))["word"] == "x"


def test_false_discoveries_are_controlled_as_by_scipy(rng):
    for _ in range(200):
        p = rng.random(rng.integers(40)) ** rng.choice([1, 4, 12])
        expected = stats.false_discovery_control(p) <= association.LEVEL
        assert_array_equal(association._significant(p), expected)
