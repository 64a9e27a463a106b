"""Whether the batches of a stream are alike, or rows come in some order.

By analysis of variance, column by column: of batches of random rows, means differ as much as chance has
it. Centers that are running means follow rows that come sorted, and end far from those of all rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy import special

from kpod._common.typing import Floats, Positions
from kpod._engine.table import Table

LEAST_ROWS = 200
"""Of batches that are compared; shorter ones are taken together."""
LEAST_GROUPS = 3
LEAST_SHARE = 0.2
"""Of a column's variance that lies between batches where their order matters: sorted by clusters, nearly all
that clusters explain does."""
CHANCE = 1e-6


@dataclass
class Moments:
    """Of each column: the number of rows that observe it, their mean, and squared deviations from it."""

    n: Floats
    mean: Floats
    squares: Floats

    @classmethod
    def none(cls, n_columns: int) -> Moments:
        return cls(np.zeros(n_columns), np.zeros(n_columns), np.zeros(n_columns))

    @classmethod
    def of(cls, table: Table) -> Moments:
        """Rows count by their weights, over the mean of these."""
        weights = 1.0 if table.weights is None else float(table.weights[table.usable].mean())
        n = table.about.weights / weights
        return cls(n, np.where(n > 0, table.column_means, 0.0), n * table.column_spreads**2)

    def add_columns(self, n: int) -> None:
        self.n, self.mean, self.squares = (
            np.append(a, np.zeros(n)) for a in (self.n, self.mean, self.squares)
        )

    def add(self, other: Moments) -> Floats:
        """Take other rows in; returns what the two means' difference adds to the squared deviations."""
        n = self.n + other.n
        share = np.divide(other.n, n, out=np.zeros_like(n), where=n > 0)
        step = other.mean - self.mean
        between = self.n * share * step**2
        self.n, self.mean = n, self.mean + share * step
        self.squares = self.squares + other.squares + between
        return between


@dataclass
class Order:
    """How far the batches so far differ.

    Parameters
    ----------
    rows : of all batches that were compared
    group : of the batches since, not enough to be compared yet
    between : of the squared deviations, those of the means of batches
    n_groups : how many were compared, by column
    """

    rows: Moments
    group: Moments
    between: Floats
    n_groups: Floats
    n_rows: int = field(default=0)

    @classmethod
    def unknown(cls, n_columns: int) -> Order:
        zeros = np.zeros(n_columns)
        return cls(Moments.none(n_columns), Moments.none(n_columns), zeros, zeros.copy())

    def add(self, table: Table) -> None:
        """Take a batch in."""
        self.group.add(Moments.of(table))
        self.n_rows += table.n_usable
        if self.n_rows >= LEAST_ROWS:
            self.n_groups = self.n_groups + (self.group.n > 0)
            self.between = self.between + self.rows.add(self.group)
            self.group, self.n_rows = Moments.none(len(self.between)), 0

    def add_columns(self, n: int) -> None:
        """Add columns that occur for the first time."""
        self.rows.add_columns(n)
        self.group.add_columns(n)
        self.between, self.n_groups = (np.append(a, np.zeros(n)) for a in (self.between, self.n_groups))

    def drift(self) -> Floats:
        """Of each column, the share of the variance between batches; NaN where too few were compared."""
        return np.where(self.n_groups >= LEAST_GROUPS, np.clip(self.shares()[0], 0.0, 1.0), np.nan)

    def shares(self) -> tuple[Floats, Positions]:
        """The share of the variance of each column that is between batches, and the columns where it matters.

        The share is without what chance adds (omega squared); chance is a matter of the F test.
        """
        groups, n, total = self.n_groups - 1, self.rows.n - self.n_groups, self.rows.squares
        with np.errstate(divide="ignore", invalid="ignore"):
            within = np.maximum(total - self.between, 0.0) / n
            share = np.nan_to_num((self.between - groups * within) / total)
            tail = special.fdtrc(groups, n, self.between / groups / within)
        known = (self.n_groups >= LEAST_GROUPS) & (n > 0)
        tail = np.where(known, np.nan_to_num(tail, nan=0.0), 1.0)
        matters = known & (share > LEAST_SHARE) & (tail < CHANCE / len(share))
        return share, np.flatnonzero(matters)
