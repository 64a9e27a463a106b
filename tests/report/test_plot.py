"""What the pictures show: tested on the numbers behind them, and that they are drawn."""

import tracemalloc
import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kpod
from kpod import KPOD, plot
from kpod._findings.fitted_clusters.clustering import Clustering
from kpod.missingness import mcar
from kpod.plot import _display, _gaps, _rows
from kpod.plot._display import short_names
from tests.helpers.tables import clustered

# But for the one that is not of a clustering.
DISPLAYS = [getattr(plot, name) for name in plot.__all__ if name != "ChooseKDisplay"]


@pytest.fixture(autouse=True)
def agg():
    mpl.use("Agg")
    yield
    plt.close("all")


def fitted(rng, k=3, **options):
    X, _ = clustered(rng, k=k, **options)
    return make_pipeline(StandardScaler(), KPOD(k, random_state=0)).fit(X), X


@pytest.mark.parametrize("display", DISPLAYS)
def test_the_convention_of_displays(rng, display):
    model, X = fitted(rng)
    drawn = display.from_estimator(model, X)
    assert drawn.figure_ is drawn.ax_.figure
    _, ax = plt.subplots()
    again = drawn.plot(ax=ax)
    assert again is drawn
    assert drawn.ax_ is ax
    drawn.figure_.canvas.draw()


# Of one column, or of very few entries, nothing can be hidden: choose_k refuses, see test_choose.py.
@pytest.mark.parametrize("display", [name for name in DISPLAYS if "ChooseK" not in str(name)])
def test_odd_tables_are_drawn(display):
    """One column, a constant one, one without anything; a row of gaps; a cluster of one; many clusters."""
    rng = np.random.default_rng(0)
    tables = {
        "one column": (2, rng.normal(size=(20, 1))),
        "constant": (2, np.column_stack([rng.normal(size=20), np.ones(20)])),
        "empty column": (2, np.column_stack([rng.normal(size=(20, 2)), np.full(20, np.nan)])),
        "empty row": (2, np.vstack([rng.normal(size=(20, 3)), np.full(3, np.nan)])),
        "outlier": (2, np.vstack([rng.normal(size=(20, 3)), np.full(3, 1e6)])),
        "many": (30, rng.normal(size=(90, 40))),
        "long": (2, rng.normal(size=(5000, 3))),
        "names": (2, pd.DataFrame(rng.normal(size=(9, 3)), columns=["$x", "a" * 300, "<b>\n\x1b"])),
    }
    for name, (k, X) in tables.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # KPOD tells of rows and columns with nothing
            model = KPOD(k, random_state=0, n_init=1).fit(X)
            drawn = display.from_estimator(model, X)
        drawn.figure_.canvas.draw()
        assert drawn.figure_.get_size_inches().max() < 60, name


def test_gaps_are_those_of_the_table_sorted_by_cluster(rng):
    model, X = fitted(rng)
    shown = plot.GapsDisplay.from_estimator(model, X)
    labels = model[-1].labels_
    assert shown.observed.shape == X.shape
    at = np.searchsorted(np.rint(shown.bounds * len(X)), np.arange(len(X)), side="right") - 1
    for cluster in range(3):
        assert_array_equal(
            shown.observed[at == cluster].sum(axis=0), (~np.isnan(X[labels == cluster])).sum(axis=0)
        )


def test_long_tables_are_averaged_and_lose_no_gap(rng):
    model, X = fitted(rng, n_rows=3001)
    shown = plot.GapsDisplay.from_estimator(model, X)
    assert len(shown.observed) == _gaps.MOST_IMAGE_ROWS
    assert_allclose(shown.observed.mean(axis=0), (~np.isnan(X)).mean(axis=0), atol=0.01)


