"""Spark Connect, which has the DataFrame interface and nothing of the JVM, in a process of its own."""

import subprocess
import sys

import pytest

from tests.helpers.spark import without_java

pytest.importorskip("pyspark")
pytest.importorskip("grpc", reason="Spark Connect needs grpcio, grpcio-status and googleapis-common-protos")

pytestmark = without_java

# A process has one session, of either kind.
FIT = """
import sys, warnings
import numpy as np
from kpod import KPOD
from kpod._engine import sizes
from pyspark.sql import SparkSession

warnings.simplefilter("ignore")
sizes.SMALL_REMOTE_TABLE = 0
spark = SparkSession.builder.remote("local[2]").getOrCreate()
frame = spark.read.parquet(sys.argv[1])
assert type(frame).__module__.startswith("pyspark.sql.connect")
X = np.array([tuple(row) for row in frame.collect()])
start = X[:3].copy()
model = KPOD(3, init=start, max_iter=2, tol=0, algorithm="lloyd")
here, far = (KPOD(**model.get_params()).fit(given) for given in (X, frame))
np.testing.assert_allclose(far.cluster_centers_, here.cluster_centers_, rtol=1e-12)
found = np.array([tuple(row) for row in far.predict(frame).collect()])
np.testing.assert_array_equal(found[:, -1], here.labels_)
spark.stop()
print("the same clusters")
"""


def test_a_table_of_spark_connect_is_clustered_where_it_is(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) + 5 * rng.integers(3, size=(300, 1))
    X[:, 1:][rng.random((300, 2)) < 0.3] = np.nan
    pq.write_table(pa.table(dict(zip("abc", X.T, strict=True))), tmp_path / "part-0.parquet")
    done = subprocess.run(
        [sys.executable, "-c", FIT, str(tmp_path)], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.stdout.splitlines()[-1:] == ["the same clusters"], done.stderr[-2000:]
