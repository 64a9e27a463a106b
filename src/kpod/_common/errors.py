"""Input that cannot be used, and text that is safe to show."""

from __future__ import annotations

from importlib.util import find_spec


class InputError(ValueError):
    """Something the user gave cannot be used: one line that says what, where and what to do."""


def check_library(name: str, what: str) -> None:
    """Refuse to make a data frame of a library that is not installed."""
    if find_spec(name) is None:
        raise ModuleNotFoundError(
            f"{what} needs {name}, which is not installed: pip install {name}.", name=name
        )


def printable(text: object) -> str:
    """Text of the user's, with line breaks and control characters made visible."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(text))