def test_squares_of_centers_have_areas_by_count(rng):
    model, X = fitted(rng)
    shown = plot.CentersDisplay.from_estimator(model, X)
    tiles = [patch for patch in shown.ax_.patches if patch.get_facecolor()[3] > 0]
    areas = np.array([tile.get_width() * tile.get_height() for tile in tiles])
    counts = shown.counts.ravel()
    assert_allclose(areas / areas.max(), counts / counts.max(), rtol=1e-6)
    written = {text.get_text() for text in shown.ax_.texts}
    assert {f"n {count:.0f}" for count in counts} <= written


def test_differences_of_centers_are_in_standard_deviations(rng):
    model, X = fitted(rng)
    c = Clustering.of(model, X)
    means = np.array([np.nanmean(X[c.labels == m], axis=0) for m in range(3)])
    by_hand = (means - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)
    assert_allclose(c.differences, by_hand, atol=1e-9)
    assert_allclose(c.differences, model[-1].cluster_centers_, atol=1e-9)


def test_on_complete_data_the_plane_is_that_of_pca(rng):
    X, _ = clustered(rng, missing=0)
    shown = plot.RowsDisplay.from_estimator(KPOD(3, random_state=0).fit(X), X)
    pca = PCA(2).fit(X)
    assert_allclose(shown.explained, pca.explained_variance_ratio_, rtol=1e-9)
    scores = pca.transform(X)
    for a in range(2):
        assert abs(np.corrcoef(shown.points[:, a], scores[:, a])[0, 1]) > 0.99


def test_many_columns_give_the_same_plane(rng, monkeypatch):
    X, _ = clustered(rng, n_columns=30)
    few = _rows.principal_plane(X)
    monkeypatch.setattr(_rows, "MANY_COLUMNS", 10)
    for ours, theirs in zip(_rows.principal_plane(X), few, strict=True):
        assert_allclose(ours, theirs, atol=1e-8)


@pytest.mark.parametrize("missing", [0.2, 0.6])
def test_the_plane_is_found_in_spite_of_gaps(missing):
    rng = np.random.default_rng(0)
    truth = np.linalg.qr(rng.normal(size=(20, 2)))[0]
    X = rng.normal(size=(3000, 2)) * [3, 2] @ truth.T + 0.5 * rng.normal(size=(3000, 20))
    plane = _rows.principal_plane(mcar(X, missing, random_state=0))
    assert_allclose(np.abs(np.diag(plane.axes.T @ truth)), 1, atol=0.01)
    assert_allclose(plane.variances, [9.25, 4.25], rtol=0.1)
    assert_allclose(plane.noise, 0.25, rtol=0.1)


def test_noise_is_not_explained():
    """Largest likelihood alone explains nine tenths of this."""
    X = mcar(np.random.default_rng(0).normal(size=(100, 700)), 0.97, random_state=0)
    assert _rows.principal_plane(X).explained.sum() < 0.05


@pytest.mark.parametrize("missing", [0.3, 0.9])
def test_no_more_is_explained_than_there_is(rng, missing):
    X, _ = clustered(rng, n_rows=60, n_columns=12, missing=missing)
    plane = _rows.principal_plane(X - np.nanmean(X, axis=0))
    assert 0 <= plane.explained.sum() <= 1


