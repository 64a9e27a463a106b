"""Roles of columns, against columns of real tables labelled by hand, and one by one."""

import json
import lzma
import shlex
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from kpod._columns.column_inspection import inspect
from kpod._columns.missing_codes import MissingCodes, from_options
from kpod._columns.notations import date_notation
from kpod._columns.roles import column_facts, decide, ordered

pytestmark = pytest.mark.usefixtures("shell")

TABLES = json.loads(lzma.decompress((Path(__file__).parents[1] / "data" / "columns.json.xz").read_bytes()))
USED = ("number", "boolean")


def column(name, values, **options):
    texts = ["" if v is None else str(v) for v in values]
    return inspect(
        name, pa.chunked_array([pa.array(texts, pa.string())]), ".", options.pop("missing", []), **options
    )


def judged(part):
    """Of each labelled column: table, name, the role it has, and the role it was given."""
    return [
        (table["table"], c["name"], c["role"], column(c["name"], c["values"]).role.role)
        for table in TABLES
        if part is None or table["part"] == part
        for c in table["columns"]
    ]


@pytest.mark.parametrize(
    ("part", "least", "columns"),
    [
        ("rules written on these", 0.97, 480),
        ("first held out", 0.97, 290),
        ("second held out", 0.97, 180),
        ("third held out", 0.97, 450),
        ("fourth held out", 0.97, 380),
    ],
)
def test_roles_of_real_columns(part, least, columns):
    found = judged(part)
    wrong = [line for line in found if line[3] not in line[2].split(" or ")]
    assert len(found) >= columns
    assert 1 - len(wrong) / len(found) >= least, wrong


def test_no_identifier_is_used_and_no_measurement_set_aside():
    found = judged(None)
    assert [line for line in found if "identifier" in line[2] and line[3] in USED] == []
    assert [line for line in found if line[2] in USED and line[3] not in USED] == []


@pytest.mark.parametrize(
    "name",
    ["ID", "id", "Patient Id", "patientID", "PATIENT_ID", "PID", "UUID", "SSN", "subject_id", "hospitalID",
     "userid", "Customer No", "caseno", "id_patient", "Subject", "MRN", "hhid", "account number"],
)  # fmt: skip
@pytest.mark.parametrize("repeated", [False, True])
def test_identifiers_by_name_in_any_spelling(name, repeated):
    numbers = np.random.default_rng(0).permutation(5000)[:60] + 1000
    values = np.repeat(numbers[:20], 3) if repeated else numbers
    assert column(name, values).role.role == "identifier"


@pytest.mark.parametrize(
    "name",
    ["acid", "grid", "humid", "Solid", "paid", "bid", "steroid", "Inde", "keyboard", "kids", "aluminum"],
)
def test_words_that_only_sound_like_identifiers(name):
    assert column(name, np.random.default_rng(0).integers(1, 90, 60)).role.role == "number"


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("students", np.random.default_rng(0).integers(5, 400, 463)),
        ("age", range(10, 61)),
        ("nTokens", range(1, 25)),
        ("monthsSinceY2K", range(117)),
        ("gross_us", np.random.default_rng(0).integers(134_000_000, 900_000_000, 23)),
        ("number", range(1000, 160, -10)),
        ("city_mpg", np.random.default_rng(0).integers(8, 60, 500)),
        ("school", np.random.default_rng(0).integers(0, 19, 500)),
        ("pid7", np.random.default_rng(0).integers(1, 8, 500)),
        ("dose", np.repeat(range(1, 31), 4)),
        ("SID74", np.random.default_rng(0).integers(0, 32, 100)),
        ("Nummer", np.random.default_rng(0).integers(0, 90, 200)),
        ("tonnes", 14_000_000 + np.cumsum(np.random.default_rng(0).integers(-700_000, 900_000, 60))),
        ("turkey", np.random.default_rng(0).permutation(2000)[:60]),
    ],
)
def test_measurements_that_look_like_identifiers(name, values):
    assert column(name, values).role.role == "number"


