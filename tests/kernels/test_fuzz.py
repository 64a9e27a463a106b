"""Whatever is thrown at the public API, there is a result or a clean error, never a crash."""

import warnings

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from kpod import KPOD
from tests.helpers import oracle

VALUES = st.one_of(
    st.just(np.nan), st.floats(-1e3, 1e3, width=32), st.sampled_from([0.0, 1.0, np.inf, -np.inf, 1e300])
)
SHAPES = st.one_of(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=12))
LAYOUTS = {
    "as it is": lambda a: a,
    "transposed": lambda a: a.T,
    "Fortran": np.asfortranarray,
    "reversed": lambda a: a[::-1] if a.ndim else a,
    "strided": lambda a: np.repeat(a, 2, axis=-1)[..., ::2] if a.ndim else a,
    "unaligned": lambda a: np.frombuffer(b"x" + a.tobytes(), np.uint8)[1:].view(a.dtype).reshape(a.shape),
}


@st.composite
def arrays(draw):
    dtype = draw(
        st.sampled_from([np.float64, np.float32, np.float16, np.int32, np.int8, bool, object, "U3", complex])
    )
    shape = draw(SHAPES)
    if np.dtype(dtype).kind == "f":
        table = draw(hnp.arrays(np.float64, shape, elements=VALUES))
        with np.errstate(over="ignore"):
            table = table.astype(dtype)
    elif dtype is object:
        table = draw(hnp.arrays(object, shape, elements=st.sampled_from([None, 1, 2.5, "x", np.nan])))
    elif dtype is complex:
        table = np.ones(shape, complex)
    else:
        table = draw(hnp.arrays(dtype, shape))
    if dtype is not object:
        table = LAYOUTS[draw(st.sampled_from(sorted(LAYOUTS)))](table)
        if draw(st.booleans()):
            table = table.view()
            table.flags.writeable = False
    return table


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    table=arrays(),
    k=st.integers(1, 6),
    algorithm=st.sampled_from(["hartigan", "lloyd", "mm"]),
    init=st.sampled_from(["k-means++", "mean-fill", "random"]),
    weights=st.one_of(st.none(), hnp.arrays(np.float64, st.integers(0, 12), elements=st.floats(-1, 2))),
)
def test_result_or_clean_error(table, k, algorithm, init, weights):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", category=RuntimeWarning)
        try:
            model = KPOD(k, algorithm=algorithm, init=init, n_init=2, random_state=0, max_iter=50)
            model.fit(table, sample_weight=weights)
        except (ValueError, TypeError) as error:
            assert str(error)
            return
        values = np.asarray(table, dtype=np.float64)
        live = ~np.isnan(model.cluster_centers_).any(axis=0)
        assert np.isfinite(model.cluster_centers_[:, live]).all()
        assert model.inertia_ >= 0
        assert set(np.unique(model.labels_)) <= {-1, *range(k)}
        labelled = model.labels_ >= 0
        own = oracle.distances(values[:, live], model.cluster_centers_[:, live].astype(float))
        own = own[np.arange(len(values)), model.labels_]
        weights = np.ones(len(values)) if weights is None else weights
        magnitude = np.minimum(np.abs(np.nan_to_num(values[:, live])), 1e140)  # the square is finite
        scale = 1 + (weights[:, None] * magnitude**2).sum()
        assert abs((weights * own)[labelled].sum() - model.inertia_) <= 1e-4 * scale
        model.predict(table)
        model.transform(table)
        model.score(table)
        assert not np.isnan(model.impute(table)[:, live]).any()


@settings(max_examples=150, deadline=None)
@given(
    table=hnp.arrays(
        np.float64,
        st.tuples(st.integers(6, 30), st.integers(1, 6)),
        elements=st.one_of(st.just(np.nan), st.integers(-5, 5).map(float), st.floats(-10, 10)),
    ),
    k=st.integers(1, 4),
    seed=st.integers(0, 100),
)
def test_labels_are_those_of_nearest_centers(table, k, seed):
    """For any mask at all: no row of the default fit has a nearer center than its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = KPOD(k, n_init=1, tol=0, random_state=seed).fit(table)
        except ValueError:
            return
    live = ~np.isnan(model.cluster_centers_).any(axis=0)
    distances = oracle.distances(table[:, live], model.cluster_centers_[:, live])
    own = distances[np.arange(len(table)), model.labels_]
    labelled = model.labels_ >= 0
    assert (own <= distances.min(axis=1) + 1e-6)[labelled].all()
