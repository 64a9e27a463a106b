"""A fitted model with its table, in the units and names of the table.

Works out sizes, differences, separation and a sentence on each cluster; the command line, the
pictures and the report only show them. Cautions, profiles and how sure it is have modules of their own.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kpod._common.sentences.cluster_sentences import cluster_sentence
from kpod._common.sentences.formatting import number, percent
from kpod._common.typing import AnyFloats, Floats, Labels, Positions
from kpod._findings.fitted_clusters import descriptions
from kpod._findings.fitted_clusters.descriptions import FEW, Contrast, Trait
from kpod._findings.fitted_clusters.entries import (
    DenseEntries,
    Entries,
    MappedEntries,
    SparseEntries,
    entries_of,
)
from kpod._findings.fitted_clusters.models import (
    Model,
    has_probabilities,
    is_mixture,
    labels_of,
    margins,
    outlier_cells,
    split,
)
from kpod._findings.fitted_clusters.row_means import RowMeans, row_means
from kpod._findings.fitted_clusters.typical_rows import members_of, nearest_members
from kpod._findings.fitted_clusters.units import (
    SMALL,
    YEAR,
    InUnits,
    Level,
    in_units,
    is_bent,
    is_year,
    means_of,
)
from kpod._findings.fitted_clusters.variance import explained, separation
from kpod._inputs import validation
from kpod._missing.diagnosis import ComparedTable, Diagnosis
from kpod._mixture.confidence import Sureness, soften, sureness
from kpod._mixture.roundness import Roundness, roundness

ROWS_AT_ONCE = 1_000_000
"""Entries made dense at once, to see what gaps go with."""
MOST_ROWS = 100_000
"""With more rows, spreads are those of a sample."""
MOST_COMPARED = 500_000
"""Entries of a cluster looked at for typical rows."""


@dataclass(frozen=True)
class Clustering:
    """A fitted model seen together with a table, both in the table's own units."""

    kpod: Model
    names: list[str]
    table: Entries
    """The table in the units it came in."""
    values: Entries
    """The same as the model sees it, scaled for example."""
    seen: Any
    """That once more, in the form the model takes it: a dataframe where it was fitted on one."""
    centers: Floats
    """In the units of `table`."""
    labels: Labels
    is_fitted_table: bool
    levels: list[Level | None]
    """Of each column that is the share of a level, which."""
    is_bent: bool
    """Whether logarithms or clipping come before the model: distances in the table are others then."""
    means_of: list[str]
    """Of each column, what its centers are means of where not of the values: logarithms, for example."""
    in_units: InUnits
    """From points as the model sees them to the units of `table`."""
    weights: Floats | None = None
    """Of the rows."""

    @classmethod
    def of(
        cls,
        estimator: Any,
        X: Any,
        column_names: Sequence[str] | None = None,
        *,
        is_fitted_table: bool | None = None,
        seen: Any = None,
        weights: Floats | None = None,
    ) -> Clustering:
        """From a fitted model, or a pipeline that ends in one, and a table of the kind it was fitted on.

        `seen` is the table as the model takes it, where that is known already, `weights` those of its rows.
        """
        validation.refuse_dask(X)  # before scikit-learn's transformers load it
        before, kpod = split(estimator)
        check_is_fitted(kpod)
        if seen is None:
            seen = X if before is None else before.transform(X)
        values = entries_of(validation.as_table(seen, kpod), getattr(seen, "measured", None))
        table, back, given, levels = in_units(estimator, before, kpod, X, values)
        given = column_names if column_names is not None else given
        names = [str(name) for name in given] if given is not None else numbered(table.shape[1])
        if len(names) != table.shape[1]:
            raise ValueError(f"{len(names)} column names for {table.shape[1]} columns; give one for each.")
        centers = np.asarray(back(np.asarray(kpod.cluster_centers_, dtype=np.float64)), dtype=np.float64)
        centers = np.where(np.asarray(kpod.counts_) > 0, centers, np.nan)
        if is_fitted_table:
            labels, fitted = np.asarray(kpod.labels_), True
        else:
            labels, fitted = labels_of(kpod, values, seen)
        return cls(
            kpod,
            names,
            table,
            values,
            seen,
            centers,
            labels,
            fitted,
            levels,
            is_bent(before),
            means_of(before, len(names)),
            back,
            weights,
        )

    @cached_property
    def sources(self) -> list[int]:
        """One column for each column of the table: of the indicators of a category, the first."""
        first: dict[Any, int] = {}
        in_memory = isinstance(self.table, DenseEntries)
        groups = self.kpod._groups().source if in_memory else np.arange(len(self.names))
        for j, level in enumerate(self.levels):
            first.setdefault(groups[j] if level is None else level.column, j)
        return list(first.values())

    @cached_property
    def source(self) -> Entries:
        """What is observed of the columns of the table, of the levels of a category but once."""
        if len(self.sources) == len(self.names):
            return self.table
        assert isinstance(self.table, DenseEntries | MappedEntries)
        return entries_of(self.table.values[:, self.sources])

    @cached_property
    def source_names(self) -> list[str]:
        levels = [self.levels[j] for j in self.sources]
        return [
            self.names[j] if level is None else level.column
            for j, level in zip(self.sources, levels, strict=True)
        ]

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """What missingness in the table is related to, including the clusters."""
        placed = self.k > 1 and bool((self.labels >= 0).any())
        n_rows, source = len(self.labels), self.source
        missing = (n_rows - source.by_column) / max(n_rows, 1)
        levels = [self.levels[j] for j in self.sources]
        of_two = {j: level.name for j, level in enumerate(levels) if level is not None and level.other}
        whole = ComparedTable(
            self.source_names, missing, n_rows, source.n_complete, self.labels if placed else None, of_two
        )
        pieces = np.array_split(whole.rows, max(1, len(whole.rows) * source.shape[1] // ROWS_AT_ONCE))
        values = np.concatenate([source.rows(piece)[:, whole.columns] for piece in pieces])
        gaps = np.isnan(values)
        # Of more than two levels, the first is there for its gaps; it is not high or low.
        n_columns = np.bincount(np.searchsorted(self.sources, np.arange(len(self.names)), side="right") - 1)
        is_category = [n_columns[j] > 1 for j in whole.columns]
        return whole.diagnosis(gaps, np.where(is_category, np.nan, values))

    @cached_property
    def sample(self) -> Positions | None:
        """A sample of the rows if there are very many; None for all rows."""
        if len(self.labels) <= MOST_ROWS or isinstance(self.table, SparseEntries):
            return None
        return np.sort(np.random.default_rng(0).choice(len(self.labels), MOST_ROWS, replace=False))

    @property
    def sampled_labels(self) -> Labels:
        return self.labels if self.sample is None else self.labels[self.sample]

    @cached_property
    def is_year(self) -> list[bool]:
        """Whether a column holds years, which are written without a comma."""
        return [
            bool(YEAR.search(name)) and is_year(name, self.labelled(self.table, j)[0])
            for j, name in enumerate(self.names)
        ]

    @cached_property
    def is_yes_no(self) -> list[bool]:
        """Whether a column holds 0 and 1 only, whose mean is a share."""
        columns = (self.labelled(self.table, j)[0] for j in range(len(self.names)))
        perhaps = [bool(np.isin(column, (0, 1)).all()) for column in columns]
        if not any(perhaps):  # ranges take a look at every entry
            return perhaps
        low, high = self.table.ranges
        return [maybe and bool(low[j] == 0 and high[j] == 1) for j, maybe in enumerate(perhaps)]

    def shown(self, j: int, value: float) -> str:
        """A value of a column as it is read: 2007 for a year, 82 % for the share of a level."""
        if self.levels[j] is not None:
            return percent(value)
        if abs(value) < SMALL * self.moments[1][j]:
            return "0"
        return f"{value:.0f}" if self.is_year[j] and np.isfinite(value) else number(value)

    def label(self, j: int) -> str:
        """The name of a column as it is read."""
        level = self.levels[j]
        return self.names[j] if level is None else f"{level.column}: {level.name}"

    @cached_property
    def row_means(self) -> RowMeans:
        """Of each cluster and column, the mean over the rows of the cluster, and over those of the others."""
        return row_means(self)

    @property
    def k(self) -> int:
        return int(self.kpod.n_clusters_)

    @cached_property
    def sizes(self) -> np.ndarray[Any, Any]:
        some = np.array_split(self.labels, 1 + len(self.labels) // MOST_COMPARED)  # bincount copies them
        return np.sum([np.bincount(labels[labels >= 0], minlength=self.k) for labels in some], axis=0)

    @cached_property
    def counts(self) -> Floats:
        """Observed entries behind each center; weights of rows do not make them more."""
        behind = self.entries if self.is_fitted_table else self.kpod.counts_
        return np.asarray(behind, dtype=np.float64)

    @cached_property
    def missing_by_column(self) -> Floats:
        return 1 - self.table.by_column / len(self.labels)

    @property
    def moments(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the observed entries of each column; NaN for none."""
        return self.table.moments

    @property
    def measured(self) -> Entries:
        """The table in which distances are what they were to the model, up to a unit for each column."""
        return self.values if self.is_bent else self.table

    @cached_property
    def differences(self) -> Floats:
        """Centers less the column's mean, in its standard deviations; 0 where nothing varies.

        Of logarithms and clipped values, where those are what was clustered. Those of a mixture are its own.
        """
        if is_mixture(self.kpod):
            means, stds = self.kpod._moments()
            return np.nan_to_num(np.where(np.isnan(self.centers), np.nan, self.kpod.means_ - means) / stds)
        means, stds = self.measured.moments
        centers = np.asarray(self.kpod.cluster_centers_, dtype=np.float64) if self.is_bent else self.centers
        with np.errstate(divide="ignore", invalid="ignore"):
            difference = (np.where(np.isnan(self.centers), np.nan, centers) - means) / stds
        return np.nan_to_num(difference, nan=0.0, posinf=0.0, neginf=0.0)

    @cached_property
    def separation(self) -> Floats:
        """Of each column, how much the clusters explain: of its variance, allowing for small counts.

        A column with few entries cannot lead.
        """
        return separation(self)

    def labelled(self, table: Entries, j: int) -> tuple[Floats, Labels]:
        """The entries of a column in rows (of the sample) that have a cluster, and their clusters."""
        rows, entries = self.expected_entries(table, j)
        labels = self.labels[rows]
        return entries[labels >= 0].astype(np.float64), labels[labels >= 0]

    def expected_entries(self, table: Entries, j: int) -> tuple[Positions, AnyFloats]:
        """Rows (of the sample) and entries of a column, but for the outlying cells of a mixture."""
        rows, entries = table.column(j, self.sample)
        outliers = self.outlier_cells[self.outlier_cells[:, 1] == j, 0]
        kept = ~np.isin(rows, outliers) if len(outliers) else slice(None)
        return rows[kept], entries[kept]

    @cached_property
    def by_separation(self) -> list[int]:
        return [int(j) for j in np.argsort(-self.separation, kind="stable")]

    @cached_property
    def margins(self) -> Floats:
        """The margin of each row of the sample: 0 halfway to another cluster, 1 in the middle of its own."""
        rows = self.seen if self.sample is None else self.values.rows(self.sample)
        return margins(self.kpod, rows, self.sampled_labels)

    @cached_property
    def sureness(self) -> Sureness | None:
        """How sure the cluster of each row is, where the model has probabilities."""
        if not has_probabilities(self.kpod):
            return None
        return self.judged(self.kpod.predict_proba(self.seen))

    def judged(self, chances: Floats, weights: Floats | None = None) -> Sureness:
        """How sure rows are by the probabilities of the clusters; and whether the table contradicts these."""
        gaps = hasattr(self.kpod, "missing_rates_") or self.kpod._groups().present
        if self.k > 1 and self.is_fitted_table and not is_mixture(self.kpod) and not gaps:
            values = validation.as_table(self.seen, self.kpod)
            self.__dict__["roundness"] = roundness(values, self.labels, chances, weights)
        return sureness(chances, self.labels)

    @cached_property
    def roundness(self) -> Roundness | None:
        """What contradicts round clusters, where their probabilities are known: None before they are."""
        return None

    @cached_property
    def outlier_cells(self) -> Positions:
        """Rows and columns (m, 2) of the entries that no cluster of a mixture expects."""
        return outlier_cells(self.kpod, self.seen, is_fitted_table=self.is_fitted_table)

    def soften(self, weights: Floats | None = None) -> None:
        """Fit the mixture behind the clusters, for probabilities, where the model has none."""
        if self.k == 1 or self.sureness is not None or not self.is_fitted_table:
            return
        if hasattr(self.kpod, "cluster_shares_"):  # as informative gaps have them
            model = copy.copy(self.kpod)
            model.probability = True
            chances = model.predict_proba(self.seen)
        else:
            values = validation.as_table(self.seen, self.kpod)
            mixture = soften(values, self.labels, self.k, weights, self.kpod._groups())
            chances = replace(mixture, column_means=self.kpod.column_means_).probabilities(values)
        self.__dict__["sureness"] = self.judged(chances, weights)

    @property
    def converged(self) -> bool:
        """As far as there is such a thing: mini-batches end when they have all been seen."""
        return bool(getattr(self.kpod, "converged_", True))

    @property
    def centers_are_means(self) -> bool:
        """Whether the centers are the means of this table's rows, without weights or shrinkage."""
        kpod = self.kpod
        if is_mixture(kpod) or not self.is_fitted_table or getattr(kpod, "shrinkage_", 0.0) > 0:
            return False
        return bool(np.isclose(kpod.counts_.sum(), self.entries.sum()))

    @cached_property
    def explained(self) -> float | None:
        """The share of the sum of squares that the clusters explain; None for a mixture."""
        return explained(self)

    @cached_property
    def known(self) -> Floats:
        """Of each cluster and column, the share of the cluster's rows that have it."""
        return np.asarray(self.entries / np.maximum(self.sizes, 1)[:, None], dtype=np.float64)

    @cached_property
    def entries(self) -> Labels:
        """Of each cluster and column, the observed entries."""
        return self.table.by_group(self.labels, self.k).astype(np.int64)

    def traits(self, cluster: int) -> list[Trait]:
        """What sets a cluster apart, the clearest first."""
        return descriptions.traits(self, cluster)

    def contrast(self, cluster: int) -> Contrast | None:
        """The nearest other cluster, and the column in which the two differ most."""
        return descriptions.contrast(self, cluster) if self.k > 1 else None

    def is_like_nearest(self, cluster: int) -> bool:
        """Whether all that sets a cluster apart sets the nearest other one apart, too."""
        nearest = self.contrast(cluster)
        return nearest is not None and what_of(self.traits(cluster)) <= what_of(self.traits(nearest.cluster))

    def sentence(self, cluster: int) -> str:
        """One line on a cluster; with its nearest neighbour, if it has no traits of its own."""
        enough = self.counts[cluster] >= FEW
        known = "all" if enough.all() else "some" if enough.any() else "nothing"
        return cluster_sentence(
            cluster,
            int(self.sizes[cluster]),
            self.traits(cluster),
            descriptions.spread(self, cluster),
            self.contrast(cluster) if self.is_like_nearest(cluster) else None,
            known,
        )

    def typical(self, cluster: int, most: int = 3) -> list[int]:
        """The rows of a cluster nearest to its center, among those with the most observed entries.

        In standard deviations of the cluster where it is one of a mixture. Of a large cluster, a sample is
        looked at.
        """
        return nearest_members(self, cluster, self.compared_members[cluster])[:most]

    @cached_property
    def compared_members(self) -> list[Positions]:
        """The rows of each cluster, or of a large one a sample of them."""
        return members_of(self.labels, self.sizes, max(100, MOST_COMPARED // len(self.names)))


def what_of(traits: Sequence[Trait]) -> set[tuple[str, int]]:
    return {(trait.kind, trait.column) for trait in traits}


def numbered(n: int) -> list[str]:
    return [f"column {j}" for j in range(n)]
