"""Reading and writing tables, apart from the commands that do it."""

import csv
import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from kpod._analysis.describe import describe
from kpod._columns import missing_codes, tables
from kpod._columns.preparing import columns_in_use
from kpod._common.errors import InputError
from kpod._files import reading, writing
from kpod._files.text import delimited

pytestmark = pytest.mark.usefixtures("shell")


def read(tmp_path, text, **options):
    path = tmp_path / "table.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return reading.read_table(str(path), **options)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("decimal", [".", ","])
def test_delimiter_and_decimal_mark_are_sniffed(tmp_path, delimiter, decimal):
    if delimiter == decimal:
        return
    values = [[1.5, 2.25], [None, -3.125], [4, 5]]
    lines = [
        ["a", "b"],
        *([("" if v is None else str(v).replace(".", decimal)) for v in row] for row in values),
    ]
    table = read(tmp_path, "\n".join(delimiter.join(line) for line in lines))
    assert (table.dialect.delimiter, table.dialect.decimal) == (delimiter, decimal)
    assert_array_equal(tables.matrix(table, ["a", "b"]), np.array(values, dtype=float))


def test_a_thousands_separator_is_not_taken_for_a_decimal_comma(tmp_path):
    """1,234 may be either: the column is refused until someone says which."""
    table = read(tmp_path, 'a;b\n"1,234";1\n"5,678";2\n')
    assert table.dialect.decimal == "."
    with pytest.raises(InputError, match=r"column 'a': '1,234' may be 1234 or 1\.234; specify --decimal"):
        columns_in_use.choose_columns(table)
    assert columns_in_use.choose_columns(table, exclude=["a"]).used == ["b"]
    assert read(tmp_path, 'a;b\n"1,234";1\n', decimal=",").columns[0].values[0] == 1.234
    assert read(tmp_path, 'a;b\n"1,234";1\n', decimal=".").columns[0].values[0] == 1234


@pytest.mark.parametrize("shown", ["39,1", "0,125", "5.922,00 €", "63,7 %", "1.234.567"])
@pytest.mark.parametrize("above", [0, 300])
def test_points_group_thousands_where_the_file_shows_a_decimal_comma(tmp_path, shown, above):
    """In the first lines or far below them."""
    table = read(tmp_path, "a;mass\n" + "NA;938\n" * above + f"{shown};938\nNA;1.050\n")
    assert table.dialect.decimal == ","
    assert_array_equal(table.columns[1].values[-2:], [938, 1050])


def test_points_of_other_columns_stay_decimal_points_beside_a_decimal_comma(tmp_path):
    table = read(tmp_path, "a;b;c\n39,1;0.123;1.25\n40,2;1.050;12.5\n")
    assert_array_equal(tables.matrix(table, ["a", "b", "c"]), [[39.1, 0.123, 1.25], [40.2, 1.05, 12.5]])
    unclear = read(tmp_path, "a;b;c\n39,1;938;1.25\n40,2;1.050;12.5\n")
    with pytest.raises(
        InputError, match=r"column 'b': '1\.050' may be 1050 or 1\.050; specify --decimal ',' "
    ):
        columns_in_use.choose_columns(unclear)


