"""What columns say about one another: codes, parts of time, rescalings, weights, shared missing codes."""

import numpy as np
import pandas as pd
import pytest

from kpod import TablePreparer, analyze
from kpod._columns.relations.same_information import same_information
from kpod._columns.relations.sums_of_columns import sums_of_columns
from kpod._common.errors import InputError

RNG = np.random.default_rng(0)
N = 240


def measured(n=N, **columns):
    return pd.DataFrame({"a": RNG.normal(size=n).round(3), "b": RNG.normal(size=n).round(3), **columns})


def kinds(preparer):
    return [note.kind for note in preparer.notes_]


def test_two_places_may_share_the_name_that_their_numbers_stand_for():
    numbers = RNG.choice(9000, 60, replace=False) + 10_000
    names = np.array([f"Peak {chr(65 + i % 26)}{chr(97 + i // 26)}" for i in range(60)])
    names[[7, 30]] = names[[3, 12]]
    at = RNG.integers(0, 60, 600)
    frame = measured(600, peak_name=names[at], peak_number=numbers[at])
    assert TablePreparer().fit(frame).roles_["peak_number"].role == "category"
    frame = measured(600, peak_name=names[at], peak_height=numbers[at])
    assert TablePreparer().fit(frame).roles_["peak_height"].used


PLACES = np.array(["Aarau", "Basel", "Chur", "Davos", "Egg", "Flums", "Glarus", "Horgen", "Ilanz", "Jona"])


@pytest.mark.parametrize(
    ("name", "numbers", "is_code"),
    [
        ("Place", np.arange(1, 11), True),  # counts up, named alike
        ("numeric", [12, 31, 76, 112, 156, 203, 276, 380, 616, 756], True),  # by the alphabet
        ("inhabitants", [21506, 171017, 35038, 10899, 8672, 4930, 12515, 22665, 4806, 26830], False),
        ("rooms", [4, 9, 2, 7, 5, 3, 1, 8, 6, 10], False),  # could be measured once a place
    ],
)
def test_a_number_for_each_name_is_a_code_if_more_speaks_for_it(name, numbers, is_code):
    at = RNG.integers(0, 10, N)
    frame = measured(place=PLACES[at], **{name: np.asarray(numbers)[at]})
    role = TablePreparer().fit(frame).roles_[name]
    assert role.used is not is_code
    assert (role.role == "category") is is_code


def test_numbers_of_an_order_are_not_codes():
    at = RNG.integers(0, 3, N)
    frame = measured(size=np.array(["small", "medium", "large"])[at], size_rank=at + 1)
    assert TablePreparer().fit(frame).roles_["size_rank"].used


def test_whole_numbers_that_never_repeat_were_given_out():
    frame = measured(memo=RNG.permutation(500)[:N] + 3, height=RNG.integers(1, 500, N))
    roles = TablePreparer().fit(frame).roles_
    assert roles["memo"].role == "identifier"
    frame.loc[7, "memo"] = frame.loc[8, "memo"]  # by mistake
    assert TablePreparer().fit(frame).roles_["memo"].role == "identifier"
    assert roles["height"].used
    ranks = TablePreparer().fit(measured(rank_2013=RNG.permutation(N) + 1)).roles_
    assert ranks["rank_2013"].used


@pytest.mark.parametrize(
    "name", ["year", "Year", "year_release", "release_year", "Année", "yr_start", "año", "Jahr", "STARTYEAR"]
)
def test_years_in_any_place_of_a_name_and_several_languages(name):
    frame = measured(**{name: RNG.integers(1990, 2021, N)})
    assert TablePreparer().fit(frame).roles_[name].role == "date"


def test_years_by_content_alone_are_pointed_out():
    preparer = TablePreparer().fit(measured(arrival=RNG.integers(1990, 2016, N)))
    assert [(note.kind, note.columns) for note in preparer.notes_] == [("years", ("arrival",))]


def test_parts_of_one_time_are_treated_alike():
    frame = measured(
        dep_hour=RNG.integers(0, 24, N), dep_minute=RNG.integers(0, 60, N), minute=RNG.integers(0, 60, N),
        seen_mo=RNG.integers(1, 13, N), seen_yr=RNG.integers(9, 18, N),
    )  # fmt: skip
    roles = TablePreparer().fit(frame).roles_
    assert [roles[name].role for name in ("dep_hour", "dep_minute", "seen_mo", "seen_yr")] == ["date"] * 4
    assert roles["minute"].used  # alone, it may be how long something took


def test_a_year_counted_from_another_year_is_no_measurement():
    year = RNG.integers(2007, 2020, N)
    roles = TablePreparer().fit(measured(year=year, t=year - 2007)).roles_
    assert not roles["t"].used
    assert roles["t"].why == "the same as year, rescaled"


@pytest.mark.parametrize(
    "rescaled",
    [
        lambda x: x * 2.54,
        lambda x: 100 - x,
        lambda x: (x * 3.28084).round(),
        lambda x: (x / 365.25).round(2),
        lambda x: x.where(np.arange(N) % 3 > 0),
    ],
)
def test_the_same_in_another_unit_counts_once(rescaled):
    frame = measured(x=pd.Series(RNG.integers(1000, 9000, N).astype(float)))
    frame["y"] = rescaled(frame["x"])
    preparer = TablePreparer().fit(frame)
    assert preparer.columns_ == ["a", "b", "x"]
    assert kinds(preparer) == ["same information"]
    both = TablePreparer(roles={"y": "number"}).fit(frame)
    assert both.columns_ == ["a", "b", "x", "y"]
    assert "count more than once" in both.notes_[0].text


