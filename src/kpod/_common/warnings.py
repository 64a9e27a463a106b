"""Warnings that point at the line of the user's that they are about."""

from __future__ import annotations

import sys
import warnings

# The packages whose lines mean nothing to the user: a pipeline's, for instance, or those of `with`.
INSIDE = ("kpod", "sklearn", "joblib", "contextlib")


class EmptyRowsWarning(UserWarning):
    """Rows with nothing observed, which are in no cluster."""


class RoundClustersWarning(UserWarning):
    """Probabilities of round clusters of the same spread, where clusters are not so."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn of the first caller outside of this package and those that call it for the user."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and is_inside(frame.f_globals.get("__name__")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def is_inside(module: object) -> bool:
    return str(module).partition(".")[0] in INSIDE
