"""A real cluster of two processes: same bits as threads, also when a worker is killed in an iteration."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

import kpod
from kpod import KPOD
from kpod._engine import blocks, fit, sampling, seeding, sizes
from kpod._engine.workers import dask_executor as on_cluster
from tests.files.test_changing_files import write
from tests.helpers.clusters import patient  # noqa: F401  # the fixture
from tests.helpers.tables import clustered

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
import dask.array as da  # noqa: E402
from dask.delayed import delayed  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed", "ignore::ResourceWarning")
FITTED = ("cluster_centers_", "counts_", "inertia_", "loss_curve_", "losses_", "column_means_")


@pytest.fixture(autouse=True)
def on_workers(monkeypatch):
    """Small tables stay on the cluster, as those stay that are not small."""
    monkeypatch.setattr(sizes, "SMALL_REMOTE_TABLE", 0)


@pytest.fixture(scope="module")
def cluster():
    # A cluster gives a worker up for good when it happens to be away some seconds after it was last lost, and
    # these tests kill one again and again.
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=100
        ) as cluster,
    ):
        yield cluster


@pytest.fixture(scope="module")
def client(cluster):
    with distributed.Client(cluster, set_as_default=False) as client:
        yield client


def same(one, other):
    for name in FITTED:
        assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def table(dtype=np.float64, n_rows=3000, seed=1):
    X, _ = clustered(np.random.default_rng(seed), n_rows, 6, k=5, missing=0.4, spread=0.9, dtype=dtype)
    return X


def in_chunks(X, rows=400):
    return da.from_array(X, chunks=(rows, X.shape[1]))


def logged(X, number, log):
    """A partition that leaves a line in a file each time it is read."""
    with open(log, "a") as file:  # noqa: PTH123
        file.write(f"{number}\n")
    return X


def logged_array(X, log, rows=250):
    parts = [X[i : i + rows] for i in range(0, len(X), rows)]
    read = [delayed(logged, pure=False)(part, number, str(log)) for number, part in enumerate(parts)]
    return da.concatenate(
        [da.from_delayed(it, part.shape, X.dtype) for it, part in zip(read, parts, strict=True)]
    )


@contextmanager
def another_worker(client, tmp_path, sitecustomize):
    """A worker with a Python that believes other things of what is installed."""
    (tmp_path / "sitecustomize.py").write_text(sitecustomize)
    before = set(client.nthreads())
    flags = ["--no-nanny", "--nthreads", "1", "--no-dashboard"]
    worker = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_worker", client.scheduler.address, *flags],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stderr=subprocess.DEVNULL,
    )
    try:
        client.wait_for_workers(len(before) + 1, 3000)
        (address,) = set(client.nthreads()) - before
        yield address
    finally:
        worker.kill()
        worker.wait()
        until(lambda: set(client.nthreads()) <= before)


def until(condition, seconds=3000):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_the_same_bits_as_on_threads(client, dtype):
    X = table(dtype)
    weights = np.random.default_rng(0).random(len(X))
    start = np.vstack([X[:4], np.full((1, 6), 1e3)])  # the last one is emptied, and given a row
    model = KPOD(5, init=start, tol=0, shrinkage=0.5)
    here = KPOD(**model.get_params()).fit(in_chunks(X), sample_weight=weights)
    with client.as_current():
        there = KPOD(**model.get_params()).fit(in_chunks(X), sample_weight=weights)
        assert_array_equal(there.predict(in_chunks(X)), there.labels_)
        assert there.score(in_chunks(X), sample_weight=weights) == here.score(
            in_chunks(X), sample_weight=weights
        )
    same(here, there)
    assert there.algorithm_ == "lloyd"
    assert len(np.unique(there.labels_.compute())) == 5
    with pytest.warns(RuntimeWarning, match="a single start is run"):
        memory = KPOD(**model.set_params(algorithm="lloyd", n_init=2).get_params()).fit(
            X, sample_weight=weights
        )
    assert_array_equal(memory.labels_, there.labels_)
    assert_allclose(memory.cluster_centers_, there.cluster_centers_, rtol=1e-6)


def test_other_partitions_show_in_the_last_digits_at_most():
    X = table() + 100 * np.arange(6)
    one = KPOD(5, random_state=0, algorithm="lloyd").fit(X)
    for rows in (97, 333, 1500):
        other = KPOD(5, random_state=0).fit(in_chunks(X, rows))
        assert_array_equal(one.labels_, other.labels_)
        assert_allclose(one.cluster_centers_, other.cluster_centers_, rtol=1e-14)
        assert_allclose(one.inertia_, other.inertia_, rtol=1e-12)


@pytest.mark.parametrize(("init", "weighted"), [("k-means++", False), ("random", False), ("random", True)])
def test_seeds_do_not_depend_on_where_blocks_are(init, weighted, client):
    X = table()
    weights = np.random.default_rng(0).integers(0, 3, len(X)).astype(float) if weighted else None
    here = KPOD(5, init=init, n_init=2, random_state=3).fit(in_chunks(X), sample_weight=weights)
    with kpod.on_dask(client):
        there = KPOD(5, init=init, n_init=2, random_state=3).fit(in_chunks(X), sample_weight=weights)
    same(here, there)


@pytest.mark.parametrize("parameters", [{}, {"init": "random"}, {"shrinkage": "auto"}])
def test_nothing_as_long_as_the_table_comes_here(parameters, client, monkeypatch):
    """Of all that the workers answer in a fit, less than a bit for each row."""
    for module in (seeding, fit):
        monkeypatch.setattr(module, "LARGE_TABLE", 400)
    monkeypatch.setattr(sampling, "SAMPLED_ROWS", 200)
    monkeypatch.setattr(seeding, "SAMPLE_ENTRIES", 400)
    X = clustered(np.random.default_rng(0), 400_000, 2, k=2, missing=0.2, spread=0.2, dtype=np.float32)[0]
    answers, results = [], on_cluster.DaskExecutor.results

    def counted(self, futures):
        found = results(self, futures)
        answers.append(len(pickle.dumps(found)))
        return found

    monkeypatch.setattr(on_cluster.DaskExecutor, "results", counted)
    with client.as_current():
        KPOD(2, n_init=1, random_state=0, **parameters).fit(in_chunks(X, 100_000))
    assert 0 < sum(answers) < len(X) // 8


def test_what_gaps_say_and_checkpoints_are_the_same_there(client, tmp_path):
    X = table(n_rows=1200)
    model = KPOD(3, missingness="informative", n_init=1, random_state=0, checkpoint=tmp_path / "kept")
    here = KPOD(**model.get_params()).fit(in_chunks(X))
    with client.as_current():
        there = model.fit(in_chunks(X))
        assert_array_equal(there.predict(in_chunks(X)), there.labels_)
    same(here, there)


def test_seeds_in_rounds_do_not_either(client, monkeypatch):
    """k-means||, for numbers of clusters of which a sample would be too large."""
    monkeypatch.setattr(seeding, "MOST_SAMPLE_ENTRIES", 1000)
    X = table(n_rows=1200)
    weights = np.random.default_rng(0).random(len(X))
    model = KPOD(5, n_init=1, random_state=3)
    here = KPOD(**model.get_params()).fit(in_chunks(X), sample_weight=weights)
    with client.as_current():
        there = model.fit(in_chunks(X), sample_weight=weights)
    same(here, there)


def test_the_shape_of_the_merge_shows_in_no_bit(client, monkeypatch):
    """One share for each block, a tree of pairs, and everything large enough to travel by itself."""
    X = table()
    with client.as_current():
        one = KPOD(5, init=X[:5]).fit(in_chunks(X))
        monkeypatch.setattr(on_cluster, "WORKER_SHARE", 1e-12)
        monkeypatch.setattr(on_cluster, "FAN_IN", 2)
        monkeypatch.setattr(on_cluster, "SMALL_PARCEL", 0)
        submitted = []
        submit = on_cluster.DaskExecutor._submit
        monkeypatch.setattr(
            on_cluster.DaskExecutor,
            "_submit",
            lambda self, function, *args, **how: (
                submitted.append(function.__name__) or submit(self, function, *args, **how)
            ),
        )
        other = KPOD(5, init=X[:5]).fit(in_chunks(X))
    same(one, other)
    assert submitted.count("run_share") >= 8 * other.n_iter_
    assert submitted.count("merged") >= 4 * other.n_iter_
    assert "carried" in submitted


def test_a_worker_killed_in_an_iteration_costs_a_read(client, tmp_path):
    X = table(n_rows=2000)
    start = np.random.default_rng(0).normal(size=(5, 6))
    here = KPOD(5, init=start, tol=0).fit(in_chunks(X, 250))
    model = KPOD(5, init=start, tol=0)
    reads, killed = tmp_path / "reads", []

    def kill(line):
        if "lloyd 3:" not in line:
            return
        victim = min(client.nthreads())
        pid = client.run(os.getpid, workers=[victim])[victim]
        os.kill(pid, signal.SIGSTOP)  # it gets its share of the next iteration, and never answers
        killed.append(victim)
        threading.Timer(0.5, os.kill, [pid, signal.SIGKILL]).start()

    model._progress_line = kill
    with client.as_current():
        there = model.fit(logged_array(X, reads))
    same(here, there)
    assert killed
    assert killed[0] not in client.nthreads()
    n_reads = np.bincount([int(line) for line in reads.read_text().split()])
    assert (n_reads >= 1).all()
    assert 8 < n_reads.sum() <= 16  # those of the worker that died, again
    client.wait_for_workers(2, 3000)


def loaded(path):
    return np.load(path)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_partition_that_changes_is_refused_when_it_is_read_again(weighted, client, tmp_path):
    """Labels recalled on new rows, with the sums of old ones, would be wrong without a word."""
    X = table(n_rows=1000)
    paths = [str(tmp_path / f"{i}.npy") for i in range(4)]
    for i, path in enumerate(paths):
        np.save(path, X[250 * i : 250 * (i + 1)])
    parts = [da.from_delayed(delayed(loaded, pure=False)(path), (250, 6), X.dtype) for path in paths]
    model = KPOD(5, init=X[:5], tol=0)

    def change(line):
        if "lloyd 2:" in line:
            for i, path in enumerate(paths):
                np.save(path, X[250 * i : 250 * (i + 1)] + 1)
            victims = client.run(os.getpid)  # all of them: whichever holds the blocks
            for pid in victims.values():
                os.kill(pid, signal.SIGKILL)
            until(lambda: not victims.keys() & client.nthreads().keys())

    model._progress_line = change
    changed = r"Partition [0-3] of X \(rows \d+ to \d+\).*changed while it was in use.*Fit again"
    with client.as_current(), pytest.raises(ValueError, match=changed):
        model.fit(da.concatenate(parts), sample_weight=np.ones(1000) if weighted else None)
    client.wait_for_workers(2, 3000)


def test_states_of_a_fit_are_forgotten_at_its_end(client):
    X = table()
    with client.as_current():
        KPOD(5, init=X[:5]).fit(in_chunks(X))
    assert set(client.run(n_fits_kept).values()) == {0}


def n_fits_kept():
    from kpod._engine.workers.worker import CACHE

    return len(CACHE._fits)


def test_frames_empty_partitions_and_unknown_lengths(client):
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    X = table()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    several = dd.from_pandas(frame, npartitions=6)
    several = several.assign(n=several.index)
    several = several[several.n >= 600].drop(columns="n")  # leaves partitions without rows
    with client.as_current():
        model = KPOD(5, init=X[:5]).fit(several)
        assert_array_equal(model.predict(several), model.labels_)
        array = KPOD(5, init=X[:5]).fit(several.to_dask_array())
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(several[list("fedcba")])
    memory = KPOD(5, init=X[:5], algorithm="lloyd").fit(frame[600:])
    assert_array_equal(memory.labels_, model.labels_)
    assert_array_equal(memory.labels_, array.labels_)
    assert list(model.feature_names_in_) == list("abcdef")


def test_sparse_chunks_and_chunks_of_columns(client):
    X = table()
    observed = ~np.isnan(X)
    stored = sparse.coo_array((X[observed], np.nonzero(observed)), X.shape).tocsr()
    rows = [stored[i : i + 500] for i in range(0, len(X), 500)]
    chunks = [
        da.from_delayed(delayed(part), part.shape, X.dtype, meta=sparse.csr_array((0, 0))) for part in rows
    ]
    with client.as_current():
        one = KPOD(5, init=X[:5]).fit(da.concatenate(chunks))
        other = KPOD(5, init=X[:5]).fit(da.from_array(X, chunks=(500, 2)))
    assert_array_equal(one.labels_, other.labels_)
    assert_allclose(one.cluster_centers_, other.cluster_centers_, rtol=1e-12)


def test_a_table_in_memory_runs_on_the_cluster_if_asked(client):
    X = table(n_rows=1000)
    with kpod.on_dask(client):
        there = KPOD(5, init=X[:5]).fit(X)
        assert there.transform(X).shape == (1000, 5)
    same(KPOD(5, init=X[:5], algorithm="lloyd").fit(X), there)
    assert there.algorithm_ == "lloyd"


def test_a_scanned_table_travels_as_where_it_lies(client, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "ENTRIES_PER_BLOCK", 1 << 10)
    X = table(np.float32)
    np.save(tmp_path / "x.npy", X)
    scanned = kpod.scan(tmp_path / "x.npy")
    sent = []
    submit = on_cluster.DaskExecutor._submit
    monkeypatch.setattr(
        on_cluster.DaskExecutor,
        "_submit",
        lambda self, function, *args, **how: (
            sent.append(len(pickle.dumps(args[0]))) or submit(self, function, *args, **how)
        ),
    )
    with kpod.on_dask(client):
        there = KPOD(5, n_init=1, random_state=0).fit(scanned)
        assert_array_equal(there.predict(scanned), there.labels_)
    assert len(sent) > 17  # blocks
    assert max(sent[:17]) < 1000 < X[: len(X) // 17].nbytes
    same(KPOD(5, n_init=1, random_state=0, algorithm="lloyd").fit(X), there)


def test_mapped_files_that_change_are_refused_by_workers(client, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "ENTRIES_PER_BLOCK", 1 << 10)
    X = table()
    for unnoticed in (False, True):
        path = tmp_path / f"{unnoticed}.npy"
        np.save(path, X)
        model = KPOD(5, init=X[:5], tol=0)
        model._progress_line = lambda line: (
            write(path, 1500, unnoticed=unnoticed) if "lloyd 2:" in line else None  # noqa: B023
        )
        with (
            kpod.on_dask(client),
            pytest.raises(
                ValueError, match=r"\.npy:? (was written to|changed) (while .*rows|since it was opened)"
            ),  # a worker that opens the file late sees that at once
        ):
            model.fit(np.load(path, mmap_mode="r"))


def odd_partitions(second):
    first = table(n_rows=100)
    return da.concatenate(
        [
            da.from_delayed(delayed(part), (100, 6), np.float64, meta=np.empty((0, 0)))
            for part in (first, second)
        ]
    )


def test_bad_partitions_are_named(client):
    X = table(n_rows=100)
    text = np.full((100, 6), "a", object)
    with client.as_current():
        for odd, why in {
            "columns": (X[:, :5], r"Partition 1 of X on worker tcp://.*its shape is \(100, 5\), expected 6"),
            "text": (text, "Partition 1 of X on worker tcp://.*holds 'a' in row 0"),
            "dtype": (X.astype(np.float32), "float32 in partition 1 and float64 in partition 0"),
        }.values():
            with pytest.raises(ValueError, match=why):
                KPOD(2).fit(odd_partitions(odd))
        with pytest.raises(ValueError, match="every partition is empty"):
            KPOD(2).fit(odd_partitions(X)[:0])
        bad = X.copy()
        bad[30, 2] = np.inf
        with pytest.raises(ValueError, match=r"infinity.*in column 2 \(first in row 130\)"):
            KPOD(2).fit(odd_partitions(bad))


def test_frames_with_other_columns_are_named(client):
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    one = pd.DataFrame(table(n_rows=50), columns=list("abcdef"))
    parts = [delayed(one), delayed(one[list("abcdfe")])]
    with client.as_current():
        with pytest.raises(ValueError, match=r"Partition 1 of X.*its columns are a, b, c, d, f and 1 more"):
            KPOD(2).fit(dd.from_delayed(parts, meta=one, verify_meta=False))
        with pytest.raises(ValueError, match=r"'f' \("):
            KPOD(2).fit(dd.from_pandas(one.assign(f="x"), npartitions=2))


class Undecodable:
    """What cannot be read as a number, for a reason with five arguments."""

    def __float__(self):
        return float(b"\xff".decode("utf-8"))


@pytest.mark.parametrize(
    ("odd", "why"),
    [
        (None, "it is NoneType, expected an array"),
        ([[1.0] * 6], "it is list, expected an array"),
        ("text", "it is str, expected an array"),
        (np.full((3, 6), Undecodable()), "column 0 holds a Undecodable object in row 0"),
    ],
)
def test_partitions_that_are_no_arrays_are_named(odd, why, client):
    X = odd_partitions(odd)
    with pytest.raises(ValueError, match=f"Partition 1 of X: .*{why}"):
        KPOD(2).fit(X)
    with client.as_current(), pytest.raises(ValueError, match=f"Partition 1 of X on worker tcp://.*{why}"):
        KPOD(2).fit(X)


def test_partitions_that_are_no_frames_are_named(client):
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    dd = pytest.importorskip("dask.dataframe")
    one = pd.DataFrame(table(n_rows=50), columns=list("abcdef"))
    for odd, what in {
        "nothing": (None, "NoneType"),
        "list": ([1, 2], "list"),
        "array": (one.to_numpy(), "numpy.ndarray"),
        "polars": (pl.DataFrame(dict(one)), r"polars\..*DataFrame"),
        "column": (one["a"], r"pandas\..*Series"),
    }.values():
        parts = [delayed(one), delayed(odd, traverse=False)]
        X = dd.from_delayed(parts, meta=one, verify_meta=False)
        why = f"it is {what}, expected pandas"
        with pytest.raises(ValueError, match=f"Partition 1 of X: {why}"):
            KPOD(2).fit(X)
        with client.as_current(), pytest.raises(ValueError, match=f"Partition 1 of X on worker tcp.*{why}"):
            KPOD(2).fit(X)


def test_columns_of_the_same_name_are_named():
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    twice = pd.DataFrame(table(n_rows=50), columns=list("aacdef"))
    for X in (twice, dd.from_delayed([delayed(twice)], meta=twice[:0])):
        with pytest.raises(ValueError, match="X has several columns named 'a'"):
            KPOD(2).fit(X)


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ({"algorithm": "mm"}, "algorithm='mm' needs the whole table"),
        ({"init": "mean-fill"}, "init='mean-fill' needs the whole table"),
    ],
)
def test_what_needs_the_whole_table_is_refused(parameters, why):
    with pytest.raises(ValueError, match=why):
        KPOD(2, **parameters).fit(in_chunks(table()))


METHODS = ["predict", "transform", "impute", "predict_proba"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("missingness", ["ignore", "informative"])
def test_what_is_as_long_as_the_table_is_made_in_partitions(method, missingness, dtype):
    X = table(dtype, n_rows=1000)
    model = KPOD(5, init=X[:5], missingness=missingness, probability=True).fit(X)
    apply, memory = getattr(model, method), getattr(model, method)(X)
    for chunks in ((400, 6), (400, 4)):
        made = apply(da.from_array(X, chunks=chunks))
        assert isinstance(made, da.Array)
        assert made.shape == memory.shape
        assert made.dtype == memory.dtype
        assert_array_equal(made.compute(), memory)


@pytest.mark.parametrize("method", METHODS)
def test_frames_are_transformed_in_partitions(method):
    """With their index, and partitions without rows among them."""
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(table(n_rows=1000), columns=list("abcdef"), index=np.arange(1000) * 3)
    model = KPOD(5, random_state=0, probability=True).fit(frame)
    several = dd.concat(
        [dd.from_pandas(part, npartitions=1) for part in (frame[:400], frame[:0], frame[400:])]
    )
    made, memory = getattr(model, method)(several), getattr(model, method)(frame)
    found = made.compute()
    assert_array_equal(found, memory)
    assert_array_equal(found.index, frame.index)
    kinds, promised = (list(np.atleast_1d(it.dtypes)) for it in (found, made))
    assert kinds == promised
    names = {"predict": "cluster", "transform": "kpod4", "impute": "f", "predict_proba": "cluster_4"}
    assert names[method] in (found.name if method == "predict" else list(found.columns))


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")  # scaled in memory, it has none
def test_columns_are_scaled_where_they_are(client):
    """Also by a pipeline, which then takes the table as it is."""
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(table(n_rows=600) * np.arange(1, 7) + 5, columns=list("abcdef"))
    several = dd.from_pandas(frame, npartitions=3)
    here = kpod.ObservedScaler().fit(frame)
    with client.as_current():
        there = kpod.ObservedScaler().fit(several)
        scaled = there.transform(several)
        assert_allclose(scaled.compute(), here.transform(frame), rtol=1e-9, atol=1e-12)
        assert list(scaled.columns) == list("abcdef")
        pipeline = make_pipeline(kpod.ObservedScaler(), KPOD(5, random_state=0)).fit(several)
        assert_array_equal(pipeline.predict(several).compute(), pipeline.predict(frame))
    assert_allclose(there.mean_, here.mean_)
    with pytest.raises(ValueError, match="rows='center' needs the whole table in memory"):
        kpod.ObservedScaler(rows="center").fit(several)


def test_labels_stay_where_the_rows_are(client, tmp_path):
    """They are what `predict` says of the table, and nothing of them is in a pickled model."""
    X, reads = table(n_rows=1000), tmp_path / "reads"
    with client.as_current():
        model = KPOD(5, random_state=0).fit(logged_array(X, reads))
        n_reads = len(reads.read_text().split())
        assert isinstance(model.labels_, da.Array)
        assert isinstance(KPOD(5, random_state=0).fit_predict(in_chunks(X)), da.Array)
        assert KPOD(5, random_state=0).fit_transform(in_chunks(X)).shape == (1000, 5)
    assert n_reads == 4
    assert_array_equal(model.labels_.compute(), model.predict(X))
    opened = pickle.loads(pickle.dumps(model))
    assert not hasattr(opened, "labels_")
    assert_array_equal(opened.predict(X), model.predict(X))


@pytest.mark.parametrize(
    "parameters",
    [{"n_clusters": "auto"}, {"shrinkage": "auto"}, {"missingness": "auto"}, {"probability": True}],
)
def test_choices_rest_on_a_sample_that_is_the_same_on_any_workers(parameters, client, monkeypatch):
    monkeypatch.setattr(sampling, "SAMPLED_ROWS", 500)
    X = clustered(np.random.default_rng(0), 1200, 5, k=3, missing=0.2, spread=0.3)[0]
    model = KPOD(**{"n_clusters": 3, "random_state": 0, "n_init": 1, **parameters})
    here = KPOD(**model.get_params()).fit(in_chunks(X))
    with client.as_current():
        there = model.fit(in_chunks(X))
    same(here, there)
    assert here.n_clusters_ == 3
    assert here.shrinkage_ == there.shrinkage_
    if parameters == {"n_clusters": "auto"}:
        assert there.choice_.n_rows_ == 500
    if parameters == {"probability": True}:
        assert_array_equal(here.predict_proba(X), there.predict_proba(in_chunks(X)).compute())


def test_weights_may_be_a_column(client):
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    X = table(n_rows=600)
    weights = np.random.default_rng(0).random(600)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    several = dd.from_pandas(frame.assign(w=weights), npartitions=3)
    plain = dd.from_pandas(frame, npartitions=3)
    model = KPOD(5, init=X[:5])
    here = KPOD(5, init=X[:5]).fit(plain, sample_weight=weights)
    with client.as_current():
        there = model.fit(several, sample_weight="w")
        assert model.score(several, sample_weight="w") == here.score(plain, sample_weight=weights)
    same(here, there)
    assert_array_equal(here.labels_, there.labels_)
    with pytest.raises(ValueError, match="sample_weight is 'v', which is no column of X"):
        KPOD(5).fit(several, sample_weight="v")
    with pytest.raises(TypeError, match=r"Pass the weights themselves: sample_weight=X\['w'\]"):
        KPOD(5).fit(frame, sample_weight="w")


def test_a_small_table_comes_here_with_the_same_bits(client, monkeypatch):
    X = table()
    with client.as_current():
        there = KPOD(5, random_state=0, n_init=2).fit(in_chunks(X))
        monkeypatch.setattr(sizes, "SMALL_REMOTE_TABLE", X.size)
        submitted = []
        submit = on_cluster.DaskExecutor._submit
        monkeypatch.setattr(
            on_cluster.DaskExecutor,
            "_submit",
            lambda self, function, *args, **how: (
                submitted.append(function.__name__) or submit(self, function, *args, **how)
            ),
        )
        here = KPOD(5, random_state=0, n_init=2).fit(in_chunks(X))
    same(here, there)
    assert submitted.count("run_share") <= 2  # one pass, which brings it


def test_whole_numbers_are_transformed_in_partitions():
    X = in_chunks(np.arange(600).reshape(-1, 6), 40)
    model = KPOD(2, random_state=0).fit(X)
    for method in (model.transform, model.impute):
        made = method(X)
        assert made.dtype == made.compute().dtype == np.float64


def test_models_that_are_not_fitted_say_so():
    with pytest.raises(NotFittedError):
        KPOD(2).transform(in_chunks(table()))


def test_collections_that_are_no_tables_are_refused():
    with pytest.raises(ValueError, match="Array with 1 dimension"):
        KPOD(2).fit(da.ones(10, chunks=5))
    X = da.ones((10, 3), chunks=5)
    with pytest.raises(ValueError, match="number of columns of X is unknown"):
        KPOD(2).fit(X[:, X[0] > 0])


def test_delayed_values_have_to_be_wrapped():
    X = table(n_rows=100)
    model = KPOD(2, random_state=0).fit(X)
    advice = r"{0} is a dask.delayed value.*{0}.compute.*dask.array.from_delayed\({0}, shape, dtype\)"
    for method in (model.fit, model.predict, model.transform, model.impute, model.score):
        with pytest.raises(TypeError, match=advice.format("X")):
            method(delayed(X))
    with pytest.raises(TypeError, match=advice.format("sample_weight")):
        model.fit(X, sample_weight=delayed(np.ones(100)))
    wrapped = da.from_delayed(delayed(np.ones(100)), (100,), float)
    same(model, KPOD(2, random_state=0).fit(X, sample_weight=wrapped))


def test_workers_with_another_version_are_named(client, tmp_path):
    other = tmp_path / "scikit_kpod-9.9.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: scikit-kpod\nVersion: 9.9\n")
    with another_worker(client, tmp_path, "") as address, client.as_current():
        with pytest.raises(RuntimeError, match="another version of scikit-kpod") as caught:
            KPOD(2).fit(in_chunks(table()))
        assert f"{address} (9.9)" in str(caught.value)


def test_workers_with_other_kernels_are_named(client, tmp_path):
    """Of the same version, as two builds between releases are."""
    other = """
