"""A real Spark session: same bits as threads on the same partitions, also when a worker is killed."""

import io
import os
import pickle
import re
import signal
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import kpod
from kpod import KPOD, GaussianMixture
from kpod._engine import sampling, sizes
from kpod._engine.workers import spark_executor, spark_worker
from tests.helpers.spark import frame_of, spark_session, without_java
from tests.helpers.tables import clustered

pytest.importorskip("pyspark")
da = pytest.importorskip("dask.array")
pd = pytest.importorskip("pandas")

pytestmark = [without_java, pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning")]
FITTED = ("cluster_centers_", "counts_", "inertia_", "loss_curve_", "losses_", "column_means_")
NAMES = list("abcd")
START = np.array([[0.0, 0, 0, 0], [1, 1, 1, 1], [-1, 1, -1, 1]])


@pytest.fixture(scope="module")
def spark():
    session = spark_session()
    yield session
    session.stop()


@pytest.fixture
def there(monkeypatch):
    """Small tables stay on the cluster."""
    monkeypatch.setattr(sizes, "SMALL_REMOTE_TABLE", 0)


def table(dtype=np.float64, n_rows=900, seed=1):
    X, _ = clustered(np.random.default_rng(seed), n_rows, 4, k=3, missing=0.3, spread=0.9, dtype=dtype)
    return X


def partitioned(X, n=3):
    return da.concatenate([da.from_array(part, chunks=part.shape) for part in np.array_split(X, n)])


def same(one, other):
    for name in FITTED:
        assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@pytest.mark.filterwarnings("ignore:Not converged")
def test_the_same_bits_as_on_threads(spark, there, tmp_path):
    X = table()
    model = KPOD(3, init=START, max_iter=2, tol=0)
    here = KPOD(**model.get_params()).fit(partitioned(X))
    far = KPOD(**model.get_params()).fit(frame_of(spark, X, tmp_path))
    same(here, far)
    assert far.algorithm_ == "lloyd"
    assert list(far.feature_names_in_) == NAMES


@pytest.mark.filterwarnings("ignore:Not converged")
def test_weights_are_a_column(spark, there, tmp_path, monkeypatch):
    """And the tree in which results are merged shows in no bit."""
    monkeypatch.setattr(spark_executor, "SPARK_FAN_IN", 2)
    X = table()
    weights = np.random.default_rng(0).random(len(X)).round(2)
    frame = frame_of(spark, np.column_stack([X, weights]), tmp_path)
    model = KPOD(3, init=START, max_iter=1)
    here = KPOD(**model.get_params()).fit(partitioned(X), sample_weight=weights)
    far = model.fit(frame, sample_weight="w")
    same(here, far)
    assert model.score(frame, sample_weight="w") == here.score(partitioned(X), sample_weight=weights)


def test_a_small_table_comes_here(spark, tmp_path):
    """With all that it takes to begin: several starts, and nobody waits for a job in each of their passes."""
    X = table(np.float32)
    far = KPOD(3, random_state=0).fit(frame_of(spark, X, tmp_path))
    same(KPOD(3, random_state=0).fit(partitioned(X)), far)


@pytest.mark.filterwarnings("ignore:Not converged")
def test_a_worker_killed_in_an_iteration_and_files_that_are_gone(spark, there, tmp_path):
    """A local master repeats no task, so this does; and a block whose file is gone comes from Spark again."""
    X = table()
    model, done = KPOD(3, init=START, max_iter=3, tol=0), []

    def harm(line):
        if "lloyd 1:" in line:
            (folder,) = [path for path in folders_of_spark(spark) if path.name.startswith("kpod-")]
            for file in [*folder.glob("entries-0-*"), *folder.glob("state-*")]:
                file.unlink()
            done.append("files")
        elif "lloyd 2:" in line:
            workers = pids_of_workers(spark)
            for pid in workers:
                os.kill(pid, signal.SIGKILL)
            done.append("workers")

    model._progress_line = harm
    far = model.fit(frame_of(spark, X, tmp_path))
    same(KPOD(3, init=START, max_iter=3, tol=0).fit(partitioned(X)), far)
    assert done == ["files", "workers"]
    assert not [path for path in folders_of_spark(spark) if path.name.startswith("kpod-")]


def folders_of_spark(spark):
    (found,) = spark.range(0, 1, 1, 1).mapInArrow(where, "found string").collect()
    return list(Path(found.found).iterdir())


def pids_of_workers(spark):
    return {row.pid for row in spark.range(0, 8, 1, 8).mapInArrow(who, "pid long").collect()}


def where(batches):
    import pyarrow as pa

    list(batches)
    yield pa.RecordBatch.from_pydict({"found": [os.environ["SPARK_LOCAL_DIRS"]]})


def who(batches):
    import pyarrow as pa

    list(batches)
    yield pa.RecordBatch.from_pydict({"pid": [os.getpid()]})


where.__module__ = who.__module__ = "__main__"


@pytest.mark.filterwarnings("ignore:Not converged")
@pytest.mark.parametrize(
    ("changed", "error", "words"),
    [
        (
            lambda part: part + 1,
            ValueError,
            r"Partition 1 of X \(rows 300 to 599\) changed while it was in use",
        ),
        (lambda part: part[:0], RuntimeError, "Spark no longer has 1 of 3 blocks of X"),
    ],
    ids=["other values", "no rows"],
)
def test_rows_that_change_are_refused(spark, there, tmp_path, monkeypatch, changed, error, words):
    """Labels recalled on new rows, with the sums of old ones, would be wrong without a word."""
    X = table()
    frame, model, executors = frame_of(spark, X, tmp_path), KPOD(3, init=START, tol=0), []
    made = spark_executor.SparkExecutor.__init__
    monkeypatch.setattr(
        spark_executor.SparkExecutor,
        "__init__",
        lambda self, session: executors.append(self) or made(self, session),
    )

    def change(line):
        if "lloyd 1:" in line:
            np.save(tmp_path / "1.npy", changed(np.load(tmp_path / "1.npy")))
            executors[0]._packed.unpersist(blocking=True)
            for folder in folders_of_spark(spark):
                for file in folder.glob("entries-*"):
                    file.unlink()

    model._progress_line = change
    with pytest.raises(error, match=words):
        model.fit(frame)


@pytest.mark.filterwarnings("ignore:Not converged")
def test_columns_of_all_kinds_become_the_numbers_they_are(spark, there):
    """Whole numbers of 64 bits are not rounded on the way to where it is seen that they would be."""
    n = 90
    frame = spark.range(0, n, 1, 2).selectExpr(
        "id % 2 = 0 as flag",
        "tinyint(id % 7) as tiny",
        "id * 100000000000 as big",
        "decimal(id) / 8 as exact",
        "if(id % 3 = 0, null, float(id / 3)) as single",
        "if(id % 5 = 0, double('nan'), double(id) / 3) as other",
    )
    i = np.arange(n)
    X = np.column_stack(
        [
            i % 2 == 0,
            i % 7,
            i * 1e11,
            i / 8,
            np.where(i % 3 == 0, np.nan, (i / 3).astype(np.float32)),
            np.where(i % 5 == 0, np.nan, i / 3),
        ]
    )
    model = KPOD(3, init=X[[1, 41, 89]].copy(), max_iter=2, tol=0)
    same(KPOD(**model.get_params()).fit(partitioned(X, 2)), model.fit(frame))
    with pytest.raises(ValueError, match=r"Partition 0 of X.*Column 'big' holds whole numbers beyond 2\^53"):
        model.fit(frame.withColumn("big", frame.big + 9007199254740993))


def test_what_cannot_be_used_is_refused_in_one_line(spark, tmp_path):
    X = table(n_rows=30)
    frame = frame_of(spark, X, tmp_path)
    named = frame.selectExpr("*", "'x' as name")
    with pytest.raises(ValueError, match=r"not numeric: 'name' \(string\)"):
        KPOD(3).fit(named)
    with pytest.raises(ValueError, match="sample_weight is 'v', which is no column of X"):
        KPOD(3).fit(frame, sample_weight="v")
    with pytest.raises(TypeError, match="put them into a column of X, and pass its name"):
        KPOD(3).fit(frame, sample_weight=np.ones(30))
    with pytest.raises(ValueError, match="every partition is empty"):
        KPOD(3).fit(frame.filter("isnotnull(a) and a < -1e9"))
    with pytest.raises(ValueError, match="Negative values in sample_weight"):
        KPOD(3).fit(frame.selectExpr("*", "-1 as w"), sample_weight="w")
    with pytest.raises(ValueError, match=r"infinity.*'a'"):
        KPOD(3).fit(frame.selectExpr("if(b > 0, double('inf'), 1.0d) as a", "b"))
    with pytest.raises(ValueError, match="init='mean-fill' needs the whole table in memory"):
        KPOD(3, init="mean-fill").fit(frame)


def test_executors_with_another_version_are_named(spark, tmp_path, monkeypatch):
    frame = frame_of(spark, table(n_rows=30), tmp_path)
    monkeypatch.setattr(spark_executor.importlib.metadata, "version", lambda name: "0.0.1")
    with pytest.raises(RuntimeError, match=r"another version of scikit-kpod than this one \(0.0.1\)"):
        KPOD(3).fit(frame)


def test_executors_without_the_package_can_say_so():
    """What they run is sent by value, and imports nothing of the package before it knows."""
    from pyspark import cloudpickle

    class WithoutThePackage(pickle.Unpickler):
        def find_class(self, module, name):
            assert not module.startswith("kpod")
            return super().find_class(module, name)

    sent = WithoutThePackage(io.BytesIO(cloudpickle.dumps(spark_executor.task))).load()
    (batch,) = sent(b"", "scikit-kpod-that-is-not-there", "1.0", {}, iter([]))
    outcome = spark_worker.opened(batch.column("answer")[0].as_py())
    with pytest.raises(RuntimeError, match="is not installed on worker"):
        spark_executor.check_stale(outcome.stale)


def test_results_are_columns_of_the_frame(spark, tmp_path):
    """One partition at a time, where it is; other columns of the frame are carried along."""
    X = table()
    frame = frame_of(spark, X, tmp_path).selectExpr("*", "'x' as name")
    model = KPOD(3, random_state=0).fit(frame.drop("name"))
    assert_array_equal(rows(model.labels_), np.column_stack([X, model.predict(with_names(X))]))
    labelled = model.predict(frame)
    assert labelled.columns == [*NAMES, "name", "cluster"]
    assert dict(labelled.dtypes)["cluster"] == "int"
    distances = model.transform(frame).select("kpod0", "kpod1", "kpod2")
    assert_array_equal(rows(distances), model.transform(with_names(X)))
    assert_array_equal(rows(model.impute(frame.drop("name"))), model.impute(with_names(X)))
    with pytest.raises(ValueError, match="X lacks columns that the model was fitted on: 'a'"):
        model.predict(frame.drop("a"))
    with pytest.raises(ValueError, match="X has a column 'cluster' already"):
        model.predict(labelled)
    opened = pickle.loads(pickle.dumps(model))
    assert not hasattr(opened, "labels_")


def rows(frame):
    return np.array([tuple(row) for row in frame.collect()], float)


def with_names(X):
    return pd.DataFrame(X, columns=NAMES)


def test_findings_of_a_sample_do_not_follow_the_order_of_the_rows(spark, there, tmp_path):
    """Spark keeps none: they are those of the array, whose rows stand in another order."""
    X = table()
    frame, known = frame_of(spark, X[::-1], tmp_path), with_names(X)
    model = KPOD(3, random_state=0).fit(known)
    here, far = (kpod.stability(model, given, n_resamples=3, random_state=0) for given in (known, frame))
    assert_array_equal(here.jaccard_samples_, far.jaccard_samples_)
    assert_array_equal(here.ari_samples_, far.ari_samples_)
    here, far = kpod.summary(model, known), kpod.summary(model, frame)
    assert_array_equal(here.sizes_, far.sizes_)
    assert_allclose(here.within_ss_, far.within_ss_)
    far = mixture_of(frame)
    assert_array_equal(mixture_of(partitioned(X)).means_, far.means_)
    assert far.labels_.columns == [*NAMES, "cluster"]
    here, far = kpod.report(model, known).data, kpod.report(model, frame)
    assert [c["sentence"] for c in here["clusters"]] == [c["sentence"] for c in far.data["clusters"]]
    assert "which keeps no order" in far.html


def test_a_sample_is_said_to_be_one(spark, there, tmp_path, monkeypatch):
    monkeypatch.setattr(sampling, "SAMPLED_ROWS", 300)
    frame = frame_of(spark, table(), tmp_path)
    model = KPOD(3, random_state=0).fit(with_names(table()))
    with pytest.warns(UserWarning, match="random sample of 300 of 900 rows"):
        assert kpod.summary(model, frame).n_rows_ == 300
    with pytest.warns(UserWarning, match="random sample of 300 of 900 rows"):
        assert mixture_of(frame).n_rows_ == 300


def mixture_of(frame):
    return GaussianMixture(3, covariance_type="diag", n_init=1, random_state=0).fit(frame)


def test_a_preparer_learns_from_a_sample_and_prepares_a_frame_where_it_is(spark):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": rng.normal(size=90) + 9 * (np.arange(90) % 3), "kind": ["oak", "elm"] * 45})
    frame = spark.createDataFrame(X)
    here, there = (kpod.TablePreparer(categories="all").fit(given) for given in (X, frame))
    ready = there.transform(frame)
    assert ready.columns == list(here.get_feature_names_out())
    assert len(ready.columns) == 2
    assert_array_equal(rows(ready), here.transform(X))
    model = KPOD(3, random_state=0).fit(ready)
    assert_array_equal(rows(model.labels_)[:, -1], KPOD(3, random_state=0).fit(here.transform(X)).labels_)
    with pytest.raises(ValueError, match="X lacks columns that the model was fitted on: 'kind'"):
        there.transform(frame.drop("kind"))


def test_the_line_of_the_readme(spark, tmp_path):
    """As it stands there, on a folder of Parquet files."""
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    (line,) = re.findall(r"^labelled = .*spark\.read.*$", readme, re.MULTILINE)
    line = line.replace("wines/", str(tmp_path / "wines"))  # where the JVM finds it
    (tmp_path / "wines").mkdir()
    with_names(table()).to_parquet(tmp_path / "wines" / "part-0.parquet")
    names = {"KPOD": KPOD, "spark": spark}
    exec(line, names)
    assert names["labelled"].columns == [*NAMES, "cluster"]
    assert {row.cluster for row in names["labelled"].select("cluster").collect()} == {0, 1, 2}
