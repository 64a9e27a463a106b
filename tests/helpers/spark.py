"""A small Spark session, where there is Java."""

import shutil
import warnings

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