import pathlib
read = pathlib.Path.read_bytes
pathlib.Path.read_bytes = lambda self: read(self) + (b"another" if self.suffix == ".so" else b"")
"""
    with another_worker(client, tmp_path, other) as address, client.as_current():
        with pytest.raises(RuntimeError, match=r"compiled kernels.*Install the same wheel") as caught:
            KPOD(2).fit(in_chunks(table()))
        assert f"on worker {address} are" in str(caught.value)


def test_workers_without_the_package_are_named(client, tmp_path):
    hide = """
import importlib.metadata as metadata
found = metadata.version
def version(name):
    if name == "scikit-kpod":
        raise metadata.PackageNotFoundError(name)
    return found(name)
version.__module__, metadata.version = "importlib.metadata", version
"""
    with another_worker(client, tmp_path, hide) as address, client.as_current():
        with pytest.raises(RuntimeError, match="not installed on worker") as caught:
            KPOD(2).fit(in_chunks(table()))
        assert address in str(caught.value)


def dies(X):
    os.kill(os.getpid(), signal.SIGKILL)


def test_workers_that_die_of_a_part_of_the_table_are_named(cluster, client, monkeypatch):
    """As the kernel and Dask's nanny end what is out of memory; parts not yet begun are called off."""
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    X = in_chunks(table()).map_blocks(dies, dtype=np.float64, meta=np.empty((0, 0)))
    with client.as_current(), pytest.raises(RuntimeError, match=r"the last one at tcp://.*out of memory"):
        KPOD(2).fit(X)
    client.wait_for_workers(2, 3000)


