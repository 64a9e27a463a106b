"""Words that have an order: low, medium, high; 1st, 2nd, 3rd; 25-34, 35-44."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

SCALES = [
    "very low|lowest|minimal; low|lower; low medium|lower middle|below average|lower medium; "
    "medium|med|middle|mid|moderate|average|intermediate|normal; high medium|upper middle|above "
    "average|upper medium; high|higher|upper; very high|highest|extreme|extremely high",
    "extra small|xs|xx small; small|s|tiny; medium|m|mid|midsize; large|l|big; extra large|xl|very "
    "large; xxl|huge",
    "none|no|absent|nil|negative|healthy; trace|minimal|very mild|slight|some|doubtful|possible; "
    "mild|light|slightly; moderate|medium|marked|probable; severe|heavy|strong|definite|certain; very "
    "severe|extreme|critical",
    "never|not at all; hardly ever|almost never|very rarely; rarely|seldom|a little; "
    "occasionally|occas|sometimes|some|some of the time|sometime; "
    "regularly|regul|regular|often|frequently|freq|most of the time|usually; very often|heavy|almost "
    "always|daily; always|every day|all the time",
    "strongly disagree|disagree strongly|totally disagree|completely disagree; disagree|tend to "
    "disagree; slightly disagree|disagree slightly|somewhat disagree|disagree somewhat; "
    "neutral|neither|neither agree nor disagree|undecided|no opinion|not sure|uncertain; slightly "
    "agree|agree slightly|somewhat agree|agree somewhat; agree|tend to agree; strongly agree|agree "
    "strongly|totally agree|completely agree",
    "very dissatisfied; dissatisfied|unsatisfied; neutral|neither; satisfied; very satisfied",
    "very unlikely; unlikely; neutral|possible|perhaps; likely; very likely",
    "very poor|terrible|very bad|awful; poor|bad; fair|so so|acceptable|average|regular|ok|passable; "
    "good; very good; excellent|premium|great; ideal|outstanding|perfect",
    "no; perhaps|maybe|possibly|unsure|not sure|sometimes; yes",
    "decreased|decrease|worse|down|declined|deteriorated; same|no change|unchanged|stable|equal; "
    "increased|increase|better|up|improved",
    "none|illiterate|no schooling|no education; kindergarten|preschool; "
    "primary|elementary|basic|primary school; middle school|lower secondary; secondary|high "
    "school|highschool|hs|upper secondary|hs grad; vocational|some college|associate|college|post "
    "secondary; tertiary|higher|university|bachelor|bachelors|graduate; master|masters|postgraduate; "
    "phd|doctorate|doctoral|prof school",
    "baby|infant; child|kid|juvenile; teen|teenager|adolescent|youth|young|subadult; adult|grown "
    "up|middle aged; senior|elderly|old|aged",
    "bad|poor; medium|average|fair|ok; good",
    "slow; average|medium|normal; fast|quick",
    "cold|cool; mild|warm|medium; hot",
    "cheap|inexpensive; moderate|medium; expensive|pricey",
    "short; medium|average; tall|long",
    "beginner|novice; intermediate; advanced; expert",
    "junior; mid|middle|regular; senior; lead|principal",
    "bronze; silver; gold; platinum",
    "young; middle|middle aged; old",
    "before|pre|baseline; during; after|post|follow up",
    "freshman; sophomore; junior; senior",
    "i; ii; iii; iv; v; vi; vii; viii; ix; x",
    "asst prof|assistant professor|assistant prof; assoc prof|associate professor|associate prof; "
    "prof|professor|full professor|full",
    "january|jan; february|feb; march|mar; april|apr; may; june|jun; july|jul; august|aug; "
    "september|sep|sept; october|oct; november|nov; december|dec",
    "monday|mon; tuesday|tue|tues; wednesday|wed; thursday|thu|thur|thurs; friday|fri; saturday|sat; "
    "sunday|sun",
    "zero; one; two; three; four; five|five or more; six|six or more; seven; eight; nine|nine or more; "
    "ten|ten or more",
    "nie; selten; manchmal|gelegentlich; oft|häufig; immer",
    "niedrig|gering|klein; mittel; hoch|groß",
    "first; second; third; fourth; fifth; sixth; seventh; eighth; ninth; tenth",
]
RANKS = [
    {word.strip(): rank for rank, words in enumerate(scale.split(";")) for word in words.split("|")}
    for scale in SCALES
]


def plain(level: str) -> str:
    """A level in small letters and words, whatever it was written as: StronglyAgree, strongly_agree."""
    spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", level)
    return " ".join(re.split(r"[\W_]+", spaced.lower())).strip()


def order_of(levels: Iterable[str]) -> list[str] | None:
    """The levels from low to high if their words have an order, else None."""
    given = list(levels)
    if not 2 <= len(given) <= 40:
        return None
    words = {level: plain(level) for level in given}
    for ranks in RANKS:
        if all(word in ranks for word in words.values()):
            return ascending(given, {level: float(ranks[word]) for level, word in words.items()})
    for rule in (enumerated, ordinal, interval):
        found = {level: rule(level) for level in given}
        if rule is interval and all(map(is_single, given)):
            return None
        if all(at is not None for at in found.values()):
            return ascending(given, {level: float(at) for level, at in found.items() if at is not None})
    return None


def ascending(levels: list[str], at: Mapping[str, float]) -> list[str] | None:
    """None if two levels stand at the same place: then the words do not decide."""
    return sorted(levels, key=lambda level: at[level]) if len(set(at.values())) == len(levels) else None


def enumerated(level: str) -> float | None:
    """1. low, (2) medium, 3_high."""
    match = re.match(r"^\s*[(\[]?(\d{1,2})(?:[.):\]]\s*|\s*[-_=]\s*|\s+-\s+)[A-Za-z<>≤≥]", level)
    return float(match[1]) if match else None


def ordinal(level: str) -> float | None:
    """1st class, 2nd class; third rank stays with the words."""
    match = re.match(r"^\s*(\d{1,2})(?:st|nd|rd|th)\b", level.lower())
    return float(match[1]) if match else None


NUMBER = r"\$?\s*(\d[\d,]*\.?\d*)\s*k?"
UNIT = r"[a-z/%. ]*"
BETWEEN = re.compile(
    rf"^[\[(]?\s*(-?){NUMBER}\s*(?:-|–|to|,|;|\.\.)\s*(?:<|less than)?\s*{NUMBER}\s*[\])]?\s*({UNIT})$"  # noqa: RUF001
)
BELOW = re.compile(
    rf"^(?:<=?|≤|under|below|less than|lt|up to|fewer than|at most|no more than)\s*{NUMBER}\s*{UNIT}$"
)
SINGLE = re.compile(rf"^{NUMBER}\s*-?\s*{UNIT}$")
ABOVE = re.compile(
    rf"^(?:(?:>=?|≥|over|above|more than|gt|at least)\s*{NUMBER}\s*{UNIT}"
    rf"|{NUMBER}\s*(?:\+|plus|and over|and above|or more|and more|and older|or older)\s*{UNIT})$"
)


def interval(level: str) -> float | None:
    """The lower end of 25-34, <25, 65+, [0,10), 0-39 g/day."""
    text = level.strip().lower()
    if match := BETWEEN.match(text):
        low, high = number(match[2]), number(match[3])
        return (-low if match[1] else low) if high > low else None
    if match := BELOW.match(text):
        return number(match[1]) - 1e-6 - 1e9
    if match := ABOVE.match(text):
        return number(match[1] or match[2]) + 1e-6
    if match := SINGLE.match(text):
        return number(match[1])
    return None


def is_single(level: str) -> bool:
    """12 years, which has an order between <12 and 13-15 only; 50- has one, up to the next."""
    return SINGLE.match(level.strip().lower()) is not None and not level.strip().endswith("-")


def number(text: str) -> float:
    return float(text.replace(",", ""))
