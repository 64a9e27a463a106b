"""Analysis: a clustering with all its results, which every display shares."""

from __future__ import annotations

import os
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kpod._analysis import summaries, text
from kpod._analysis.other_numbers_of_clusters import OtherNumber, other_numbers
from kpod._analysis.verdict import REPEATED, Verdict, verdict_on
from kpod._columns.preparing.columns_in_use import ColumnUsage
from kpod._columns.rows.row_names import row_names
from kpod._columns.tables import TableFile
from kpod._common.errors import InputError
from kpod._common.notes import Notes
from kpod._common.options import option
from kpod._common.progress import Progress, no_progress
from kpod._common.typing import Floats, Labels
from kpod._estimators.kpod import KPOD
from kpod._findings.assignment_rule import Rule, rule_of
from kpod._findings.cautions import cautions
from kpod._findings.certainty import how_sure
from kpod._findings.fitted_clusters.clustering import Clustering
from kpod._findings.fitted_clusters.models import is_mixture
from kpod._findings.outcome_comparison import Outcome, outcome_of
from kpod._findings.stability import Stability, stability
from kpod._findings.unused_columns import unused_columns

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from kpod._findings.cluster_shapes import ShapeChoice
    from kpod._model_selection.number_of_clusters import KChoice
    from kpod._report.page import Report

FEW_ROWS = 50_000
"""Up to which a report has the certainty of rows by default: probabilities take a second or two."""
QUICK_WORK = 300_000
"""Observed entries times clusters, up to which a report has the stability of clusters by default."""
MIXTURE_WORK = 30
"""Fits of KPOD that a fit of a mixture takes as long as."""