@pytest.mark.parametrize("name", ["re_subj", "sent_email", "phone_service", "participant", "provider_second"])
def test_yes_or_no_is_no_identifier(name):
    assert column(name, [0, 1, 1, 0, 1, 0]).role.role == "boolean"


def test_kinds_of_a_thing_with_an_identifier_are_a_category():
    assert column("phone_type", ["home", "mobile", "work"] * 20).role.role == "category"
    assert column("phone", ["030 11", "030 12", "040 13"] * 20).role.role == "identifier"


@pytest.mark.parametrize("name", ["intnum", "cowcode2", "choiceid"])
def test_names_of_identifiers_that_are_one_word(name):
    numbers = np.random.default_rng(0).integers(4, 9000, 500)
    assert column(name, np.sort(np.repeat(numbers, 2))).role.role == "identifier"


def test_marks_of_gaps_do_not_hide_an_identifier():
    marked = column("x", range(1, 201), missing=["98", "99"])
    assert marked.role.role == "identifier"
    assert marked.missing == 2


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("x", range(1, 40)),
        ("x", range(40)),
        ("", [5, 9, 12, 40, 41]),
        ("key", [17, 3, 99, 4]),
        ("x", [f"{10**9 + 7919 * i}" for i in range(30)]),
        ("x", [f"P{i:04d}" for i in range(30)]),
        ("token", [f"{i * 2654435761 % 2**64:016x}" for i in range(1, 30)]),
        ("code", ["0012", "0013", "0500", "0004"]),
        ("db030", np.repeat(range(1, 101), [1 + i % 4 for i in range(100)])),
        ("rb030", [100 * i + j for i in range(1, 30) for j in range(1, 2 + i % 4)]),
        ("fish", np.repeat(range(4842, 4862), [3 + i % 5 for i in range(20)])),
        ("bag", range(398_481, 398_581)),
        ("AREAKEY", [36_007_000_000 + 100 * i for i in range(1, 60)]),
        ("Gemeindeschlüssel", np.random.default_rng(0).permutation(90_000)[:60] + 9_000_000),
        ("Nr.", [*range(1, 40), *range(1, 31), *range(1, 50)]),
        ("N°", [*range(1, 40), *range(1, 31)]),
        ("numéro", range(7, 900, 11)),
        ("episode", [*range(1, 80), 79, *range(80, 200)]),
        ("Away test no.", np.random.default_rng(0).permutation([*range(1, 60)] * 3)),
    ],
)
def test_identifiers_by_content(name, values):
    assert column(name, values).role.role == "identifier"


@pytest.mark.parametrize(
    ("name", "values", "role"),
    [
        ("year", [1999, 2001, 2003, 1999, 2001], "date"),
        ("Year", [2010.1, *[2008, 2012, 2014, 2015] * 4], "date"),
        ("dxyr", [56, 60, 68, 73, 66, 68], "date"),
        ("year_built", [1999, 1951, 2003, 1999, 1934], "number"),
        ("years", [1, 4, 7, 30, 12], "number"),
        ("month", [1, 5, 12, 7, 1], "date"),
        ("start_month", [0, 5, 12, 7, 0], "date"),  # 0 where it is not known
        ("day_of_week", [1, 5, 7, 3, 1], "date"),
        ("date_of_month", [1, 5, 31, 7, 1], "date"),
        ("start_year", [-4350, *range(1850, 2020)], "date"),
        ("dose_of_month", [1, 5, 31, 7, 1], "number"),
        ("Days", [1, 5, 12, 7, 1], "number"),
        ("when", [20240131, 20231224, 20220229, 20210101], "date"),
        ("created_at", [1700000000, 1600000000, 1650000000], "date"),
        ("zip", [10115, 80331, 10115, 20095], "category"),
        ("region", [1, 2, 3, 4, 2, 1], "category"),
        ("species_count", [1, 2, 3, 4, 2, 1], "number"),
        ("smoker", ["yes", "no", "no", "yes"], "boolean"),
        ("sex", [1, 2, 2, 1, 1], "boolean"),
        ("fixed", [3, 3, 3, None], "constant"),
        ("nothing", [None, "NA", ""], "empty"),
        ("note", ["a long story about this and that"] * 3 + ["another long story of many words"] * 3, "text"),
        ("size", ["small", "large", "medium", "small", "large"], "ordered"),
        ("mostly", [1, 2, 3, "x"], "number"),
        ("all", ["True", "True", "True"], "constant"),
        ("time", range(1950, 1970), "date"),
        ("date", [2000 + i / 12 for i in range(40)], "date"),
        ("time", [12, 40, 33, 41, 8], "number"),
        ("district", [1, 2, 3, 4, 2, 1], "category"),
        ("countyfips", [1, 3, 5, 7, 1], "category"),
        ("subject", [1, 2, 3, "207a"], "identifier"),
    ],
)
def test_roles_one_by_one(name, values, role):
    assert column(name, values).role.role == role


