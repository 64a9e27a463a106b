"""Numbers as people write them: $103,918, 79%, 1.234,5, 1 234, (250), 56.7M, 60 kg, 3+; and yes and no.

A column is read so only if every entry is, in one and the same way. Where a comma or a point may divide
thousands or decimals, and nothing in the column tells which, the other columns tell; else it is asked
about, not guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kpod._common.typing import Floats

MONEY = (
    r"(?:US\$|CA?\$|AU?\$|NZ\$|HK\$|R\$|[$€£¥₹₩₺₽₪₦₱฿₫₴]|USD|EUR|GBP|CHF|JPY|CNY|RMB|INR|AUD|CAD|NZD|HKD|SGD|"
    r"SEK|NOK|DKK|PLN|CZK|HUF|TRY|RUB|ZAR|BRL|MXN|KRW|THB|SAR|AED|ILS|Fr\.|SFr\.?|Rs\.?|SR|kr\.?|zł|Kč|Ft)"
)
MAGNITUDES = {
    "3": r"k|K|thousand|[tT]sd\.?",
    "6": r"M|MM|mn|[mM]io\.?|[mM]illions?",
    "9": r"B|bn|[bB]illions?",
    "12": r"T|tn|[tT]rillions?",
}
"""What is written behind a number for a power of ten, by its exponent."""
POINTED = r"^[-+]?(?:[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?(?:e\d+)?|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)$"
COMMAED = r"^[-+]?(?:[1-9]\d{0,2}(?:\.\d{3})+(?:,\d*)?(?:e\d+)?|(?:\d+,?\d*|,\d+)(?:[eE][-+]?\d+)?)$"
"""Numbers with a decimal point, or a decimal comma; the other mark may group thousands."""
UNIT = r"\p{L}[\p{L} /°²³%]*(?:[23]|1[0,]*)?"
"""What may stand behind a number: kg, m², km/h, full defects, to 1, per 1,000."""
LETTERS = ("m", "g", "l", "h", "v", "w")
"""Units of one letter; others are parts of names, as in 12A."""
NO_UNITS = ("st", "nd", "rd", "th", "am", "pm", "e", "inf", "infinity", "nan")
FOOTNOTE = r"(\d)(?:\s+\(\d{1,2}\)|\s*[*†‡¹²³]+)$"
"""A mark behind a number that refers to a remark; of 12.5 (3.1) in every row, both are numbers."""
MOST_FOOTNOTES = 0.5
SOME = 1000
FEW = 0.05
INFINITE = r"^[-+]?(?i:inf|infinity)$"
EITHER = r"^[-+]?[1-9]\d{0,2}[.,]\d{3}$"
"""What matches both, and is two numbers."""
YES = ["yes", "y", "true", "t", "on", "ja", "oui", "si", "sí", "sim"]
NO = ["no", "n", "false", "f", "off", "nein", "non", "não"]
PAIRS = [
    {"yes", "no"}, {"y", "n"}, {"true", "false"}, {"t", "f"}, {"on", "off"}, {"ja", "nein"}, {"oui", "non"},
    {"si", "no"}, {"sí", "no"}, {"sim", "não"},
]  # fmt: skip


@dataclass(frozen=True)
class Reading:
    """What was made of a column of text."""

    values: Floats | None
    how: str = ""
    decimal: str = "."
    ambiguous: str = ""
    """An entry that could be read in two ways."""


def read_numbers(
    text: pa.ChunkedArray, gaps: Any, decimal: str, *, decimal_given: bool, as_floats: Any
) -> Reading:
    """The numbers of a column that plain reading refused, or why not."""
    as_written, text = text, without_units(text, gaps)
    entries = pc.filter(text, pc.invert(gaps))
    first = bare(entries[:SOME])
    if not (all_match(first, POINTED) or all_match(first, COMMAED)):  # as most text, without a look at all
        return Reading(None)
    cells = undressed(entries) if len(entries) else None
    if cells is None:
        return Reading(None)
    pointed, commaed = all_match(cells, POINTED), all_match(cells, COMMAED)
    if not (pointed or commaed):
        return Reading(None)
    if pointed and commaed:
        commas = pc.filter(entries, pc.match_substring(cells, ","))
        if len(commas) and not decimal_given and not has(entries, MONEY):
            return Reading(None, ambiguous=str(commas[0].as_py()))
        pointed = decimal == "."
    everything = bare(pc.if_else(gaps, pa.scalar("0"), text))
    outer, inner = (",", ".") if pointed else (".", ",")
    plain = pc.replace_substring(pc.replace_substring(everything, outer, ""), inner, ".")
    plain = pc.replace_substring_regex(plain, r"^\+", "")
    values = as_floats(pc.if_else(gaps, pa.scalar(None, pa.string()), plain))
    telling = pc.index(pc.and_not(pc.not_equal(plain, as_written), gaps), True).as_py()
    return Reading(values, f"'{as_written[telling].as_py()}' is read as {values[telling]:.12g}", inner)


def without_units(text: Any, gaps: Any) -> Any:
    """Text without one unit behind its numbers (60 kg, 1 year and 2 years), footnote marks and a last plus.

    Marks are left alone where half of the entries or more have one, or where what is behind
    the numbers differs: 60 kg and 5 lbs do not compare.
    """
    number = r"^\s*[-+]?\d[\d.,]*"
    entries = pc.filter(text, pc.invert(gaps))
    first = entries[:SOME]
    if not len(first) or not has(first, rf"{number}\s*(?:{UNIT}|\+|[*†‡¹²³]|\()"):
        return text
    text = pc.replace_substring_regex(text, rf"({number})\+\s*$", r"\1")
    marked = pc.match_substring_regex(entries, FOOTNOTE)
    if pc.sum(pc.cast(marked, pa.int64())).as_py() < MOST_FOOTNOTES * len(entries):
        text = pc.replace_substring_regex(text, FOOTNOTE, r"\1")
    units = pc.struct_field(pc.extract_regex(entries, rf"{number}\s*(?P<unit>{UNIT})$"), "unit")
    found = {str(unit).strip() for unit in pc.unique(pc.drop_null(units)).to_pylist()}
    singular = {unit.removesuffix("s") if len(unit) > 3 else unit for unit in found}
    unit = singular.pop() if len(singular) == 1 else ""
    if not unit or unit.lower() in NO_UNITS or (len(unit) == 1 and unit not in LETTERS):
        return text
    if bare(pa.array([f"1 {unit}"]))[0].as_py() != f"1 {unit}":
        return text  # a magnitude or a currency
    spelled = "|".join(map(re.escape, sorted(found, key=len, reverse=True)))
    return pc.replace_substring_regex(text, rf"({number})\s*(?:{spelled})\s*$", r"\1")


def undressed(text: Any) -> Any:
    """Cells as `bare` makes them; None if only some have %."""
    percent = pc.ends_with(pc.utf8_rtrim_whitespace(text), "%")
    if len(currencies(text)) > 1:
        return None
    some, every = pc.any(percent).as_py(), pc.all(percent).as_py()
    if some and not every and pc.sum(pc.cast(percent, pa.int64())).as_py() < 0.5 * len(text):
        return None
    return bare(text)


def bare(text: Any) -> Any:
    """Without currency, percent signs, blanks and apostrophes between thousands; 1.2k as 1.2e3."""
    text = pc.replace_substring_regex(text, rf"^\s*([-+(]?)\s*{MONEY}\s*", r"\1")
    text = pc.replace_substring_regex(text, rf"\s*(?:%|{MONEY})\s*$", "")
    text = pc.replace_substring_regex(text, r"^\((.*)\)$", r"-\1")
    for exponent, words in MAGNITUDES.items():
        text = pc.replace_substring_regex(text, rf"(\d[.,]?)\s*(?:{words})$", rf"\1e{exponent}")
    for _ in range(2):  # of 1 234 567, matches do not overlap
        text = pc.replace_substring_regex(text, r"(\d)[\x{00a0}\x{202f} '\x{2019}](\d{3})", r"\1\2")
    return text


def numbers_in(text: Any, gaps: Any, decimal: str) -> tuple[Any, str]:
    """Which entries are numbers, and with which decimal mark: the file's, unless most have the other one."""
    other = "." if decimal == "," else ","
    found = numbers_with(text, gaps, decimal)
    others = pc.and_not(pc.invert(gaps), found)
    if not has(pc.filter(text, others), re.escape(other)):
        return found, decimal
    again = numbers_with(text, gaps, other)
    rest = pc.filter(text, pc.and_not(pc.invert(gaps), again))
    # "1,2" and "1,2,3" are several codes.
    n = len(text) - pc.sum(gaps).as_py()
    is_so = 2 * len(rest) < n and (len(rest) <= FEW * n or not has(rest, r"\d"))
    return (again, other) if is_so else (found, decimal)


