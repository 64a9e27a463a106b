"""The report: one HTML file that needs nothing else.

The content is collected in a plain dictionary (`Report.data`), which an auto-escaping
Jinja2 template turns into HTML; pictures are SVG inside it. A small script lets the reader point at rows,
list the members of a cluster and sort tables; without it, everything but that is there.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kpod import __version__
from kpod._common.notes import Notes
from kpod._common.options import in_the_shell
from kpod._common.sentences.caution_sentences import title
from kpod._common.sentences.verdict_sentences import other_numbers
from kpod._findings.cautions import NOT_FITTED_ON, cautions
from kpod._findings.certainty import how_sure, starts_of
from kpod._findings.fitted_clusters.clustering import Clustering
from kpod._findings.fitted_clusters.models import NO_TABLE
from kpod._findings.unused_column_profiles import UnusedColumn
from kpod._findings.unused_column_profiles import profile as profile_of
from kpod._findings.unused_columns import unused_columns
from kpod._inputs import collections, validation
from kpod._inputs.samples import brought_here
from kpod._report.content import MOST_COLUMNS, choice_of, clusters, columns, facts, gaps, mixture, outcome_of
from kpod._report.members import as_json, members
from kpod._report.pictures import LABELS, pictures
from kpod._report.rendering import Page, rendered

if TYPE_CHECKING:
    from kpod._findings.stability import Stability
    from kpod._model_selection.number_of_clusters import KChoice
    from kpod.plot import RowsDisplay

MOST_PROFILES = 12
PRINTED_CLUSTERS = 6
"""So many columns of centers fit on paper side by side."""


def report(
    model: Any,
    X: Any = None,
    *,
    column_names: Sequence[str] | None = None,
    profile: Any = None,
    row_names: Sequence[Any] | None = None,
    title: str = "Clusters",
    stability: Stability | None = None,
    with_rows: bool = True,
) -> Report:
    """Create a report on a clustering, in one self-contained HTML file.

    For a mixture, or a KPOD fitted with `probability=True`, it says how certain the cluster of each row is.

    Parameters
    ----------
    model : KPOD, GaussianMixture, Pipeline or Analysis
        The fitted model; an analysis already has its table and everything else. With a pipeline
        that ends in a model (for example after a scaler; `make_pipeline(scaler, kpod)` accepts
        fitted steps), everything is in the units of `X`.
    X : array-like, dataframe or sparse matrix of shape (n_samples, n_features), default=None
        The table, of the kind that `model` was fitted on. For a large Dask collection or Spark DataFrame, the
        report describes a sample of the rows, and its settings say so.
    column_names : sequence of str, default=None
        Names of the columns, if neither the model nor `X` has them.
    profile : dataframe, default=None
        Columns that were not clustered, for the same rows; the report says in which of them the
        clusters differ.
    row_names : sequence, default=None
        Names of the rows, for example an identifier; their numbers by default.
    title : str, default="Clusters"
        The heading.
    stability : Stability, default=None
        The result of `kpod.stability` for this model; the report says which clusters are stable.
    with_rows : bool, default=True
        Whether the page contains the names and values of its rows, up to 2,000 of them, so that readers can
        see who is in a cluster. Without them, it shows only their points.

    Returns
    -------
    Report
        With `save(path)`; a notebook shows it inline.

    Examples
    --------
    >>> import kpod
    >>> from kpod.datasets import load_incomplete_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> wine = load_incomplete_wine()
    >>> model = make_pipeline(StandardScaler(), kpod.KPOD(3, random_state=0)).fit(wine.data)
    >>> report = kpod.report(model, wine.data, column_names=wine.feature_names)
    >>> report.data["clusters"][1]["sentence"].partition(", alcohol")[0]
    'cluster 1: 58 rows, low in color_intensity (2.82, others 6.08)'
    >>> report.save("report.html")
    """
    if X is None and hasattr(model, "report"):
        return model.report(title=None if title == "Clusters" else title)
    if X is None:
        raise TypeError(NO_TABLE)
    spread = collections.is_collection(X)
    if spread and (profile is not None or row_names is not None):
        raise ValueError(
            "row_names and profile need a table in memory: a report on a Dask or Spark table describes rows "
            "drawn at random. Pass a sample of your own with its names."
        )
    here = brought_here(X)
    clustering = Clustering.of(model, here.table, column_names)
    settings = {"model": " ".join(repr(model).split()), "kpod": __version__}
    if here.sentence:
        settings["rows"] = here.sentence
    if here.rows is not None and here.rows[-1] >= len(here.rows):  # some rows of the table are not here
        row_names = [f"row {position + 1}" for position in here.rows]
    elif spread and here.rows is None:
        settings["numbers of rows"] = "those of the rows as they came from Spark, which keeps no order"
    unused = unused_columns_of(profile, len(clustering.labels)) if profile is not None else []
    choice = getattr(clustering.kpod, "choice_", None)
    if choice is not None and choice.n_hidden_ == 0:  # nothing was tried
        choice = None
    return Report(
        clustering,
        title=title,
        settings=settings,
        unused=unused,
        row_names=row_names,
        cautions=Notes(
            caution
            for caution in cautions(clustering, row_names, stability)
            if not (spread and caution.kind == NOT_FITTED_ON)  # of rows drawn from it, that is unknown
        ),
        sure=how_sure(clustering, row_names),
        choice=choice,
        stability=stability,
        with_rows=with_rows,
    )


def unused_columns_of(frame: Any, n_rows: int) -> list[UnusedColumn]:
    """The columns of a data frame, for their profiles."""
    from kpod._columns.preparing.columns_in_use import ColumnUsage
    from kpod._columns.preparing.frames import table_of

    validation.refuse_dask(frame, "profile")
    table = table_of(frame)
    if table.n_rows != n_rows:
        raise ValueError(f"profile has {table.n_rows:,} rows, X has {n_rows:,}; pass the same rows.")
    roles = {column.name: column.role for column in table.columns}
    return unused_columns(table, ColumnUsage([], dict.fromkeys(roles, ""), roles))


class Report(Page):
    """A report: `data` has its content as plain values, `html` the page; a notebook shows it."""

    def __init__(
        self,
        clustering: Clustering,
        *,
        title: str,
        settings: dict[str, str],
        source: dict[str, str] | None = None,
        row_names: Sequence[Any] | None = None,
        unused: Sequence[UnusedColumn] = (),
        notes: Sequence[str] = (),
        cautions: Notes,
        sure: dict[str, Any] | None = None,
        choice: KChoice | None = None,
        stability: Stability | None = None,
        verdict: dict[str, Any] | None = None,
        with_rows: bool = True,
        rule: dict[str, Any] | None = None,
        other_numbers: Sequence[str] = (),
        outcome: dict[str, Any] | None = None,
    ) -> None:
        self.unused, self.notes, self.choice, self.stability = unused, notes, choice, stability
        self.cautions, self.sure, self.verdict = cautions, sure, verdict
        self.rule, self.other_numbers, self.outcome = rule, other_numbers, outcome
        self.clustering = clustering
        self.title = title
        self.settings = settings
        self.source = source or {}
        self.row_names, self.with_rows = row_names, with_rows

    @cached_property
    def rows(self) -> RowsDisplay:
        """The picture of the rows, and which they are."""
        from kpod.plot import RowsDisplay

        return RowsDisplay.from_clustering(self.clustering)

    @cached_property
    def data(self) -> dict[str, Any]:
        """The content of the report, as plain values."""
        c = self.clustering
        missing = c.source.share_missing
        profiles = profile_of(self.unused, c.labels, c.k)[:MOST_PROFILES]
        shown = {one["name"] for one in profiles}
        return {
            "title": self.title,
            "version": __version__,
            "facts": facts(c, missing),
            "verdict": self.verdict,
            "choice": choice_of(self.choice, self.stability),
            "rule": self.rule,
            "other_numbers": other_numbers(self.other_numbers),
            "outcome": outcome_of(self.outcome),
            "source": self.source,
            "clusters": clusters(c, self.row_names),
            "notes": list(self.notes),
            "profiles": profiles,
            "profiles_left_out": [unused.name for unused in self.unused if unused.name not in shown],
            "cautions": [{"title": title(one), "text": one.text} for one in self.cautions],
            "sure": self.sure,
            "starts": starts_of(c),
            "stability": None if self.stability is None else self.stability.sentence_,
            "gaps": gaps(c),
            "columns": columns(c),
            "columns_left_out": max(0, len(c.names) - MOST_COLUMNS),
            "explained": c.explained,
            "mixture": mixture(c, self.row_names),
            "members": self._members(),
            "sampled": 0 if c.sample is None else len(c.sample),
            "settings": self.settings,
        }

    def _members(self) -> dict[str, Any] | None:
        rows = self.rows.rows if self.with_rows else None
        return None if rows is None else members(self.clustering, rows, self.row_names, self.unused)

    @cached_property
    def html(self) -> str:
        """The whole page."""
        from markupsafe import Markup

        from kpod.plot._display import PALETTE

        data, k = self.data, self.clustering.k
        drawn = pictures(self.clustering, self.rows, self.choice, self.verdict)
        held = data["members"]
        sections = contents(data, drawn)
        return rendered("report.html", {
            **data,
            "contents": sections,
            "anchors": [anchor for anchor, _ in sections],
            "labels": LABELS,
            "members_json": None if held is None else Markup(as_json({**held, "colours": PALETTE})),
            "named_rows": self.row_names is not None,
            "pictures": drawn,
            "printed_clusters": [range(k)[m : m + PRINTED_CLUSTERS] for m in range(0, k, PRINTED_CLUSTERS)],
            "without_rows": "--no-report-rows" if in_the_shell() else "with_rows=False",
        })  # fmt: skip


def contents(data: dict[str, Any], drawn: Collection[str]) -> list[tuple[str, str]]:
    """The sections of the page, by the names of their anchors."""
    has_fit = data["sure"] or data["stability"] or data["starts"] or not {"margins", "loss"}.isdisjoint(drawn)
    sections = [
        ("clusters", "The clusters", True),
        ("outcome", "The outcome", data["outcome"]),
        (
            "rule",
            "Assigning a row by hand" if data["rule"] else "One cluster more or fewer",
            data["rule"] or data["other_numbers"],
        ),
        ("shape", "Their shape", data["mixture"]),
        ("number", "Why this number", data["choice"]),
        ("verdict", "Do they hold?", data["verdict"]),
        ("profiles", "Other columns", data["profiles"]),
        ("careful", "What to be careful about", True),
        ("centers", "What sets them apart" if len(data["clusters"]) > 1 else "The columns", True),
        ("missing", "What is missing", True),
        ("fit", "Confidence", has_fit),
        ("reproduce", "How to reproduce this", True),
    ]
    return [(anchor, what) for anchor, what, present in sections if present]