def test_where_nothing_tells_what_a_point_divides_it_is_asked(tmp_path):
    text = "a;b\n5.922;0\n11.606;129\n"
    (note,) = describe(read(tmp_path, text), 1)["columns"][0]["notes"]
    assert note["text"].startswith("a: '5.922' may be 5922 or 5.922")
    with pytest.raises(
        InputError, match=r"column 'a': '5\.922' may be 5922 or 5\.922; specify --decimal ',' "
    ):
        columns_in_use.choose_columns(read(tmp_path, text))
    assert_array_equal(read(tmp_path, text, decimal=",").columns[0].values, [5922, 11606])
    assert_array_equal(read(tmp_path, text, decimal=".").columns[0].values, [5.922, 11.606])


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n5.922,1\n11.606,2\n",
        "a\tb\n5.922\t1\n11.606\t2\n",
        "a;b\n5.922;0.5\n11.606;2\n",
        "a;b\n5.922;1\n11.606;2\n0.123;2\n",
        "a;b\n5.922;1\n11.606;2\n12345;2\n",
        "a;b\n5.922;1.123e-3\n11.606;2\n",
    ],
)
def test_three_decimals_are_decimals_in_files_with_decimal_points(tmp_path, text):
    table = read(tmp_path, text)
    assert columns_in_use.choose_columns(table).used == ["a", "b"]
    assert_array_equal(table.columns[0].values[:2], [5.922, 11.606])


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        ("$103,918|$1,200", [103918, 1200]),
        ("79%|8.5%", [79, 8.5]),
        ('"8,431"|"1,200,300"', [8431, 1200300]),
        ("32.797,87|1.234,5", [32797.87, 1234.5]),
        ("1 234|12", [1234, 12]),
        ("1 234 567|12 345 678 901", [1234567, 12345678901]),
        ("(250)|120", [-250, 120]),
        ("€5,50|€12,75", [5.5, 12.75]),
        ("$5.50|USD 12.75|3", [5.5, 12.75, 3]),
        ("0,125|0,250", [0.125, 0.25]),
        ("1'234.5|10", [1234.5, 10]),
        ("1'234'567.5|10", [1234567.5, 10]),
        ("1,234.5|12", [1234.5, 12]),
    ],
)
def test_numbers_as_people_write_them(tmp_path, cells, numbers):
    lines = [f"{cell};{i + 0.5}" for i, cell in enumerate([*cells.split("|"), "NA"])]
    column = read(tmp_path, "a;b\n" + "\n".join(lines)).columns[0]
    assert_array_equal(column.values, [*numbers, np.nan])
    assert column.role.role in ("number", "boolean")


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("a;b\n39,1;3.750\n40,2;3.800\n38,3;12.001\nk.A.;k.A.\n", "a"),
        ("a;b\n39,1;3.750\n40,2;3.800\n38,3;12.001\nk.A.;k.A.\n", "b"),
        ("a;b;c\n39,1;3.7;938\n40,2;3.8;938\n38,3;1.1;1.050\nk.A.;1.1;1.050\n", "a"),
        ('a,b\n"1,200",1.5\n"3,400",2\n"5,600",3\nk.A.,3\n', "a"),
    ],
)
def test_mostly_numbers_as_people_write_them_and_a_word_is_an_error(tmp_path, text, column):
    table = read(tmp_path, text, strict=True)
    with pytest.raises(InputError, match=rf"'{column}': 'k\.A\.' is not a number .* --missing 'k\.A\.'"):
        columns_in_use.choose_columns(table, columns=[column])


def test_several_codes_in_a_cell_show_no_decimal_comma(tmp_path):
    text = 'codes,x\n1,5.922\n"1,2",6.125\n3,7.333\n"1,2,3",8.125\n'
    assert_array_equal(read(tmp_path, text).columns[1].values, [5.922, 6.125, 7.333, 8.125])
    with_points = 'codes,x,y\n1,5.922,0.5\n"1,2",6.125,0.25\n3,7.333,4\n'
    assert_array_equal(read(tmp_path, with_points).columns[1].values, [5.922, 6.125, 7.333])


def test_percent_signs_in_a_column_that_is_mostly_empty(tmp_path):
    column = read(tmp_path, "a;b\n" + "NA;1\n" * 9 + "63.7%;2\n").columns[0]
    assert_array_equal(column.values, [*[np.nan] * 9, 63.7])


@pytest.mark.parametrize("cells", ["5%|3|4|2", "1,23,4|5", "12a|$5", "$|5", "$5|€6|$7|€8"])
def test_what_is_not_written_in_one_way_is_not_read_as_numbers(tmp_path, cells):
    column = read(tmp_path, "a\n" + "\n".join(f'"{cell}"' for cell in cells.split("|"))).columns[0]
    assert column.values is None


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_encoding_is_sniffed(tmp_path, encoding):
    table = read(tmp_path, "größe,x\n1,ä\n2,€\n".encode(encoding))
    assert [column.name for column in table.columns] == ["größe", "x"]
    assert table.raw["x"].to_pylist() == ["ä", "€"]


def test_a_character_across_blocks_and_a_bad_byte_behind_them(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "BLOCK", 64)
    text = ("a,b\n" + "1,ä€ä\n" * 100).encode()
    for cut in range(4):
        assert read(tmp_path, b"x" * cut + text).dialect.encoding == "utf-8"
    with pytest.raises(InputError, match="byte 0xff on line 102 is not utf-8"):
        read(tmp_path, text + b"2,\xff\n", encoding="utf-8")


@pytest.mark.parametrize(
    "mark", [m for gap in missing_codes.GAPS for m in sorted({gap, gap.lower(), gap.upper(), f" {gap} "})]
)
def test_every_common_mark_is_a_gap_and_counted(tmp_path, mark):
    table = read(tmp_path, f'a,b\n1.5,1\n"{mark}",2\n2.5,3\n')
    column = table.columns[0]
    assert_array_equal(column.values, [1.5, np.nan, 2.5])
    assert dict(column.missing_codes) == {mark.strip() or "empty": 1}