class Analysis:
    """The result of `kpod.analyze`: the clusters of a table, and their description.

    Attributes that take long are computed once, on first access: `confidence`, `stability`, `verdict`,
    `rule`, `other_numbers`.
    `print`, `to_dict` and `report` include those that have been computed. In a notebook, an analysis shows
    its report.

    Attributes
    ----------
    labels : ndarray of shape (n_rows,)
        The cluster of each row, numbered from the largest to the smallest; -1 if nothing was observed.
    n_clusters : int
    model : Pipeline
        The fitted model, from the raw table to clusters: `model.predict(new_table)`.
    frame : dataframe
        The table with its clusters, in the library of the table that was given; pandas for a file.
    choice : KChoice or None
        Why this number of clusters was chosen, if it was left open.
    shape : ShapeChoice or None
        What shape the clusters have, and why; None if only round clusters were considered.
    notes, cautions : list of Note
        How the result came about, and what to be careful about.
    confidence : dict or None
        How certain the clusters of the rows are; None for a single cluster.
    stability : Stability
        Which clusters reappear when the rows are resampled. Takes as long as about 15 fits.
    verdict : Verdict or None
        The result in one line, and whether it holds under other choices: logarithms, robust scales, rows
        or columns left out, and so on. A large table is sampled, and the line says so. None for ratings.
    outcome : Outcome or None
        The outcome that was named, compared between the clusters, with intervals.
    rule : Rule or None
        The clusters as a few splits, with their accuracy. None for ratings, for tables that are
        read in pieces, and for more than 12 clusters.
    other_numbers : list of OtherNumber
        Which clusters are merged with one cluster fewer, and which is split with one more.
    """

    def __init__(
        self,
        table: TableFile,
        usage: ColumnUsage,
        model: Pipeline,
        clustering: Clustering,
        *,
        notes: Notes,
        choice: KChoice | None = None,
        shape: ShapeChoice | None = None,
        numbers: Any = "auto",
        weights: Floats | None = None,
        given: Any = None,
        kpod: KPOD,
        missing_values: Any = None,
        progress: Progress = no_progress,
        outcome: str | None = None,
    ) -> None:
        self.model, self.notes, self.choice, self.shape = model, notes, choice, shape
        self._table, self._usage, self._clustering = table, usage, clustering
        self._weights, self._given, self._numbers = weights, given, numbers
        self._kpod, self._missing_values, self._progress = kpod, missing_values, progress
        self._outcome = outcome
        self._cautions: dict[bool, Notes] = {}

    # What was found

    @property
    def labels(self) -> Labels:
        return self._clustering.labels

    @property
    def n_clusters(self) -> int:
        return self._clustering.k

    @property
    def cautions(self) -> Notes:
        """What to be careful about, the most serious first; includes `stability` if it has been computed."""
        with_stability = "stability" in self.__dict__
        if with_stability not in self._cautions:
            known = self.stability if with_stability else None
            self._cautions[with_stability] = cautions(
                self._clustering,
                self.row_names,
                known,
                mixture_refused=self.shape is not None and self.shape.is_refused,
            )
        return self._cautions[with_stability]

    @cached_property
    def confidence(self) -> dict[str, Any] | None:
        if self._table.in_pieces:
            return None
        self._clustering.soften(self._weights)
        return how_sure(self._clustering, self.row_names)

    @cached_property
    def stability(self) -> Stability:
        text = "clustering resampled tables"
        return stability(
            self._clustering.kpod,
            self._clustering.seen,
            sample_weight=self._weights,
            random_state=self._kpod.random_state,
            progress=lambda done, total, _: self._progress(done, total, f"{text}, {done} of {total}"),
        )

    @cached_property
    def verdict(self) -> Verdict | None:
        return verdict_on(self) if hasattr(self.model[0], "roles_") else None

    @cached_property
    def outcome(self) -> Outcome | None:
        if self._outcome is None:
            return None
        column = next(
            (one for one in unused_columns(self._table, self._usage) if one.name == self._outcome), None
        )
        if column is None:
            role = self._usage.roles[self._outcome]
            raise InputError(
                f"{option('--outcome', self._outcome)}: {role.role} columns cannot be compared; choose a "
                "column of numbers, yes and no, or categories."
            )
        repeated = any(note.kind in REPEATED for note in self.notes)
        return outcome_of(column, self.labels, self.n_clusters, self._weights, repeated=repeated)

    @cached_property
    def rule(self) -> Rule | None:
        return rule_of(self._clustering)

    @cached_property
    def other_numbers(self) -> list[OtherNumber]:
        return other_numbers(self)

    @cached_property
    def row_names(self) -> Any:
        """What to call the rows: a name or title, an individual and a time; None for their numbers."""
        panel = next((note.columns for note in self.notes if note.kind == "one row for each"), ())
        return row_names(self._table, self._usage, panel)

    def _known(self, name: str) -> Any:
        """Something that takes long, if it has been computed."""
        return self.__dict__.get(name)

    # What can be made of it

    @property
    def frame(self) -> Any:
        self._check_in_memory("frame")
        return labelled_frame(self._given, self._table, self.labels)

    def describe(self) -> Any:
        """The clusters: their sizes, their descriptions, and their centers in the units of the table.

        Returns
        -------
        dataframe
            One row per cluster, in the library of the table that was given; pandas for a file.
        """
        c = self._clustering
        data: dict[str, Any] = {
            "cluster": np.arange(c.k),
            "rows": c.sizes,
            "description": np.array([c.sentence(m).partition(", ")[2] for m in range(c.k)], dtype=object),
        }
        names = [name if name not in data else f"{name}_" for name in c.names]
        data |= dict(zip(names, c.centers.T, strict=True))
        return frame_like(self._given, data)

    def report(
        self, *, title: str | None = None, settings: dict[str, str] | None = None, with_rows: bool = True
    ) -> Report:
        """The report, including the certainty and stability of the clusters if they are quick to compute.

        Parameters
        ----------
        title : str, default=None
            The heading.
        settings : dict, default=None
            More entries for the list of settings.
        with_rows : bool, default=True
            Whether the page contains the names and values of its rows; see `kpod.report`.

        Returns
        -------
        Report
            With `save(path)`; a notebook shows it inline.
        """
        from kpod._report.page import Report

        if self._table.n_rows <= FEW_ROWS:
            _ = self.confidence
        if self._is_quick:
            _ = self.stability
        summary = self.to_dict()
        return Report(
            self._clustering,
            title=title or f"Clusters in {Path(self._table.source).name}",
            settings={**(settings or {}), **report_settings(summary)},
            source=text.source_facts(summary),
            row_names=self.row_names,
            unused=unused_columns(self._table, self._usage),
            notes=[note.text for note in self.notes],
            cautions=self.cautions,
            sure=self._known("confidence"),
            choice=self.choice,
            stability=self._known("stability"),
            verdict=summary.get("verdict"),
            with_rows=with_rows,
            rule=summary.get("rule"),
            other_numbers=[one["sentence"] for one in summary.get("other_numbers", ())],
            outcome=summary.get("outcome"),
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values: what `kpod fit --json` prints."""
        return summaries.summary_of(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, for `kpod.load` and `kpod predict`."""
        from kpod._saved_models.save_load import save

        names = None if hasattr(self.model[0], "roles_") else self._clustering.names
        save(self.model, path, column_names=names, missing_values=self._missing_values)

    def write(
        self, path: str | os.PathLike[str], *, label: str = "cluster", confidence: bool = False
    ) -> None:
        """Write the table with its clusters, as .csv, .tsv, .parquet, .feather, .arrow or .xlsx.

        With `confidence`, also the probability of each row's cluster, and the most likely other one.
        """
        from kpod._files.output import write_labels

        if confidence:
            _ = self.confidence
        sure = self._clustering.sureness if confidence else None
        write_labels(self._table, label, self.labels, os.fspath(path), sure)

    def write_centers(self, path: str | os.PathLike[str], *, label: str = "cluster") -> None:
        """Write the centers, in the original units, with the number of observed entries behind each."""
        from kpod._files.writing import write_table

        write_table(centers_table(self._clustering, label), os.fspath(path), self._table.dialect)

    @property
    def _is_quick(self) -> bool:
        """Whether clustering resampled tables takes no longer than drawing the report."""
        c = self._clustering
        most = QUICK_WORK // MIXTURE_WORK if is_mixture(c.kpod) else QUICK_WORK
        return c.k > 1 and int(c.values.by_column.sum()) * c.k <= most

    def _check_in_memory(self, what: str) -> None:
        if self._table.in_pieces:
            raise InputError(
                f"{self._table.source}: {what} needs the whole table in memory{self._table.whole_size}, and "
                "this one is read in pieces; write it to a file with `write`."
            )

    # How it is shown

    def __str__(self) -> str:
        return "\n".join(text.fit_lines(self.to_dict()))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()

    def close(self) -> None:
        """Remove what a table that is read in pieces keeps on the disk."""
        self._table.close()

    def __enter__(self) -> Analysis:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def report_settings(summary: dict[str, Any]) -> dict[str, str]:
    return {**{key: str(value) for key, value in summary["settings"].items()}, "kpod": summary["kpod"]}


def centers_table(c: Clustering, label: str) -> Any:
    """A row for each cluster: its rows, its centers, and the observed entries behind each."""
    import pyarrow as pa

    columns = {label: pa.array(range(c.k), pa.int32())}
    columns |= {name: pa.array(v, from_pandas=True) for name, v in zip(c.names, c.centers.T, strict=True)}
    counts = np.column_stack([c.sizes, c.counts]).astype(np.int64)
    for name, values in zip(["rows", *(f"observed {name}" for name in c.names)], counts.T, strict=True):
        while name in columns:  # a column of the user's has that name already
            name += "_"  # noqa: PLW2901
        columns[name] = pa.array(values)
    return pa.table(columns)


def labelled_frame(given: Any, table: TableFile, labels: Labels) -> Any:
    """The table that was given with a column more."""
    import narwhals.stable.v2 as nw

    from kpod._columns.preparing.frames import frame_kind
    from kpod._files.output import with_labels

    name = "cluster"
    while name in table.by_name:
        name += "_"
    kind = frame_kind(given)
    if given is None or kind == "array":
        return as_native(with_labels(table, name, labels, typed=True))
    if kind == "pandas":
        return given.assign(**{name: labels})
    frame = nw.from_native(given, eager_only=True)
    column = nw.new_series(name, labels, backend=frame.implementation)
    return frame.with_columns(column).to_native()


def as_native(content: Any) -> Any:
    """A table as a data frame of pandas, or of pyarrow without it."""
    return content.to_pandas() if find_spec("pandas") else content


def frame_like(given: Any, data: dict[str, Any]) -> Any:
    from kpod._columns.preparing.frames import as_frame, frame_kind

    kind = frame_kind(given)
    if kind != "array":
        return as_frame(data, kind)
    return as_frame(data, "pandas" if find_spec("pandas") else "pyarrow")
