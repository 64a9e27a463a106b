"""Notes and cautions as data: what kind, about which columns, with which values.

They are worded in one place, `_common/sentences/note_sentences.py`, when they are read: for the shell or
for Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

SAID_FIRST = (
    "few columns",
    "rows combined",
    "rows dropped",
    "one row for each",
    "rows in time",
    "repeated units",
    "aggregate rows",
    "duplicate rows",
    "possible weights",
)
"""Kinds of notes without which the result is misread, in the order in which they are shown."""


@dataclass(frozen=True)
class Note:
    """Something that the reader of a result should know.

    Attributes
    ----------
    kind : str
        What it is about, such as "same information" or "rows left out".
    columns : tuple of str
        The columns it is about, if any.
    values : dict
        The other contents of its sentence: values, counts, rows.
    severity : "note" or "caution"
        A caution casts doubt on the result; a note explains how it came about.
    parts : tuple of str
        Of a table in several files, those it is about; empty if it is about the whole.
    text : str
        The sentence.
    """

    kind: str
    columns: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    severity: Literal["note", "caution"] = "note"
    parts: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        from kpod._common.sentences.note_sentences import sentence

        return sentence(self)

    def __str__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {
            "kind": self.kind,
            "severity": self.severity,
            "columns": list(self.columns),
            "values": dict(self.values),
            **({"parts": list(self.parts)} if self.parts else {}),
            "text": self.text,
        }


class Notes(list[Note]):
    """A list of notes, in the order in which to read them; prints one per line."""

    def __init__(self, notes: Iterable[Note] = ()) -> None:
        super().__init__(notes)

    def by_importance(self) -> Notes:
        """Those on rows and weights first."""
        places = {kind: place for place, kind in enumerate(SAID_FIRST)}
        return Notes(sorted(self, key=lambda note: places.get(note.kind, len(places))))

    def __str__(self) -> str:
        return "\n".join(note.text for note in self)

    def _repr_html_(self) -> str:
        import html

        return f"<ul>{''.join(f'<li>{html.escape(note.text)}</li>' for note in self)}</ul>"
