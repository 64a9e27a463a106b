"""Values that mean "missing": those everyone uses, those given for all columns, and those of one column."""

from __future__ import annotations

import difflib
import fnmatch
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Number
from typing import Any

from kpod._common.errors import InputError, printable
from kpod._common.options import option

GAPS = [
    "", "NA", "N/A", "#N/A", "NaN", "null", "None", "nil", "missing", "?", "-", "--", ".",
    "#DIV/0!", "#VALUE!", "#REF!", "#NUM!", "#NAME?", "#NULL!",
]  # fmt: skip
"""The last are what spreadsheets write where a formula fails."""

WORD = "None"
"""The code that is also an answer: how much do you smoke?"""
LETTERS = "NA"
"""The code that is also one of two letters: Namibia, North America."""
MINUS = "-"
"""The code that is also a sign."""
EVERYWHERE = "*"


@dataclass(frozen=True)
class MissingCodes:
    """The values given as missing: for every column, and for some."""

    everywhere: tuple[str, ...] = ()
    by_column: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Any, names: Sequence[str], source: str) -> MissingCodes:
        """From a value, several, or a mapping from columns, or patterns of their names, to those."""
        if not isinstance(given, Mapping):
            return cls(texts_of(given))
        everywhere: list[str] = []
        by_column: dict[str, list[str]] = {}
        for column, values in given.items():
            if column == EVERYWHERE:
                everywhere += texts_of(values)
                continue
            found = matching(str(column), names)
            if not found:
                close = difflib.get_close_matches(str(column), names, 1)
                hint = f"; did you mean '{printable(close[0])}'?" if close else "."
                raise InputError(
                    f"{option('--missing', {printable(column): texts_of(values)})}: {source} has no column "
                    f"'{printable(column)}'{hint}"
                )
            for name in found:
                by_column.setdefault(name, []).extend(texts_of(values))
        return cls(tuple(dict.fromkeys(everywhere)), {name: tuple(m) for name, m in by_column.items()})

    def of_column(self, name: str) -> tuple[str, ...]:
        return (*self.everywhere, *self.by_column.get(name, ()))

    def found_nowhere(self, found: dict[str, Counter[str]]) -> list[str]:
        """What was given and occurs in no column it was given for."""
        lost = [code for code in self.everywhere if not any(code in codes for codes in found.values())]
        for name, codes in self.by_column.items():
            lost += [f"{name}={code}" for code in codes if code not in found.get(name, ())]
        return lost


def texts_of(given: Any) -> tuple[str, ...]:
    """One value or several, as they are written; what is missing anyway is none."""
    values = [given] if given is None or isinstance(given, (str, Number)) else list(given)
    texts = [
        f"{value:.15g}" if isinstance(value, float) else str(value) for value in values if value is not None
    ]
    return tuple(dict.fromkeys(text for text in texts if text != "nan"))


def from_options(texts: Iterable[str]) -> dict[str, list[str]]:
    """What --missing 98, --missing 98,99, --missing income=98,99 and --missing 'q*=98,99' give, by column."""
    out: dict[str, list[str]] = {}
    for text in texts:
        column, equals, codes = text.rpartition("=")
        if equals and column:
            out.setdefault(column, []).extend(split(codes))
        else:
            out.setdefault(EVERYWHERE, []).extend(split(text))
    return out


def as_options(codes: Mapping[str, Sequence[str]]) -> list[str]:
    """The other way round."""
    pairs = [(column, code) for column, given in codes.items() for code in given]
    return [code if column == EVERYWHERE else f"{column}={code}" for column, code in pairs]


def both(one: Any, other: Any) -> dict[str, list[str]]:
    """What is given in one way or another."""
    out: dict[str, list[str]] = {}
    for given in (one, other):
        by_column = given if isinstance(given, Mapping) else {EVERYWHERE: given}
        for column, values in by_column.items():
            out.setdefault(column, []).extend(texts_of(values))
    return out


def as_number(code: str) -> float | None:
    try:
        return float(code)
    except ValueError:
        return None


def split(text: str) -> list[str]:
    parts = [part.strip() for part in text.split(",")]
    return parts if all(parts) else [text.strip()]


def matching(pattern: str, names: Iterable[str]) -> list[str]:
    """The column of that name, or else those that match a pattern with * or ?."""
    names = list(names)
    if pattern in names:
        return [pattern]
    return [name for name in names if fnmatch.fnmatchcase(name, pattern)] if set("*?[") & set(pattern) else []


def spellings(given: Sequence[str], answers: Collection[str] = ()) -> list[str]:
    """Every way to write the codes that everyone uses, without those that are answers, and those given."""
    codes = [code for code in GAPS if code not in answers]
    spelled = [form for code in codes for form in (code, code.lower(), code.upper(), code.capitalize())]
    return list(dict.fromkeys([*spelled, *given]))


def answers_among(words: Iterable[str]) -> set[str]:
    """The codes that are answers where these words are known to be."""
    return {code for word in words for code in (WORD, MINUS, LETTERS) if word.lower() == code.lower()}
