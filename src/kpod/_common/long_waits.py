"""How long a choice will take, announced while it can still be stopped.

Work is counted in units that take about as long as each other; the pace of the first ones says how long the
others take.
"""

from __future__ import annotations

import time
from collections.abc import Callable

LONG = 30.0  # seconds from which a wait is announced
ENOUGH = 1.0  # seconds after which the pace is known


def seconds_left(done: float, planned: float, seconds: float) -> float:
    """How long the rest of the work takes, if so much of it took so many seconds."""
    return seconds * max(0.0, planned - done) / done if done > 0 else 0.0


def duration(seconds: float) -> str:
    """A time in the unit that one would use: 40 seconds, 4 minutes, 2.5 hours."""
    if seconds < 90:
        return f"{max(10, round(seconds, -1)):.0f} seconds"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours"


def long_wait(seconds: float, instead: str) -> str:
    """The announcement of a long wait."""
    return (
        f"choosing the number of clusters takes about {duration(seconds)} more; with a given number "
        f"({instead}), a fit takes a fraction of that."
    )


class Wait:
    """Announces the seconds that are left where they are many.

    Once for each stage of the work, and only where the end is later than was announced before.
    """

    def __init__(
        self, announce: Callable[[float], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.announce, self.clock = announce, clock
        self.expected_end = -float("inf")
        self.begin(0.0)

    def begin(self, planned: float) -> None:
        """Begin a stage of so many units."""
        self.planned, self.done = planned, 0.0
        self.since, self.is_announced = self.clock(), False

    def skip(self, units: float) -> None:
        """So many units need not be done."""
        self.planned -= units

    def step(self, units: float) -> None:
        """So many units more are done."""
        self.done += units
        now = self.clock()
        left = seconds_left(self.done, self.planned, now - self.since)
        is_late = now + left > self.expected_end + LONG
        if not self.is_announced and now - self.since >= ENOUGH and left > LONG and is_late:
            self.is_announced, self.expected_end = True, now + left
            self.announce(left)