@pytest.mark.parametrize(
    ("levels", "order"),
    [
        (["High", "low", "Medium"], ["low", "Medium", "High"]),
        (["StronglyAgree", "Disagree", "strongly_disagree", "agree"],
         ["strongly_disagree", "Disagree", "agree", "StronglyAgree"]),
        (["35-44", "25-34", "45+", "<25"], ["<25", "25-34", "35-44", "45+"]),
        (["12 yrs", ">16 yrs", "<12 yrs", "13-15 yrs"], ["<12 yrs", "12 yrs", "13-15 yrs", ">16 yrs"]),
        (["$1000 to 2999", "lt $1000", "$25000 or more"], ["lt $1000", "$1000 to 2999", "$25000 or more"]),
        (["60-", "50-", "55-"], ["50-", "55-", "60-"]),
        (["10-19", "0-9g/day", "30+", "20-29"], ["0-9g/day", "10-19", "20-29", "30+"]),
        (["(10,20]", "(0,10]"], ["(0,10]", "(10,20]"]),
        (["2nd class", "1st class"], ["1st class", "2nd class"]),
        (["2 - often", "1 - never"], ["1 - never", "2 - often"]),
        (["Tue", "Mon", "Sun"], ["Mon", "Tue", "Sun"]),
    ],
)  # fmt: skip
def test_orders_that_words_tell(levels, order):
    assert ordered.order_of(levels) == order


@pytest.mark.parametrize(
    "levels",
    [
        ["red", "blue"],
        ["low", "blue"],
        ["KK-08", "KK-06"],
        ["A", "B"],
        ["high", "upper"],
        ["3", "1"],
        ["5 mg", "20 mg"],
    ],
)
def test_words_without_an_order(levels):
    assert ordered.order_of(levels) is None


@pytest.mark.parametrize(
    "text",
    ["2024-01-31", "2024-01-31T10:00:00Z", "31.01.2024", "1/31/24", "Jan 3, 2024", "3 January 2024",
     "2024-01", "2024Q3", "2024w12", "01-JAN-1980"],
)  # fmt: skip
def test_dates_in_text(text):
    assert date_notation.is_dates(Counter([text, text]))
    assert not date_notation.is_dates(Counter([text, "somewhere", "else"]))
    assert not date_notation.is_times(Counter([text, text]))


def test_times_of_day_are_no_dates():
    assert date_notation.is_times(Counter(["10:35", "9:05 pm", "23:59:59"]))
    assert not date_notation.is_dates(Counter(["10:35", "9:05 pm"]))
    role = decide.role_of(column_facts.Contents("at", 2, levels=Counter(["10:35", "9:05 pm"])))
    assert (role.role, role.why) == ("date", "times of day")


