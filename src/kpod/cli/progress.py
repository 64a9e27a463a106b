"""A line about what is going on, for a person who has waited two seconds at a terminal.

That a choice will take long is said in any case, so that it can be stopped.
"""

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
        self.quiet = quiet
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

    def __call__(self, done: int, total: int, text: str) -> None:
        """What is being done now."""
        self.text = text + " ..."
        if self.status:
            self.status.update(self.text)

    def say(self, text: str) -> None:
        """Something that has to be known now, also by those who read it from a pipe or a log."""
        if self.status:
            self.status.console.print(text)
        elif not self.quiet:
            print(text, file=sys.stderr, flush=True)

    def announce(self, seconds: float) -> None:
        """That a choice will take long."""
        from kpod._common.waiting import long_wait

        self.say(long_wait(seconds, "-k 3"))

    @contextmanager
    def follow(self, kpod: Any) -> Iterator[None]:
        """Show what a fit is doing, its latest line at a time."""
        if not self.visible:
            yield
            return
        kpod._progress_line = lambda line: self(0, 0, f"clustering, {line.strip()}")
        try:
            yield
        finally:
            del kpod._progress_line
