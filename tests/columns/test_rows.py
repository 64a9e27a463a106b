"""Rows that are no single thing: copies, sums, several of one individual; and the options that mend it."""

import numpy as np
import pandas as pd
import pytest

from kpod import TablePreparer, analyze
from kpod._columns.preparing.frames import table_of
from kpod._columns.rows.aggregates import sums_of_others
from kpod._columns.rows.identical_rows import copies
from kpod._columns.rows.rows_in_use import arrange_rows
from kpod._common.errors import InputError
from tests.helpers.command import kpod as command

RNG = np.random.default_rng(0)
COUNTRIES = [f"Land {i:02d}" for i in range(40)]


def notes_of(frame, **options):
    return {note.kind: note for note in TablePreparer(**options).fit(frame).notes_}


def flat():
    return pd.DataFrame(
        {"country": COUNTRIES, **{name: RNG.lognormal(3, 1, 40).round(2) for name in ("coal", "gas", "oil")}}
    )  # fmt: skip


def panel():
    rows = [(country, year) for country in COUNTRIES for year in range(2000, 2006)]
    frame = pd.DataFrame(rows, columns=["country", "year"])
    level = RNG.lognormal(3, 1, 40).repeat(6)
    for name in ("coal", "gas"):
        frame[name] = (level * RNG.lognormal(0, 0.1, len(frame))).round(2)
    return frame


def with_sum(frame, name, by=None):
    numbers = [column for column in frame if frame[column].dtype.kind == "f"]
    if by is None:
        total = pd.DataFrame([{"country": name, **frame[numbers].sum()}])
    else:
        total = frame.groupby(by, as_index=False)[numbers].sum().assign(country=name)
    return pd.concat([total, frame], ignore_index=True)


@pytest.mark.parametrize("name", ["World", "Everything we have"])
def test_a_row_that_is_the_sum_of_all_others_is_found_by_arithmetic(name):
    note = notes_of(with_sum(flat(), name))["aggregate rows"]
    assert (note.columns, note.values) == (("country",), {"levels": [name], "n": 1, "sums": [name]})
    note = notes_of(with_sum(panel(), name, "year"))["aggregate rows"]
    assert (note.columns, note.values) == (("country",), {"levels": [name], "n": 6, "sums": [name]})


def test_a_title_that_sounds_like_a_sum_is_none_where_others_have_gaps_as_well():
    frame = flat().assign(title=[f"Ode {i}" for i in range(40)], code=[f"c{i}" for i in range(40)])
    frame.loc[3, "title"] = "Total Eclipse"
    frame.loc[[3, 7, 12, 20, 31], "code"] = None
    assert "aggregate rows" not in notes_of(frame)
    frame.loc[3, "title"] = "World"
    frame.loc[[7, 12], "title"] = ["Northern Africa", "High income"]
    note = notes_of(frame)["aggregate rows"]
    assert note.values["levels"] == ["World", "Northern Africa", "High income"]


def test_a_sum_in_one_of_many_years_is_chance():
    songs = pd.DataFrame({
        "song": [f"Ode {i}" for i in range(200)],
        "year": np.repeat(range(1970, 2020), 4),
        **{name: RNG.integers(1, 90, 200) for name in ("plays", "sold", "aired")},
    })  # fmt: skip
    numbers = ["plays", "sold", "aired"]
    songs.loc[7, numbers] = songs.loc[4:6, numbers].sum()
    assert "aggregate rows" not in notes_of(songs)


def test_a_sum_within_each_kind_is_found():
    kinds = [panel().assign(kind=kind) for kind in ("kegs", "cans")]
    frame = pd.concat([with_sum(part, "total", "year").assign(kind=part["kind"].iloc[0]) for part in kinds])
    assert notes_of(frame)["aggregate rows"].values == {"levels": ["total"], "n": 12, "sums": ["total"]}


def test_small_numbers_that_happen_to_add_up_are_no_sums():
    frame = pd.DataFrame({"name": [f"n{i} x" for i in range(60)], "hits": RNG.choice([0, 0, 0, 1, 2, 3], 60)})
    frame["day"] = np.repeat(pd.date_range("2024-01-01", periods=10).astype(str), 6)
    frame["name"] = frame["name"].where(np.arange(60) % 6 > 0, "star")
    assert "aggregate rows" not in notes_of(frame, columns=["hits"])


def test_countries_are_no_regions():
    frame = flat().assign(code=lambda t: t["country"].str[-2:])
    names = ["South Africa", "Central African Republic", "North Macedonia", "South Korea"]
    frame.loc[:3, "country"], frame.loc[:3, "code"] = names, None
    assert "aggregate rows" not in notes_of(frame)


def test_a_sum_with_its_parts_beside_it_is_found():
    frame = flat()
    parts = [with_sum(frame[:15], "North"), with_sum(frame[15:], "South")]
    both = pd.concat([part[:1] for part in parts])
    frame = with_sum(pd.concat([both, frame]), "World")
    frame.iloc[0, 1:] = frame.iloc[0, 1:] / 2
    assert "World" in notes_of(frame)["aggregate rows"].values["sums"]


