"""Do the clusters hold? The analysis repeated under other reasonable choices.

Logarithms, robust scales, a few rows or a column left out, one row for each individual, categories, gaps,
the seed: none of them should decide what groups there are. Each is tried by itself, everything else as it
was, and what comes out is compared with the clusters of the analysis on the rows they have in common.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from kpod._columns.preparing.encoding import NUMBER, Encoding, is_binary, learn_encoding
from kpod._common.errors import printable
from kpod._common.notebook import ReadsAsText
from kpod._common.sentences.formatting import counted, listed, two_decimals
from kpod._common.sentences.table_sentences import LEAST_UNITS
from kpod._common.sentences.verdict_sentences import verdict_sentence
from kpod._common.typing import AnyFloats, Floats, Labels, Positions
from kpod._estimators.kpod import KPOD
from kpod._findings.choose_k import choose_number
from kpod._findings.fitted_clusters.models import Model, is_mixture
from kpod._findings.shape_comparison import ROUND

if TYPE_CHECKING:
    from kpod._analysis.analysis import Analysis
    from kpod._columns.preparing.preparer import TablePreparer

SAME = 0.8
"""The adjusted Rand index from which two clusterings of as many clusters are the same."""
MOST_ROWS = 5_000
"""Of more rows, a sample is clustered under the other choices."""
EXTREME = 0.01
"""The share of the rows that are farthest from the medians of the columns; at least two of them."""
DOMINANT = 0.25
"""The share of what clusters differ in from which a column alone may be the reason for them; and at least
half as much again as columns have on average."""
MOST_DOMINANT = 2
SKEWED = 1.5
"""The skewness from which one would think of logarithms, if it is halved by them."""
GAPS = 0.02
"""The share of missing entries from which one would ask whether gaps are informative."""
REPEATED = ("one row for each", "rows in time", "repeated units")
"""Notes on rows that are not independent of each other; the first column they name is that of individuals."""
HALF = 0.5
SEVERAL = 3
MORE = 3
"""How many clusters more than were found are tried, where the number was left open."""


@dataclass(frozen=True)
class OtherChoice:
    """The result of the analysis with one choice made differently.

    Attributes
    ----------
    kind : str
        "logarithms", "limits", "scale", "extreme rows", "individuals", "column", "categories", "missingness",
        "shape" or "seed".
    text : str
        The choice in words: "with logarithms of income".
    columns : tuple of str
        The columns it is about, if any.
    n_clusters : int
        The clusters found.
    agreement : float
        The adjusted Rand index with the clusters of the analysis, on the rows in common.
    same : bool
        Whether there are as many clusters, and the agreement is at least 0.8.
    """

    kind: str
    text: str
    columns: tuple[str, ...]
    n_clusters: int
    agreement: float
    same: bool

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "columns": list(self.columns)}


@dataclass(frozen=True)
class Verdict(ReadsAsText):
    """The clustering in one line, and whether it holds under other choices.

    Attributes
    ----------
    sentence_ : str
        How many groups, whether they are separate, and under how many other choices they are the same.
    groups : {"separate", "partly separate", "continuum", "unclear", "one", "given"}
        What the clusters are: separate groups, pieces of something continuous, a guess, nothing but one
        group; or as many as were asked for.
    n_clusters : int
    others : list of OtherChoice
        What was tried.
    n_rows : int
        The rows that were clustered under the other choices: a sample of a large table.
    """

    sentence_: str
    groups: str
    n_clusters: int
    others: list[OtherChoice]
    n_rows: int

    def __str__(self) -> str:
        width = max((len(other.text) for other in self.others), default=0)
        lines = [
            f"  {other.text:<{width}}  {counted(other.n_clusters, 'cluster'):>11}, agreement "
            f"{two_decimals(other.agreement):>5}{'' if other.same else '  *'}"
            for other in self.others
        ]
        return "\n".join([self.sentence_, *lines])

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        others = [one.to_dict() for one in self.others]
        return {**vars(self), "sentence": self.sentence_, "others": others, "threshold": SAME}


@dataclass(frozen=True)
class Specification:
    """One other choice: how the table is encoded, which rows are clustered, and by which model."""

    kind: str
    text: str
    columns: tuple[str, ...] = ()
    scale: str | None = None
    log: tuple[str, ...] | None = None
    limited: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    rows: Positions | None = None
    categories: bool = False
    parameters: dict[str, Any] = field(default_factory=dict)
    unit: str | None = None
    """The column that names individuals, where each of them is to be one row."""
    as_many: bool = False
    """Whether the number of clusters stays, though it was left open: what takes too long otherwise."""


class Questions:
    """The other choices that an analysis gives reason for, and what comes of each."""

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis
        self.model: Model = analysis._clustering.kpod
        self.preparer: TablePreparer = analysis.model[0]
        self.table, self.labels = analysis._table, np.asarray(analysis.labels)
        seed = analysis._kpod.random_state
        self.seed = seed if isinstance(seed, (int, np.integer)) else 0
        usable = np.flatnonzero(self.labels >= 0)
        if len(usable) > MOST_ROWS:
            drawn = np.random.default_rng(self.seed).choice(len(usable), MOST_ROWS, replace=False)
            usable = usable[np.sort(drawn)]
        self.rows = usable
        self.values = self.values_of(usable)

    def values_of(self, rows: Positions) -> AnyFloats:
        """The columns used, as the table has them; of one in pieces, only these rows are read."""
        if self.table.in_pieces:
            return self.analysis._clustering.table.rows(rows)
        values, _ = self.preparer._values(self.table)
        return values[rows]

    @property
    def encoding(self) -> Encoding:
        return self.preparer._encoding

    @property
    def logs(self) -> tuple[str, ...]:
        """The columns whose logarithms are clustered."""
        return tuple(self.encoding.logs)

    @property
    def limited(self) -> tuple[str, ...]:
        """The columns with limits, beyond which values count as these."""
        encoding = self.encoding
        limited = (name for j, name in enumerate(encoding.names) if encoding.limited(j))
        return () if self.preparer.clip else tuple(limited)

    def all(self) -> Iterator[Specification]:
        yield from self.about_scales()
        yield from self.about_rows()
        yield from self.about_individuals()
        yield from self.about_columns()
        yield from self.about_gaps()
        if is_mixture(self.model):
            yield Specification("shape", "with round clusters")
        yield Specification("seed", "with another seed", parameters={"random_state": int(self.seed) + 1})

    def about_scales(self) -> Iterator[Specification]:
        log = self.logs
        if log:
            text = f"without logarithms of {named(log)}"
            yield Specification("logarithms", text, log, log=())
        skewed = tuple(name for name in self.skewed() if name not in log)
        if skewed:
            text = f"with logarithms of {named(skewed)}"
            yield Specification("logarithms", text, skewed, log=(*log, *skewed))
        limited = self.limited
        if limited:
            text = f"without limits on {named(limited)}"
            yield Specification("limits", text, limited, limited=())
        if self.preparer.scale in ("auto", "standard"):
            yield Specification("scale", "with robust scales", scale="robust")
        else:
            yield Specification("scale", "with standard scales", scale="standard")

    def skewed(self) -> Iterator[str]:
        """Columns without negative values whose skewness logarithms halve."""
        for j, (name, kind) in enumerate(zip(self.encoding.names, self.preparer.kinds_, strict=True)):
            column = self.values[:, j]
            seen = column[~np.isnan(column)]
            if kind != NUMBER or not len(seen) or seen.min() < 0 or is_binary(seen):
                continue
            before = skewness(seen)
            if before >= SKEWED and abs(skewness(np.log(seen + (seen.min() == 0)))) <= before / 2:
                yield name

    def about_rows(self) -> Iterator[Specification]:
        n = max(2, round(EXTREME * len(self.rows)))
        if len(self.rows) < 10 * n:
            return
        kept = np.sort(np.argsort(self.distances(), kind="stable")[:-n])
        yield Specification("extreme rows", f"without the {n} most extreme rows", rows=kept)

    def distances(self) -> Floats:
        """The mean squared distance of each row to the medians of the columns, over what is observed of it.

        Not to its center: rows far from all others have one of their own.
        """
        seen = self.analysis._clustering.values.rows(self.rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of a column without entries
            off = seen - np.nanmedian(seen, axis=0)
            return np.asarray(np.nanmean(off**2, axis=1))

    def about_individuals(self) -> Iterator[Specification]:
        note = next((note for note in self.analysis.notes if note.kind in REPEATED), None)
        if note is None or self.table.in_pieces or note.values["n_units"] < LEAST_UNITS:
            return
        unit = note.columns[0]
        yield Specification("individuals", f"with one row per {printable(unit)}", (unit,), unit=unit)

    def about_columns(self) -> Iterator[Specification]:
        for name in self.dominant():
            text = f"without {printable(name)}"
            yield Specification("column", text, (name,), without=(name,))
        usage = self.analysis._usage
        if usage.categories:
            used = [name for name in self.encoding.names if name not in usage.categories]
            names = tuple(name for name in self.encoding.names if name in usage.categories)
            if used:
                yield Specification(
                    "categories", "without the categories", names, without=names, as_many=True
                )
        elif not self.table.in_pieces and any(
            role.role in ("category", "ordered") for role in usage.roles.values()
        ):
            yield Specification("categories", "with the categories", categories=True, as_many=True)

    def dominant(self) -> list[str]:
        """Columns in which clusters differ by far more than in others."""
        names = self.encoding.names
        if len(names) < 3 or self.analysis.n_clusters < 2:
            return []
        centers, counts = np.asarray(self.model.cluster_centers_), np.asarray(self.model.counts_, np.float64)
        means = (counts * np.nan_to_num(centers)).sum(axis=0) / np.maximum(counts.sum(axis=0), 1)
        between = np.nansum(counts * (centers - means) ** 2, axis=0)
        by_column = np.array([block.sum() for block in self.encoding.blocks(between[None, :])])
        share = by_column / max(by_column.sum(), np.finfo(float).tiny)
        order = np.argsort(-share, kind="stable")[:MOST_DOMINANT]
        return [names[j] for j in order if share[j] >= max(DOMINANT, 1.5 / len(names))]

    def about_gaps(self) -> Iterator[Specification]:
        if np.isnan(self.values).mean() < GAPS:
            return
        if getattr(self.model, "missingness_", self.model.missingness) == "informative":
            text, how = "with gaps ignored", "ignore"
        else:
            text, how = "with gaps used where they are informative", "auto"
        yield Specification("missingness", text, parameters={"missingness": how}, as_many=True)

    def table_of(self, spec: Specification) -> AnyFloats:
        """The table as the model would see it under another choice."""
        encoding, values = self.encoding, self.values
        if spec.categories:
            preparer = clone(self.preparer).set_params(categories="all")
            _, encoding, values = preparer._fit(self.table)
            return encoding.encode(values)[self.rows]
        kept = [j for j, name in enumerate(encoding.names) if name not in spec.without]
        pick = partial(picked, at=kept)
        values = values[:, kept].copy()
        learnt = learn_encoding(
            pick(encoding.names), pick(encoding.kinds), pick(encoding.levels), values,
            scale=spec.scale or self.preparer.scale, log=self.logs if spec.log is None else spec.log,
            limited=self.limited if spec.limited is None else spec.limited, clip=self.preparer.clip,
            column_weights=encoding.weights[kept] ** 2,
        )  # fmt: skip
        return learnt.encode(values)

    def outcome(self, spec: Specification) -> OtherChoice:
        """The clusters under another choice, compared with those of the analysis."""
        among, labels = self.of_rows(spec) if spec.unit is None else self.of_individuals(spec, spec.unit)
        both = labels >= 0
        k = int(labels.max()) + 1
        agreement = float(adjusted_rand_score(self.labels[among][both], labels[both]))
        same = k == self.analysis.n_clusters and agreement >= SAME
        return OtherChoice(spec.kind, spec.text, spec.columns, k, agreement, same)

    def of_rows(self, spec: Specification) -> tuple[Positions, Labels]:
        """The rows clustered under another choice, and their clusters."""
        values, weights = self.table_of(spec), self.analysis._weights
        weights = None if weights is None else np.asarray(weights)[self.rows]
        among = self.rows
        if spec.rows is not None:
            values, among = values[spec.rows], among[spec.rows]
            weights = None if weights is None else weights[spec.rows]
        return among, self.clustered(values, weights, spec)

    def of_individuals(self, spec: Specification, unit: str) -> tuple[Positions, Labels]:
        """The rows, and the clusters of their individuals: of means, as `one_row_per` would have them."""
        from kpod._columns.preparing.column_values import codes_of
        from kpod._columns.rows.rows_in_use import combined

        codes = codes_of(self.table, unit)
        known = self.rows[codes[self.rows] >= 0]
        everybody = np.unique(codes[codes >= 0])  # in the order of the combined rows
        here, of_row = np.unique(np.searchsorted(everybody, codes[known]), return_inverse=True)
        table, preparer = combined(self.table, unit, "mean"), clone(self.preparer)
        _, encoding, values = preparer._fit(table)
        weights = preparer.row_weights(table)
        weights = None if weights is None else np.asarray(weights)[here]
        return known, self.clustered(encoding.encode(values)[here], weights, spec)[of_row]

    def clustered(self, values: AnyFloats, weights: Floats | None, spec: Specification) -> Labels:
        """The labels of the rows under another choice, in the shape that was found."""
        k, numbers = self.analysis.n_clusters, self.analysis._numbers
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of rows without values and of starts: they are not the result
            if self.analysis.choice is None or spec.as_many:
                return np.asarray(self.model_for(spec, k).fit(values, sample_weight=weights).labels_)
            numbers = range(1, k + MORE + 1) if isinstance(numbers, str) else numbers
            any_shape = "log_density" in self.analysis.choice.table_ and spec.kind != "shape"
            shape = getattr(self.model, "covariance_type", "auto") if any_shape else ROUND
            kpod, choice = choose_number(values, numbers, self.round_model(spec, k), shape, weights)
            if spec.kind == "shape" or not is_mixture(self.model):
                return np.asarray(kpod.labels_)
            model = self.model_for(spec, choice.best_k_)
            return np.asarray(model.fit(values, sample_weight=weights).labels_)

    def model_for(self, spec: Specification, k: int) -> Any:
        """A model of the shape that was found, with so many clusters."""
        if spec.kind == "shape" or not is_mixture(self.model):
            return self.round_model(spec, k)
        model = self.model
        shape = {"covariance_type": model.covariance_type_, "n_factors": model.n_factors_}
        return clone(model).set_params(n_components=k, **shape, **spec.parameters)

    def round_model(self, spec: Specification, k: int) -> KPOD:
        parameters = {"n_clusters": k, "probability": False, "checkpoint": None, **spec.parameters}
        return clone(self.analysis._kpod).set_params(**parameters)


def verdict_on(analysis: Analysis) -> Verdict:
    """Try every other choice that there is reason for, and sum up."""
    questions = Questions(analysis)
    specifications = list(questions.all())
    others = []
    for number, spec in enumerate(specifications):
        analysis._progress(number, len(specifications), f"trying other choices: {spec.text}")
        with suppress(ValueError):  # too little is left to choose a number from, for example: not tried
            others.append(questions.outcome(spec))
    n_separate = analysis.choice.n_separate_ if analysis.choice else 0
    groups = confirmed(kind_of_groups(analysis), others, all_separate=n_separate >= analysis.n_clusters)
    n_rows = len(questions.rows)
    sampled = n_rows if n_rows < int((questions.labels >= 0).sum()) else None
    text = verdict_sentence(groups, analysis.n_clusters, n_separate, others, sampled)
    return Verdict(text, groups, analysis.n_clusters, others, n_rows)


def confirmed(groups: str, others: Sequence[OtherChoice], *, all_separate: bool) -> str:
    """What the clusters are, in view of the other choices under which they are the same.

    Some of the pieces of a curve are set apart by chance, others under each choice: groups that are separate
    are the same under at least half of the choices. Some separate groups among others are so under more of
    them, and not in one shape only. A number that was not clear is, if all clusters are separate and each of
    several choices gave the same ones.
    """
    share = sum(one.same for one in others) / len(others) if others else 1.0
    in_one_shape = any(one.kind == "shape" and not one.same for one in others)
    if groups == "partly separate" and (share <= HALF or in_one_shape):
        return "unclear"
    if groups == "separate" and share < HALF:
        return "unclear"
    if groups == "unclear" and all_separate and share == 1 and len(others) >= SEVERAL:
        return "separate"
    return groups


def kind_of_groups(analysis: Analysis) -> str:
    choice, k = analysis.choice, analysis.n_clusters
    if choice is None:
        return "given"
    if k == 1:
        return "one" if choice.clear_ else "unclear"
    if choice.n_separate_ < k:
        return "continuum" if choice.n_separate_ <= 1 else "partly separate"
    return "separate" if choice.clear_ else "unclear"


def named(columns: tuple[str, ...]) -> str:
    shown = [printable(name) for name in columns]
    return listed(shown) if len(shown) <= 3 else f"{len(shown)} columns"


def picked(things: Any, at: list[int]) -> list[Any]:
    return [things[j] for j in at]


def skewness(values: Floats) -> float:
    spread = values.std()
    return float((((values - values.mean()) / spread) ** 3).mean()) if spread > 0 else 0.0