def test_scattered_data_that_are_lost_are_explained(client):
    X = table(n_rows=200)
    ours = min(client.nthreads())
    future = client.scatter(X, workers=[ours])
    array = da.from_delayed(delayed(future), X.shape, X.dtype)
    model = KPOD(5, init=X[:5], tol=0)

    def kill(line):
        if "lloyd 2:" in line:
            os.kill(client.run(os.getpid, workers=[ours])[ours], signal.SIGKILL)
            until(lambda: ours not in client.nthreads())

    model._progress_line = kill
    with client.as_current(), pytest.raises(RuntimeError, match="cannot be recomputed"):
        model.fit(array)
    client.wait_for_workers(2, 3000)


def test_a_fit_stays_on_the_workers_that_have_the_resources_it_is_annotated_with():
    options = [{"nthreads": 1, "dashboard": False, "resources": resources} for resources in ({"big": 1}, {})]
    workers = {i: {"cls": distributed.Worker, "options": own} for i, own in enumerate(options)}
    scheduler = {"cls": distributed.Scheduler, "options": {"dashboard": False, "port": 0}}
    X = in_chunks(table())
    with (
        distributed.SpecCluster(workers, scheduler, silence_logs=100) as cluster,
        distributed.Client(cluster),
        dask.annotate(resources={"big": 1}),
    ):
        model = KPOD(3, random_state=0).fit(X)
        big, small = (cluster.workers[i].state.log for i in range(2))
        assert [event for event in big if "executing" in event]
        assert not [event for event in small if "executing" in event]
    same(KPOD(3, random_state=0).fit(X), model)