def numbers_with(text: Any, gaps: Any, decimal: str) -> Any:
    pattern = POINTED if decimal == "." else COMMAED
    return pc.and_not(pc.match_substring_regex(text, f"{pattern}|{INFINITE}"), gaps)


def shows(text: Any, decimal: str) -> bool:
    """Whether any cell is a number with this decimal mark only: 12.5 or 0.125, but not 1.250."""
    one, other = (POINTED, COMMAED) if decimal == "." else (COMMAED, POINTED)
    cells = bare(pc.utf8_trim_whitespace(pc.filter(text, pc.match_substring_regex(text, r"[.,]"))))
    cells = pc.filter(cells, pc.match_substring_regex(cells, one))
    return len(cells) > 0 and not all_match(cells, other)


def points_may_group(text: Any) -> str:
    """A cell in which a point may group thousands, if all points of a column may: as in 938 and 1.050."""
    cells = pc.utf8_trim_whitespace(text)
    with_point = pc.match_substring(cells, ".")
    pointed = pc.filter(cells, with_point)
    long = has(pc.filter(cells, pc.invert(with_point)), r"\d{4}")
    return str(pointed[0].as_py()) if len(pointed) and all_match(bare(pointed), EITHER) and not long else ""


def all_match(text: Any, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(text, pattern)).as_py())


def has(text: Any, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(text, pattern)).as_py())


def read_truth(entries: Any, text: Any, gaps: Any, as_floats: Any) -> Floats | None:
    """1 for yes and 0 for no, where every entry is one of the two in one language."""
    lower = pc.utf8_lower(entries)
    if len(entries) > 1000 and not pc.all(pc.is_in(lower[:1000], value_set=pa.array([*YES, *NO]))).as_py():
        return None
    found = set(pc.unique(lower).to_pylist())
    if not any(found <= pair for pair in PAIRS):
        return None
    yes = pc.is_in(pc.utf8_lower(text), value_set=pa.array(YES))
    return as_floats(pc.if_else(gaps, pa.scalar(None, pa.bool_()), yes))


def currencies(entries: Any) -> set[str]:
    """The currencies that entries are in: numbers in several do not compare."""
    signs = pc.struct_field(pc.extract_regex(entries, f"(?P<sign>{MONEY})"), "sign")
    same = {"US$": "$", "USD": "$", "EUR": "€", "GBP": "£", "INR": "₹", "Rs": "₹", "Rs.": "₹", "SAR": "SR"}
    return {same.get(sign, sign) for sign in pc.unique(signs).to_pylist() if sign}
