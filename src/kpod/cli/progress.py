"""A line about what is going on, for a person who has waited two seconds at a terminal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 2.0


class Progress:
    """Shows a spinner on standard error once two seconds have passed; never in a pipe."""

    def __init__(self, quiet: bool) -> None:
        self.visible = not quiet and sys.stderr.isatty()
        self.text = ""
        self.status: Any = None
        self.timer: threading.Timer | None = None

    def __enter__(self) -> Progress:
        if self.visible:
            self.timer = threading.Timer(PATIENCE, self.show)
            self.timer.daemon = True
            self.timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.timer:
            self.timer.cancel()
            self.timer.join()
        if self.status:
            self.status.stop()

    def show(self) -> None:
        from rich.console import Console

        console = Console(stderr=True, markup=False, highlight=False)
        self.status = console.status(self.text)
        self.status.start()

    def doing(self, text: str) -> None:
        """What is being done now."""
        self.text = text + " ..."
        if self.status:
            self.status.update(self.text)

    def choosing(self, done: int, total: int, text: str) -> None:
        """How far the choice of the number of clusters is."""
        self.doing(f"choosing the number of clusters, {done} of {total} ({text})")

    @contextmanager
    def following(self, kpod: Any) -> Iterator[None]:
        """Show what a fit is doing, its latest line at a time."""
        if not self.visible:
            yield
            return
        kpod._listener = lambda line: self.doing(f"clustering, {line.strip()}")
        try:
            yield
        finally:
            del kpod._listener
