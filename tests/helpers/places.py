"""The same table in every place that a table can be in: folders, lakes, queries, and a bucket on loopback."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

BUCKET = "tables"


def arrow(X, names):
    columns = {name: pa.array(column, from_pandas=True) for name, column in zip(names, X.T, strict=True)}
    return pa.table(columns)


def cut(table, n=3):
    edges = np.linspace(0, len(table), n + 1).astype(int)
    return [table.slice(start, stop - start) for start, stop in pairwise(edges)]


def parquet_folder(table, folder, n=3):
    folder.mkdir(parents=True)
    for number, part in enumerate(cut(table, n)):
        pq.write_table(part, folder / f"part-{number}.parquet", row_group_size=200)
    return folder


def hive_folder(table, folder, n=3):
    """Partitioned by year, in the order of the rows."""
    for number, part in enumerate(cut(table, n)):
        place = folder / f"year={2020 + number}"
        place.mkdir(parents=True)
        pq.write_table(part, place / "part-0.parquet")
    return folder


def delta_folder(table, folder):
    """A Delta table after an overwrite: the files of the first version are still there."""
    import deltalake

    deltalake.write_deltalake(str(folder), table.slice(0, 7))
    deltalake.write_deltalake(str(folder), table, mode="overwrite")
    return folder


def iceberg_table(table, folder):
    from pyiceberg.catalog.sql import SqlCatalog

    folder.mkdir(parents=True)
    catalog = SqlCatalog("test", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("lake")
    made = catalog.create_table("lake.rows", schema=table.schema)
    made.append(table)
    return made


def relation(table):
    import duckdb

    return duckdb.connect().from_arrow(table)


def dataset(table, folder):
    return ds.dataset(parquet_folder(table, folder), format="parquet")
