"""Sheets and exports as people make them: titles, units, totals and remarks around a table; dates."""

import re
from collections import Counter

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kpod._columns.notations import dates
from kpod._columns.positions_in_files import letters
from kpod._columns.preparing.columns_in_use import choose_columns
from kpod._columns.roles.column_facts import Contents
from kpod._columns.roles.decide import role_of
from kpod._common.errors import InputError
from kpod._files.reading import read_table
from kpod._files.text import rows_that_are_not_data
from tests.helpers.command import kpod
from tests.helpers.tables import values_in

HEADER = ["name", "height", "mass"]
BODY = [["Ann", 170, 61.5], ["Bob", 181, None], ["Cid", None, 72], ["Dee", 165, 58], ["Eve", 172, 66]]
VALUES = [[170, 61.5], [181, np.nan], [np.nan, 72], [165, 58], [172, 66]]


def book(path, rows, merged=()):
    workbook = openpyxl.Workbook()
    for row in rows:
        workbook.active.append(row)
    for cells in merged:
        workbook.active.merge_cells(cells)
    workbook.save(path)
    return path


def csv(path, rows):
    lines = [",".join("" if cell is None else str(cell) for cell in row) for row in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


def used(path, strict=False):
    table = read_table(str(path), strict=strict)
    choice = choose_columns(table)
    return table, dict(zip(choice.used, values_in(table, choice).T, strict=True))


AROUND = [["Survey"], HEADER, [None, "cm", "kg"], *BODY[:3]]


def test_an_entry_is_named_by_its_cell_or_its_line(tmp_path):
    rows = [*AROUND, [], ["Dee", "tall", 58], *BODY[4:]]
    with pytest.raises(InputError, match=r"t\.xlsx: cell B8, column 'height': 'tall' is not a number"):
        used(book(tmp_path / "t.xlsx", rows), strict=True)
    with pytest.raises(InputError, match=r"t\.xlsx: cell D10, column 'height': 'tall'"):
        used(book(tmp_path / "t.xlsx", [[], [], *([None, None, *row] for row in rows)]), strict=True)
    lines = [row for row in rows if row]
    with pytest.raises(InputError, match=r"t\.csv: line 7, column 'height': 'tall' is not a number"):
        used(csv(tmp_path / "t.csv", lines), strict=True)
    lines[4] = ['"Bob\nthe\r\nElder"', 181, None]
    with pytest.raises(InputError, match=r"t\.csv: line 9, column 'height': 'tall' is not a number"):
        used(csv(tmp_path / "t.csv", lines), strict=True)


def test_behind_a_blank_line_an_entry_is_named_by_its_row(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n\n3,x\n4,5\n6,7\n")
    with pytest.raises(InputError, match=r"t\.csv: row 2, column 'b': 'x' is not a number"):
        used(tmp_path / "t.csv", strict=True)
    (tmp_path / "t.csv").write_text("Title\na,b,c\n1,2,3\n3,x,3\n\n4,5,3\n6,7,3\n\n")
    with pytest.raises(InputError, match=r"t\.csv: line 4, column 'b': 'x' is not a number"):
        used(tmp_path / "t.csv", strict=True)
    (tmp_path / "t.csv").write_text("a  b\n1  2\n\n3  5\n6  7\n8  9\n8  9\n1  1e999\n")
    with pytest.raises(InputError, match=r"t\.csv: row 6, column 'b': inf is infinite"):
        used(tmp_path / "t.csv")


def test_what_a_spreadsheet_calls_a_column():
    assert [letters(j) for j in (0, 25, 26, 51, 52, 701, 702)] == ["A", "Z", "AA", "AZ", "BA", "ZZ", "AAA"]


@pytest.mark.parametrize("write", [book, csv])
@pytest.mark.parametrize(
    ("above", "under", "below", "note"),
    [
        ([], [], [], None),
        ([["Survey 2024"], ["by J. Smith"], []], [], [], "first 2 .* 'by J. Smith'\\) hold a title"),
        ([["Survey 2024", None, None]], [], [], "first .* \\('Survey 2024'\\) holds a title, and was left"),
        ([], [[None, "cm", "kg"]], [], "first row \\('cm' and 'kg'\\) holds units or descriptions"),
        ([], [["Name?", "How tall?", "How heavy?"], ["q1", "a b", "c"]], [], "first 2 rows .* 'How tall"),
        ([], [], [["Total", 688, 257.5]], "last row \\('Total', '688' and '257.5'\\) holds totals, and"),
        ([], [], [["Total", 770, 290.5]], "last row .* holds totals"),  # with what Bob and Cid did not say
        ([], [], [["Mean:", 172, 64.4], ["SD", 6, 5]], "the last 2 rows .* hold totals"),
        ([], [], [["Min", 165, 58], ["Max", 181, 72]], "the last 2 rows .* hold totals"),
        ([], [[None, "cm", "kg"]], [["Total", 688, 8.5]], "last row .* holds totals"),
        ([], [], [[], ["Source: own measurements"]], "\\('Source: own measurements'\\) holds remarks"),
        ([["Title"]], [[None, "cm", "kg"]], [["Sum", 688, 257.5], ["* as told by themselves"]], "units"),
    ],
)  # fmt: skip
def test_what_stands_around_a_table_is_left_out_and_reported(tmp_path, write, above, under, below, note):
    path = write(
        tmp_path / f"t.{'xlsx' if write is book else 'csv'}", [*above, HEADER, *under, *BODY, *below]
    )
    table, columns = used(path)
    assert table.raw["name"].to_pylist() == ["Ann", "Bob", "Cid", "Dee", "Eve"]
    assert_array_equal(np.column_stack([columns["height"], columns["mass"]]), VALUES)
    assert len(table.notes) == bool(above) + bool(under) + bool(below) + (
        len(below) == 2 and "*" in below[1][0]
    )
    if note:
        assert any(re.search(note, one.text) for one in table.notes), table.notes


@pytest.mark.parametrize("write", [book, csv])
@pytest.mark.parametrize(
    "rows",
    [
        [HEADER, *BODY, ["Fay", None, None]],  # nothing known of her, but she is a row
        [HEADER, ["Ada", None, None], *BODY],
        [HEADER, ["Ada", None, "unknown"], *BODY, ["Fay", 160, "unknown"]],
        [["group", "height", "mass"], ["Total", 1, 2], *BODY, ["Total", 3, 4]],  # a group called so
        [HEADER, *BODY, ["Max", 168, 60]],  # a boy's name
        [HEADER, *BODY, ["Max", 181, 60]],
        [HEADER, ["Min", 160, 50], ["Max", 168, 60]],
        [HEADER, *BODY, ["SD", 168, 60]],  # South Dakota
        [HEADER, *BODY, ["Total", 168, 61]],  # a company, about the mean
        [HEADER, ["Zoe", "refused", "unknown"], *BODY],
        [["name", "team", "city"], ["Ann", "red", "Rome"], ["Bob", "blue", "Oslo"], ["Cid", "red", "Rome"]],
    ],
)
def test_rows_of_data_are_kept(tmp_path, write, rows):
    path = write(tmp_path / f"t.{'xlsx' if write is book else 'csv'}", rows)
    table = read_table(str(path))
    assert table.n_rows == len(rows) - 1
    assert table.notes == []


@pytest.mark.parametrize("write", [book, csv])
def test_new_rows_all_come_out_again(tmp_path, write, monkeypatch):
    """Whatever a row may mean: who reads labels back goes by their order."""
    suffix = "xlsx" if write is book else "csv"
    old = write(tmp_path / f"old.{suffix}", [HEADER, *BODY])
    new = write(tmp_path / f"new.{suffix}", [HEADER, *BODY, ["Total", 688, 257.5], ["Max", 181, 72]])
    model = tmp_path / "m.kpod"
    assert kpod(monkeypatch, "fit", old, "-k", 2, "--model", model, "-o", tmp_path / "o.csv").code == 0
    for command in ("predict", "impute"):
        done = kpod(monkeypatch, command, model, new)
        assert done.out.count("\n") == len(BODY) + 3, done.err


def test_groups_of_columns_above_the_header(tmp_path):
    rows = [["", "first visit", "", "second visit", ""], ["name", "height", "mass", "height", "mass"],
            *([*row, *row[1:]] for row in BODY)]  # fmt: skip
    table, columns = used(book(tmp_path / "t.xlsx", rows, ["B1:C1", "D1:E1"]))
    assert list(columns) == [
        "first visit height", "first visit mass", "second visit height", "second visit mass"
    ]  # fmt: skip
    assert "a title" in table.notes[0].text


def test_cells_merged_over_rows_count_for_each(tmp_path):
    rows = [["region", "city", "x"], ["north", "a", 1], ["", "b", 2], ["south", "c", 3], ["", "d", 4]]
    table = read_table(str(book(tmp_path / "t.xlsx", rows, ["A2:A3", "A4:A5"])))
    assert table.raw["region"].to_pylist() == ["north", "north", "south", "south"]
    assert [note.text for note in table.notes] == ["merged cells in region count for every row they span."]


def test_lines_in_errors_are_those_of_the_file(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("A title\n\na,b,c\n1,2,3\n1,2,3,4\n4,5,6\n" + "7,8,9\n" * 30)
    with pytest.raises(InputError, match="line 5 has 4 fields where the header has 3"):
        read_table(str(path))


def test_the_last_entry_may_end_in_a_line_that_reads_like_a_remark(tmp_path):
    file = tmp_path / "spells.csv"
    lines = [
        f'{i},{i / 7:.2f},"A creature of {i} feet.\nIt may be evasive yet must be truthful."'
        for i in range(30)
    ]
    file.write_text("\n".join(["level,range,text", *lines]) + "\n")
    table = read_table(str(file))
    assert table.n_rows == 30
    assert table.raw["text"][29].as_py().endswith("must be truthful.")


def test_a_file_that_was_cut_off_is_not_taken_for_one_with_a_remark(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("name,city,a,b,c\n" + "Ann,Rome,1,2,3\n" * 9 + "Bob,Os")
    with pytest.raises(InputError, match="line 11 has 2 fields"):
        read_table(str(path))


def test_a_header_above_decimal_commas_is_no_title(tmp_path):
    lines = ["name;height;mass"] + [f"p{i};1,{i:02d};{60 + i * 7 % 31},5" for i in range(30)]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    table, columns = used(tmp_path / "t.csv")
    assert table.notes == []
    assert list(columns) == ["height", "mass"]
    for title in ("Messung, 2024", "Messung"):
        (tmp_path / "t.csv").write_text("\n".join([title, "", *lines]))
        table, columns = used(tmp_path / "t.csv")
        assert list(columns) == ["height", "mass"]
        assert len(table.notes) == 1


def test_a_number_is_no_title():
    assert rows_that_are_not_data.titles([["1", "2"], ["3", "4"]]) == 0
    assert rows_that_are_not_data.titles([["a", "b"], ["3", "4"]]) == 0


def test_marks_of_failed_formulas_are_gaps(tmp_path):
    path = csv(tmp_path / "t.csv", [["a", "b"], [1, "#DIV/0!"], [2, 5], ["#REF!", 6]])
    assert_array_equal(used(path)[1]["b"], [np.nan, 5, 6])


# Dates

DAYS = np.array(["2024-01-31", "2023-04-03"], "datetime64[D]").astype(float)


@pytest.mark.parametrize(
    "texts",
    [
        ["2024-01-31", "2023-04-03"], ["2024/01/31", "2023/04/03"], ["31.01.2024", "3.4.2023"],
        ["31.01.24", "03.04.23"], ["1/31/2024", "4/3/2023"], ["31/01/2024", "3/4/2023"],
        ["01/31/24", "04/03/23"],
        ["31 Jan 2024", "3 April 2023"], ["31-JAN-24", "03-APR-23"], ["31Jan2024", "03Apr2023"],
        ["January 31, 2024", "Apr 3, 2023"], ["2024-01-31T00:00:00Z", "2023-04-03T00:00:00Z"],
        ["31.01.2024 00:00", "03.04.2023 00:00"], ["1/31/2024 12:00 AM", "4/3/2023 12:00 AM"],
    ],
)  # fmt: skip
def test_dates_as_people_write_them(texts):
    reading = dates.read(pa.array([texts[0], None, texts[1]]))
    assert_allclose(reading.days, [DAYS[0], np.nan, DAYS[1]])
    assert reading == dates.Reading(reading.days)


def test_months_and_quarters_are_their_first_day():
    months = np.array(["2024-01-01", "2023-04-01"], "datetime64[D]").astype(float)
    for texts in (
        ["2024-01", "2023-04"],
        ["Jan 2024", "Apr 2023"],
        ["2024Q1", "2023 Q2"],
        ["Q1 2024", "Q2-2023"],
    ):
        assert_allclose(dates.read(pa.array(texts)).days, months)


def test_day_and_month_are_not_guessed():
    reading = dates.read(pa.array(["03/04/2024", "05/06/2024"]))
    assert reading.ambiguous == "03/04/2024"
    assert np.isnan(reading.days).all()
    assert dates.read(pa.array(["10:30", "11:30"])).unread == "10:30"


def test_dates_written_as_numbers():
    assert_allclose(dates.of_numbers(np.array([20240131, np.nan, 20230403])), [DAYS[0], np.nan, DAYS[1]])
    assert_allclose(dates.of_numbers(DAYS * 86400), DAYS)
    assert_allclose(dates.of_numbers(DAYS * 86400_000), DAYS)
    assert dates.of_numbers(np.array([1999.0, 2007.0])) is None


def test_dates_can_be_used_however_they_are_written(tmp_path):
    rows = [["when", "x"], *([f"{day}.0{1 + day % 3}.2024", day % 5] for day in range(10, 29))]
    table = read_table(str(csv(tmp_path / "t.csv", rows)))
    choice = choose_columns(table, roles={"when": "number"})
    expected = np.datetime64("2024-02-10").astype(float)
    assert values_in(table, choice)[0].tolist() == [expected, 0]
    rows = [["when", "x"], *([f"0{1 + day % 5}/0{1 + day % 3}/2024", day % 5] for day in range(19))]
    table = read_table(str(csv(tmp_path / "t.csv", rows)))
    with pytest.raises(InputError, match="day and month cannot be told apart"):
        choose_columns(table, roles={"when": "number"})


NOTATIONS = [
    "2024-01-31", "2024/1/31", "2024.01.31", "2024-01", "2024/01", "01/2024", "31.1.2024", "31/01/24",
    "1-31-2024", "31 Jan 2024", "31. January 2024", "31.Jan.2024", "31jan24", "30-SEPT-2023", "3 Sept 2023",
    "Jan 31, 2024", "January-31-2024", "Jan. 2024", "Jan-2024", "2024Q1", "2024 q4", "Q1 2024", "Q12024",
    "Q2-2024", "2024w12", "2024-W1", "2024 W52", "2024-01-31 10:30", "2024-01-31T10:30:00Z",
    "2024-01-31 10:30:05.25 +0200", "2024-01-31 10", "31.1.2024 10:30 PM", "1/31/2024 10:30:00 AM UTC",
    "Jan 31, 2024 23:59",
]  # fmt: skip
NO_DATES = [
    "2024w60", "2023-02-30", "2024-13-01", "Q5 2024", "31 Foo 2024", "12-50", "2024-01-31 25:00", "A1",
    "10:30", "2024-01-31 13:00 PM", "1.2.3.4", "hello", "May", "2024-",
]  # fmt: skip


@pytest.mark.parametrize("text", [*NOTATIONS, *NO_DATES])
def test_what_is_a_date_to_roles_can_be_read_and_nothing_else(text):
    role = role_of(Contents("when", 2, levels=Counter({text: 1, "2024-05-17": 1})))
    read = not dates.read(pa.array([text, "2024-05-17"])).unread
    assert (role.role == "date" and role.why == "dates") == read == (text in NOTATIONS)


def test_dates_agree_with_pandas():
    for text in NOTATIONS:
        if re.search(r"[qw]\d", text, re.IGNORECASE) or text == "30-SEPT-2023":
            continue
        (days,) = dates.read(pa.array([text])).days
        stamp = pd.to_datetime(
            text.replace("Sept", "Sep"), dayfirst=bool(re.match(r"31[./]", text)), utc=True
        )
        assert_allclose(days, stamp.timestamp() / 86400, atol=1e-6)
    weeks = ["2024w12", "2020-W53", "2021 W1"]
    mondays = [pd.Timestamp.fromisocalendar(*of, 1) for of in ((2024, 12), (2020, 53), (2021, 1))]
    assert_allclose(dates.read(pa.array(weeks)).days, [day.timestamp() / 86400 for day in mondays])


@pytest.mark.parametrize(("words", "n_rows"), [(12, 30), (4, 31)])
def test_a_remark_may_have_marks_of_gaps_beside_it_if_it_is_long(tmp_path, words, n_rows):
    remark = " ".join(["word"] * words)
    lines = ["name,a,b,c", *(f"place {i},{i},{i * 3 % 7},{i % 5}" for i in range(30)), f"{remark},NA,NA,NA"]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    assert read_table(str(tmp_path / "t.csv")).n_rows == n_rows


def test_many_footnotes_below_a_sheet_are_remarks(tmp_path):
    notes = [[f"{i} This is a footnote to the column of numbers", "", "", ""] for i in range(12)]
    rows = [
        ["name", "a", "b", "c"],
        *([f"p{i}", i, i * 3 % 7, i % 5] for i in range(30)),
        ["Footnotes:"],
        *notes,
    ]
    table = read_table(str(book(tmp_path / "t.xlsx", rows)))
    assert table.n_rows == 30
    assert "the last 13 rows" in table.notes[-1].text
