"""Rules that real tables asked for which nobody had seen before: each is what a careful reader expected."""

import json
import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import kpod
from kpod import TablePreparer
from kpod._columns.rows.row_names import RowNames
from kpod._columns.table_notes import odd_notes
from kpod._files.reading import read_table
from kpod._files.writing import format_of
from kpod._findings.cluster_shapes import ShapeChoice
from kpod._mixture.roundness import Roundness
from kpod._mixture.skewness import gain_of_transforms
from kpod.missingness import diagnose
from tests.conftest import FIRST_SEED

RNG = np.random.default_rng(FIRST_SEED)


def measured(n, seed=0):
    """Two columns that nobody takes for anything but measurements."""
    rng = np.random.default_rng((FIRST_SEED, seed))
    return {"height_cm": rng.normal(170, 9, n).round(1), "pulse": rng.normal(70, 8, n).round(2)}


def prepared(table, tmp_path=None):
    preparer = TablePreparer()
    if tmp_path is not None:
        path = tmp_path / "t.csv"
        table.to_csv(path, index=False)
        table = kpod.read(path)
    preparer.fit(table)
    roles = {one.column: one for one in preparer.roles_}
    return preparer, roles


def notes_of(preparer, kind):
    return [note for note in preparer.notes_ if note.kind == kind]


