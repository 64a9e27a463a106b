"""Progress lines, at a terminal after two seconds and in logs.

At a terminal it is one line that changes. In a pipe or a log it is a line now and then, or with --log-json
every step as a JSON object. That a choice will take long is always announced, so that it can be stopped.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 2.0
BETWEEN_LINES = 60.0
"""Seconds from one line to the next without a terminal."""
BETWEEN_OBJECTS = 1.0
"""And of --log-json, for as long as what is being done stays the same."""


class Progress:
    """Shows a spinner on standard error once two seconds have passed; in a pipe, lines."""

    def __init__(self, quiet: bool, log_json: bool = False, *, introduces: bool = False) -> None:
        self.introduces = introduces and not quiet and not log_json
        self.introduced: dict[str, Any] | None = None
        self.quiet, self.log_json = quiet, log_json
        self.visible = not quiet and not log_json and sys.stderr.isatty()
        self.text = self.stage = ""
        self.began = self.last_shown = time.monotonic()
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
        elif self.log_json:
            self.log(done, total, text)
        elif not self.visible and not self.quiet and time.monotonic() - self.last_shown >= BETWEEN_LINES:
            self.last_shown = time.monotonic()
            print(f"kpod: {self.last_shown - self.began:.0f} s: {text}", file=sys.stderr, flush=True)

    def log(self, done: int, total: int, text: str) -> None:
        """A JSON object on a line: at once where something begins, else one a second."""
        stage, now = text.partition(",")[0], time.monotonic()
        if stage == self.stage and now - self.last_shown < BETWEEN_OBJECTS:
            return
        self.stage, self.last_shown = stage, now
        content = {"seconds": round(now - self.began, 3), "stage": stage, "text": text}
        content |= {"done": int(done), "total": int(total)} if total else {}
        print(json.dumps(content, ensure_ascii=False), file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """A message that is shown at once, also in a pipe or a log."""
        if self.status:
            self.status.console.print(text)
        elif self.log_json:
            self.stage = ""
            self.log(0, 0, text)
        elif not self.quiet:
            print(text, file=sys.stderr, flush=True)

    def introduce(self, summary: dict[str, Any]) -> None:
        """What is going to be clustered, while it can still be stopped."""
        if self.introduces:
            from kpod.cli.show import show_table

            self.introduced = summary
            show_table(summary)

    def announce(self, seconds: float) -> None:
        """That a choice will take long."""
        from kpod._common.long_waits import long_wait

        self.say(long_wait(seconds, "-k 3"))

    @contextmanager
    def follow(self, kpod: Any) -> Iterator[None]:
        """Show what a fit is doing, its latest line at a time."""
        if self.quiet and not self.log_json:
            yield
            return
        kpod._progress_line = lambda line: self(0, 0, f"clustering, {line.strip()}")
        try:
            yield
        finally:
            del kpod._progress_line
