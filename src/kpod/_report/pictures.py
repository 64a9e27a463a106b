"""The pictures of a report: SVG inside the page, whose ink is written as CSS variables.

So they follow the reader's light or dark setting.
"""

from __future__ import annotations

import io
import re
import threading
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from kpod._findings.fitted_clusters.clustering import Clustering
from kpod._findings.fitted_clusters.models import is_mixture

if TYPE_CHECKING:
    from kpod._model_selection.number_of_clusters import KChoice
    from kpod.plot import RowsDisplay

PAGE_WIDTH = 950.0
FIGURE_WIDTH = 8.6
SMALLEST_SCALE = 0.75
CERTAIN = 0.9
ALL_BUT_FEW = 0.95
FONTS = ["DejaVu Sans", "Helvetica", "Arial"]
DRAWING = threading.Lock()
"""matplotlib's settings and warning filters are those of all threads."""
LABELS = {
    "rows": "Rows in two dimensions, coloured by cluster",
    "centers": "Centers as standardised differences",
    "columns": "Distributions by cluster of the columns that separate most",
    "gaps": "The pattern of gaps, rows sorted by cluster",
    "diagnosis": "Differences between rows that lack a column and rows that have it",
    "margins": "Margin of each row, by cluster",
    "loss": "Loss or likelihood by iteration",
    "choice": "Error of hidden entries by number of clusters",
    "verdict": "Agreement with the clusters that other choices lead to, the highest first",
}


def pictures(
    c: Clustering, rows: RowsDisplay, choice: KChoice | None = None, verdict: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The pictures as SVG, by name; there is nothing to compare a single cluster with."""
    from kpod import plot

    displays: dict[str, Any] = {}
    if c.k > 1:
        displays |= {"centers": plot.CentersDisplay, "columns": plot.ColumnsDisplay}
    if c.k > 1 and not all_certain(c):
        displays["margins"] = plot.MarginsDisplay
    if c.source.share_missing:
        displays["gaps"] = plot.GapsDisplay
    if c.diagnosis.values.any():
        displays["diagnosis"] = plot.DiagnosisDisplay
    if c.k > 1 and (hasattr(c.kpod, "loss_curve_") or is_mixture(c.kpod)):  # which mini-batches have not
        displays["loss"] = plot.LossDisplay
    drawn = {name: svg(display.from_clustering(c), name) for name, display in displays.items()}
    drawn["rows"] = svg(rows, "rows")
    if choice is not None:
        drawn["choice"] = svg(plot.ChooseKDisplay.of(choice), "choice")
    if verdict is not None and verdict["others"]:
        from kpod._report.specification_curve import SpecificationCurve

        about = {name: verdict[name] for name in ("others", "n_clusters", "threshold")}
        drawn["verdict"] = svg(SpecificationCurve(**about), "verdict")
    return drawn


def all_certain(c: Clustering) -> bool:
    """Whether the margins are all but 1, as those of a mixture often are: full bars show nothing."""
    margins = c.margins[c.sampled_labels >= 0]
    return is_mixture(c.kpod) and bool(np.mean(margins > CERTAIN) >= ALL_BUT_FEW)


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
    text = text.replace("<svg", f'<svg role="img" aria-label="{LABELS[name]}"', 1)
    # In ids too: pictures of one page share a name space.
    text = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{name}-", text)
    inks = {
        _display.INK: "ink",
        _display.MUTED: "muted",
        _display.FAINT: "line",
        _display.OBSERVED: "observed",
    }
    inks["#ffffff"] = "paper"
    for colour, variable in inks.items():
        text = text.replace(f": {colour}", f": var(--{variable})")
    return Markup(text)  # made by matplotlib, which escapes the texts it is given