def codes(name, values):
    return [note for note in column(name, values).role.notes if note.kind == "possible code"]


@pytest.mark.parametrize(
    ("name", "values", "remedy"),
    [
        ("educ", [1, 2, 3, 4, 5, 98, 99, 99, 2, 3], "--missing educ=98,99"),
        ("income", [1200, 3400, 2500, -9, 1800, -9], "--missing income=-9"),
        ("temp", [12.5, 13.1, 999, 14.2, 11.8, 12.0], "--missing temp=999"),
        ("my age", [20, 30, 25, 999, 41, 999], "--missing 'my age=999'"),
        ("start", [-99] * 6 + [-49, -42, -35, -30, 0, 1, 22] * 3, "--missing start=-99"),
        ("pay", [999] * 30 + [*range(1, 400, 3), 532, 606, 700, 857, 959], "--missing pay=999"),
        ("Rear.Hd", [-2] * 5 + [i / 2 for i in range(19)], "--missing Rear.Hd=-2"),
        ("seats", [-2, -1, -1] + [i / 2 for i in range(36, 75)] + [-2, -2], "--missing seats=-2,-1"),
        ("luggage", [-3, -2, -2, *range(7, 23)], "--missing luggage=-3,-2"),
        ("glucose", [0, 0, 44, 85, 89, 117, 137, 110, 140, 125, 168, 99, 101], "--missing glucose=0"),
    ],
)
def test_codes_for_missing_are_pointed_out_with_the_remedy(name, values, remedy):
    (note,) = codes(name, values)
    assert note.text.endswith(f"if so, use {remedy}.")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("age", [*range(18, 97), 99, 99]),
        ("count", [0, 0, 1, 2, 3, 5, 9, 0, 4, 6, 7, 8, 10, 11]),
        ("change", [-9, -7, 3, 5, -2, 8, -9]),
        ("finance", [-1, 0, 1] * 10),
        ("age", [-2, -1, 0, 1] * 10),
        ("score", [1, 2, 3, 4, 5, 6, 7, 8, 9, 9]),
        ("percent", [*range(100), *[99] * 20]),
        ("goals", [-3, -2, -1, 0, 1, 2, 3, 4, 5, 6, -3, -3]),
    ],
)
def test_ordinary_values_are_no_codes(name, values):
    assert codes(name, values) == []


def test_answers_that_say_nothing_are_pointed_out_with_the_remedy():
    answers = [*["Married", "Single"] * 4, "No answer", "Don't know", "Refused"]
    (note,) = column("my status", answers).role.notes
    said = "my status: 'No answer', 'Don't know' and 'Refused' (3 times) may stand for missing; if so, use "
    assert note.text.startswith(said)
    (given,) = shlex.split(note.text.removeprefix(said).removesuffix("."))[1:]
    marks = MissingCodes.of(from_options([given]), ["my status"], "t.csv").of_column("my status")
    assert column("my status", answers, missing=marks).missing == 3
    assert column("person", ["Missing teeth and more than that", "ill"] * 5).role.notes == ()


def test_what_is_pointed_out_about_numbers():
    kinds = {
        name: [note.kind for note in column(name, values).role.notes]
        for name, values in {
            "birth_year": [1950, 1961, 1970, 1982],
            "lat": [45.1, 45.2, 45.4],
            "x": [1.5, 2.5, 4],
        }.items()
    }
    assert kinds == {"birth_year": ["years"], "lat": ["coordinates"], "x": []}


def test_long_columns_are_judged_by_a_sample():
    values = np.random.default_rng(0).normal(size=300_000)
    assert decide.role_of(column_facts.Contents("x", len(values), values)).role == "number"
    counting = np.arange(300_000, dtype=float)
    assert decide.role_of(column_facts.Contents("x", len(counting), counting)).why == "row numbers"