def read(tmp_path, text, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_table(str(path))


# Roles


def test_matched_pairs_are_labels():
    pairs = np.repeat(np.arange(1, 41), 2)
    RNG.shuffle(pairs)
    table = pd.DataFrame({"matched_set": pairs, **measured(80)})
    assert prepared(table)[1]["matched_set"].role == "identifier"
    table["matched_set"] = np.r_[pairs[:-1], 7]  # one of them in three rows: a count may be so
    assert prepared(table)[1]["matched_set"].role == "number"


def test_codes_of_two_digits_are_categories():
    locale = RNG.choice([11, 12, 13, 21, 22, 23, 31, 32, 33, 41, 42, 43], 300)
    score = RNG.choice([10, 15, 20, 25, 30, 35], 300)
    roles = prepared(pd.DataFrame({"locale": locale, "score": score, **measured(300)}))[1]
    assert roles["locale"].role == "category"
    assert roles["score"].role == "number"


def test_numbers_of_rows_within_a_group_are_not_measured(tmp_path):
    sizes = [4, 6, 3, 5, 7, 9]
    season = np.repeat([f"Season {chr(65 + i)}" for i in range(6)], sizes)
    episode = np.concatenate([np.arange(1, n + 1) for n in sizes])
    table = pd.DataFrame({"season": season, "part": episode, **measured(len(season))})
    role = prepared(table, tmp_path)[1]["part"]
    assert (role.role, role.why) == ("identifier", "numbers the rows of each season")
    table.loc[3, "part"] = 9
    assert prepared(table, tmp_path)[1]["part"].role == "number"


def test_the_month_of_birth_is_no_quantity():
    months = np.r_[np.arange(1, 13), RNG.integers(1, 13, 88)]
    years = RNG.integers(1950, 2000, 100)
    roles = prepared(pd.DataFrame({"birth_month": months, "birth_year": years, **measured(100)}))[1]
    assert not roles["birth_month"].used
    assert roles["birth_year"].used


def test_a_count_of_individus_is_a_count():
    counts = RNG.poisson(40, 100)
    assert prepared(pd.DataFrame({"nb_individu": counts, **measured(100)}))[1]["nb_individu"].role == "number"


def test_a_column_filled_once_is_no_check_box(tmp_path):
    table = pd.DataFrame({"moved": [""] * 251 + ["moved"], **measured(252)})
    assert not prepared(table, tmp_path)[1]["moved"].used
    table["moved"] = ["moved"] * 20 + [""] * 232
    assert prepared(table, tmp_path)[1]["moved"].used


def test_a_column_observed_only_in_late_rows_is_read(tmp_path):
    n = 20_050  # beyond the rows that are compared with names
    table = pd.DataFrame(
        {
            "contest": [f"team {i % 40}" for i in range(n)],
            "p7": [""] * (n - 30) + list(map(str, RNG.integers(0, 9, 30))),
            **measured(n),
        }
    )
    assert prepared(table, tmp_path)[1]["p7"].role == "number"


# Cells


def test_ratios_to_one_are_numbers(tmp_path):
    ratios = [f"{value:.1f} to 1" for value in RNG.normal(15, 3, 50)]
    table = read(tmp_path, pd.DataFrame({"students": ratios, **measured(50)}).to_csv(index=False))
    np.testing.assert_allclose(table.numbers("students"), [float(text.split()[0]) for text in ratios])


@pytest.mark.parametrize("mark", ["inf", "-inf", "Infinity"])
def test_a_few_infinities_in_text_are_gaps_that_are_counted(tmp_path, mark):
    table = pd.DataFrame(measured(40)).astype(str)
    table.loc[[5, 9], "pulse"] = mark
    found = read(tmp_path, table.to_csv(index=False))
    assert np.flatnonzero(np.isnan(found.numbers("pulse"))).tolist() == [5, 9]
    assert found.column("pulse").n_odd == 2
    (note,) = odd_notes(found, found.column("pulse"))
    assert note.values["where"] == "line 7"


def test_na_is_a_code_among_codes_of_two_letters(tmp_path):
    continents = RNG.choice(["AF", "AS", "EU", "NA", "OC", "SA"], 60)
    rows = [
        {"continent": str(code), "size": float(size)}
        for code, size in zip(continents, RNG.normal(9, 2, 60), strict=True)
    ]
    table = read(tmp_path, json.dumps(rows), "t.json")
    assert table.column("continent").missing == 0
    assert [note.kind for note in table.notes] == ["taken as a category"]
    rows[3]["size"] = "NA"  # who writes gaps like that does it everywhere
    table = read(tmp_path, json.dumps(rows), "t.json")
    assert table.column("continent").missing == (continents == "NA").sum()


# Headings and lines


@pytest.mark.parametrize("field", ["2024-01-{:02d}", "https://example.org/{}"])
def test_a_first_line_with_a_date_or_an_address_is_data(tmp_path, field):
    lines = [f"name {i},{i * 1.5},{field.format(i)},{(i * 7) % 5}" for i in range(1, 25)]
    table = read(tmp_path, "\n".join(lines) + "\n")
    assert table.n_rows == 24
    assert "no headings" in [note.kind for note in table.notes]
    table = read(tmp_path, "what,size,when,score\n" + "\n".join(lines) + "\n")
    assert table.raw.column_names == ["what", "size", "when", "score"]


def test_dates_above_numbers_are_headings(tmp_path):
    lines = ["place,2024-01-01,2024-01-02", *(f"p{i},{i * 3 % 7},{i}" for i in range(20))]
    assert read(tmp_path, "\n".join(lines)).raw.column_names[1] == "2024-01-01"


def test_a_title_above_two_columns_and_carriage_returns_alone(tmp_path):
    lines = ["Search interest in players,", "Player,Interest", *(f"player {i},{i * 3.7}" for i in range(30))]
    for end in ("\n", "\r", "\r\n"):
        table = read(tmp_path, end.join(lines) + end)
        assert table.raw.column_names == ["Player", "Interest"]
        assert table.n_rows == 30


def test_titles_above_years(tmp_path):
    years = [str(year) for year in range(1981, 1991)]
    rows = [",".join([f'"Cause {i}"', *(f"{i + j / 10}" for j in range(10))]) for i in range(20)]
    table = read(tmp_path, "\n".join(["Measure - Rates", "Sex - All", "", "Year," + ",".join(years), *rows]))
    assert table.raw.column_names == ["Year", *years]
    assert table.n_rows == 20


def test_most_lines_may_be_short_if_they_hold_what_whole_lines_hold(tmp_path):
    lines = [
        f"2020-01-{i % 28 + 1:02d},{i},{i * 1.5},clear{',storm' if i % 20 == 0 else ''}" for i in range(300)
    ]
    table = read(tmp_path, "\n".join(["day,rides,miles,sky,event", *lines]) + "\n")
    assert table.column("event").missing == sum(i % 20 != 0 for i in range(300))
    swapped = [
        line if i % 20 == 0 else f"clear,2020-01-{i % 28 + 1:02d},{i},{i * 1.5}"
        for i, line in enumerate(lines)
    ]
    with pytest.raises(ValueError, match="fields"):
        read(tmp_path, "\n".join(["day,rides,miles,sky,event", *swapped]) + "\n")


# Notes


def test_a_rank_beside_its_score_is_named():
    rng = np.random.default_rng(FIRST_SEED)
    score = rng.normal(50, 10, 120).round(3)
    table = pd.DataFrame({"score": score, "place": (-score).argsort().argsort() + 1, **measured(120)})
    (note,) = notes_of(prepared(table)[0], "nearly the same")
    assert note.columns == ("score", "place")
    assert "several times: score and place; use exclude=['place'] to count once" in note.text
    table["place"] = rng.permutation(table["place"])
    assert not notes_of(prepared(table)[0], "nearly the same")


def test_gaps_do_not_make_columns_the_same():
    rng = np.random.default_rng(FIRST_SEED)
    table = pd.DataFrame(rng.normal(size=(200, 4)), columns=list("abcd")).mask(rng.random((200, 4)) < 0.4)
    assert not notes_of(prepared(table)[0], "nearly the same")
    table["e"] = np.exp(table["a"])
    (note,) = notes_of(prepared(table)[0], "nearly the same")
    assert note.columns == ("a", "e")


def test_a_scale_that_runs_below_zero_has_no_code_there():
    rng = np.random.default_rng(FIRST_SEED)
    saves = {
        f"{name}_save": rng.integers(low, 13, 330) for name, low in (("con", -1), ("dex", -5), ("wis", -4))
    }
    table = pd.DataFrame({**saves, **measured(330)})
    table["con_save"] = np.where(rng.random(330) < 0.04, -1, rng.integers(1, 16, 330))
    assert not notes_of(prepared(table)[0], "possible code")
    alone = table[["con_save", "height_cm", "pulse"]]
    assert notes_of(prepared(alone)[0], "possible code")


def test_one_row_per_group_is_not_offered_where_rows_have_names():
    rng = np.random.default_rng(FIRST_SEED)
    country = np.repeat([f"Country {i}" for i in range(30)], 4)
    level = rng.normal(size=30)
    table = pd.DataFrame(
        {
            "country": country,
            "gdp": np.repeat(level, 4) + rng.normal(size=120) / 10,
            "rate": np.repeat(level, 4) ** 2 + rng.normal(size=120) / 10,
        }
    )
    assert notes_of(prepared(table)[0], "repeated units")
    table.insert(0, "winner", [f"Winner {chr(65 + i % 26)}{chr(97 + i // 26)}" for i in range(120)])
    assert not notes_of(prepared(table)[0], "repeated units")


def test_a_share_of_latin_americans_is_no_latitude():
    shares = RNG.uniform(0, 30, 60).round(2)
    table = pd.DataFrame({"hisp_lat_pct": shares, **measured(60)})
    assert not notes_of(prepared(table)[0], "coordinates")
    assert notes_of(prepared(table.rename(columns={"hisp_lat_pct": "site_lat"}))[0], "coordinates")


# What is said and done with them


def test_two_values_cannot_be_skewed():
    x = np.repeat([0.0, 1.0], [180, 20])
    labels = RNG.integers(2, size=200)
    assert gain_of_transforms(x[:, None], labels, np.ones(200)) == 0
    tailed = np.exp(RNG.normal(size=(200, 1)))
    assert gain_of_transforms(tailed, labels, np.ones(200)) > 0.1


def test_a_device_needs_no_ending(tmp_path):
    assert format_of(os.devnull) == "csv"
    with pytest.raises(ValueError, match="cannot tell the format"):
        format_of(str(tmp_path / "clusters"))


@pytest.mark.parametrize("refused", [False, True])
def test_no_mixture_is_advised_where_one_was_refused(refused):
    table = pd.DataFrame(np.random.default_rng(FIRST_SEED).standard_t(2, size=(300, 4)), columns=list("abcd"))
    analysis = kpod.analyze(table, 3, shape="round", verdict=False)
    assert analysis.confidence is not None
    shape = ShapeChoice("round", "heavy tails", "full") if refused else None
    analysis.shape = shape
    analysis._clustering.__dict__["roundness"] = Roundness(True, False, 0.2)
    (note,) = [note for note in analysis.cautions if note.kind == "clusters that are not round"]
    assert ("GaussianMixture" in note.text) != refused


def test_littles_test_says_nothing_of_single_rows():
    X = np.random.default_rng(FIRST_SEED).normal(size=(200, 4))
    X[3, 1] = np.nan
    assert diagnose(X).little.reason == "fewer than 5 rows have gaps"
    X[[5, 9, 12, 40], 2] = np.nan
    assert not diagnose(X).little.reason


def test_rows_named_by_two_columns_can_be_listed():
    names = RowNames([pa.array(["Korea, North", "France"]), pa.array([1990, 2000])])
    assert list(names) == ["Korea, North (1990)", "France (2000)"]
