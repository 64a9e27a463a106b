"""Every pass over rows agrees with the plain NumPy oracle, and takes nothing that does not fit."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kpod._engine import blocks, step
from kpod._engine.blocks import Hidden, Units
from kpod._engine.executors import Executor
from kpod._engine.objective import Objective
from kpod._engine.seeding import KMeansPlusPlus
from kpod._engine.solvers.lloyd import Descent, transfer
from kpod._engine.solvers.nearest import nearest_labels
from kpod._inputs.validation import as_csr as validated_csr
from kpod._kernels import lloyd, moves, rows, seeds
from kpod._kernels.panel import Panel, aligned_zeros
from tests.helpers import oracle
from tests.helpers.tables import as_csr, clustered, table_of

RTOL = {np.float32: 2e-5, np.float64: 1e-12}


def csr_of(X):
    return validated_csr(as_csr(X), None)


@pytest.fixture(params=[1, 3, 8, 17], ids=lambda p: f"{p} columns")
def n_columns(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["dense", "csr"])
def container(request):
    return csr_of if request.param else np.asarray


@pytest.fixture(params=[False, True], ids=["unweighted", "weighted"])
def case(request, rng, dtype, n_columns, container):
    """A table far from zero with an ignored column, weights, labels and centers."""
    X, _ = clustered(rng, 700, n_columns, missing=0.4, dtype=np.float64)
    X = (X + 50).astype(dtype)
    if n_columns > 1:
        X[:, 1] = np.nan
    weights = rng.random(len(X)) * rng.integers(0, 2, len(X)) if request.param else None
    table = table_of(container(X), weights)
    labels = rng.integers(4, size=len(X)).astype(np.int32)
    return X.astype(np.float64), weights, table, labels


def add_up(table, labels, k):
    """Exact sums of all rows of a table in one block."""
    (block,) = table.blocks
    partial = step.Partial(rows.Sums(k, *table.sums_units))
    step.AddUp()(block, step.State.unknown(block.n_rows, labels), partial)
    return partial.sums


def test_totals(case, dtype):
    X, weights, table, labels = case
    sums, counts = oracle.totals(X, labels, 4, weights)
    got = add_up(table, labels, 4)
    assert_allclose(got.counts.sum(axis=0), counts, rtol=1e-12)
    shift = np.nan_to_num(table.units.shift)
    assert_allclose(
        got.sums.sum(axis=0) / table.units.scale + shift * counts, sums, rtol=RTOL[dtype], atol=1e-9
    )
    w = np.ones(len(X)) if weights is None else weights
    assert_allclose(got.weights.sum(axis=0), np.bincount(labels, w, 4), rtol=1e-12)


@pytest.mark.parametrize("spoiler", [None, 1e12, 1e-12], ids=["plain", "outlier", "tiny"])
@pytest.mark.parametrize("weighting", [None, "whole", "any", "extreme"])
def test_sums_are_exact_in_any_order(weighting, spoiler, rng, dtype, container):
    """Added up in any order, by any detour and on any side of a cut: the same bits, and the right ones."""
    X, _ = clustered(rng, 900, 6, missing=0.4, dtype=np.float64)
    if spoiler:
        X[5, 2] = spoiler
    X = X.astype(dtype)
    weights = {
        None: None,
        "whole": rng.integers(1, 5, 900).astype(float),
        "any": rng.random(900),
        "extreme": 10.0 ** rng.uniform(-9, 9, 900),
    }[weighting]
    table = table_of(container(X), weights)
    labels = rng.integers(3, size=900).astype(np.int32)
    there = add_up(table, labels, 3)
    (block,) = table.blocks
    state = step.State.unknown(900, labels)
    # by way of other labels, one row at a time, in another order
    back = add_up(table, rng.integers(3, size=900).astype(np.int32), 3)
    other = add_up(table, labels, 3)
    with block.rows() as opened:
        space = rows.Workspace(opened, 0, 1)
        for piece in rng.permutation(30):
            rows.add_up(opened, 30 * piece, 30 * piece + 30, state.labels, back, space)
    start = back.sums - other.sums  # what the detour had added before
    assert_array_equal(back.sums - start, there.sums)
    entries = block.entries(np.arange(900))
    moved = labels.copy()
    for i in rng.choice(900, 50, replace=False):
        to = (labels[i] + 1) % 3
        transfer(other, entries[i], 1.0 if weights is None else weights[i], labels[i], to)
        moved[i] = to
    again = add_up(table, moved, 3)
    for name in ("sums", "counts", "weights"):
        assert_array_equal(getattr(other, name), getattr(again, name))
    # and right: no entry of usual size lost its digits to the largest
    exact = oracle.totals(np.asarray(entries), labels, 3, weights)[0]
    quiet = [j for j in range(6) if not (spoiler == 1e12 and j == 2)]
    scale = np.abs(np.nan_to_num(entries) * (1 if weights is None else weights[:, None])).sum(axis=0)
    bound = (1e-13 if dtype is np.float64 else 1e-7) * scale
    assert (np.abs(there.sums.sum(axis=0) - exact) <= bound)[:, quiet].all()


def test_one_large_value_costs_the_others_no_digits(rng):
    """The sum of a cluster without it is as exact as if it were not there."""
    X = rng.normal(size=(2000, 3))
    X[0, 0] = 1e12
    table = table_of(X)
    labels = (np.arange(2000) > 0).astype(np.int32)
    sums = add_up(table, labels, 2).sums.sum(axis=0) / table.units.scale
    mean = sums[1, 0] / 1999 + table.units.shift[0]
    assert_allclose(mean, X[1:, 0].mean(), rtol=1e-12, atol=1e-15)


def test_column_statistics(case):
    X, weights, table, _ = case
    live = ~np.isnan(X).all(axis=0)
    w = np.ones(len(X)) if weights is None else weights
    mean = (np.nan_to_num(X) * w[:, None]).sum(axis=0)[live] / (~np.isnan(X) * w[:, None]).sum(axis=0)[live]
    assert_allclose(table.column_means[live], mean, rtol=1e-6)
    assert np.isnan(table.column_means[~live]).all()
    squared = np.nan_to_num((X[:, live] - mean) ** 2)
    variances = (squared * w[:, None]).sum(axis=0) / (~np.isnan(X[:, live]) * w[:, None]).sum(axis=0)
    assert_allclose(table.variance / table.units.scale**2, variances.mean(), rtol=1e-4)
    assert_array_equal(table.observed, (~np.isnan(X)).sum(axis=1))


@pytest.mark.parametrize("power", [-400, -60, 0, 60, 400])
def test_units_are_those_of_the_table(power, rng):
    """A table times a power of two is the same table in the engine, to the bit."""
    X, _ = clustered(rng, 300, 5)
    plain, scaled = table_of(X), table_of(np.ldexp(X, power))
    everything = np.arange(300)
    assert_array_equal(plain.entries(everything), scaled.entries(everything))
    assert scaled.units.scale == np.ldexp(plain.units.scale, -power)


def test_the_shift_takes_no_digit_of_an_entry(rng):
    """Far from zero, next to an outlier, constant: back in its own units an entry is what it was."""
    X = rng.normal(size=(500, 4))
    X[:, 1] += 1e6
    X[:, 2] = 7.1
    X[3, 0] = 1e12
    table = table_of(X)
    z = table.entries(np.arange(500))
    assert_array_equal(z / table.units.scale + table.units.shift, X)


def test_losses_and_distances(case, dtype, rng):
    X, weights, table, labels = case
    centers = 50 + rng.normal(size=(4, X.shape[1]))
    z = table.units.to(centers)
    (block,) = table.blocks
    rtol = 1e-4 if dtype is np.float32 else 1e-9
    square = table.units.scale**2
    got = step.distances(block, Panel(z)) / square
    assert_allclose(got, oracle.distances(X, centers), rtol=rtol, atol=rtol)
    total, state, out = step.LossSum(), step.State.unknown(len(X), labels), np.empty(len(X))
    step.Loss(z)(block, state, total, out)
    expected = oracle.loss(X, labels, centers, weights)
    assert_allclose(total.total / square, expected, rtol=1e-5)
    assert_allclose(out.sum() / square, expected, rtol=1e-5)


def test_nearest(case, dtype, rng):
    X, _, table, _ = case
    centers = 50 + rng.normal(size=(4, X.shape[1]))
    labels = nearest_labels(table, Executor(), Panel(table.units.to(centers)))
    distances = oracle.distances(X, centers)
    got = distances[np.arange(len(X)), labels]
    # A tie within rounding may fall either way; the distance chosen may not be longer.
    assert_allclose(got, distances.min(axis=1), rtol=1e-4, atol=1e-3)
    if dtype is np.float64:
        known = ~np.isnan(X).all(axis=1)
        assert_array_equal(labels[known], oracle.assign(X, centers)[known])


@pytest.mark.parametrize("k", [1, 2, 7, 8, 9, 16, 17, 34, 70])
@pytest.mark.parametrize("extras", ["", "offsets", "terms", "offsets and terms"])
def test_every_kernel_takes_the_whole_panel(k, extras, rng, dtype, n_columns, container):
    """Few centers and many, dense and sparse: offsets and terms are never dropped."""
    X, _ = clustered(rng, 101, n_columns, missing=0.4, dtype=dtype)
    X[7] = np.nan
    table = table_of(container(X))
    (block,) = table.blocks
    centers = rng.normal(size=(k, n_columns)).astype(dtype).astype(float)
    offsets = rng.random(k) * 2 if "offsets" in extras else None
    terms = rng.normal(size=(k, n_columns)) if "terms" in extras else None
    if terms is not None:  # no sum may be negative
        offsets = (0 if offsets is None else offsets) + np.abs(terms).sum(axis=1)
    panel = Panel(centers, offsets, terms)
    z = table.entries(np.arange(len(X)))
    expected = oracle.distances(z, centers)
    if offsets is not None:
        expected += offsets
    if terms is not None:
        expected += (~np.isnan(z)).astype(float) @ terms.T
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if dtype is np.float32 else {"rtol": 1e-10, "atol": 1e-10}
    assert_allclose(step.distances(block, panel), expected, **tolerance)
    state = step.Assign(panel, step.Drift.none(k))(block, None, step.Partial(None))
    chosen = expected[np.arange(len(X)), state.labels]
    assert_allclose(chosen, expected.min(axis=1), **tolerance)
    assert (np.sqrt(chosen) <= state.upper * (1 + 1e-6)).all()
    if k > 1:
        others = expected.copy()
        others[np.arange(len(X)), state.labels] = np.inf
        assert (np.sqrt(others.min(axis=1)) >= state.lower * (1 - 1e-6)).all()


@pytest.fixture
def use_level():
    """`lloyd.use_level`, undone after the test."""
    yield lloyd.use_level
    lloyd.use_level(lloyd.LEVELS[-1])


@pytest.mark.parametrize("hides", [False, True], ids=["shown", "hidden"])
@pytest.mark.parametrize("missing", [0.1, 0.9])
@pytest.mark.parametrize("k", [1, 8, 17, 45])
def test_every_instruction_set_finds_the_same(k, missing, hides, rng, dtype, n_columns, use_level):
    """Labels, sums and gains to the bit, with ties and bounds; side by side or not."""
    X, _ = clustered(rng, 501, n_columns, missing=missing, dtype=dtype)
    table = table_of(np.round(X, 1), rng.random(501))
    if hides:
        table = table.hiding(Hidden(seed=1, low=0.0, high=0.3), Executor())
    (block,) = table.blocks
    first = np.round(rng.normal(size=(k, n_columns)), 1)
    panels = [Panel(first), Panel(first + 0.1 * rng.integers(-1, 2, size=first.shape))]
    drift = Objective(table, k).drift(*panels)
    found = []
    for level in lloyd.LEVELS:
        use_level(level)
        partial, state = step.Partial(rows.Sums(k, *table.sums_units)), None
        for panel, moved in zip(panels, (step.Drift.none(k), drift), strict=True):
            state = step.Assign(panel, moved, bounded=panel is not panels[0])(block, state, partial)
            distances = np.sqrt(step.distances(block, panel).astype(float))
            own = distances[np.arange(501), state.labels]
            assert (own <= state.upper * (1 + 1e-6)).all()
            distances[np.arange(501), state.labels] = np.inf
            assert (distances.min(axis=1) >= state.lower * (1 - 1e-6)).all()
        sums = [getattr(partial.sums, name).tobytes() for name in ("sums", "counts", "weights")]
        found.append((state.labels.tobytes(), partial.changed, partial.gain, sums))
    assert all(other == found[0] for other in found)
    assert_array_equal(state.labels, nearest_labels(table, Executor(), panels[1]))


@pytest.mark.parametrize("n_rows", [1, 3, 4, 9])
def test_what_a_column_holds_does_not_depend_on_its_place(n_rows, rng, dtype):
    """Columns are measured four at a time, the last ones together with some that are done."""
    X, _ = clustered(rng, n_rows, 9, missing=0.4, dtype=dtype)

    def measured(values):
        opened = rows.Rows(values, np.zeros(values.shape[1], dtype))
        about, exponents = np.zeros((4, values.shape[1])), np.zeros((2, values.shape[1]), np.int64)
        observed = np.empty(n_rows, np.int32)
        rows.measure(opened, 0, n_rows, about, exponents, observed, rows.Workspace(opened, 0, 4))
        assert_array_equal(observed, (~np.isnan(values)).sum(axis=1))
        return np.vstack([about, exponents])

    every = measured(X)
    for p in range(1, 9):
        assert_array_equal(measured(np.ascontiguousarray(X[:, :p])), every[:, :p])


@pytest.mark.parametrize("scale", [1e-22, 1.0, 1e30])
@pytest.mark.parametrize("apart", [1e-9, 1e-7, 1e-5, 1e-4, 1e-3])
@pytest.mark.parametrize("k", [8, 20])
def test_near_ties_of_doubles_are_decided_in_double_precision(k, apart, scale, rng):
    """Single precision has the first look, and must know what it cannot tell."""
    X, _ = clustered(rng, 2000, 9, missing=0.6, spread=1.0)
    centers = rng.normal(size=9) + apart * rng.normal(size=(k, 9))
    X[:, 0] += 1e4 * rng.choice([-1, 1], size=len(X))
    centers[:, 0] += 1e4 * rng.choice([-1, 1], size=k)
    centers[-1] = 0  # what is rounded off depends on the longest center, not on the last
    table = table_of(X * scale)
    centers = table.units.to(centers * scale)
    distances = oracle.distances(table.entries(np.arange(2000)), centers)
    best, second = np.sort(distances, axis=1)[:, :2].T
    clear = second > best * (1 + 1e-13)
    assert clear.mean() > 0.2
    labels = nearest_labels(table, Executor(), Panel(centers))
    assert_array_equal(labels[clear], distances.argmin(axis=1)[clear])


@pytest.mark.parametrize("k", [3, 30])
def test_the_first_of_equal_centers_is_the_nearest(k, rng, dtype, container):
    X, _ = clustered(rng, 200, 5, dtype=dtype)
    table = table_of(container(X))
    centers = np.tile(rng.normal(size=(1, 5)), (k, 1))
    assert_array_equal(nearest_labels(table, Executor(), Panel(centers)), np.zeros(200))


def test_bounds_hold_and_are_carried(rng, dtype, container):
    X, _ = clustered(rng, 500, 6, missing=0.5, spread=1.0, dtype=dtype)
    table = table_of(container(X))
    descent = Descent(table, Executor(), rng.normal(size=(5, 6)))
    for _ in range(4):
        descent.assign()
        descent.update()
    panel = Panel(descent.centers)
    drift = descent.drift_to(panel)
    (state,) = descent.states
    upper = state.upper + drift.own[state.labels]
    lower = state.lower - drift.other[state.labels]
    distances = np.sqrt(oracle.distances(table.entries(np.arange(500)), descent.centers))
    own = distances[np.arange(500), state.labels].copy()
    assert (own <= upper * (1 + 1e-6)).all()
    distances[np.arange(500), state.labels] = np.inf
    assert (distances.min(axis=1) >= lower * (1 - 1e-6)).all()


@pytest.mark.parametrize("terms_of", [0, 1e5], ids=["plain", "terms that cancel"])
@pytest.mark.parametrize("k", [3, 20])
def test_bounds_hold_to_the_last_bit(k, terms_of, rng, dtype, container):
    """Upper bounds are rounded up and lower ones down, further than any distance can be off."""
    X, _ = clustered(rng, 500, 9, missing=0.5, spread=1.0, dtype=dtype)
    X[:k] = rng.normal(size=(k, 9))
    table = table_of(container(X))
    (block,) = table.blocks
    terms = offsets = None
    if terms_of:
        terms = -terms_of * rng.random((k, 9))
        offsets = 1e-9 - terms.sum(axis=1)  # no sum is negative, by a hair
    centers = table.entries(np.arange(k)) + 1e-6 * rng.normal(size=(k, 9))  # a row close to each
    state = step.Assign(Panel(centers, offsets, terms), step.Drift.none(k))(block, None, step.Partial(None))
    z = table.entries(np.arange(500)).astype(np.longdouble)
    exact = oracle.distances(z, centers.astype(np.longdouble))
    if terms_of:
        exact += offsets.astype(np.longdouble) + (~np.isnan(z)).astype(np.longdouble) @ terms.T
    own = exact[np.arange(500), state.labels].copy()
    exact[np.arange(500), state.labels] = np.inf
    assert (np.sqrt(own) <= state.upper).all()
    assert (np.sqrt(exact.min(axis=1)) >= state.lower).all()


def test_bounds_skip_rows(rng):
    """The bounds are there to be used: near convergence most rows are not looked at."""
    X, truth = clustered(rng, 5000, 12, missing=0.2, spread=0.3)
    table = table_of(X)
    descent = Descent(table, Executor(), table.units.to(oracle.centers(X, truth, 5)))
    for _ in range(3):
        descent.assign()
        descent.update()
    state = descent.states[0]
    assert (state.upper < state.lower).mean() > 0.9


class TestHidden:
    """Hidden entries are observed but not looked at."""

    @staticmethod
    def hidden_mask(shape, hidden):
        """The hash, in plain NumPy."""

        def mix(z):
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            return z ^ (z >> np.uint64(31))

        with np.errstate(over="ignore"):
            i, j = (np.arange(n, dtype=np.uint64) for n in shape)
            keys = mix(np.uint64(hidden.seed) + i * np.uint64(0x9E3779B97F4A7C15))
            return (mix(keys[:, None] + j * np.uint64(0xD1B54A32D192ED03)) >> np.uint64(11)) * 2.0**-53

    @pytest.mark.parametrize("k", [4, 20])
    def test_it_is_as_if_they_were_missing(self, k, rng, dtype, container, monkeypatch):
        monkeypatch.setattr(blocks, "ENTRIES_PER_BLOCK", 1 << 13)
        X, _ = clustered(rng, 9000, 11, missing=0.4, dtype=dtype)  # several blocks
        X[3] = np.nan
        table = table_of(container(X))
        assert len(table.blocks) > 1
        hidden = Hidden(seed=5, low=0.2, high=0.4)
        covered = table.hiding(hidden, Executor())
        u = np.where(np.isnan(X), -1, self.hidden_mask(X.shape, hidden))
        gone = (u >= 0.2) & (u < 0.4)
        all_gone = (gone | np.isnan(X)).all(axis=1)
        gone[all_gone, u[all_gone].argmax(axis=1)] = False
        assert 0.18 < gone.sum() / (~np.isnan(X)).sum() < 0.22
        holed = np.where(gone, np.nan, X).astype(dtype)
        everything = np.arange(len(X))
        assert_array_equal(np.isnan(covered.entries(everything)), np.isnan(holed))
        assert_array_equal(covered.observed, (~np.isnan(holed)).sum(axis=1))
        plain = table_of(container(holed), units=table.units)
        centers = rng.normal(size=(k, 11))
        one, other = (
            np.vstack([step.distances(block, Panel(centers)) for block in some.blocks])
            for some in (covered, plain)
        )
        assert_array_equal(one, other)
        fits = [Descent(some, Executor(), centers) for some in (covered, plain)]
        for fit in fits:
            fit.lloyd()
        assert_array_equal(fits[0].labels(), fits[1].labels())
        assert_array_equal(fits[0].centers, fits[1].centers)

    def test_only_hidden_is_the_rest(self, rng, dtype, container):
        X, _ = clustered(rng, 500, 9, missing=0.4, dtype=dtype)
        table = table_of(container(X))
        shown, rest = (
            table.hiding(Hidden(1, 0.0, 0.3, only=only), Executor()).entries(np.arange(500))
            for only in (False, True)
        )
        assert (np.isnan(shown) | np.isnan(rest)).all()
        whole = table.entries(np.arange(500))
        assert_array_equal(np.where(np.isnan(shown), rest, shown), whole)

    def test_no_row_is_left_with_nothing(self, rng):
        X, _ = clustered(rng, 500, 9, missing=0.8)
        covered = table_of(X).hiding(Hidden(0, 0.0, 1.0), Executor())
        assert_array_equal(covered.observed, np.ones(500))


class TestMismatches:
    """Nothing that does not fit is read: a TypeError or ValueError, never a misread."""

    @pytest.fixture
    def opened(self):
        block = table_of(np.random.default_rng(0).normal(size=(20, 4))).blocks[0]
        with block.rows() as opened:
            yield opened

    def test_rows(self):
        X, shift = np.zeros((6, 3)), np.zeros(3)
        for values, error in [
            (X.astype(np.int64), TypeError), (X.tolist(), TypeError), (X[:, ::2], ValueError),
            (X.astype(np.float32), TypeError), (X.astype(">f8"), TypeError), (np.zeros((6, 4)), ValueError),
            (np.frombuffer(b"x" * 145, np.uint8)[1:].view(float).reshape(6, 3), ValueError),
        ]:  # fmt: skip
            with pytest.raises(error):
                rows.Rows(values, shift)
        with pytest.raises(ValueError, match="weights"):
            rows.Rows(X, shift, weights=np.ones(5))
        with pytest.raises(TypeError, match="weights"):
            rows.Rows(X, shift, weights=np.ones(6, np.float32))
        with pytest.raises(ValueError, match="hidden"):
            rows.Rows(X, shift, hidden=np.zeros(5, np.uint8))

    @pytest.mark.parametrize(
        ("indices", "indptr"),
        [([0, 3], [0, 1, 2]), ([0, -1], [0, 1, 2]), ([0, 1], [0, 2, 1]), ([0, 1], [0, 1, 3]),
         ([0, 1], [1, 1, 2]), ([0, 1], [0, -5, 2])],
    )  # fmt: skip
    def test_csr(self, indices, indptr):
        with pytest.raises(ValueError, match="do not fit"):
            rows.Rows(
                np.ones(2), np.zeros(3), 1.0, None, np.array(indices, np.int32), np.array(indptr, np.int64)
            )

    def test_spans_labels_and_panels(self, opened):
        space = rows.Workspace(opened, 8, 8)
        labels = np.zeros(20, np.int32)
        sums = rows.Sums(2, np.full((1, 4), 1.5 * 2.0**60), np.zeros(1))
        bounds = np.zeros(20, np.float32), np.zeros(20, np.float32)
        drift = np.zeros(2, np.float32), np.zeros(2, np.float32)
        panel = Panel(np.zeros((2, 4)))
        for start, stop in [(-1, 5), (0, 21), (5, 4)]:
            with pytest.raises(IndexError):
                rows.add_up(opened, start, stop, labels, sums, space)
            with pytest.raises(IndexError):
                lloyd.assign(opened, start, stop, panel, *drift, labels, *bounds, None, space)
        with pytest.raises(IndexError):
            rows.add_up(opened, 0, 20, labels + 2, sums, space)
        with pytest.raises(IndexError):
            lloyd.assign(opened, 0, 20, panel, *drift, labels + 2, *bounds, None, space)
        with pytest.raises(ValueError, match="sums"):
            rows.add_up(opened, 0, 20, labels, rows.Sums(2, np.ones((1, 5)), np.zeros(1)), space)
        with pytest.raises(ValueError, match="length"):
            lloyd.assign(opened, 0, 20, panel, *drift, labels[:19].copy(), *bounds, None, space)
        with pytest.raises(ValueError, match="number of centers"):
            lloyd.assign(opened, 0, 20, panel, drift[0][:1].copy(), drift[1], labels, *bounds, None, space)
        with pytest.raises(ValueError, match="columns"):
            lloyd.assign(opened, 0, 20, Panel(np.zeros((2, 5))), *drift, labels, *bounds, None, space)
        with pytest.raises(ValueError, match="workspace"):
            lloyd.assign(
                opened, 0, 20, Panel(np.zeros((9, 4))), np.zeros(9, np.float32),
                np.zeros(9, np.float32), labels, *bounds, None, space,
            )  # fmt: skip
        with pytest.raises(ValueError, match="do not fit together"):
            moves.move(
                opened, np.zeros(1, np.intp), np.zeros((2, 3)), np.zeros(4), labels, np.zeros((2, 4)),
                np.zeros((2, 4)), sums, np.zeros(2, np.int64), None, space,
            )  # fmt: skip
        other = moves.Gaps(rows.Sums(2, np.full((1, 4), 1.5 * 2.0**60), np.zeros(1)), np.full(4, 0.5), 1.0)
        with pytest.raises(ValueError, match="do not fit together"):
            moves.move(
                opened, np.zeros(1, np.intp), np.zeros((2, 4)), np.zeros(4), labels, np.zeros((2, 4)),
                np.zeros((2, 4)), sums, np.zeros(2, np.int64), other, space,
            )  # fmt: skip
        with pytest.raises(ValueError, match="share for every column"):
            moves.Gaps(sums, np.full(3, 0.5), 1.0)
        with pytest.raises(ValueError, match=r"shape|dtype|Buffer"):
            lloyd.assign(opened, 0, 20, panel, *drift, labels.astype(np.int64), *bounds, None, space)

    def test_panels(self):
        with pytest.raises(ValueError, match="at least one row"):
            Panel(np.zeros((0, 3)))
        with pytest.raises(ValueError, match="NaN"):
            Panel(np.array([[0.0, np.nan]]))
        for offsets, terms in [(np.zeros(3), None), (None, np.zeros((2, 2)))]:
            with pytest.raises(ValueError, match="for every center"):
                Panel(np.zeros((2, 3)), offsets, terms)

    def test_seeds(self):
        floats = np.zeros(2, np.float32)
        for columns, start in [([0, 5], [0, 1, 2]), ([0, -1], [0, 1, 2]), ([0, 1], [0, 2, 1])]:
            with pytest.raises((ValueError, IndexError)):
                seeds.Sample(np.array(start), np.array(columns, np.int32), floats, np.ones(2), 3)
        sample = seeds.Sample(np.arange(3), np.array([0, 1], np.int32), floats, np.ones(2), 3)
        wide, narrow = (aligned_zeros((3, n), np.float32) for n in (8, 4))
        unaligned = aligned_zeros((32,), np.float32)[1:25].reshape(3, 8)

        def draw(panel, observed, n_drawn=1):
            seeds.draw_seeds(
                sample, 1.0, np.zeros((1, 1)), np.full(2, np.inf, np.float32), np.empty(2), panel, observed,
                np.empty((2, 8), np.float32), np.empty(8), np.empty(n_drawn, np.intp),
            )  # fmt: skip

        for panel, observed in [(wide, narrow), (narrow, narrow), (wide[:2], wide), (unaligned, wide)]:
            with pytest.raises(ValueError, match=r"fit together|places|aligned"):
                draw(panel, observed)
        with pytest.raises(ValueError, match="fit together"):
            draw(wide, wide, n_drawn=2)


def test_blocks_panels_and_sums_travel(rng, container):
    """Pickled and back they are the same."""
    X, _ = clustered(rng, 300, 5)
    table = table_of(container(X), rng.random(300))
    block = table.blocks[0].replace(hidden=Hidden(3, 0.0, 0.1))
    sent = pickle.loads(pickle.dumps(block))
    assert_array_equal(sent.entries(np.arange(300)), block.entries(np.arange(300)))
    panel = Panel(rng.normal(size=(4, 5)), rng.random(4), rng.random((4, 5)))
    assert_array_equal(step.distances(block, pickle.loads(pickle.dumps(panel))), step.distances(block, panel))
    sums = add_up(table, rng.integers(3, size=300).astype(np.int32), 3)
    back = pickle.loads(pickle.dumps(sums))
    for name in ("sums", "counts", "weights", "anchors", "weight_anchors"):
        assert_array_equal(getattr(back, name), getattr(sums, name))


def test_moving_gain_is_what_a_move_gains(rng):
    X, _ = clustered(rng, 60, 5, missing=0.5)
    weights = rng.random(60)
    table = table_of(X, weights)
    labels = rng.integers(3, size=60).astype(np.int32)
    objective = Objective(table, 3)
    means = objective.means(add_up(table, labels, 3))
    for i in rng.choice(60, 10, replace=False):
        to = (labels[i] + 1) % 3
        moved = labels.copy()
        moved[i] = to
        before, after = (oracle.loss_of_labels(X, some, 3, weights) for some in (labels, moved))
        gain = objective.moving_gain(table.entries(np.array([i]))[0], weights[i], means, labels[i], to)
        assert_allclose(gain / table.units.scale**2, before - after, rtol=1e-8, atol=1e-12)


def test_a_table_on_disk_is_not_read_into_memory(tmp_path, rng, monkeypatch):
    """Blocks of a memory map are views of it."""
    monkeypatch.setattr(blocks, "ENTRIES_PER_BLOCK", 1 << 13)
    X, _ = clustered(rng, 9000, 4)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    parts = blocks.blocks_of(mapped, Units(np.zeros(4), 1.0))
    assert len(parts) > 1
    assert all(np.shares_memory(block.values, mapped) for block in parts)


def shared_distance(z, i, j, variance):
    """Between two rows, rescaled from the columns they share, as `KMeansPlusPlus` says."""
    p = z.shape[1]
    shared = ~np.isnan(z[i]) & ~np.isnan(z[j])
    m, t = shared.sum(), (1 - shared.sum() / p) / 2
    return p / (m + t) * (((z[i] - z[j])[shared] ** 2).sum() + 2 * t * variance)


def test_seeds(rng):
    """Each step draws by the distance to the seeds so far and keeps the best of its candidates."""
    X, _ = clustered(rng, 60, 5, missing=0.6)
    table = table_of(X)
    plus = KMeansPlusPlus(table, Executor(), 3, rng)
    z = table.entries(np.arange(60))
    nearest_seed, mass = np.full(60, np.inf, np.float32), np.empty(60)
    buffers = [aligned_zeros((5, 8), np.float32) for _ in range(2)]
    distances, potentials = np.empty((60, 8), np.float32), np.empty(8)
    expected, drawn = np.full(60, np.inf), []
    for number in range(3):
        uniform = rng.random(4 if number else 1)
        chance = np.cumsum(expected if number else np.ones(60))
        candidates = np.searchsorted(chance, uniform * chance[-1], side="right")
        options = [
            np.minimum(expected, [shared_distance(z, i, c, table.variance) for i in range(60)])
            for c in candidates
        ]
        best = int(np.argmin([option.sum() for option in options]))
        expected = options[best]
        expected[candidates[best]] = 0
        seed = np.empty(1, np.intp)
        seeds.draw_seeds(
            plus.sample,
            table.variance,
            uniform[None],
            nearest_seed,
            mass,
            *buffers,
            distances,
            potentials,
            seed,
        )
        assert seed == candidates[best]
        assert_allclose(nearest_seed, expected, rtol=1e-4, atol=1e-4)
        drawn.append(int(seed[0]))
    assert len(set(drawn)) == 3