@pytest.mark.parametrize(
    ("name", "values", "role"),
    [
        ("#", sorted([*range(1, 80), *range(40, 45)]), "identifier"),  # numbered in order, some twice
        ("Codigo comuna", np.random.default_rng(0).permutation(9000)[:90] + 1000, "identifier"),
        ("código sector", np.arange(80) % 9, "category"),
        ("Nº Orden", np.arange(80) % 33 + 1, "identifier"),
        ("Nº hijos", np.arange(80) % 5, "number"),
        ("BibNum", 3_000_000 - 977 * np.arange(80), "identifier"),
        ("BagNum", np.arange(80) * 7 % 60 + 3, "number"),
        ("group", np.arange(80) % 8, "category"),
        ("age group", np.arange(80) % 8, "number"),
        ("category", np.arange(80) % 8, "category"),
        ("Category.One.Defects", np.arange(80) % 8, "number"),
        ("party votes", np.arange(80) % 8, "number"),
        ("attempts clutch", np.random.default_rng(0).geometric(0.04, 200), "number"),
        ("movie_3", np.random.default_rng(0).permutation(np.repeat(np.arange(7, 9000, 43), 3)), "identifier"),
        ("Age of the patient", np.arange(80) % 60 + 20, "number"),
        ("Dumpster", [*range(1, 120), *range(1, 90), *range(1, 60)], "identifier"),
        ("time", [*range(1, 120), *range(1, 90), *range(1, 60)], "number"),
        ("service", np.tile(np.arange(1, 28) ** 2 * 1013 + 11, 20), "identifier"),
        ("load", np.tile(np.arange(1, 28) ** 2 * 1000, 20), "number"),
        ("store_3", np.random.default_rng(0).permutation(np.repeat(np.arange(10, 9000, 40), 3)), "number"),
    ],
)
def test_numbers_that_name_things_and_numbers_that_count_them(name, values, role):
    assert column(name, values).role.role == role


@pytest.mark.parametrize(
    "texts",
    [
        ["April 4th, 2015", "May 31st, 2010", "3rd March 2012"],
        ["03-jun-2016", "27-dic-2016", "12-abr-2017"],
        ["3 mars 2016", "14 août 2016", "1 déc. 2016"],
        ["3. März 2016", "14. Okt. 2016", "1. Dez. 2016"],
    ],
)
def test_dates_in_words_of_several_languages(texts):
    assert column("d", texts * 20).role.role == "date"


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["60 kg", "2 kg", "70"], [60, 2, 70]),
        (["1 year", "2 years", "3 years"], [1, 2, 3]),
        (["1000m", "1200m", "950"], [1000, 1200, 950]),
        (["0 full defects", "12 full defects"], [0, 12]),
        (["0", "1", "2", "3+"], [0, 1, 2, 3]),
        (["2017 (40)", "2017", "2016", "2015*", "2014"], [2017, 2017, 2016, 2015, 2014]),
        (["4.500.000", "1.234,5", "17", "29*(max.)", *["1.000,25"] * 30], None),
    ],
)
def test_numbers_with_a_unit_a_plus_or_a_footnote(texts, numbers):
    found = column("x", texts * 4, tolerant=True)
    if numbers is None:
        assert found.values[:4].tolist()[:3] == [4_500_000, 1234.5, 17]
        assert found.n_odd == 4
    else:
        assert found.values.tolist() == numbers * 4


@pytest.mark.parametrize(
    "texts",
    [
        ["60 kg", "5 lbs", "2 kg"],
        ["12A", "13A", "14A"],
        ["1st", "2nd", "3rd"],
        ["115th", "114th", "113th"],
        ["12.5 (3)", "13.5 (4)", "11.5 (2)"],
        ["18 to 24", "25 to 64", "65 and over"],
        ["Month 1", "Month 2"],
        ["9 am", "10 am"],
    ],
)
def test_what_is_behind_a_number_may_be_part_of_a_name(texts):
    assert column("x", texts * 10).values is None