def test_shares_follow_blocks_and_threads():
    sizes, none = [10] * 8, [()] * 8
    shares = on_cluster.plan(sizes, none, {"a": 1, "b": 3}, {})
    assert {name: (len(mine), n) for name, mine, n in shares} == {"a": (2, 1), "b": (6, 3)}
    held = [["a"]] * 4 + [["b"]] * 4
    shares = on_cluster.plan(sizes, held, {"a": 1, "b": 1}, {})
    assert shares == [("a", [0, 1, 2, 3], 1), ("b", [4, 5, 6, 7], 1)]
    # All on one worker: half of them go to the other.
    shares = on_cluster.plan(sizes, [["a"]] * 8, {"a": 1, "b": 1}, {})
    assert [len(mine) for _, mine, _ in shares] == [4, 4]
    # Too much for the memory of a worker with two threads: two at a time, on one thread each.
    shares = on_cluster.plan(sizes, none, {"a": 2}, {"a": 100})
    assert shares == [("a", [0, 1], 1), ("a", [2, 3], 1), ("a", [4, 5], 1), ("a", [6, 7], 1)]


def test_only_clients_are_taken(cluster):
    for what in ("tcp://127.0.0.1:1", cluster, None):
        why = rf"takes a distributed.Client, got .*{type(what).__name__}\. Use Client\(cluster\)"
        with pytest.raises(TypeError, match=why), kpod.on_dask(what):
            pass


