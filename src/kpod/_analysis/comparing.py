"""kpod.compare: what has changed since a model was fitted, seen in a new table.

The new rows are assigned to the clusters of the model. Compared are the shares of the clusters, their means
with the centers, and how far rows lie from them; and the rows are clustered afresh, as many clusters as the
model has: where these are the same groups, the model still holds.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from kpod._analysis.analyze import is_path
from kpod._analysis.applying import Applied, applied_to
from kpod._common.errors import InputError
from kpod._common.notebook import ReadsAsText
from kpod._common.notes import Notes
from kpod._common.progress import Progress, no_progress
from kpod._common.sentences.comparison_sentences import comparison_lines
from kpod._common.sentences.formatting import brief_pair, percent
from kpod._common.typing import Floats
from kpod._findings.fitted_clusters.models import is_mixture
from kpod._findings.fitted_clusters.units import levels_of

if TYPE_CHECKING:
    from kpod._report.comparison import ComparisonReport

SHIFTED = 0.25
"""Standard deviations of the column by which the mean of a cluster has moved, from which it is named; and"""
CERTAIN = 3.0
"""so many standard errors of it."""
MOVED = 2.5
"""Standard errors by which the share of a cluster has changed, from which it has."""
MISSING = 0.1
"""By how much more, or less, of a column is missing."""
FEW = 5
MOST_ROWS = 5_000
"""Of more rows, a sample is clustered afresh."""


@dataclass(frozen=True)
class ClusterThen:
    """A cluster in the table of the model, and in the new table.

    Attributes
    ----------
    cluster : int
    share_before, share : float
        The share of the rows in it (before, of the observed entries if no column was complete).
    n_rows : int
        Its number of rows in the new table.
    changed : bool
        Whether the share has changed by more than chance.
    """

    cluster: int
    share_before: float
    share: float
    n_rows: int
    changed: bool


@dataclass(frozen=True)
class Shift:
    """A column whose mean in a cluster has changed, in the units of the table."""

    cluster: int
    column: str
    before: str
    now: str
    standard_deviations: float


@dataclass(frozen=True)
class Comparison(ReadsAsText):
    """What has changed since a model was fitted.

    Attributes
    ----------
    n_rows : int
        The number of rows in the new table.
    clusters : list of ClusterThen
    shifts : list of Shift
        Means of clusters that have moved, those that moved most first.
    missing : list of (str, float, float)
        Columns whose share of missing values has changed: the share before, and now.
    distance_before, distance : float or None
        The mean squared distance of an observed entry from its center, in the units of the model; None for a
        mixture.
    agreement : float or None
        The adjusted Rand index between the clusters of the model and those of a new fit.
    unassigned : int
        Rows with nothing observed.
    notes : list of Note
        Remarks on columns and values that the model does not know.
    data, model : str
        What was compared, by the names of their files.
    sentence_ : str
    """

    n_rows: int
    clusters: list[ClusterThen]
    shifts: list[Shift]
    missing: list[tuple[str, float, float]]
    distance_before: float | None
    distance: float | None
    agreement: float | None
    unassigned: int
    notes: Notes
    data: str
    model: str

    @property
    def sentence_(self) -> str:
        return comparison_lines(self)[0]

    def __str__(self) -> str:
        return "\n".join([*comparison_lines(self), *(f"note: {note.text}" for note in self.notes)])

    def report(self, *, title: str | None = None, settings: dict[str, str] | None = None) -> ComparisonReport:
        """The comparison as a report, one HTML file.

        Parameters
        ----------
        title : str, default=None
            The heading.
        settings : dict, default=None
            More entries for the list of settings.

        Returns
        -------
        ComparisonReport
            With `save(path)`; a notebook shows it inline.
        """
        from kpod._report.comparison import ComparisonReport

        return ComparisonReport(
            self,
            title=title or f"What has changed in {self.data}",
            settings={"model": self.model, "data": self.data, **(settings or {})},
            limits={"shifted": SHIFTED, "certain": CERTAIN, "moved": MOVED, "missing": MISSING},
        )

    def to_dict(self) -> dict[str, Any]:
        """What was found, as plain values, for JSON."""
        findings = {name: value for name, value in vars(self).items() if name not in ("data", "model")}
        return {
            "sentence": self.sentence_,
            **findings,
            "clusters": [vars(one) for one in self.clusters],
            "shifts": [vars(one) for one in self.shifts],
            "missing": [list(one) for one in self.missing],
            "notes": [note.to_dict() for note in self.notes],
        }


def compare(
    model: Any, data: Any, *, missing_values: Any = None, progress: Progress | None = None, **reading: Any
) -> Comparison:
    """Compare a new table with a fitted model: what has changed since then.

    Parameters
    ----------
    model : path, Pipeline or Analysis
        A model file of `kpod fit --model` or `Analysis.save`, a pipeline of a `TablePreparer` and a KPOD or
        GaussianMixture, or the result of `kpod.analyze`.
    data : path, sequence of paths or dataframe
        The new table, with the columns of the model.
    missing_values : default=None
        Missing codes in the new table, besides those that the model knows; see `TablePreparer`.
    progress : callable, default=None
        A callback, called as `progress(done, total, text)`.
    **reading
        How to read a file: delimiter, decimal, encoding, sheet, header; see `kpod.read`.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import kpod
    >>> from kpod.datasets import load_incomplete_wine
    >>> wine = load_incomplete_wine(as_frame=True).data
    >>> analysis = kpod.analyze(wine, 3, verdict=False)
    >>> richer = wine.assign(alcohol=wine["alcohol"] + 1)
    >>> {shift.column for shift in kpod.compare(analysis, richer).shifts}
    {'alcohol'}
    """
    progress = progress or no_progress
    name = Path(model).name if is_path(model) else "the model"
    model = getattr(model, "model", model)
    with applied_to(model, data, missing_values=missing_values, progress=progress, **reading) as given:
        if given.table.in_pieces or given.preparer is None:
            raise InputError(
                f"{given.table.source}: comparing needs a table in memory{given.table.whole_size}; compare a "
                "sample of its rows."
            )
        progress(0, 0, "comparing")
        return compared(given, name)


def compared(given: Applied, model: str) -> Comparison:
    kpod, labels = given.kpod, np.asarray(given.labels)
    values = np.asarray(given.encoded, dtype=np.float64)
    placed = labels >= 0
    counts = np.asarray(kpod.counts_, dtype=np.float64)
    return Comparison(
        n_rows=len(labels),
        clusters=shares(rows_before(given, counts), labels[placed]),
        shifts=shifts(given, values, labels),
        missing=missing_now(given, values),
        distance_before=None if is_mixture(kpod) else float(kpod.inertia_ / max(counts.sum(), 1.0)),
        distance=None if is_mixture(kpod) else mean_square(kpod, values[placed], labels[placed]),
        agreement=agreement(kpod, values[placed], labels[placed]),
        unassigned=int((~placed).sum()),
        notes=given.notes,
        data=given.table.source,
        model=model,
    )  # fmt: skip


def shares(before: Floats, labels: Any) -> list[ClusterThen]:
    """The share of each cluster before and now, and whether that is more than chance."""
    total, n = before.sum(), max(len(labels), 1)
    now = np.bincount(labels, minlength=len(before))
    out = []
    for m, size in enumerate(now):
        was, share = float(before[m] / total), float(size / n)
        pooled = (before[m] + size) / (total + n)
        error = np.sqrt(max(pooled * (1 - pooled), 0.0) * (1 / total + 1 / n))
        out.append(ClusterThen(m, was, share, int(size), bool(abs(share - was) > MOVED * error)))
    return out


def shifts(given: Applied, values: Floats, labels: Any) -> list[Shift]:
    """Means of clusters that have moved away from their centers."""
    kpod, preparer = given.kpod, given.preparer
    assert preparer is not None
    names, levels = list(preparer.get_feature_names_out()), levels_of(preparer)
    centers, counts = np.asarray(kpod.cluster_centers_, np.float64), np.asarray(kpod.counts_, np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of columns without entries
        scales = np.nanstd(values[labels >= 0], axis=0)
    found = []
    for m in range(len(centers)):
        rows = values[labels == m]
        seen = (~np.isnan(rows)).sum(axis=0)
        enough = (seen >= FEW) & (counts[m] >= FEW)
        if not enough.any():
            continue
        with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
            warnings.simplefilter("ignore", RuntimeWarning)  # of columns without entries
            means, spreads = np.nanmean(rows, axis=0), np.nanstd(rows, axis=0)
            off = (means - centers[m]) / scales
            errors = spreads / scales * np.sqrt(1 / seen + 1 / counts[m])
        moved = enough & (np.abs(off) >= SHIFTED) & (np.abs(off) > CERTAIN * errors)
        before, now = preparer.in_units(centers[m][None])[0], preparer.in_units(means[None])[0]
        for j in np.flatnonzero(moved):
            level = levels[j]
            texts = brief_pair(before[j], now[j]) if level is None else (percent(before[j]), percent(now[j]))
            name = names[j] if level is None else f"{level.column}: {level.name}"
            found.append(Shift(m, name, *texts, float(off[j])))
    return sorted(found, key=lambda one: -abs(one.standard_deviations))


def rows_before(given: Applied, counts: Floats) -> Floats:
    """The rows of each cluster when the model was fitted: by a column without gaps, else by all columns.

    A model keeps the observed entries behind its centers, not the labels of rows.
    """
    preparer = given.preparer
    assert preparer is not None
    missing = getattr(preparer, "missing_shares_", None)
    if missing is not None and (missing == 0).any():
        first = np.cumsum([0, *preparer._encoding.widths])[:-1]
        return np.asarray(counts[:, first[int((missing == 0).argmax())]])
    largest = float(counts.sum(axis=0).max())
    return np.asarray(counts.sum(axis=1) * largest / max(counts.sum(), 1.0))


def missing_now(given: Applied, values: Floats) -> list[tuple[str, float, float]]:
    """Columns whose share of missing values has changed by a tenth or more; none for old models."""
    preparer = given.preparer
    assert preparer is not None
    first = np.cumsum([0, *preparer._encoding.widths])[:-1]
    before, now = getattr(preparer, "missing_shares_", None), np.isnan(values).mean(axis=0)
    if before is None:
        return []
    return [
        (name, float(was), float(now[j]))
        for name, was, j in zip(preparer.columns_, before, first, strict=True)
        if abs(now[j] - was) > MISSING
    ]


def mean_square(kpod: Any, values: Floats, labels: Any) -> float | None:
    squares = (values - np.asarray(kpod.cluster_centers_)[labels]) ** 2
    return float(np.nanmean(squares)) if np.isfinite(squares).any() else None


def agreement(kpod: Any, values: Floats, labels: Any) -> float | None:
    """How far the rows, clustered afresh, fall into the same groups."""
    k = len(np.unique(labels))  # where clusters have no rows any more, fewer come out
    if k < 2 or len(labels) < 5 * k or not hasattr(kpod, "fit"):
        return None
    if len(labels) > MOST_ROWS:
        rows = np.sort(np.random.default_rng(0).choice(len(labels), MOST_ROWS, replace=False))
        values, labels = values[rows], labels[rows]
    fixed = {"n_components": k} if is_mixture(kpod) else {"n_clusters": k, "probability": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = clone(kpod).set_params(**fixed).fit(values)
    return float(adjusted_rand_score(labels, again.labels_))
