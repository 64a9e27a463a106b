"""The report on a comparison: what has changed since a model was fitted, in one HTML file."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from kpod import __version__
from kpod._common.sentences.comparison_sentences import distance_line, unassigned_line
from kpod._report.rendering import Page, rendered

if TYPE_CHECKING:
    from kpod._analysis.comparing import Comparison


class ComparisonReport(Page):
    """A report on a comparison: `data` has its content as plain values, `html` the page.

    A notebook shows it; `save(path)` writes it.
    """

    def __init__(
        self, comparison: Comparison, *, title: str, settings: dict[str, str], limits: dict[str, float]
    ) -> None:
        self.comparison, self.title, self.settings, self.limits = comparison, title, settings, limits

    @cached_property
    def data(self) -> dict[str, Any]:
        """The content of the report, as plain values."""
        found = self.comparison
        return {
            **found.to_dict(),
            "title": self.title,
            "data": found.data,
            "model": found.model,
            "facts": facts(found),
            "clusters": [
                {**vars(one), "difference": f"{100 * (one.share - one.share_before):+.1f} points"}
                for one in found.clusters
            ],
            "distance": distance_line(found),
            "unassigned": unassigned_line(found),
            "notes": [note.text for note in found.notes],
            "limits": self.limits,
            "settings": {**self.settings, "kpod": __version__},
        }

    @cached_property
    def html(self) -> str:
        """The whole page."""
        return rendered("comparison.html", self.data)


def facts(found: Comparison) -> list[tuple[str, str]]:
    changed, moved = sum(one.changed for one in found.clusters), len(found.shifts)
    out = [
        (f"{found.n_rows:,}", "row now" if found.n_rows == 1 else "rows now"),
        (
            f"{len(found.clusters):,}",
            "cluster" if len(found.clusters) == 1 else "clusters",
        ),
        (f"{changed:,}", "share has changed" if changed == 1 else "shares have changed"),
        (f"{moved:,}", "mean has moved" if moved == 1 else "means have moved"),
    ]
    if found.agreement is not None:
        out.append((f"{found.agreement:.2f}", "agreement with a new clustering"))
    return out