def test_clients_that_are_closed_are_refused(cluster):
    client = distributed.Client(cluster, set_as_default=False)
    with kpod.on_dask(client):
        client.close()
        with pytest.raises(RuntimeError, match=r"client of the Dask cluster.*is closed"):
            KPOD(2).fit(table())
    with pytest.raises(RuntimeError, match=r"client of the Dask cluster.*is closed"), kpod.on_dask(client):
        pass


def test_clients_that_are_closed_between_passes_are_told_of(cluster):
    X = table()
    model = KPOD(5, init=X[:5], tol=0)
    model._progress_line = lambda line: client.close() if "lloyd 2:" in line else None
    with (
        distributed.Client(cluster, set_as_default=False) as client,
        kpod.on_dask(client),
        pytest.raises(RuntimeError, match="was closed while it was in use"),
    ):
        model.fit(in_chunks(X))


def test_clients_that_are_closed_in_a_pass_are_told_of(cluster, monkeypatch):
    """Calling the tasks off fails then, which must not hide why."""

    waiting = on_cluster.wait_for

    def lost(connection, call, *args, **how):
        if call != connection.client.gather:
            return waiting(connection, call, *args, **how)
        connection.client.close()
        raise OSError("lost")

    with distributed.Client(cluster, set_as_default=False) as client, kpod.on_dask(client):
        monkeypatch.setattr(on_cluster, "wait_for", lost)
        with pytest.raises(RuntimeError, match="was closed while it was in use") as caught:
            KPOD(2).fit(in_chunks(table()))
    assert str(caught.value.__cause__) == "lost"


