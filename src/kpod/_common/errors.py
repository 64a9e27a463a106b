"""Input that cannot be used, and text that is safe to show."""

from __future__ import annotations


class InputError(ValueError):
    """Something the user gave cannot be used: one line that says what, where and what to do."""


def printable(text: object) -> str:
    """Text of the user's, with line breaks and control characters made visible."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(text))
