"""A small Spark session, where there is Java."""

import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

without_java = pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java, which is not there")


def spark_session():
    """Two threads of this machine, which repeat no task that fails."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("kpod")
    for name, value in settings.items():
        builder = builder.config(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


class Parts:
    """A source of rows: partition i is the i-th of several arrays in files."""

    def __init__(self, paths, names):
        self.paths, self.names = [str(path) for path in paths], names

    def __call__(self, batches):
        import pyarrow as pa

        for batch in batches:
            for i in batch.column(0).to_pylist():
                X = np.load(self.paths[i])
                columns = [pa.array(np.ascontiguousarray(column)) for column in X.T]
                yield pa.RecordBatch.from_arrays(columns, self.names)


Parts.__module__ = "__main__"  # by value: the workers need not have the tests


def frame_of(spark, X, folder, n=3, names="abcdw"):
    """A DataFrame in so many partitions, as `numpy.array_split` has them."""
    paths, names = [Path(folder) / f"{i}.npy" for i in range(n)], list(names)[: X.shape[1]]
    for path, part in zip(paths, np.array_split(X, n), strict=True):
        np.save(path, part)
    kind = "float" if X.dtype == np.float32 else "double"
    schema = ", ".join(f"{name} {kind}" for name in names)
    return spark.range(0, n, 1, n).mapInArrow(Parts(paths, names), schema)
