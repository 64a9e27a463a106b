"""Progress: one callback, `progress(done, total, text)`.

`total` is 0 if the amount of work is unknown. A callback may have three methods more:
`introduce(summary)`, for what is clustered, before that begins; `announce(seconds)`, for a wait that can be
foreseen; and `follow(model)`, a context in which a fit shows what it is doing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

Progress = Callable[[int, int, str], None]


def no_progress(done: int, total: int, text: str) -> None:
    """Show nothing."""


def introduce(progress: Progress, summary: dict[str, Any]) -> None:
    """Say what is going to be clustered, if the callback can."""
    show = getattr(progress, "introduce", None)
    if show is not None:
        show(summary)


def following(progress: Progress, model: Any) -> AbstractContextManager[Any]:
    """A context in which a fit shows what it is doing, if the callback can."""
    follow = getattr(progress, "follow", None)
    return nullcontext() if follow is None else follow(model)


class Part:
    """The callback for one part of the work, whose text begins with the name of that part."""

    def __init__(self, progress: Progress, text: str) -> None:
        self.progress, self.text = progress, text

    def __call__(self, done: int, total: int, text: str) -> None:
        self.progress(done, total, f"{self.text}, {done} of {total} ({text})")

    def __getattr__(self, name: str) -> Any:
        if name != "announce":
            raise AttributeError(name)
        return getattr(self.progress, name)
