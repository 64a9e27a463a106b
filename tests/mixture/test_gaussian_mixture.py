"""GaussianMixture: against formulas written out, scikit-learn on complete tables, and what users rely on."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal, norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture as OfScikitLearn

import kpod
from kpod import GaussianMixture
from kpod._engine.executors import Executor
from kpod._engine.table import make_table
from kpod._mixture import fit, outlying_cells, starts
from kpod._mixture.covariance_shape import SHAPES, Shape
from kpod._mixture.em import expectation, iteration
from kpod._mixture.em.expectation import Entries
from kpod._mixture.em.maximisation import Constraints, above_floor
from kpod._mixture.em.mixture_parameters import Parameters, Prior
from kpod._mixture.search import Search
from tests.helpers.tables import as_csr, as_csr_for_engine, clustered

ALL_SHAPES = [
    *map(Shape, SHAPES),
    *(Shape("tied", q) for q in (1, 2, 3)),
    Shape("diag", 2),
    *(Shape("full", q) for q in (1, 2)),
]
BY_NAME = {"argvalues": ALL_SHAPES, "ids": map(str, ALL_SHAPES)}


def entries_of(X, **options):
    return Entries(make_table(np.asarray(X), Executor(), **options), Executor())


def constraints(entries, prior=None):
    table = entries.table
    floor = iteration.smallest_variances(table.variances, table.live, 1e-6)
    return Constraints(floor, table.fallback, prior or Prior())


def fitted(entries, shape, labels, k, n_steps=10, within=None):
    within = within or constraints(entries)
    start = iteration.from_labels(entries, shape, labels.astype(np.int32), k, within)
    return iteration.run(entries, shape, start, within, n_steps, -np.inf)


def log_densities(X, parameters):
    """log(share * density) of the observed entries, with the covariance matrix written out."""
    out = np.log(np.tile(parameters.shares, (len(X), 1)))
    for i, row in enumerate(X):
        o = ~np.isnan(row)
        for c in range(parameters.k):
            if o.any():
                normal = multivariate_normal(
                    parameters.means[c, o], parameters.covariance(c)[np.ix_(o, o)], allow_singular=True
                )
                out[i, c] += normal.logpdf(row[o])
            if parameters.rates is not None:
                out[i, c] += np.log(np.where(o, parameters.rates[c], 1 - parameters.rates[c])).sum()
    return out


def elongated(rng, n=240, missing=0.25):
    """Three groups of unequal size, spread and correlation."""
    y = rng.choice(3, size=n, p=[0.55, 0.3, 0.15])
    roots = rng.normal(size=(3, 5, 5)) * np.array([0.4, 0.7, 1.0])[:, None, None]
    X = 4 * rng.normal(size=(3, 5))[y] + np.einsum("nij,nj->ni", roots[y], rng.normal(size=(n, 5)))
    X[rng.random(X.shape) < missing] = np.nan
    return X[~np.isnan(X).all(axis=1)], y[~np.isnan(X).all(axis=1)]


@pytest.mark.parametrize("shape", **BY_NAME)
def test_densities_are_those_of_the_covariance_written_out(shape, rng):
    X, y = clustered(rng, n_rows=60, missing=0.4)
    X[3] = np.nan
    entries = entries_of(X)
    units = entries.table.units
    found = fitted(entries, shape, y, 5, 3).parameters
    posterior, evidence = entries.posterior(found)
    own = found.rescaled(units.shift, units.scale)
    expected = log_densities(X, own)
    total = np.logaddexp.reduce(expected, axis=1)
    assert_allclose(evidence + entries.table.observed * np.log(units.scale), total, atol=1e-8)
    assert_allclose(posterior, np.exp(expected - total[:, None]), atol=1e-8)
    assert_allclose(entries.sums(found).log_likelihood, evidence.sum())


@pytest.mark.parametrize("shape", **BY_NAME)
@pytest.mark.parametrize("prior_rows", [0.0, 5.0])
def test_what_em_maximises_never_falls(shape, prior_rows, rng):
    X, y = elongated(rng)
    entries = entries_of(X)
    within = constraints(entries)
    prior = starts.prior_of(entries, shape, y.astype(np.int32), 3, within, prior_rows)
    solution = fitted(entries, shape, rng.integers(3, size=len(y)), 3, 40, constraints(entries, prior))
    assert (np.diff(solution.trace) >= -1e-9 * abs(solution.trace[0])).all()
    assert solution.trace[-1] > solution.trace[0]


@pytest.mark.parametrize("shape", **BY_NAME)
def test_where_em_ends_no_small_change_of_the_parameters_is_better(shape, rng):
    """A step along random directions that the shape allows loses as much either way: the gradient is 0."""
    X, y = elongated(rng, n=150)
    entries = entries_of(X)
    within = constraints(entries)
    start = iteration.from_labels(entries, shape, y.astype(np.int32), 3, within)
    end = iteration.run(entries, shape, start, within, 3000, 1e-10).parameters

    def likelihood(step, direction):
        means = end.means + step * direction[0]
        variances = end.variances * np.exp(step * direction[1])
        loadings = end.loadings + step * direction[2]
        whole = None if end.whole is None else end.whole * np.exp(step * direction[3])
        return entries.sums(Parameters(end.shares, means, variances, loadings, whole)).log_likelihood

    for _ in range(3):
        k, p = end.means.shape
        of_variances = rng.normal(size=(k if shape.own_variances else 1, 1 if shape.round else p))
        of_loadings = rng.normal(size=(k if shape.own_loadings else 1, *end.loadings.shape[1:]))
        direction = (
            rng.normal(size=(k, p)),
            np.broadcast_to(of_variances, (k, p)),
            of_loadings,
            rng.normal(size=(1 if end.whole is None else len(end.whole), 1, 1)),
        )
        slope = (likelihood(1e-4, direction) - likelihood(-1e-4, direction)) / 2e-4
        curve = likelihood(1e-4, direction) + likelihood(-1e-4, direction) - 2 * likelihood(0, direction)
        assert abs(slope) < 0.05 * np.sqrt(max(-curve / 1e-8, 1.0))


@pytest.mark.parametrize("shape", [Shape("tied", 2), Shape("full", 1), Shape("diag"), Shape("full")], ids=str)
def test_ranges_threads_sparse_tables_and_precision_agree(shape, rng, monkeypatch):
    monkeypatch.setattr(expectation, "ENTRIES_PER_RANGE", 64)
    X, y = clustered(rng, missing=0.5, k=3)
    weights = rng.uniform(0.5, 2, size=len(X))

    def likelihoods(X, n_threads=1):
        with kpod._engine.executors.threads(n_threads) as executor:
            entries = Entries(make_table(X, executor, weights=weights), executor)
            assert len(entries.ranges) > 5
            found = fitted(entries, shape, y, 3)
            scale = entries.table.units.scale
            return np.array(found.trace), found.parameters.means / scale + entries.table.units.shift

    trace, means = likelihoods(X)
    for n_threads in (2, 3):
        other = likelihoods(X, n_threads)
        assert_array_equal(other[0], trace)
        assert_array_equal(other[1], means)
    assert_allclose(likelihoods(as_csr_for_engine(X))[0], trace, rtol=1e-9)
    assert_allclose(likelihoods(X.astype(np.float32))[1], means, atol=1e-4)


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_on_complete_tables_it_is_scikit_learns(covariance_type, rng):
    X, _ = elongated(rng, missing=0.0)
    options = {"covariance_type": covariance_type, "tol": 1e-9, "max_iter": 3000, "random_state": 0}
    ours = GaussianMixture(3, n_factors=None, variance_prior=0, n_init=20, **options).fit(X)
    inverse = np.linalg.inv if covariance_type in ("full", "tied") else np.reciprocal
    start = {"means": ours.means_, "weights": ours.weights_, "precisions": inverse(ours.covariances_)}
    theirs = OfScikitLearn(3, **{f"{name}_init": a for name, a in start.items()}, **options).fit(X)
    assert ours.score(X) == pytest.approx(theirs.score(X), abs=1e-4)
    assert ours.bic(X) == pytest.approx(theirs.bic(X), abs=0.1)
    assert ours.aic(X) == pytest.approx(theirs.aic(X), abs=0.1)
    assert_allclose(ours.means_, theirs.means_, atol=1e-2)
    assert_allclose(ours.covariances_, theirs.covariances_, atol=0.02)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-2)


def test_what_a_fit_leaves_behind_agrees_with_itself(rng):
    X, y = elongated(rng)
    weights = rng.uniform(0.5, 2, size=len(X))
    model = GaussianMixture(3, random_state=0, n_init=10).fit(X, sample_weight=weights)
    assert_array_equal(model.labels_, model.predict(X))
    assert_array_equal(model.labels_, model.predict_proba(X).argmax(axis=1))
    assert model.lower_bound_ == pytest.approx(model.score(X, sample_weight=weights))
    assert (np.diff(model.lower_bounds_) >= -1e-9).all()
    assert (np.diff(model.weights_) <= 0).all()
    assert model.weights_.sum() == pytest.approx(1)
    assert model.n_clusters_ == 3
    assert_array_equal(model.cluster_centers_, model.means_)
    assert_allclose(model.counts_.sum(axis=0), (~np.isnan(X) * weights[:, None]).sum(axis=0))
    assert min(model.shape_bics_, key=model.shape_bics_.get) == str(model._shape())
    assert adjusted_rand_score(y, model.labels_) > 0.6


@pytest.mark.parametrize("shape", [Shape("tied", 1), Shape("full"), Shape("diag", 1)], ids=str)
def test_weights_equal_repetition(shape, rng):
    X, y = elongated(rng, n=120)
    times = rng.integers(1, 4, size=len(X))
    weighted, repeated = entries_of(X, weights=times.astype(float)), entries_of(np.repeat(X, times, axis=0))
    results = []
    for entries, labels in ((weighted, y), (repeated, np.repeat(y, times))):
        found = fitted(entries, shape, labels, 3).parameters
        own = found.rescaled(entries.table.units.shift, entries.table.units.scale)
        results.append([own.shares, own.means, own.covariance(0), own.covariance(2)])
    for a, b in zip(*results, strict=True):
        assert_allclose(a, b, rtol=1e-6, atol=1e-8)


def test_units_and_order_of_columns_and_other_kinds_of_tables_do_not_matter(rng, tmp_path):
    X, _ = elongated(rng, n=150)
    names = list("abcde")
    model = GaussianMixture(3, random_state=0, n_init=8).fit(X)
    bent = GaussianMixture(3, random_state=0, n_init=8).fit(X * [1, 1000, 0.01, 1, 7] + [0, 5, -300, 0, 1])
    assert_array_equal(model.labels_, bent.labels_)
    frame = pd.DataFrame(X, columns=names)
    from_frame = GaussianMixture(3, random_state=0, n_init=8).fit(frame)
    assert_array_equal(from_frame.labels_, model.labels_)
    assert list(from_frame.feature_names_in_) == names
    np.save(tmp_path / "table.npy", X)
    with kpod.scan(tmp_path / "table.npy") as table:
        scanned = GaussianMixture(3, random_state=0, n_init=8).fit(table)
        assert_array_equal(scanned.predict(table), scanned.labels_)
    assert_array_equal(scanned.labels_, model.labels_)
    sparse = GaussianMixture(3, random_state=0, n_init=8).fit(as_csr(X))
    assert_array_equal(sparse.labels_, model.labels_)
    assert_array_equal(sparse.predict(as_csr(X)), sparse.labels_)


@pytest.mark.parametrize("shape", [Shape("full"), Shape("tied", 2), Shape("diag")], ids=str)
def test_imputed_entries_are_conditional_means(shape, rng):
    X, _ = elongated(rng, n=120)
    X[5] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GaussianMixture(
            2, covariance_type=shape.covariance_type, n_factors=shape.n_factors, n_init=4, random_state=0
        ).fit(X)
    parameters = model._parameters(kpod._engine.blocks.Units(np.zeros(5), 1.0))
    found, std = model.impute(X, return_std=True)
    logs = log_densities(X, parameters)
    posterior = np.exp(logs - np.logaddexp.reduce(logs, axis=1, keepdims=True))
    for i, row in enumerate(X[:40]):
        o, m = ~np.isnan(row), np.isnan(row)
        means, seconds = np.zeros(m.sum()), np.zeros(m.sum())
        for c in range(2):
            s = parameters.covariance(c)
            slopes = s[np.ix_(m, o)] @ np.linalg.inv(s[np.ix_(o, o)])
            mean = parameters.means[c, m] + slopes @ (row - parameters.means[c])[o]
            means += posterior[i, c] * mean
            seconds += posterior[i, c] * (mean**2 + np.diag(s[np.ix_(m, m)] - slopes @ s[np.ix_(o, m)]))
        assert_allclose(found[i, m], means, rtol=1e-6, atol=1e-8)
        assert_allclose(std[i, m], np.sqrt(seconds - means**2), rtol=1e-5)
        assert_array_equal(found[i, o], row[o])
        assert_array_equal(std[i, o], 0)
    draws = np.array(model.impute(X[:40], n_draws=400, random_state=0))
    gaps = np.isnan(X[:40])
    error = (draws.mean(axis=0) - found[:40])[gaps] / (std[:40][gaps] / 20)
    assert np.abs(error).max() < 6
    assert np.median(draws.std(axis=0)[gaps] / std[:40][gaps]) == pytest.approx(1, abs=0.03)
    assert_array_equal(draws[:, ~gaps], np.tile(X[:40][~gaps], (400, 1)))


def test_samples_have_the_moments_of_the_mixture(rng):
    X, _ = elongated(rng)
    model = GaussianMixture(2, covariance_type="full", n_factors=2, n_init=4, random_state=0).fit(X)
    rows, labels = model.sample(20_000)
    assert_allclose(np.bincount(labels) / 20_000, model.weights_, atol=0.02)
    for c in range(2):
        spread = np.sqrt(np.diag(model.covariances_[c]))
        assert np.abs((rows[labels == c].mean(axis=0) - model.means_[c]) / spread).max() < 0.1
        assert_allclose(np.cov(rows[labels == c].T), model.covariances_[c], atol=0.1 * spread.max() ** 2)
    assert_array_equal(model.sample(5)[0], model.sample(5)[0])


def test_the_smallest_covariance_above_a_floor_is_the_most_likely_one(rng):
    root = rng.normal(size=(4, 2))
    sums = root @ root.T  # of rank 2
    floor = rng.uniform(0.1, 0.5, size=4)
    (found,) = above_floor(sums[None], floor)

    def likelihood(s):
        return -np.linalg.slogdet(s)[1] - np.trace(np.linalg.solve(s, sums))

    assert (np.linalg.eigvalsh(found - np.diag(floor)) > -1e-12).all()
    for _ in range(20):
        more = rng.normal(size=(4, 4)) / 10
        other = (
            np.diag(floor) + above_floor((found - np.diag(floor) + more @ more.T)[None], np.full(4, 1e-12))[0]
        )
        assert likelihood(other) <= likelihood(found) + 1e-9
        mixed = 0.9 * found + 0.1 * other
        assert likelihood(mixed) <= likelihood(found) + 1e-9
    for share in (0.5, 0.9):  # and no smaller one is
        assert likelihood(np.diag(floor) + share * (found - np.diag(floor))) < likelihood(found)


def test_clusters_of_one_value_or_one_row_have_finite_parameters(rng):
    X = rng.normal(size=(60, 4))
    X[:20] = X[0]  # duplicates
    X[:, 3] = rng.integers(2, size=60)  # yes or no
    X[20:40, 2] = 7.0  # constant in part
    X[rng.random(X.shape) < 0.2] = np.nan
    X[np.isnan(X).all(axis=1)] = 0
    for covariance_type in SHAPES:
        model = GaussianMixture(
            4, covariance_type=covariance_type, n_factors=None, n_init=5, random_state=0, tol=1e-3
        ).fit(X)
        assert np.isfinite(model.means_).all()
        assert np.isfinite(model.covariances_).all()
        assert np.isfinite(model.score(X))
    one = GaussianMixture(1, random_state=0).fit([[1.0, np.nan], [2.0, 3.0]])
    assert np.isfinite(one.score([[1.0, 1.0]]))
    single = GaussianMixture(1, random_state=0, n_init=1).fit([[1.0, 2.0, 3.0]])
    assert_allclose(single.means_, [[1.0, 2.0, 3.0]])


def test_rows_and_columns_with_nothing_observed(rng):
    X, _ = elongated(rng, n=100)
    X = np.column_stack([X, np.full(len(X), np.nan)])
    X[7] = np.nan
    with pytest.warns(UserWarning, match="nothing observed"), pytest.warns(UserWarning, match="column 5"):
        model = GaussianMixture(2, random_state=0, n_init=4).fit(X)
    assert model.labels_[7] == -1
    assert_allclose(model.predict_proba(X)[7], model.weights_)
    assert model.score_samples(X)[7] == 0
    assert np.isnan(model.means_[:, 5]).all()
    assert np.isfinite(model.means_[:, :5]).all()
    filled = model.impute(X)
    assert np.isnan(filled[:, 5]).all()
    assert np.isfinite(filled[:, :5]).all()
    assert_allclose(filled[7, :5], model.weights_ @ model.means_[:, :5])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components"),
        ({"n_components": 500}, "n_samples=100 should be >= n_components=500"),
        ({"covariance_type": "round"}, "covariance_type must be one of"),
        ({"n_factors": 0}, "n_factors must be"),
        ({"n_factors": 5, "covariance_type": "tied"}, "less than the number of columns, 5"),
        ({"n_factors": 1, "covariance_type": "spherical"}, "has no factors"),
        ({"tol": -1.0}, "tol must be"),
        ({"reg_covar": 0}, "reg_covar must be above 0"),
        ({"variance_prior": np.nan}, "variance_prior"),
        ({"n_init": 0}, "n_init"),
    ],
)
def test_bad_parameters_are_named(options, message, rng):
    with pytest.raises(ValueError, match=message):
        GaussianMixture(**options).fit(rng.normal(size=(100, 5)))


def test_bad_tables_are_refused_in_clear_words(rng):
    X = rng.normal(size=(150, 101))
    with pytest.raises(ValueError, match="at most 100"):
        GaussianMixture(2, covariance_type="full", n_factors=None).fit(X)
    with pytest.raises(ValueError, match="infinity"):
        GaussianMixture(1).fit([[1.0, np.inf], [2.0, 3.0]])
    with pytest.raises(ValueError, match="too large or too small"):
        GaussianMixture(1, n_init=1).fit(rng.normal(size=(20, 2)) * 1e-160)
    with pytest.raises(ValueError, match="impute does not accept sparse"):
        GaussianMixture(1, n_init=1).fit(X[:, :3]).impute(as_csr(X[:, :3]))
    with pytest.warns(ConvergenceWarning, match="Not converged after 1 steps"):
        GaussianMixture(3, max_iter=1, n_init=1, tol=0, covariance_type="diag").fit(elongated(rng)[0])


@pytest.mark.parametrize("shape", [Shape("tied", 2), Shape("diag"), Shape("full"), Shape("full", 1)], ids=str)
def test_the_density_of_an_entry_given_the_others_is_a_ratio_of_densities(shape, rng):
    X, y = elongated(rng, n=150)
    entries = entries_of(X)
    units = entries.table.units
    parameters = fitted(entries, shape, y, 3, 3).parameters.rescaled(units.shift, units.scale)
    ignored = outlying_cells.keep_rows(rng.random(X.shape) < 0.2, X)
    found = outlying_cells.conditional_log_densities(X, ignored, parameters)
    for i, j in np.argwhere(~np.isnan(X))[:60]:
        others = np.where(ignored[i], np.nan, X[i])
        others[j] = np.nan
        both = others.copy()
        both[j] = X[i, j]
        with_it, without = np.logaddexp.reduce(log_densities(np.array([both, others]), parameters), axis=1)
        assert found[i, j] == pytest.approx(with_it - without, abs=1e-5)
    assert_array_equal(np.isnan(found), np.isnan(X))


def test_wild_cells_are_listed_and_count_as_gaps(rng):
    X, y = clustered(rng, n_rows=240, k=3, spread=0.4, missing=0.2)
    planted = np.argwhere(~np.isnan(X))[rng.choice(int((~np.isnan(X)).sum()), 12, replace=False)]
    X[tuple(planted.T)] += 20 * rng.choice([-1, 1], size=12)
    options = {"random_state": 0, "n_init": 10}
    model = GaussianMixture(3, outlier_cells="auto", **options).fit(X)
    assert set(map(tuple, planted)) <= set(map(tuple, model.outlier_cells_))
    assert len(model.outlier_cells_) < 30
    assert adjusted_rand_score(y, model.labels_) > 0.8
    assert_array_equal(model.predict(X), model.labels_)
    assert model.score(X) > GaussianMixture(3, **options).fit(X).score(X)
    assert_array_equal(model.impute(X)[tuple(planted.T)], X[tuple(planted.T)])
    clean = np.where(np.isnan(X) | (np.abs(X) > 8), np.nan, X)
    unhurt = GaussianMixture(3, outlier_cells="auto", **options).fit(clean)
    assert not hasattr(unhurt, "outlier_cells_") or len(unhurt.outlier_cells_) < 5
    with pytest.raises(ValueError, match="not supported for sparse tables"):
        GaussianMixture(3, outlier_cells=True).fit(as_csr(X))


def test_columns_that_say_nothing_are_found(rng):
    X, y = clustered(rng, n_rows=300, n_columns=6, k=3, spread=0.5, missing=0.2)
    noise = rng.normal(size=(300, 10))
    noise[rng.random(noise.shape) < 0.2] = np.nan
    table = np.hstack([X, noise])
    model = GaussianMixture(3, select_columns="auto", random_state=0, n_init=10).fit(table)
    assert model.selected_[6:].sum() <= 1
    assert model.selected_[:6].sum() >= 4
    uninformative = ~model.selected_
    assert_allclose(model.means_[:, uninformative], np.tile(model.means_[0, uninformative], (3, 1)))
    moved = table.copy()
    moved[:, uninformative] = np.where(np.isnan(table[:, uninformative]), np.nan, 0.0)
    if model.n_factors_ is None:
        assert_allclose(model.predict_proba(moved), model.predict_proba(table), atol=1e-9)
    plain = GaussianMixture(
        3, covariance_type=model.covariance_type_, n_factors=model.n_factors_, random_state=0, n_init=10
    ).fit(table)
    assert model.bic(table) < plain.bic(table)
    assert adjusted_rand_score(y, model.labels_) >= adjusted_rand_score(y, plain.labels_) - 0.05


@pytest.mark.parametrize("shape", [Shape("tied", 1), Shape("full"), Shape("diag")], ids=str)
def test_informative_gaps_are_part_of_the_density(shape, rng):
    X, y = clustered(rng, n_rows=200, k=2, spread=1.0, missing=0.0)
    X[rng.random(X.shape) < np.array([[0.6], [0.1]])[y] * (np.arange(8) < 4)] = np.nan
    X[0] = np.nan
    model = GaussianMixture(
        2, covariance_type=shape.covariance_type, n_factors=shape.n_factors, missingness="informative",
        random_state=0, n_init=6,
    ).fit(X)  # fmt: skip
    expected = log_densities(X, model._parameters(kpod._engine.blocks.Units(np.zeros(8), 1.0)))
    # A column without gaps says nothing: its rates of one half are taken out again.
    constant = np.log(0.5) * (model.missing_rates_[0] == 0).sum()
    assert_allclose(model.score_samples(X), np.logaddexp.reduce(expected, axis=1) - constant, atol=1e-6)
    assert_allclose(model.predict_proba(X), np.exp(expected - np.logaddexp.reduce(expected, axis=1)[:, None]))
    assert (np.diff(model.lower_bounds_) >= -1e-9).all()
    assert model.labels_[0] == model.missing_rates_.sum(axis=1).argmax()
    assert_allclose(np.sort(model.missing_rates_[:, :4].mean(axis=1)), [0.1, 0.6], atol=0.12)
    assert adjusted_rand_score(y[1:], model.labels_[1:]) > 0.6


def test_whether_gaps_count_is_decided_as_by_kpod(rng):
    X, _ = clustered(rng, n_rows=200, k=2, missing=0.2)
    model = GaussianMixture(2, missingness="auto", random_state=0, n_init=4).fit(X)
    assert not hasattr(model, "missing_rates_")
    assert not model.missingness_decision_.use
    assert model.missingness_ == "ignore"
    assert not hasattr(model.set_params(missingness="ignore").fit(X), "missingness_decision_")


@pytest.mark.parametrize("more", [-0.5, 0.5])
def test_columns_are_tied_only_at_the_cost_of_columns_that_say_nothing(more, rng, monkeypatch):
    """Two means less may cost 2 of log-likelihood: what costs more has found other clusters."""
    X = rng.normal(size=(200, 5)) + np.outer(np.arange(200) % 2, [6.0, 6.0, 4.0, 0.0, 0.0])
    sample = starts.standardised_sample(make_table(X, Executor()), rng)
    search = Search(sample, 2, constraints(sample.entries), 5.0, Executor(), rng)
    found, shape = search.trial(Shape("tied_diag")), Shape("tied_diag")
    within = replace(search.constraints(shape), uninformative=np.arange(5) > 2)
    tied = replace(found, log_likelihood=found.log_likelihood - 2 - more)
    monkeypatch.setattr(fit, "select", lambda *_: (found, within))
    monkeypatch.setattr(fit, "run", lambda *_: tied)
    expected = (tied, within) if more < 0 else None
    assert fit.with_tied_columns(search, shape, found, fit.Options(2)) == expected


def test_a_table_whose_suspects_cannot_pay_is_not_searched_again(rng, monkeypatch):
    """A few normal entries are beyond four standard deviations: ignoring them costs more than it gains."""
    X = rng.normal(size=(400, 8))
    X[rng.random(X.shape) < 0.2] = np.nan
    X[:2, 0] = 4.5
    prices, one = outlying_cells.Prices.of(X), np.ones(len(X))
    assert prices.suspects(X).any()
    assert not prices.may_pay(X, one)
    monkeypatch.setattr(fit, "without_outlier_cells", None)
    GaussianMixture(2, outlier_cells="auto", covariance_type="tied_diag", random_state=0).fit(X)


@pytest.mark.parametrize("size", [3.0, 10.0])
def test_what_ignoring_suspects_may_gain_is_the_price_over_the_density_of_the_column(size, rng):
    X = rng.normal(size=(200, 4))
    X[:2, 1] += size * np.sign(X[:2, 1])
    prices = outlying_cells.Prices.of(X)
    suspects = prices.suspects(X)
    clean = np.log(0.99) * (~suspects).sum(axis=1)
    normal = norm.logpdf(X, prices.middle, prices.spread)
    of_rows = clean + np.where(suspects, np.log(0.01 / prices.range) - normal, 0.0).sum(axis=1)
    for weights in (np.ones(200), np.where(suspects.any(axis=1), 1.0, 0.01), rng.random(200)):
        assert prices.may_pay(X, weights) == (weights @ of_rows > 0)
    assert prices.may_pay(X, np.ones(200)) == (size == 10.0)


def test_shapes_with_factors_share_a_prior(rng):
    """What own variances are pulled to depends on what clusters have in common: fitted once for both."""
    X, _ = clustered(rng, 3, 200, 6)
    table = make_table(X, Executor())
    sample = starts.standardised_sample(table, np.random.default_rng(0))
    within = constraints(sample.entries)
    search = Search(sample, 3, within, 5.0, Executor(), np.random.default_rng(0))
    diag, full = (search.constraints(Shape(name, 1)).prior for name in ("diag", "full"))
    assert diag is full
    assert search.constraints(Shape("tied", 1)).prior.rows == 0
