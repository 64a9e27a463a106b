"""The number of clusters of any shape by held-out log density."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm, rankdata

from kpod import KPOD, GaussianMixture, choose_k
from kpod._engine.executors import Executor
from kpod._findings.number_by_density import (
    check_by_density,
    instead_of_one,
    perhaps_apart,
    set_apart,
    with_density,
    with_groups_apart,
)
from kpod._model_selection.density import DensityChoice, DensitySearch, normal_scores
from kpod._model_selection.number_of_clusters import KChoice


def spreads(rng, n=450, missing=0.3):
    """Three groups of spreads 0.3, 1 and 2.5, which squared errors take for one."""
    y = rng.integers(3, size=n)
    X = 1.1 * rng.normal(size=(3, 8))[y] + np.array([0.3, 1, 2.5])[y][:, None] * rng.normal(size=(n, 8))
    X[rng.random(X.shape) < missing] = np.nan
    return X[~np.isnan(X).all(axis=1)]


def one_group(rng, kind, n=300, p=6):
    normal = np.sqrt(0.5) * (rng.normal(size=(n, 1)) + rng.normal(size=(n, p)))
    X = {
        "factor": normal,
        "lognormal": np.exp(normal),
        "uniform": rng.random((n, p)),
        "heavy tails": rng.normal(size=(n, p)) / np.sqrt(rng.chisquare(3, size=(n, 1)) / 3),
        "answers": np.clip(np.round(3 + normal), 1, 5),
    }[kind]
    X[rng.random(X.shape) < 0.2] = np.nan
    return X[~np.isnan(X).all(axis=1)]


def test_scores_are_normal_quantiles_of_ranks_with_ties_broken(rng):
    X = np.column_stack([rng.normal(size=200), rng.integers(3, size=200)])
    X[rng.random(X.shape) < 0.2] = np.nan
    Z = normal_scores(X, np.random.default_rng(0))
    assert_array_equal(np.isnan(Z), np.isnan(X))
    x, z = X[~np.isnan(X[:, 0]), 0], Z[~np.isnan(X[:, 0]), 0]
    assert_allclose(z, norm.ppf((rankdata(x) - 0.5) / len(x)))
    for j in range(2):
        seen = ~np.isnan(X[:, j])
        assert_allclose(np.sort(Z[seen, j]), norm.ppf((np.arange(seen.sum()) + 0.5) / seen.sum()))
    answers, scores = X[~np.isnan(X[:, 1]), 1], Z[~np.isnan(X[:, 1]), 1]
    assert scores[answers == 0].max() < scores[answers == 1].min()


def test_a_monotone_change_of_columns_changes_nothing(rng):
    X = spreads(rng, 150)
    first, second = (DensitySearch.of(table, None, Executor()).choice([1, 2]) for table in (X, np.exp(X) - 3))
    for k in (1, 2):
        assert_array_equal(first.by_k[k], second.by_k[k])


@pytest.mark.parametrize("kind", ["factor", "lognormal", "uniform", "heavy tails", "answers"])
def test_one_group_stays_one(kind, rng):
    found = DensitySearch.of(one_group(rng, kind), None, Executor()).choice(range(1, 5))
    assert found.k == 1


def test_the_density_of_one_cluster_is_the_normal_one_of_rows_not_seen(rng):
    X = rng.normal(size=(100, 3)) @ rng.normal(size=(3, 3))
    search = DensitySearch.of(X, None, Executor())
    found = search.log_density(1)
    fold = search.folds[0]
    others = np.delete(np.arange(100), fold)
    model = GaussianMixture(1, covariance_type="tied", n_factors=None, tol=1e-9).fit(search.scores[others])
    # Tails, if the rows have any, change it a little.
    assert_allclose(found[fold], model.score_samples(search.scores[fold]), atol=0.15)


def test_groups_of_different_spread_are_found_and_handed_out(rng):
    X = spreads(rng)
    assert choose_k(X, range(1, 6), random_state=0).best_k_ < 3
    choice = choose_k(X, range(1, 6), shape="auto", random_state=0)
    assert choice.best_k_ == 3 == choice.model_.n_clusters_
    assert isinstance(choice.model_, GaussianMixture)
    assert f"{choice.table_['log_density'][2]:.3f}" in choice.text_table()
    assert "density" in choice.sentence_
    # Nothing of it depends on threads.
    again = choose_k(X, range(1, 6), shape="auto", estimator=KPOD(n_threads=3), random_state=0)
    assert_array_equal(again.table_["log_density"], choice.table_["log_density"])


def choice_of(k, clear, n_separate=None, numbers=range(1, 7), doubt=""):
    return KChoice(
        best_k_=k,
        clear_=clear,
        reason_="" if clear else "so",
        sentence_="As before.",
        table_={"k": np.array(numbers)},
        column_errors_=None,
        centers_k_=k,
        correlated_=False,
        n_hidden_=1,
        n_rows_=1,
        n_separate_=k if n_separate is None else n_separate,
        doubt_=doubt,
    )


def density_of(*z, numbers=range(1, 7)):
    """Log densities, by number: so many standard errors above that of one cluster, with independent noise."""
    rng = np.random.default_rng(0)
    by_k = {1: np.zeros(400)}
    for k, above in enumerate(z, 2):
        noise = rng.normal(size=400)
        noise = (noise - noise.mean()) / noise.std(ddof=1)
        by_k[k] = noise + above / 20
    return DensityChoice(by_k, frozenset(numbers))


@pytest.mark.parametrize(
    ("choice", "density", "k", "clear"),
    [
        (choice_of(1, True), density_of(-1.0, 1.0), 1, True),  # within the noise
        (choice_of(1, True), density_of(2.5, 2.0), 2, False),
        (choice_of(1, True), density_of(8.0, 7.0), 2, True),
        (choice_of(1, True), density_of(8.0, 8.5), 2, False),  # nor are 3 worse
        (choice_of(1, True), density_of(8.0, 12.0), 3, False),  # 2 clusters are not far behind
        (choice_of(3, True), density_of(1.0, 1.0, 2.0), 3, True),  # no evidence against one, none for others
        (choice_of(3, True), density_of(5.0, 9.0, 10.0), 3, True),
        (choice_of(2, True), density_of(5.0, 15.0), 2, False),
        (choice_of(3, False), density_of(5.0, 9.0, 9.0), 3, True),  # what was in doubt is settled
        (choice_of(3, False), density_of(-2.0, 2.5, 2.0), 3, True),  # as both agree
        (choice_of(4, False), density_of(-2.0, 2.5, 2.0), 4, False),
        (choice_of(3, False, n_separate=2), density_of(5.0, 9.0, 9.0), 3, False),  # a continuum stays one,
        (choice_of(5, False, n_separate=2), density_of(5.0, 9.0, 9.0), 3, False),  # in as few pieces
        (choice_of(6, False), density_of(5.0, 9.0, 9.0, 9.0, 9.5), 6, False),  # the last that was tried
        (choice_of(5, False), density_of(9.0, 5.0, 4.0, 3.0), 2, False),
        # As many as were tried: groups that no Gaussian fits, which are no reason for another number
        (choice_of(2, True), density_of(5.0, 9.0, 14.0, 19.0, 25.0), 2, True),
        (choice_of(4, False), density_of(5.0, 9.0, 14.0, 19.0, 25.0), 4, False),
    ],
)
def test_what_follows_from_squared_errors_and_density(choice, density, k, clear):
    found = with_density(choice, density)
    assert (found.best_k_, found.clear_) == (k, clear)
    assert bool(found.reason_) != clear
    unchanged = (k, clear) == (choice.best_k_, choice.clear_)
    assert (found.sentence_ == "As before.") == unchanged
    if not unchanged:
        assert found.sentence_.startswith(f"{k} clusters: " if clear else "No clear choice: ")


SEPARATION = choice_of(4, False, n_separate=3, doubt="separation")


@pytest.mark.parametrize(
    ("choice", "density", "numbers"),
    [
        (choice_of(4, False, n_separate=3), density_of(8.5, 9.0, 9.0), [4, 3, 2]),
        (choice_of(4, False, n_separate=3), density_of(1.0, 9.0, 9.0), [4, 3]),  # 2 are too few
        (choice_of(4, False, n_separate=3), density_of(-1.0, 1.5, 1.5), []),  # one group may be all there is,
        (SEPARATION, density_of(-1.0, 1.5, 1.5), [4, 3, 2]),  # unless squared errors have ruled that out
        (choice_of(4, False), density_of(8.5, 9.0, 9.0), []),  # round clusters are set apart,
        (choice_of(5, False), density_of(8.5, 9.0, 9.0, 3.0), [4, 3, 2]),  # but density is against as many
        (choice_of(4, True, n_separate=3), density_of(8.5, 9.0, 9.0), []),
        (choice_of(6, False, n_separate=3), density_of(8.5, 9.0, 9.0, 9.0, 9.0), []),  # the last tried
    ],
)
def test_numbers_whose_groups_may_be_set_apart_in_a_shape(choice, density, numbers):
    assert perhaps_apart(choice, density) == numbers
    for k in numbers:
        for clear in (True, False):
            found = set_apart(choice, k, clear=clear)
            assert (found.best_k_, found.clear_, bool(found.reason_)) == (k, clear, not clear)
            assert found.sentence_.startswith(f"{k} clusters: " if clear else "No clear choice: ")


class Apart:
    """Groups that are set apart in their shape where `apart` says so, and BIC by number."""

    def __init__(self, apart, bics):
        self.apart, self.bics = apart, bics

    def is_apart(self, k):
        return k in self.apart

    def bic(self, k):
        return self.bics[k]

    def at(self, k):
        return f"model of {k}", f"shape of {k}"


@pytest.mark.parametrize(
    ("choice", "apart", "best", "k", "clear"),
    [
        (SEPARATION, (), 3, 4, False),  # a continuum of groups stays in doubt
        (SEPARATION, (4, 3), 2, 4, True),  # round clusters only seemed not to be separate
        (SEPARATION, (3, 2), 3, 3, True),  # fewer, and BIC agrees
        (SEPARATION, (3, 2), 2, 3, False),
        (choice_of(4, False, n_separate=3, doubt="correlation"), (4, 3), 3, 4, False),
        (choice_of(4, False, n_separate=3, doubt="correlation"), (4, 3), 4, 4, True),
    ],
)
def test_groups_set_apart_in_their_shape_are_clear_where_centers_or_bic_agree(choice, apart, best, k, clear):
    shaped = Apart(apart, {n: 100.0 + abs(n - best) for n in (2, 3, 4)})
    found = with_groups_apart(choice, choice, density_of(8.5, 9.0, 9.0), shaped)
    assert (found.best_k_, found.clear_) == (k, clear)
    assert found.model_ == (f"model of {k}" if apart else None)
    assert found.n_separate_ == (k if apart else 3)


@pytest.mark.parametrize("seed", [1, 2])
def test_pieces_of_a_bent_sheet_are_no_separate_groups(seed):
    """Mixtures describe it by four stretched groups, which go over into each other."""
    rng = np.random.default_rng(seed)
    flat = rng.uniform(-2, 2, size=(200, 2))
    X = np.column_stack([flat, flat[:, 0] * flat[:, 1]]) + 0.3 * rng.normal(size=(200, 3))
    choice = choose_k((X - X.mean(axis=0)) / X.std(axis=0), range(1, 6), shape="auto", random_state=0)
    assert not choice.clear_


def test_density_that_counts_the_pieces_of_skewed_groups_contradicts_nothing(rng, monkeypatch):
    """Where no Gaussian fits the groups that log density asks for, the choice of centers stands."""
    side = rng.integers(2, size=300)
    X = 4.0 * side[:, None] + rng.chisquare(2, size=(300, 3))
    density, choice = density_of(5.0, 15.0), choice_of(2, True)
    assert not with_density(choice, density).clear_
    monkeypatch.setattr("kpod._findings.number_by_density.density_choice", lambda *of: density)
    model, found = check_by_density(X, KPOD(2, random_state=0).fit(X), choice, "auto")
    assert model.n_clusters_ == 2
    assert (found.best_k_, found.clear_, found.sentence_) == (2, True, "As before.")
    assert np.isfinite(found.table_["log_density"][:3]).all()


def test_numbers_that_were_not_asked_for_are_not_chosen():
    density = density_of(5.0, 9.0, 3.0, numbers=[2, 4])
    assert density.best == density.k == 2


@pytest.mark.parametrize("kind", ["one number", "few rows", "category", "informative"])
def test_no_check_by_density_where_there_is_nothing_to_see(kind, rng):
    X = spreads(rng, 120)
    model = KPOD(2, random_state=0)
    choice = choice_of(2, True)
    if kind == "one number":
        choice = choice_of(2, True, numbers=[2])
    elif kind == "few rows":
        X = X[:20]
    elif kind == "category":
        X = np.column_stack([X, np.eye(3)[rng.integers(3, size=len(X))]])
    else:
        choice.gaps_ = True
    model.fit(X)
    found, about = check_by_density(X, model, choice, "auto")
    assert found is model
    assert about is choice


def test_one_cluster_stays_where_more_are_hardly_better():
    """Held-out log density within two standard errors of that of one cluster is no reason for more."""
    choice = SimpleNamespace(best_k_=1)
    density = SimpleNamespace(k=3, best=3, by_k={1: None, 2: None, 3: None}, above=lambda one, other: 1.5)
    assert instead_of_one(choice, density) is choice
