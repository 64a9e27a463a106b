"""The report: one HTML file that needs nothing else.

What is to be said is gathered in a plain dictionary (`Report.data`), which an auto-escaping
Jinja2 template turns into HTML; pictures are SVG inside it. Their ink is written as CSS
variables, so that they follow the reader's light or dark setting.
"""

from __future__ import annotations

import html
import io
import os
import re
import threading
import warnings
from collections.abc import Sequence
from functools import cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from kpod import __version__
from kpod._common.errors import printable
from kpod._common.notes import Notes
from kpod._common.sentences.formatting import number, percent, some
from kpod._common.sentences.note_sentences import title
from kpod._files.atomic import check_writable, written_whole
from kpod._findings.asides import asides
from kpod._findings.cautions import cautions
from kpod._findings.certainty import how_sure, starts_of
from kpod._findings.columns_not_clustered import Aside
from kpod._findings.columns_not_clustered import profile as profile_of
from kpod._findings.fitted_clusters.clustering import Clustering
from kpod._findings.fitted_clusters.models import NO_TABLE, is_mixture
from kpod._inputs import validation
from kpod._report.content import (
    MOST_COLUMNS,
    choice_of,
    clusters,
    columns,
    facts,
    gaps,
    mixture,
)

if TYPE_CHECKING:
    from kpod._findings.stability import Stability
    from kpod._selection.number import KChoice

MOST_PROFILES = 12
PAGE_WIDTH = 950.0
FIGURE_WIDTH = 8.6
SMALLEST_SCALE = 0.75
FONTS = ["DejaVu Sans", "Helvetica", "Arial"]
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, halves of characters, and what turns the direction of writing around."""
DRAWING = threading.Lock()
"""matplotlib's settings and warning filters are those of all threads."""


def report(
    model: Any,
    X: Any = None,
    *,
    column_names: Sequence[str] | None = None,
    profile: Any = None,
    row_names: Sequence[Any] | None = None,
    title: str = "Clusters",
    stability: Stability | None = None,
) -> Report:
    """A report on a clustering, in one self-contained HTML file.

    How sure the cluster of each row is, it says of mixtures, and of a KPOD fitted with `probability=True`.

    Parameters
    ----------
    model : KPOD, GaussianMixture, Pipeline or Analysis
        The fitted model; an analysis has its table, and everything else, already. With a pipeline
        that ends in one (a scaler before it, for example; `make_pipeline(scaler, kpod)` takes
        fitted parts as they are) everything is in the units of `X`.
    X : array-like, dataframe or sparse matrix of shape (n_samples, n_features), default=None
        The table, of the kind that `model` was fitted on.
    column_names : sequence of str, default=None
        Names of the columns, where neither the model nor `X` knows them.
    profile : dataframe, default=None
        Columns that were not clustered, for the same rows; the report says in which of them the
        clusters differ.
    row_names : sequence, default=None
        What to call the rows, an identifier for example; their numbers by default.
    title : str, default="Clusters"
        The heading.
    stability : Stability, default=None
        What `kpod.stability` found of this model; the report says which clusters are stable.

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
    >>> report.data["clusters"][1]["sentence"]
    'cluster 1: 58 rows, high in hue, low in color_intensity, alcohol and proline'
    >>> report.save("report.html")
    """
    if X is None and hasattr(model, "report"):
        return model.report(title=None if title == "Clusters" else title)
    if X is None:
        raise TypeError(NO_TABLE)
    clustering = Clustering.of(model, X, column_names)
    settings = {"model": " ".join(repr(model).split()), "kpod": __version__}
    aside = asides_of(profile, len(clustering.labels)) if profile is not None else []
    choice = getattr(clustering.kpod, "choice_", None)
    if choice is not None and choice.n_hidden_ == 0:  # nothing was tried
        choice = None
    return Report(
        clustering,
        title=title,
        settings=settings,
        aside=aside,
        row_names=row_names,
        cautions=cautions(clustering, row_names, stability),
        sure=how_sure(clustering, row_names),
        choice=choice,
        stability=stability,
    )


def asides_of(frame: Any, n_rows: int) -> list[Aside]:
    """The columns of a data frame, for their profiles."""
    from kpod._columns.preparing.columns_in_use import ColumnUsage
    from kpod._columns.preparing.frames import table_of

    validation.refuse_dask(frame, "profile")
    table = table_of(frame)
    if table.n_rows != n_rows:
        raise ValueError(f"profile has {table.n_rows:,} rows, X has {n_rows:,}; pass the same rows.")
    roles = {column.name: column.role for column in table.columns}
    return asides(table, ColumnUsage([], dict.fromkeys(roles, ""), roles))


