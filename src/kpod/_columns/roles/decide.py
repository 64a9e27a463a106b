"""What a column is to a clustering: a measurement, a label, an identifier, a date, a code.

Decided from the column's name and its content, with the reason in plain words. Whoever decides
otherwise says so (`--as COLUMN=ROLE`); nothing here changes a value. A new role is decided in this folder;
`preparing/columns_in_use.py` says which roles are used.
"""

from __future__ import annotations

import numpy as np

from kpod._columns.roles.calendar import calendar, year_note
from kpod._columns.roles.codes import coded_category, identifier, postcodes
from kpod._columns.roles.column_facts import Contents, Facts, Role, observed_sample
from kpod._columns.roles.heading_words import QUANTITIES
from kpod._columns.roles.suspected_codes import code_notes
from kpod._columns.roles.text_roles import ALL_THE_SAME, role_of_text
from kpod._common.notes import Note


def role_of(contents: Contents) -> Role:
    """The role of a column."""
    if contents.declared == "boolean":
        same = contents.numbers is not None and contents.all_numbers.is_constant
        return Role("constant", ALL_THE_SAME) if same else Role("boolean", "true or false")
    if contents.declared == "date":
        return Role("date", "dates")
    if contents.numbers is not None:
        return role_of_numbers(contents)
    return role_of_text(contents)


SAMPLE_WEIGHTS = {
    "pweight",
    "pweights",
    "sampwt",
    "svywt",
    "finalwt",
    "wtfinl",
    "survwt",
    "wtssall",
    "perwt",
    "hhwt",
}


def role_of_numbers(c: Contents) -> Role:
    numbers = c.numbers
    assert numbers is not None
    first = observed_sample(c.as_read if c.as_read is not None else numbers)
    values = observed_sample(numbers)
    if not len(values):
        return Role("empty", "nothing observed")
    facts = Facts(c.name, c.n_rows, values, len(values) / max(1, len(first)))
    read = Facts(c.name, c.n_rows, first) if c.as_read is not None else facts
    if facts.n_distinct == 1 and len(values) > 1 and not np.isinf(numbers).any():
        return Role("constant", ALL_THE_SAME)
    found = calendar(read) or postcodes(facts)
    found = found or identifier(read, c.all_numbers, c.leading_zeros)
    found = found or coded_category(facts, c.leading_zeros)
    if found:
        return found
    notes = tuple(
        note
        for note in (year_note(facts), coordinate_note(facts), weight_note(facts), *code_notes(facts))
        if note
    )
    if facts.is_two_valued:
        low, high = facts.distinct
        return Role("boolean", f"two values, {low:g} and {high:g}", notes)
    return Role("number", "whole numbers" if facts.whole else "numbers", notes)


def coordinate_note(facts: Facts) -> Note | None:
    names = {"lat", "latitude", "lon", "lng", "long", "longitude"}
    words = set(facts.tokens) & names
    other = set(facts.tokens) & QUANTITIES  # hisp_lat_pct is a share
    if words and not other and facts.low >= -180 and facts.high <= 360 and not facts.whole:
        return Note("coordinates", (facts.name,))
    return None


def weight_note(facts: Facts) -> Note | None:
    """On weights of a sample, which average 1 as a rule; other weights are those of bodies and parcels."""
    words = set(facts.tokens)
    sampling = "".join(facts.tokens) in SAMPLE_WEIGHTS
    named = sampling or bool(words & {"wt", "wgt", "weight", "weights", "poids", "gewicht", "peso"})
    about_one = facts.low >= 0 and not facts.whole and 0.8 <= facts.values.mean() <= 1.25
    if named and (about_one or (sampling and facts.low >= 0 and facts.n_distinct > 2)):
        return Note("possible weights", (facts.name,))
    return None