def test_a_mean_row_is_found_and_a_large_row_is_not():
    frame = flat()
    mean = pd.DataFrame([{"country": "typical", **frame.iloc[:, 1:].mean()}])
    assert notes_of(pd.concat([frame, mean]))["aggregate rows"].values["sums"] == ["typical"]
    frame.iloc[7, 1:] *= 20
    assert "aggregate rows" not in notes_of(frame)


def test_names_need_something_beside_them():
    frame = flat()
    frame["code"] = [name[-2:] for name in frame["country"]]
    assert "aggregate rows" not in notes_of(frame.replace({"country": {"Land 03": "Europe"}}))
    regions = {"Land 03": "Europe", "Land 04": "Asia", "Land 05": "High income"}
    note = notes_of(frame.replace({"country": regions}))["aggregate rows"]
    assert note.values["levels"] == ["Europe", "Asia", "High income"]
    assert "may be sums of other rows" in note.text
    frame.loc[3, "code"] = None  # which all others have
    assert notes_of(frame.replace({"country": {"Land 03": "Europe"}}))["aggregate rows"].values["n"] == 1


def test_titles_that_sound_like_sums_are_no_sums():
    """Among many titles a few begin with All, Total or World."""
    titles = [f"A film, number {i}" for i in range(400)]
    titles[::80] = ["All About Eve", "Total Recall", "All the King's Men", "World War Z", "All or Nothing"]
    frame = pd.DataFrame({"title": titles, "budget": RNG.lognormal(3, 1, 400), "votes": RNG.normal(size=400)})
    assert "aggregate rows" not in notes_of(frame)


def test_copies_are_those_of_pandas():
    frame = pd.DataFrame(
        {"a": RNG.integers(0, 3, 300) * 0.5, "b": RNG.integers(0, 3, 300), "t": RNG.choice(list("xyz"), 300)}
    )
    frame.loc[RNG.random(300) < 0.2, "a"] = np.nan
    frame.loc[RNG.random(300) < 0.2, "t"] = None
    np.testing.assert_array_equal(copies(table_of(frame)), frame.duplicated())
    counted = frame.assign(row=np.arange(300))
    np.testing.assert_array_equal(copies(table_of(counted)), frame.duplicated())


def test_copies_are_counted():
    frame = pd.concat([flat(), flat()[:0]])
    frame = pd.concat([frame, frame.iloc[[3, 3, 8]]], ignore_index=True)
    assert notes_of(frame)["duplicate rows"].text.startswith("3 rows are copies of others in all columns")
    kept = analyze(frame, 2, drop_rows="duplicates")
    assert len(kept.labels) == 40
    assert "duplicate rows" not in [note.kind for note in kept.notes]
    np.testing.assert_array_equal(kept.labels, analyze(frame[:40], 2).labels)
    few = pd.DataFrame({"yes": RNG.integers(0, 2, 60), "score": RNG.integers(0, 4, 60)})
    assert "duplicate rows" not in notes_of(few)  # nearly all rows are


def test_repeated_individuals_without_time():
    grades = pd.DataFrame([(c, g) for c in COUNTRIES for g in "ABCD"], columns=["city", "grade"])
    grades["x"] = RNG.normal(size=160)
    grades["y"] = RNG.normal(size=160)
    note = notes_of(grades)["one row for each"]
    assert note.columns == ("city", "grade")
    assert "one_row_per='city'" in note.text
    visits = pd.DataFrame({"patient": RNG.choice(COUNTRIES, 200)})
    means = dict(zip(COUNTRIES, RNG.normal(size=40), strict=True))
    for name in "xy":
        visits[name] = visits["patient"].map(means) + 0.3 * RNG.normal(size=200)
    assert notes_of(visits)["repeated units"].columns == ("patient",)
    visits["patient"] = RNG.permutation(visits["patient"])  # whose rows are not alike
    assert "repeated units" not in notes_of(visits)


@pytest.mark.parametrize("how", ["mean", "last", "change"])
def test_one_row_per_individual(how):
    frame = panel().sample(frac=1, random_state=0)
    frame.loc[frame.index[5], "coal"] = np.nan
    analysis = analyze(frame, 2, one_row_per="country", combine=how)
    groups = frame.sort_values("year").groupby("country", sort=False)[["coal", "gas"]]
    expected = {
        "mean": groups.mean,
        "last": groups.last,
        "change": lambda: groups.last() - groups.first(),
    }[how]()
    found = analysis.frame.set_index("country").loc[expected.index, ["coal", "gas"]].astype(float)
    np.testing.assert_allclose(found, expected)
    assert len(analysis.labels) == 40
    note = next(note for note in analysis.notes if note.kind == "rows combined")
    assert note.text.startswith("240 rows were combined into 40, one for each country")
    assert "one row for each" not in [note.kind for note in analysis.notes]


def test_numbers_that_start_again_in_each_group_are_no_individuals():
    """Sample 1 of one species has nothing in common with sample 1 of another."""
    sizes = {"a": 50, "b": 30, "c": 40}
    rows = [(number, group) for group, n in sizes.items() for number in range(1, n + 1)]
    frame = pd.DataFrame(rows, columns=["Sample Number", "species"])
    level = frame["species"].map({"a": 0.0, "b": 4.0, "c": 8.0})
    for name in "xy":
        frame[name] = level + RNG.normal(size=120)
    assert "one row for each" not in notes_of(frame)


