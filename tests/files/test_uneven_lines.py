"""Text that a spreadsheet opens all the same: short lines, joined files, row names, no headings."""

import numpy as np
import pytest

from kpod._common.errors import InputError
from kpod._files.reading import read_table

BODY = [f"{i},{i % 7},{i * 5 % 11}" for i in range(40)]


def written(path, lines, end="\n"):
    path.write_text("\n".join(lines) + end)
    return str(path)


def test_a_few_short_lines_end_in_gaps(tmp_path):
    lines = ["a,b,c", *BODY]
    lines[21] = "20,6"
    path = written(tmp_path / "t.csv", lines)
    table = read_table(path)
    assert table.n_rows == 40
    assert np.flatnonzero(np.isnan(table.column("c").values)).tolist() == [20]
    assert table.column("b").values[20] == 6
    assert [(note.kind, note.values["line"]) for note in table.notes] == [("short lines", 22)]
    with pytest.raises(InputError, match="line 22 has 2 fields where the header has 3"):
        read_table(path, strict=True)


def test_short_lines_beside_fields_of_several_lines(tmp_path):
    lines = ["a,b,c", *(f'{i},{i % 7},"one\ntwo {i}"' for i in range(40))]
    lines[30] = "29,1"
    table = read_table(written(tmp_path / "t.csv", lines))
    assert table.n_rows == 40
    assert table.raw["c"].to_pylist()[28:31] == ["one\ntwo 28", "", "one\ntwo 30"]


@pytest.mark.parametrize("lines", [["a,b,c", *BODY[:9], "1,2,3,4"], ["a,b,c", *BODY[:9], "1", "2", "3"]])
def test_longer_lines_and_many_short_ones_are_refused(tmp_path, lines):
    with pytest.raises(InputError, match="fields where the header has 3"):
        read_table(written(tmp_path / "t.csv", [*lines, "1,2,3"]))


def test_two_files_joined_into_one_have_one_header(tmp_path):
    table = read_table(written(tmp_path / "t.csv", ["a,b,c", *BODY, "a,b,c", *BODY, "a,b,c", *BODY]))
    assert table.n_rows == 120
    assert [column.role.role for column in table.columns[1:]] == ["number", "number"]
    assert table.notes[0].text == "line 42 and 1 more line hold the headings again, and were left out."


def test_row_names_without_a_heading_and_a_delimiter_at_the_end_of_lines(tmp_path):
    table = read_table(written(tmp_path / "r.csv", ["b,c", *(f"r{line}" for line in BODY)]))
    assert [(column.name, column.role.role) for column in table.columns] == [
        ("", "identifier"), ("b", "number"), ("c", "number")
    ]  # fmt: skip
    table = read_table(written(tmp_path / "e.csv", ["b,c", *(f"{line.partition(',')[2]}," for line in BODY)]))
    assert [column.role.role for column in table.columns] == ["number", "number", "empty"]


def test_a_first_line_that_is_like_the_columns_below_it_is_data(tmp_path):
    rows = [f"{i % 5},{['gas', 'diesel'][i % 2]},{i * 3 % 17}.5,{i if i % 3 else '?'}" for i in range(60)]
    table = read_table(written(tmp_path / "t.csv", rows))
    assert table.n_rows == 60
    assert [column.name for column in table.columns] == ["column 1", "column 2", "column 3", "column 4"]
    assert [note.kind for note in table.notes] == ["no headings"]


@pytest.mark.parametrize(
    "lines",
    [
        ["gas,diesel,price", *(f"{'x' if i % 2 else ''},{'' if i % 2 else 'x'},{i}" for i in range(40))],
        ["Car,Boat", *(f"{'Car' if i % 2 else ''},{'Boat' if i % 3 else ''}" for i in range(40))],  # ticked
        ["place,1990,2000", *(f"p{i},{i},{i + 1}" for i in range(40))],
        ["1990,1991,1992", *BODY],
    ],
)
def test_headings_remain_headings(tmp_path, lines):
    table = read_table(written(tmp_path / "t.csv", lines))
    assert [column.name for column in table.columns] == lines[0].split(",")
    assert table.n_rows == 40


def test_single_quotation_marks_around_fields(tmp_path):
    rows = [f"'{20 + i}-{21 + i}','{'yes' if i % 2 else 'no'}','{i % 4}',it's {i}" for i in range(40)]
    table = read_table(written(tmp_path / "t.csv", ["'age','sick','grade','note'", *rows]))
    assert [column.name for column in table.columns] == ["age", "sick", "grade", "note"]
    assert [table.column(name).role.role for name in ("sick", "grade")] == ["boolean", "number"]
    assert table.raw["note"][3].as_py() == "it's 3"


def test_headings_in_several_rows_of_a_sheet(tmp_path):
    import xlsxwriter

    with xlsxwriter.Workbook(tmp_path / "t.xlsx") as book:
        sheet = book.add_worksheet()
        for i, row in enumerate([
            ["Full-time workers by occupation", "", "", "", ""],
            ["", "Number", "", "Earnings", ""],
            ["Occupation", "Men", "Women", "Men", "Women"],
            ["", "Estimate", "Estimate", "Estimate", "Estimate"],
        ]):  # fmt: skip
            sheet.write_row(i, 0, row)
        for i in range(40):
            sheet.write_row(4 + i, 0, [f"work {i}", 100 + i % 7, 90 + i % 5, 1000.5 + i, 900.5 + i % 9])
    names = [column.name for column in read_table(str(tmp_path / "t.xlsx")).columns]
    assert names == [
        "Occupation", "Number Men: Estimate", "Number Women: Estimate", "Earnings Men: Estimate",
        "Earnings Women: Estimate",
    ]  # fmt: skip