@pytest.mark.parametrize("noise", [1e-3, 1.0])
def test_nearly_the_same_is_not_the_same(noise):
    x = RNG.normal(size=N) * 100
    y = 2 * x + noise * RNG.normal(size=N)
    assert same_information({"x": x, "y": y}) == []
    answers = {"p": RNG.integers(0, 2, N).astype(float)}
    assert same_information({**answers, "q": 1 - answers["p"]}) == []  # two answers are always each other's


def test_suspected_weights_are_never_clustered():
    frame = measured(weight=RNG.uniform(0.3, 1.7, N))
    preparer = TablePreparer().fit(frame)
    assert preparer.columns_ == ["a", "b"]
    assert kinds(preparer) == ["possible weights"]
    assert TablePreparer(roles={"weight": "number"}).fit(frame).columns_ == ["a", "b", "weight"]
    weighted = TablePreparer(weight="weight").fit(frame)
    assert (weighted.columns_, kinds(weighted)) == (["a", "b"], [])
    with pytest.raises(InputError, match="may be weights of the rows"):
        TablePreparer().fit(frame[["weight"]])


def test_a_code_that_many_columns_share_is_one_code():
    answers = {f"q{j}": RNG.choice([-1, 1, 2, 3, 4, 5], N, p=[0.6, *[0.08] * 5]) for j in range(8)}
    preparer = TablePreparer().fit(measured(**answers))
    (note,) = preparer.notes_
    assert (note.kind, note.columns, note.values["codes"]) == ("possible code", tuple(answers), ["-1"])
    changes = {f"d{j}": RNG.integers(-9, 10, N) for j in range(8)}
    assert kinds(TablePreparer().fit(measured(**changes))) == []


def test_one_column_left_is_said_first_with_the_command_that_uses_more():
    kind = RNG.choice(["x", "y", "z"], N)
    analysis = analyze(pd.DataFrame({"a": RNG.normal(size=N), "kind": kind}), 2)
    lines = str(analysis).splitlines()
    first = next(line for line in lines if line.startswith("note: "))
    assert "only one column is clustered, a: its clusters are ranges of that column" in first
    assert "categories='all'" in first
    assert lines.index(first) < next(j for j, line in enumerate(lines) if line.startswith("  cluster 0"))
    assert "few columns" not in [
        note.kind
        for note in analyze(pd.DataFrame({"a": RNG.normal(size=N), "kind": kind}), 2, columns=["a"]).notes
    ]


def test_a_long_table_comes_with_the_command_that_pivots_it():
    places, foods = [f"place {i}" for i in range(30)], ["rice", "beef", "fish", "eggs"]
    frame = pd.DataFrame(
        [(place, food, RNG.normal()) for place in places for food in foods], columns=["place", "food", "kg"]
    )
    note = TablePreparer().fit(frame).notes_[0]
    assert note.values["long"] == ["place", "food"]
    assert "rows='place', items='food', values='kg'" in note.text
    pivoted = analyze(frame, 2, rows="place", items="food", values="kg")
    assert len(pivoted.labels) == 30


@pytest.mark.parametrize(("name", "used"), [("ISTAT", False), ("rank", True)])
def test_a_number_for_each_of_many_names_is_a_code_but_for_ranks(name, used):
    """Two regions may share a number."""
    regions = np.array([f"r{i:02d}" for i in RNG.permutation(20)])
    at = RNG.integers(0, 20, N)
    numbers = RNG.permutation([*range(1, 20), 4])
    role = TablePreparer().fit(measured(region=regions[at], **{name: numbers[at]})).roles_[name]
    assert role.used is used


def test_totals_are_found_with_their_parts():
    parts = {
        name: np.round(RNG.gamma(2, 30, N), digits)
        for name, digits in (("a", 0), ("b", 1), ("c", 0), ("d", 2))
    }
    columns = {**parts, "sub": parts["a"] + parts["b"], "total": parts["a"] + parts["b"] + parts["c"]}
    assert sums_of_columns(columns) == {"sub": ["a", "b"], "total": ["c", "sub"]}
    assert sums_of_columns({**parts, "mean": (parts["a"] + parts["b"]) / 2}) == {}
    assert sums_of_columns({**parts, "nearly": parts["a"] + parts["b"] + RNG.normal(0, 1, N)}) == {}
    rounded = np.round(parts["b"] + parts["d"], 0)
    assert sums_of_columns({**parts, "rounded": rounded}) == {"rounded": ["b", "d"]}
    assert sums_of_columns({name: values[:12] for name, values in columns.items()}) == {}


def test_a_total_beside_its_parts_is_noted_with_the_option_that_leaves_it_out():
    frame = measured(hp=RNG.integers(1, 99, N), attack=RNG.integers(1, 99, N))
    frame["total"] = frame["hp"] + frame["attack"]
    (note,) = [note for note in TablePreparer().fit(frame).notes_ if note.kind == "sum of columns"]
    assert note.columns == ("total", "hp", "attack")
    assert note.text == (
        "total is the sum of hp and attack, so these count a second time; use exclude='total' to count them "
        "once."
    )
