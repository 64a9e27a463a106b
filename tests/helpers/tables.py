"""Tables to test with, dense and sparse, and the solvers of the engine in the units of a table."""

from dataclasses import replace

import numpy as np
from scipy import sparse

from kpod._engine import fit
from kpod._engine.executors import Executor
from kpod._engine.solvers.interface import Settings, Start
from kpod._engine.table import make_table
from kpod._inputs import validation


def as_csr(X, kind=sparse.csr_array):
    """Every observed entry of X stored, zeros too; no gap stored."""
    rows, columns = np.nonzero(~np.isnan(X))
    return kind((X[rows, columns], (rows, columns)), shape=X.shape)


def as_csr_for_engine(X):
    """The same as the engine takes it."""
    return validation.as_csr(X if sparse.issparse(X) else as_csr(X), None)


def clustered(rng, n_rows=300, n_columns=8, k=5, missing=0.3, spread=0.6, dtype=np.float64):
    """Normal clusters with gaps, every row and column with something observed; and the truth."""
    truth = rng.integers(k, size=n_rows)
    X = rng.normal(size=(k, n_columns))[truth] + spread * rng.normal(size=(n_rows, n_columns))
    gaps = rng.random(X.shape) < missing
    gaps[np.arange(n_rows), rng.integers(n_columns, size=n_rows)] = False
    gaps[rng.integers(n_rows), :] = False
    X[gaps] = np.nan
    return X.astype(dtype), truth


def table_of(X, weights=None, **about):
    values = X if sparse.issparse(X) else np.ascontiguousarray(X)
    return make_table(values, Executor(), weights=weights, **about)


class Solver:
    """A solver of the engine that takes and gives everything in the table's own units."""

    def __init__(self, name):
        self.name = name

    def __call__(self, table, centers, executor=None, **settings):
        start = Start(table.units.to(centers))
        solution = fit.SOLVERS[self.name](table, executor or Executor(), start, Settings(**settings))
        square = table.units.scale**2
        return replace(
            solution,
            centers=table.units.back(solution.centers),
            loss=solution.loss / square,
            objective=solution.objective / square,
            trace=[value / square for value in solution.trace],
        )


SOLVERS = {name: Solver(name) for name in fit.SOLVERS}
lloyd, hartigan, mm = SOLVERS["lloyd"], SOLVERS["hartigan"], SOLVERS["mm"]


def random_rows(X, k, rng, n=3):
    """Centers to start from: rows of X, their gaps at the column means, n times."""
    usable = np.flatnonzero(~np.isnan(X).all(axis=1))
    means = np.nanmean(X, axis=0)
    draws = [X[rng.choice(usable, k, replace=False)].astype(np.float64) for _ in range(n)]
    return [np.where(np.isnan(rows), means, rows) for rows in draws]


def values_in(table, usage):
    """The columns of an inspected table that are used, before they are scaled."""
    from kpod._columns.preparing.column_values import levels_of
    from kpod._columns.preparing.new_rows import values_of

    return values_of(table, usage.used, usage.kinds(table), levels_of(table, usage))[0]
