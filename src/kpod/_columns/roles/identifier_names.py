"""Identifiers by their names: patientID, Customer No, BibNum, Invoice #."""

from __future__ import annotations

import numpy as np

from kpod._columns.roles.column_facts import Facts, tokens
from kpod._columns.roles.heading_words import (
    CODES,
    GROUPS,
    HOW_MANY,
    IDS,
    NO_IDS,
    NOT_FIRST,
    NOUN_AND_ID,
    NOUN_AND_NUMBER,
    REGISTERS,
    UNITS,
)


def names_a_unit(name: str) -> bool:
    """Whether by its name the column identifies who or what was measured."""
    words = tokens(name)
    return bool(words) and (words[-1] in IDS | UNITS | GROUPS or bool(NOUN_AND_ID.match("".join(words))))


def is_noun_and_id(word: str) -> bool:
    return bool(NOUN_AND_ID.match(word)) and not word.startswith("provide")


def ends_in_id(word: str) -> bool:
    return len(word) > 2 and word.endswith("id") and not word.endswith(NO_IDS)


def is_named_id(facts: Facts) -> bool:
    """Names that are identifiers whatever the numbers; decimals are something else (an inner diameter)."""
    words = facts.tokens
    if not words or (facts.is_two_valued and facts.low == 0):
        return False
    if words[0] == "pid" and facts.n_distinct <= 10 <= facts.counts.mean():
        return False  # party identification, a scale
    if words[0] == "sid" and len(words) == 2 and words[1].isdigit():
        return False  # sudden infant deaths of a year
    joined = "".join(words)
    strong = words[-1] in IDS or words[0] in IDS - NOT_FIRST or any(map(is_noun_and_id, words))
    strong = strong or (
        facts.name.rstrip().endswith("#") and facts.n_distinct > 2
    )  # Invoice #, not # of rooms
    if strong or NOUN_AND_NUMBER.match(joined) or (words[-1] in UNITS and not facts.is_quantity):
        return True
    letters = [word for word in words if not word.isdigit()]
    ending = letters[-1] if letters else ""
    many = facts.n_distinct > 30
    unique = facts.is_unique and len(facts.values) >= 20
    some_id = facts.n_distinct >= 10 and any(map(ends_in_id, letters if unique else letters[-1:]))
    coded_group = len(words) > 1 and words[-2] in GROUPS and facts.n_distinct >= 10
    code = (ending.endswith(("code", "codes")) or words[0] in CODES) and (many or coded_group)
    numbered = (
        ending.endswith("num")
        and len(ending) > 4
        and not ending.endswith(("inum", "ernum", "agnum"))
        and many
    )
    numbered = numbered or is_register_number(facts)
    counted = (
        ending in ("index", "idx") and facts.low in (0, 1) and facts.density > 0.9 and facts.n_distinct >= 20
    )
    return some_id or code or numbered or counted


LONG = 1e5


def is_register_number(facts: Facts) -> bool:
    """Long numbers that hardly repeat, under a name such as BibNum; and Nº Orden."""
    words = facts.tokens
    if len(words) != 2:
        return False
    long = words[1] in HOW_MANY and float(np.median(facts.values)) >= LONG
    unique = facts.n_distinct >= 0.95 * len(facts.values) and len(facts.values) >= 20
    return (long and unique and not facts.is_quantity) or (words[0] in HOW_MANY and words[1] in REGISTERS)