def test_the_plane_of_many_columns_takes_no_matrix_of_columns_by_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 20_000))
    X[rng.random(X.shape) < 0.2] = np.nan
    tracemalloc.start()
    _rows.principal_plane(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * X.nbytes  # 96 MB; 20,000 x 20,000 would be 3.2 GB


def test_the_loss_needs_no_table(rng):
    model, X = fitted(rng)
    without, given = plot.LossDisplay.from_estimator(model), plot.LossDisplay.from_estimator(model, X)
    assert_array_equal(without.losses, given.losses)
    assert len(without.ax_.lines) > 0


@pytest.mark.parametrize("display", DISPLAYS, ids=lambda display: display.__name__)
def test_a_sparse_table_is_drawn_as_the_same_one_dense(rng, display):
    X, _ = clustered(rng, missing=0.5)
    model = KPOD(3, random_state=0).fit(X)
    rows, columns = np.nonzero(~np.isnan(X))
    csr = sparse.csr_array((X[rows, columns], (rows, columns)), shape=X.shape)
    dense, same = display.from_estimator(model, X), display.from_estimator(model, csr)
    assert vars(dense).keys() == vars(same).keys()
    for name, value in vars(dense).items():
        if not name.endswith("_"):
            np.testing.assert_equal(vars(same)[name], value)


def test_rows_with_little_observed_are_fainter_and_nearer_to_the_middle(rng):
    X, _ = clustered(rng, missing=0)
    holed = np.vstack([X, np.where(np.arange(X.shape[1]) < 1, X, np.nan)])
    model = KPOD(3, random_state=0).fit(X)
    shown = plot.RowsDisplay.from_estimator(model, holed)
    whole, poor = shown.shares == 1, shown.shares < 1
    assert (
        np.linalg.norm(shown.points[poor], axis=1).mean() < np.linalg.norm(shown.points[whole], axis=1).mean()
    )
    alphas = np.concatenate([c.get_facecolors()[:, 3] for c in shown.ax_.collections[:3]])
    shares = np.concatenate([shown.shares[shown.labels == m] for m in range(3)])
    assert alphas[shares < 1].max() < alphas[shares == 1].min()


def test_expected_scores_agree_with_the_textbook_formula(rng):
    """Against the conditional mean of a joint normal distribution, row by row."""
    X, _ = clustered(rng, n_rows=20, n_columns=5)
    axes = np.linalg.qr(rng.normal(size=(5, 2)))[0]
    variances, noise = np.array([3.0, 2.0]), 0.5
    prior = np.diag(variances - noise)
    for row, score in zip(X, _rows.expected_scores(X, axes, variances, noise), strict=True):
        seen = ~np.isnan(row)
        A = axes[seen]
        gain = prior @ A.T @ np.linalg.inv(A @ prior @ A.T + noise * np.eye(seen.sum()))
        assert_allclose(score, gain @ row[seen], rtol=1e-8)


def test_a_second_direction_of_noise_alone_is_drawn_as_wide_as_its_label_says(rng):
    """One factor behind all columns: the second principal component is noise, but not nothing."""
    X = rng.normal(size=(300, 1)) * np.ones(8) + 0.5 * rng.normal(size=(300, 8))
    X[:, 1:] = mcar(X[:, 1:], 0.3, rng)
    model = KPOD(2, random_state=0).fit(X)
    shown = plot.RowsDisplay.from_estimator(model, X)
    first, second = shown.points.std(axis=0)
    assert shown.explained[1] > 0.01
    assert second / first > 0.3 * np.sqrt(shown.explained[1] / shown.explained[0])


def test_the_columns_shown_separate_most_and_the_entries_are_in_their_own_units(rng):
    model, X = fitted(rng)
    X = X * 10 + 3
    model.fit(X)
    shown = plot.ColumnsDisplay.from_estimator(model, X, max_columns=4)
    c = Clustering.of(model, X)
    assert shown.separation == sorted(c.separation, reverse=True)[:4]
    for name, groups in zip(shown.names, shown.entries, strict=True):
        column = X[:, c.names.index(name)]
        for m, entries in enumerate(groups):
            assert_array_equal(entries, column[(c.labels == m) & ~np.isnan(column)])
    assert len(shown.axes_) == 4


def test_separation_is_the_variance_explained(rng):
    X, _ = clustered(rng, missing=0)
    model = KPOD(3, random_state=0).fit(X)
    c = Clustering.of(model, X)
    within = ((X - model.cluster_centers_[model.labels_]) ** 2).sum(axis=0)
    unexplained = within / ((X - X.mean(axis=0)) ** 2).sum(axis=0)
    assert_allclose(c.separation, np.maximum(0, 1 - unexplained * (len(X) - 1) / (len(X) - 3)))
    assert_allclose(c.explained, 1 - model.inertia_ / ((X - X.mean(axis=0)) ** 2).sum())


def test_margins_are_zero_between_centers_and_one_on_them():
    X = np.array([[0.0, 0], [10, 0], [0, 0], [10, 0], [5, np.nan], [2.5, 0]])
    model = KPOD(2, init=[[0.0, 0], [10, 0]]).fit(X[:4])
    margins = Clustering.of(model, X).margins
    assert_allclose(margins, [1, 1, 1, 1, 0, 1 - 2.5 / 7.5])
    with pytest.raises(ValueError, match="need a second cluster"):
        plot.MarginsDisplay.from_estimator(KPOD(1).fit(X), X)


def test_the_loss_is_that_of_the_fit(rng):
    model, X = fitted(rng)
    shown = plot.LossDisplay.from_estimator(model, X)
    assert_array_equal(shown.losses, model[-1].loss_curve_)


def test_neighbouring_colours_differ_for_the_colour_blind():
    """Also without red and green: in the projections of Viénot, Brettel & Mollon (1999)."""
    rgb = np.array([to_rgb(colour) for colour in _display.PALETTE]) ** 2.2
    deuteranope = np.array([[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]])
    protanope = np.array([[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]])
    for seen in (rgb, rgb @ deuteranope.T, rgb @ protanope.T):
        shown = np.clip(seen, 0, 1) ** (1 / 2.2)
        apart = np.linalg.norm(shown[:, None] - shown[None], axis=2) + np.eye(len(shown))
        assert apart.min() > 0.1


def test_names_come_from_the_frame_the_model_or_the_caller(rng):
    X, _ = clustered(rng, n_columns=3)
    frame = pd.DataFrame(X, columns=list("abc"))
    model = KPOD(2, random_state=0).fit(frame)
    assert Clustering.of(model, frame).names == ["a", "b", "c"]
    bare = KPOD(2, random_state=0).fit(X)
    assert Clustering.of(bare, X).names == ["column 0", "column 1", "column 2"]
    assert Clustering.of(bare, X, ["x", "y", "z"]).names == ["x", "y", "z"]
    with pytest.raises(ValueError, match="2 column names for 3 columns"):
        Clustering.of(bare, X, ["x", "y"])
    with pytest.raises(TypeError, match="must be a fitted KPOD or GaussianMixture"):
        Clustering.of(StandardScaler(), X)


def test_a_pipeline_that_makes_new_columns_is_shown_in_those(rng):
    X, _ = clustered(rng, missing=0)
    model = make_pipeline(PCA(3), KPOD(2, random_state=0)).fit(X)
    c = Clustering.of(model, X)
    assert len(c.names) == 3
    assert_allclose(c.centers, model[-1].cluster_centers_)


def test_another_table_is_told_from_that_of_the_fit(rng):
    X, _ = clustered(rng)
    model = KPOD(3, random_state=0).fit(X)
    assert Clustering.of(model, X).is_fitted_table
    other = Clustering.of(model, X[::-1])
    assert not other.is_fitted_table
    assert_array_equal(other.labels, model.predict(X[::-1]))


def test_plot_is_reached_from_the_package():
    assert kpod.plot is plot


def test_names_that_begin_alike_are_cut_where_they_differ():
    begin = "Number of Full-Time, Year-Round Workers"
    names = [f"{begin} Total Estimate", f"{begin} Men Estimate", f"{begin} Men MOE3", "Year", "a" * 40]
    cut = short_names(names, 28)
    assert len(set(cut)) == 5
    assert max(map(len, cut)) <= 28
    assert cut[:2] == ["Number of Ful…Total Estimate", "Number of Ful…Men Estimate"]
    assert cut[3:] == ["Year", "a" * 27 + "…"]