def test_of_a_table_in_pieces_no_individuals_are_offered_to_be_combined(tmp_path):
    """The option would be refused there."""
    panel().to_csv(tmp_path / "whole.csv", index=False)
    for half, rows in enumerate(np.array_split(np.arange(240), 2)):
        panel().iloc[rows].to_csv(tmp_path / f"part-{half}.csv", index=False)
    for files, scratch, offered in (
        ("whole.csv", None, True), ("part-*.csv", None, True), ("part-*.csv", tmp_path, False)
    ):  # fmt: skip
        analysis = analyze(str(tmp_path / files), 2, shape="round", verdict=False, scratch=scratch)
        note = next(note for note in analysis.notes if note.kind in ("one row for each", "rows in time"))
        assert ("one_row_per='country'" in note.text) is offered


def test_other_columns_keep_what_rows_have_in_common():
    frame = panel().assign(region=lambda t: t["country"].str[-1], mood=RNG.choice(list("ab"), 240))
    combined = arrange_rows(table_of(frame), one_row_per="country")
    region = combined.raw["region"].to_pylist()
    assert region == [country[-1] for country in combined.raw["country"].to_pylist()]
    assert set(combined.raw["mood"].to_pylist()) <= {"a", "b", None}
    assert None in combined.raw["mood"].to_pylist()


def test_rows_by_their_values():
    frame = with_sum(panel(), "World", "year")
    both = [
        analyze(frame, 2, drop_rows=how) for how in ("aggregates", {"country": ["Wor*"]}, ["country=World"])
    ]
    for analysis in both:
        assert len(analysis.labels) == 240
        np.testing.assert_array_equal(analysis.labels, both[0].labels)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"drop_rows": "copies"}, r"drop_rows='copies': expected duplicates, aggregates, or a column"),
        ({"drop_rows": {"country": ["Mars"]}}, "column 'country' of X has no value 'Mars'"),
        ({"drop_rows": {"county": ["x"]}}, "there is no column 'county'; did you mean 'country'"),
        ({"drop_rows": {"country": ["*"]}}, "leaves no rows"),
        ({"one_row_per": "county"}, "there is no column 'county'"),
        ({"one_row_per": "country", "combine": "median"}, "expected one of mean, last, change"),
    ],
)
def test_what_cannot_be_done_is_said(options, message):
    with pytest.raises(InputError, match=message):
        analyze(flat(), 2, **options)


def test_the_command_line_does_the_same(monkeypatch, tmp_path):
    frame = with_sum(panel(), "World", "year")
    frame.to_csv(tmp_path / "t.csv", index=False)
    done = command(monkeypatch, "fit", tmp_path / "t.csv", "-k", 2)
    said = " ".join(done.err.split())
    assert "leave them out with --drop-rows aggregates" in said
    assert "use --one-row-per country" in said
    options = ("--drop-rows", "aggregates", "--one-row-per", "country", "--combine", "last")
    done = command(monkeypatch, "fit", tmp_path / "t.csv", "-k", 2, *options, "-o", tmp_path / "o.csv")
    assert done.code == 0, done.err
    written = pd.read_csv(tmp_path / "o.csv")
    analysis = analyze(tmp_path / "t.csv", 2, drop_rows="aggregates", one_row_per="country", combine="last")
    np.testing.assert_array_equal(written["cluster"], analysis.labels)
    assert list(written["country"]) == COUNTRIES
    np.testing.assert_allclose(written["coal"], frame[frame["year"] == 2005]["coal"][1:])


def test_rows_of_nobody_are_counted_when_rows_are_combined():
    frame = panel()
    frame.loc[frame.index[:3], "country"] = None
    analysis = analyze(frame, 2, one_row_per="country", verdict=False)
    (note,) = (note for note in analysis.notes if note.kind == "rows combined")
    assert note.values["n_without"] == 3
    assert "3" in note.text


def test_two_rows_are_not_each_others_sum():
    """Of so few others, every equal pair would be one."""
    times = np.repeat(np.arange(10), 2)
    found, seen = sums_of_others(np.repeat(RNG.uniform(1, 9, (10, 4)), 2, axis=0), times)
    assert not found.any()
    assert not seen.any()


def test_regions_with_many_rows_each_are_no_sums():
    """A region that says where something lies is not a row that adds up others."""
    rng = np.random.default_rng(0)
    regions = [
        "Western Asia",
        "Western Europe",
        "South America",
        "Melanesia",
        "Kamchatka",
        "Alaska",
        "Antarctica",
    ]
    places = [*regions, "Iceland", "Azores", "Hawaii", "Cascades", "Andes", "Tonga"]
    frame = pd.DataFrame({"region": np.repeat(places, 12), "height": rng.normal(2000, 500, 156).round()})
    assert "aggregate rows" not in notes_of(frame.assign(width=rng.normal(9, 2, 156).round(2)))