class Report:
    """A report, as data and as HTML."""

    def __init__(
        self,
        clustering: Clustering,
        *,
        title: str,
        settings: dict[str, str],
        source: dict[str, str] | None = None,
        row_names: Sequence[Any] | None = None,
        aside: Sequence[Aside] = (),
        notes: Sequence[str] = (),
        cautions: Notes,
        sure: dict[str, Any] | None = None,
        choice: KChoice | None = None,
        stability: Stability | None = None,
        verdict: dict[str, Any] | None = None,
    ) -> None:
        self.aside, self.notes, self.choice, self.stability = aside, notes, choice, stability
        self.cautions, self.sure, self.verdict = cautions, sure, verdict
        self.clustering = clustering
        self.title = title
        self.settings = settings
        self.source = source or {}
        self.row_names = row_names

    @cached_property
    def data(self) -> dict[str, Any]:
        """Everything the report says, as plain values."""
        c = self.clustering
        missing = c.source.share_missing
        profiles = profile_of(self.aside, c.labels, c.k)[:MOST_PROFILES]
        shown = {one["name"] for one in profiles}
        return {
            "title": self.title,
            "version": __version__,
            "facts": facts(c, missing),
            "verdict": self.verdict,
            "choice": choice_of(self.choice, self.stability),
            "source": self.source,
            "clusters": clusters(c, self.row_names),
            "notes": list(self.notes),
            "profiles": profiles,
            "profiles_left_out": [aside.name for aside in self.aside if aside.name not in shown],
            "cautions": [{"title": title(one), "text": one.text} for one in self.cautions],
            "sure": self.sure,
            "starts": starts_of(c),
            "stability": None if self.stability is None else self.stability.sentence_,
            "gaps": gaps(c),
            "columns": columns(c),
            "columns_left_out": max(0, len(c.names) - MOST_COLUMNS),
            "explained": c.explained,
            "mixture": mixture(c, self.row_names),
            "sampled": 0 if c.sample is None else len(c.sample),
            "settings": self.settings,
        }

    @cached_property
    def html(self) -> str:
        """The whole page."""
        from jinja2 import Environment, StrictUndefined

        environment = Environment(
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters["number"] = number
        environment.filters["count"] = lambda value: f"{value:,.0f}" if value == int(value) else number(value)
        environment.filters["percent"] = percent
        environment.filters["some"] = some
        environment.filters["options"] = unbroken_options
        template = environment.from_string((files("kpod") / "_report" / "report.html").read_text("utf-8"))
        page = template.render(
            self.data,
            pictures=pictures(self.clustering, self.choice),
            named_rows=self.row_names is not None,
        )
        return HIDDEN.sub(lambda found: printable(found[0]), page)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, whole or not at all."""
        check_writable(path)
        page = self.html.encode()
        with written_whole(path) as file:
            file.write(page)

    def _repr_html_(self) -> str:
        """In a notebook: the page in a frame of its own, so that neither styles the other."""
        page = html.escape(self.html, quote=True)
        return (
            f'<iframe srcdoc="{page}" style="width:100%;height:48rem;border:0" title="kpod report"></iframe>'
        )


def unbroken_options(text: str) -> Any:
    """Text as HTML, with options of the command line kept on one line."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"(--[a-z][a-z-]*)", r'<span class="option">\1</span>', str(escape(text))))


def pictures(c: Clustering, choice: KChoice | None = None) -> dict[str, Any]:
    """The pictures as SVG, by name; there is nothing to compare a single cluster with."""
    from kpod import plot

    displays: dict[str, Any] = {
        "rows": plot.RowsDisplay,
        "centers": plot.CentersDisplay,
        "columns": plot.ColumnsDisplay,
        "gaps": plot.GapsDisplay,
        "loss": plot.LossDisplay,
    }
    if c.diagnosis.values.any():
        displays["diagnosis"] = plot.DiagnosisDisplay
    if c.k > 1:
        displays["margins"] = plot.MarginsDisplay
    if not c.source.share_missing:
        del displays["gaps"]
    if not hasattr(c.kpod, "loss_curve_") and not is_mixture(c.kpod):  # of mini-batches
        del displays["loss"]
    drawn = {name: svg(display.from_clustering(c), name) for name, display in displays.items()}
    if choice is not None:
        drawn["choice"] = svg(plot.ChooseKDisplay.of(choice), "choice")
    return drawn


def sizes_on_page(size: tuple[float, float], *, fixed: bool) -> tuple[float, float]:
    """Width and height in inches: as wide as the page, and a little higher, unless cells give the size."""
    width, height = size
    if fixed or width >= FIGURE_WIDTH:
        return size
    return FIGURE_WIDTH, height * (FIGURE_WIDTH / width) ** 0.3


def svg(display: Any, name: str) -> Any:
    """A display as SVG for inside a page: no prologue, no fixed size, ink from the page."""
    import matplotlib as mpl
    from markupsafe import Markup
    from matplotlib.figure import Figure

    from kpod.plot import _display

    # Ids must differ from picture to picture and agree from run to run; text stays text.
    settings: Any = {"svg.hashsalt": name, "svg.fonttype": "none", "font.sans-serif": FONTS}
    buffer = io.StringIO()
    with DRAWING, mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # the browser has its own fonts
        warnings.filterwarnings("ignore", message="constrained_layout not applied")
        width, height = sizes_on_page(display.figsize(), fixed=name in ("centers", "columns"))
        figure = Figure(figsize=(width, height), layout="constrained")
        display.plot(ax=figure.subplots())
        nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
        figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    most = max(min(PAGE_WIDTH, 1.3 * width * 96), SMALLEST_SCALE * width * 96)
    least = f";min-width:{most:.0f}px" if most > PAGE_WIDTH else ""  # what gets too small to read is scrolled
    text = re.sub(
        r'^<svg([^>]*?) width="[^"]*"', rf'<svg\1 style="max-width:{most:.0f}px{least}"', text, count=1
    )
    text = re.sub(r'^(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    # In ids too: pictures of one page share a name space.
    text = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{name}-", text)
    inks = {_display.INK: "ink", _display.MUTED: "muted", _display.FAINT: "line", "#ffffff": "paper"}
    for colour, variable in inks.items():
        text = text.replace(f": {colour}", f": var(--{variable})")
    return Markup(text)  # made by matplotlib, which escapes the texts it is given