def fit_in_a_task(X, leave=False):
    """A fit where tables are on the cluster, and whether the thread is one of its worker's afterwards."""
    if leave:
        distributed.secede()
    try:
        model = KPOD(5, n_init=1, random_state=0).fit(in_chunks(X))
        labels = model.predict(in_chunks(X))
        with kpod.on_dask(distributed.get_client()):
            assert_array_equal(model.predict(X), labels)
        found = model.cluster_centers_
    except ValueError as error:
        found = str(error)
    pool = distributed.get_worker().executors["default"]
    return found, threading.current_thread() in pool._threads


def test_a_task_that_fits_leaves_its_thread_to_the_fit(client):
    """The workers have one thread each, and each has such a task."""
    X = table(n_rows=1200)
    here = KPOD(5, n_init=1, random_state=0).fit(in_chunks(X))
    tasks = [client.submit(fit_in_a_task, X, workers=[name], pure=False) for name in client.nthreads()]
    left = client.submit(fit_in_a_task, X, leave=True)
    bad = client.submit(fit_in_a_task, np.full((800, 6), np.inf))
    for task in tasks:
        centers, back = task.result(timeout=3000)
        assert_array_equal(centers, here.cluster_centers_)
        assert back
    assert not left.result(timeout=3000)[1]  # it had left by itself
    why, back = bad.result(timeout=3000)
    assert "infinity" in why
    assert back
