"""What the records of a results file amount to: means, standard errors, comparisons, empty cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from paper.datasets import Cell, designs
from paper.methods import methods
from paper.objective import FAILED, OK, OVER_TIME, UNAVAILABLE, Outcome
from paper.results import Record


@dataclass
class Entry:
    """A row of a table in one cell: its outcomes by trial."""

    outcomes: dict[int, Outcome] = field(default_factory=dict)
    limit: int = 0

    @property
    def complete(self) -> bool:
        """Whether all its trials gave a clustering; otherwise the cell is empty, as in the paper."""
        return bool(self.outcomes) and all(outcome.status == OK for outcome in self.outcomes.values())

    @property
    def over_time(self) -> bool:
        return any(outcome.status == OVER_TIME for outcome in self.outcomes.values())

    @property
    def failed(self) -> bool:
        return any(outcome.status == FAILED for outcome in self.outcomes.values())

    @property
    def why_empty(self) -> str:
        if not self.outcomes:
            return "not run"
        counts = Counter(outcome.status for outcome in self.outcomes.values())
        if counts[OVER_TIME]:
            return f"over {self.limit} s"
        if counts[FAILED]:
            reasons = Counter(o.reason for o in self.outcomes.values() if o.status == FAILED)
            return (
                f"failed in {counts[FAILED]} of {len(self.outcomes)} trials: {reasons.most_common(1)[0][0]}"
            )
        return next((o.reason for o in self.outcomes.values() if o.status == UNAVAILABLE), "")

    def scores(self, name: str) -> np.ndarray:
        return np.array([getattr(self.outcomes[trial], name) for trial in sorted(self.outcomes)])

    def mean(self, name: str) -> float:
        return float(self.scores(name).mean())

    def error(self, name: str) -> float:
        return standard_error(self.scores(name))


def standard_error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


@dataclass(frozen=True)
class Difference:
    """How much better one row is than another, over the trials that both have."""

    mean: float
    error: float

    @property
    def behind(self) -> bool:
        """Worse by more than one standard error."""
        return self.mean < -self.error


class Summary:
    """All entries of a results file, by cell and row."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.entries: dict[tuple[Cell, str], Entry] = {}
        for record in records:
            entry = self.entries.setdefault((record.cell, record.row), Entry())
            entry.outcomes[record.trial] = record.outcome  # what was tried again counts as it came last
            entry.limit = max(entry.limit, record.limit)

    def at(self, cell: Cell, row: str) -> Entry:
        return self.entries.get((cell, row), Entry())

    def cells(self, table: str, mechanism: str | None = None) -> list[Cell]:
        percents: Mapping[str, tuple[int, ...]] = designs()[table].percents
        return [
            Cell(table, name, percent)
            for name, values in percents.items()
            if mechanism in (None, name)
            for percent in values
        ]

    def difference(self, cell: Cell, row: str, other: str, score: str = "rand") -> Difference | None:
        """`row` less `other` where both are complete and share two trials or more; the data are the same."""
        one, two = self.at(cell, row), self.at(cell, other)
        shared = sorted(one.outcomes.keys() & two.outcomes.keys())
        if not (one.complete and two.complete and len(shared) > 1):
            return None
        values = [getattr(one.outcomes[t], score) - getattr(two.outcomes[t], score) for t in shared]
        return Difference(float(np.mean(values)), standard_error(np.array(values)))

    def behind(
        self, cell: Cell, row: str, others: Iterable[str], score: str = "rand"
    ) -> dict[str, Difference]:
        """The rows that `row` is behind of by more than one standard error, the farthest first."""
        found = {other: self.difference(cell, row, other, score) for other in others if other != row}
        behind = {other: gap for other, gap in found.items() if gap is not None and gap.behind}
        return dict(sorted(behind.items(), key=lambda item: item[1].mean))


def contestants() -> list[str]:
    """All rows but those that saw the complete table."""
    return [row for method in methods().values() if method.name != "complete" for row in method.rows]