def test_given_marks_hold_as_numbers_and_as_text(tmp_path):
    table = read(tmp_path, "a,b\n-9,1\n-9.0,2\n-90,n.d.\n", missing=["-9", "n.d."])
    assert_array_equal(table.columns[0].values, [np.nan, np.nan, -90])
    assert table.columns[0].missing_codes == {"-9": 2}
    assert table.columns[1].missing_codes == {"n.d.": 1}


@pytest.mark.parametrize(
    ("name", "cells", "is_id"),
    [
        ("id", "17 3 99 4", True),
        ("patient_id", "17 3 99 4", True),
        ("x", "1 2 3 4", True),
        ("x", "0 1 2 3", True),
        ("x", "0012 0013 0500 0004", True),
        ("", "5 7 8 9", True),
        ("x", "17 3 99 4", False),
        ("year", "2001 2002 2003 2004", False),
        ("id", "1 1 2 2", True),
        ("id", "1.5 2.5 3.5 4.5", False),
        ("x", "0.5 0.25 0 1", False),
        ("acid", "3 5 1 9", False),
    ],
)
def test_what_identifies_rows(tmp_path, name, cells, is_id):
    lines = [f"{name},other", *(f"{cell},{i * 1.5}" for i, cell in enumerate(cells.split()))]
    table = read(tmp_path, "\n".join(lines))
    assert (table.columns[0].role.role == "identifier") is is_id


def test_one_column_keeps_its_empty_lines(tmp_path):
    table = read(tmp_path, "a\n1.5\n\n3\n")
    assert_array_equal(table.columns[0].values, [1.5, np.nan, 3])


def test_kinds_of_typed_columns(tmp_path):
    frame = pd.DataFrame(
        {
            "int": pd.array([1, None, 5], "Int64"),
            "float": [1.5, np.nan, 2],
            "truth": [True, False, True],
            "text": ["a", None, "b"],
            "category": pd.Categorical(["u", "v", "u"]),
            "digits": ["1", "NA", "3"],
            "day": pd.to_datetime(["2020-01-01", None, "2020-01-03"]),
            "lists": [[1], [2], [3]],
            "nothing": [None, None, None],
        }
    )
    frame.to_parquet(tmp_path / "t.parquet")
    table = reading.read_table(str(tmp_path / "t.parquet"))
    kinds = {column.name: column.kind for column in table.columns}
    assert kinds | {"lists": ""} == {
        "int": "integer", "float": "number", "truth": "true/false", "text": "text", "category": "text",
        "digits": "integer", "day": "date", "lists": "", "nothing": "empty",
    }  # fmt: skip
    assert columns_in_use.choose_columns(table).used == ["int", "float", "truth", "digits"]


CELLS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)


@settings(max_examples=150, deadline=None)
@given(
    rows=st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=1, max_size=8),
    delimiter=st.sampled_from(",;\t|"),
)
def test_whatever_is_written_python_reads_back(rows, delimiter):
    """Quotes, line breaks, delimiters in cells: the csv module of the standard library agrees."""
    columns = [pa.array(column) for column in zip(*rows, strict=True)]
    file = io.BytesIO()
    table = pa.Table.from_arrays(columns, names=["a", 'b "c"', "d;e,f"])
    writing.write_csv(table, file, tables.Dialect(delimiter))
    text = io.StringIO(file.getvalue().decode(), newline="")
    assert list(csv.reader(text, delimiter=delimiter)) == [["a", 'b "c"', "d;e,f"], *rows]


def test_slices_and_nulls_are_written_right():
    table = pa.table({"x": pa.array([None, 1.5, 2.0, None]), "t": ["a", None, 'q"', "z"]}).slice(1, 3)
    file = io.BytesIO()
    writing.write_csv(table, file, tables.Dialect(";", ","))
    assert file.getvalue().decode() == 'x;t\n1,5;\n2;"q"""\n;z\n'


def test_columns_with_commas_in_their_names_can_be_asked_for(tmp_path):
    table = read(tmp_path, '"height, cm",b,c\n1,2,3\n4,5,6\n')
    for asked in (["height, cm,b"], ["b,height, cm"], ["height, cm", "b"], ["height*,b"]):
        assert set(table.names(asked)) == {"height, cm", "b"}
