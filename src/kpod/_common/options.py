"""Settings by the name of the reader's interface: options in the shell, parameters in Python.

Notes, cautions and errors say what to do about them. The same sentence is read by someone who types
`--exclude year` and by someone who writes `exclude=['year']`; `option` words it for either.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

PARAMETERS = {
    "--missing": "missing_values",
    "--as": "roles",
    "--id": "ids",
    "--starts": "n_init",
    "--seed": "random_state",
    "-k": "n_clusters",
}
"""Where the parameter is not called as the option is."""
_reader = ["python"]


@contextmanager
def read_in_the_shell() -> Iterator[None]:
    """Word settings as options of the command line."""
    _reader.append("shell")
    try:
        yield
    finally:
        _reader.pop()


def in_the_shell() -> bool:
    return _reader[-1] == "shell"


def option(name: str, value: Any = None) -> str:
    """A setting, with or without a value, worded so that it can be pasted: an option or a parameter.

    Values are text or a number, several in a sequence, or a mapping from a column to those.

    Examples
    --------
    >>> option("--exclude", ["id", "year of birth"])
    "exclude=['id', 'year of birth']"
    >>> with read_in_the_shell():
    ...     print(option("--exclude", ["id", "year of birth"]))
    --exclude 'id,year of birth'
    """
    if not in_the_shell():
        return as_parameter(name, value)
    return name if value is None else pasted(name, shell_text(value))


def shell_text(value: Any) -> str:
    if isinstance(value, Mapping):
        ((column, given),) = value.items()
        return f"{column}={shell_text(given)}"
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence):
        return ",".join(map(shell_text, value))
    return f"{value:.15g}"


def pasted(name: str, value: str) -> str:
    """An option and its value as they can be pasted into a shell, from the middle of a sentence."""
    text = shlex.quote(value)
    if text == value and value.endswith((".", ",", ":")):
        text = f"'{value}'"
    equals = "=" if re.match(r"-\D", value) else " "  # else it could be taken for another option
    return f"{name}{equals}{text}"


def as_parameter(name: str, value: Any) -> str:
    parameter = PARAMETERS.get(name, name.strip("-").replace("-", "_"))
    return f"`{parameter}`" if value is None else f"{parameter}={python_text(value)}"


def python_text(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{column!r}: {python_text(given)}' for column, given in value.items())}}}"
    if isinstance(value, str):
        return str(int(value)) if re.fullmatch(r"-?\d{1,15}", value) else repr(value)
    if isinstance(value, Sequence):
        return f"[{', '.join(map(python_text, value))}]"
    return f"{value:.15g}"
