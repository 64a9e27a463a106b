"""What to call the rows: by name or title, by individual and time; by number where there is nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kpod._columns.column_inspection import is_text
from kpod._columns.preparing.column_values import decoded, whole_numbers, words_of
from kpod._columns.roles.codes import ROW_NUMBERS
from kpod._columns.tables import TableFile
from kpod._common.errors import printable

if TYPE_CHECKING:
    from kpod._columns.preparing.columns_in_use import ColumnUsage

MOSTLY_DIFFERENT = 0.7
"""The share of different values from which words can name rows; half as many under a heading for names."""
LONGEST = 60
"""Letters of a name on average; what is longer is a description."""
KNOWN = 0.9
"""The share of the rows that have a name, at the least."""
LETTERS = 2.5
"""Letters of a name on average, at the least."""
CALLED = re.compile(r"\b(name|title|label|nom|titre|titel|nombre|titulo|nome)\b", re.IGNORECASE)
WORDS = re.compile(r"[^a-zA-Z]+|(?<=[a-z])(?=[A-Z])")


class RowNames(Sequence[str]):
    """Names of rows, computed on access; names that several rows share are followed by the row number."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts = parts
        keys = [f"f{i}" for i in range(len(parts))]
        counts = pa.table(list(parts), keys).group_by(keys).aggregate([([], "count_all")])
        repeated = counts.filter(pc.greater(counts["count_all"], 1))
        self.repeated = {tuple(one[key] for key in keys) for one in repeated.to_pylist()}

    def __len__(self) -> int:
        return len(self.parts[0])

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return [self[one] for one in range(*row.indices(len(self)))]
        values = tuple(part[int(row)].as_py() for part in self.parts)
        first, *rest = [printable(str(value)) for value in values if value is not None] or [""]
        text = f"{first} ({', '.join(rest)})" if rest else first  # lists of names have commas of their own
        return f"{text} (row {int(row) + 1})".strip() if values in self.repeated or not text else text


def row_names(table: TableFile, usage: ColumnUsage, panel: Sequence[str] = ()) -> RowNames | None:
    """What to call the rows; None for their numbers.

    `panel` names an individual and a time of which there is one row each.
    """
    if table.raw.num_rows != table.n_rows or not table.n_rows:  # only the beginning of it is at hand
        return None
    names = sorted(words(table, usage), key=lambda one: one[:-1])
    if names and (names[0].is_called or names[0].share == 1):
        return RowNames([names[0].values])
    if len(panel) == 2 and all(name in table.by_name for name in panel):
        return RowNames([whole_numbers(decoded(table.raw[name])) for name in panel])
    if names:
        return RowNames([names[0].values])
    numbers = identifiers(table, usage)
    return RowNames([whole_numbers(decoded(table.raw[numbers[0]]))]) if numbers else None


class Candidate(NamedTuple):
    """A column of words that can name rows; what comes first among several is the better one."""

    is_not_called: bool
    """Whether its heading is not one for names."""
    minus_share: float
    """Less the share of different values."""
    length: float
    values: Any

    @property
    def is_called(self) -> bool:
        return not self.is_not_called

    @property
    def share(self) -> float:
        return -self.minus_share


def words(table: TableFile, usage: ColumnUsage) -> Iterator[Candidate]:
    for name in usage.unused:
        if name not in table.by_name or usage.roles[name].role not in ("identifier", "text", "category"):
            continue
        if not is_text(decoded(table.raw[name]).type):
            continue
        values = words_of(table, table.column(name))
        length = pc.mean(pc.utf8_length(values)).as_py() or 0.0
        share = pc.count_distinct(values).as_py() / table.n_rows
        called = bool(CALLED.search(" ".join(WORDS.split(name))))
        least = MOSTLY_DIFFERENT / 2 if called else MOSTLY_DIFFERENT
        known = 1 - values.null_count / table.n_rows
        if share >= least and known >= KNOWN and LETTERS <= length <= LONGEST and mostly_letters(values):
            yield Candidate(not called, -share, length, values)


def mostly_letters(values: Any) -> bool:
    """Whether these are words rather than codes, dates or addresses of pages."""
    sample = [text for text in values[:200].to_pylist() if text]
    letters = sum(sum(sign.isalpha() for sign in text) for text in sample)
    pages = sum(text.startswith(("http:", "https:", "www.")) for text in sample)
    return letters > 0.5 * sum(map(len, sample)) and pages < 0.5 * max(1, len(sample))


def identifiers(table: TableFile, usage: ColumnUsage) -> list[str]:
    """Identifiers that are different in each row, those that only count the rows last."""
    found = [
        name
        for name, role in usage.roles.items()
        if role.role == "identifier" and name in usage.unused and name in table.by_name
    ]
    whole = [
        name
        for name in found
        if not table.raw[name].null_count
        and pc.count_distinct(decoded(table.raw[name])).as_py() == table.n_rows
    ]
    return sorted(whole, key=lambda name: usage.roles[name].why == ROW_NUMBERS)
