"""Headings in several rows, twice the same, or none; cells that are no numbers; ticked options."""

import numpy as np
import pytest

from kpod import KPOD, TablePreparer, analyze, read
from kpod._common.errors import InputError
from kpod._files.reading import read_table
from kpod._files.text import headings

SURVEY = [
    ["Respondent", "How often?", "Which do you own?", "", "", "Age"],
    ["", "Response", "Car", "Bicycle", "Boat", "Response"],
    *[
        [str(100 + i), ["never", "often", "daily"][i % 3], "Car" if i % 2 else "", "Bicycle" if i % 5 else "",
         "Boat" if i % 7 == 0 else "", str(20 + i % 40)]
        for i in range(60)
    ],
]  # fmt: skip


def write(path, rows):
    path.write_text("".join(",".join(row) + "\n" for row in rows))
    return str(path)


def book(path, rows):
    import xlsxwriter

    with xlsxwriter.Workbook(path) as workbook:
        sheet = workbook.add_worksheet("Sheet")
        for i, row in enumerate(rows):
            for j, cell in enumerate(row):
                if cell:
                    sheet.write(i, j, float(cell) if cell.isdecimal() else cell)
    return str(path)


@pytest.mark.parametrize(("save", "name"), [(write, "t.csv"), (book, "t.xlsx")])
def test_questions_and_their_options_are_joined(tmp_path, save, name):
    table = read_table(save(tmp_path / name, SURVEY))
    assert table.n_rows == 60
    own = [f"Which do you own?: {what}" for what in ("Car", "Bicycle", "Boat")]
    assert [column.name for column in table.columns] == ["Respondent", "How often?", *own, "Age"]
    assert [note.kind for note in table.notes] == ["several heading rows", "check boxes"]
    assert [table.column(what).role.role for what in own] == ["boolean"] * 3
    ticked = np.column_stack([table.column(what).values for what in own])
    expected = np.column_stack([np.arange(60) % 2 > 0, np.arange(60) % 5 > 0, np.arange(60) % 7 == 0])
    np.testing.assert_array_equal(ticked, expected)


def test_a_second_row_under_plain_headings_is_left_out(tmp_path):
    rows = [["id", "smoke", "sport", "age"], ["", "Response", "Response", "Open-Ended"]]
    rows += [[str(i), ["Yes", "No"][i % 2], ["Yes", "No"][i % 3 % 2], str(i % 50 + 18)] for i in range(80)]
    table = read_table(write(tmp_path / "t.csv", rows))
    assert table.n_rows == 80
    assert [table.column(name).role.role for name in ("smoke", "sport", "age")] == [
        "boolean",
        "boolean",
        "number",
    ]
    assert table.where(0, "age") == "line 3"


def test_a_first_row_of_rare_answers_is_data(tmp_path):
    """One column alone may begin with a value that never comes back."""
    rows = [["city", "kind", "n"], ["X", "rare", "1"]]
    rows += [[f"c{i}", ["a", "b"][i % 2], str(i % 9)] for i in range(50)]
    assert read_table(write(tmp_path / "t.csv", rows)).n_rows == 51


def test_levels_of_a_header_as_pandas_writes_them(tmp_path):
    pd = pytest.importorskip("pandas")
    columns = pd.MultiIndex.from_product([["1", "2"], ["lh", "rh"]], names=["network", "hemi"])
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.normal(size=(30, 4)), columns=columns).to_csv(tmp_path / "t.csv")
    table = read_table(str(tmp_path / "t.csv"))
    assert table.n_rows == 30
    assert [column.name for column in table.columns][1:] == ["1: lh", "1: rh", "2: lh", "2: rh"]


def test_lines_of_delimiters_above_the_header_are_passed_over(tmp_path):
    rows = [["", "", "", ""], ["", "1970", "", "1971"], ["", "tons", "share", "tons"]]
    rows += [[f"p{i}", str(i * 7 % 50), str(i * 3 % 20), str(i * 11 % 40)] for i in range(30)]
    table = read_table(write(tmp_path / "t.csv", rows))
    assert table.n_rows == 30
    assert [column.name for column in table.columns] == ["", "1970 tons", "share", "1971 tons"]
    assert table.where(0, "share") == "line 4"


def test_names_are_made_unique_in_order():
    names, notes = headings.made_unique(["a", "", "b", "a", "", "a (2)", "a"])
    assert len(set(names)) == 7
    assert [names[j] for j in (0, 2, 5)] == ["a", "b", "a (2)"]
    assert names[1] == "column 2"
    assert notes[0].values["n_same"] == 2
    assert notes[0].values["n_empty"] == 2
    assert headings.made_unique(["a", "", "b"]) == (["a", "", "b"], [])


def test_header_says_how_many_rows_of_headings_there_are(tmp_path):
    path = write(tmp_path / "t.csv", [["1", "2.5"], ["3", "4"], ["5", "7"]])
    with pytest.warns(UserWarning, match="the first line holds numbers"):
        detected = read(path)
    given = read(path, header=0)
    assert list(detected.columns) == list(given.columns) == ["column 1", "column 2"]
    assert len(given) == 3
    assert list(read(path, header=1).columns) == ["1", "2.5"]
    with pytest.raises(InputError, match="not column names"):
        read(path, strict=True)
    two = write(tmp_path / "two.csv", [["a", ""], ["x", "y"], ["1", "2"], ["3", "4"]])
    with pytest.warns(UserWarning, match="first 2 rows were read as headings"):
        assert list(read(two, header=2).columns) == ["a: x", "a: y"]


@pytest.mark.parametrize(
    ("odd", "n_numbers", "n_gaps"),
    [
        (["1x"], 9, 1),  # a typing error
        (["Unknown"] * 3, 97, 3),
        (["**"] * 40, 60, 40),  # one word that comes back
        ([f"room {i}" for i in range(40)], 60, None),  # what is no number is too much
        (["n.a.", "$ 5,000"], 10, None),  # two ways of writing numbers, but no currency elsewhere
    ],
)
def test_a_few_entries_that_are_no_numbers_are_gaps(tmp_path, odd, n_numbers, n_gaps):
    cells = [str(10 + i % 7 * 3) for i in range(n_numbers)] + odd
    path = write(
        tmp_path / "t.csv", [["x", "y"], *([str(i % 5), f'"{cell}"'] for i, cell in enumerate(cells))]
    )
    table = read_table(path)
    column = table.column("y")
    if n_gaps is None:
        assert column.role.role in ("text", "category", "number")
        return
    assert column.role.role == "number"
    assert column.missing == column.n_odd == n_gaps
    np.testing.assert_array_equal(np.isnan(column.values), np.arange(len(cells)) >= n_numbers)
    note = TablePreparer()._fit(table) and next(
        note for note in TablePreparer().fit(table).notes_ if note.kind == "not numbers"
    )
    assert f"'{odd[0]}' (line {n_numbers + 2})" in note.text
    strict = read_table(path, strict=True)
    with pytest.raises(InputError, match="is not a number"):
        TablePreparer().fit(strict)


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["$56.7M", "$1.2k", "$950", "$2B"], [56.7e6, 1200, 950, 2e9]),
        (["SR 1,640", "SR 85", "SR 12,000"], [1640, 85, 12000]),
        (["1.2k", "300", "15k"], [1200, 300, 15000]),
        (["3 million", "1.5 million"], [3e6, 1.5e6]),
        (["12 PLN", "1 400 PLN"], [12, 1400]),
        (["R$ 5,50", "R$ 1.200,00", "R$ 7,25"], [5.5, 1200, 7.25]),
    ],
)
def test_amounts_as_people_write_them(tmp_path, texts, numbers):
    path = tmp_path / "t.csv"
    path.write_text("n;worth\n" + "".join(f"{i};{text}\n" for i, text in enumerate(texts)))
    np.testing.assert_allclose(read_table(str(path)).column("worth").values, numbers)


def test_two_currencies_do_not_compare(tmp_path):
    (tmp_path / "t.csv").write_text("n;worth\n1;USD 5\n2;CHF 7\n3;USD 9\n4;CHF 2\n")
    assert read_table(str(tmp_path / "t.csv")).column("worth").values is None


def ticked_frame():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "size": rng.normal(size=40),
            "member": np.where(rng.random(40) < 0.4, "x", ""),
            "age": rng.normal(size=40),
        }
    )


def test_ticked_columns_are_yes_or_no_in_new_rows_too():
    frame = ticked_frame()
    preparer = TablePreparer().fit(frame)
    assert preparer.columns_ == ["size", "member", "age"]
    assert [note.kind for note in preparer.notes_] == ["check boxes"]
    prepared = preparer.transform(frame)
    np.testing.assert_allclose(prepared[:, 1].mean(), 0, atol=1e-12)
    ticked = frame[frame["member"] == "x"].head(1)
    for rows in (ticked, ticked.assign(member="")):  # one row has one value, or none
        where = frame["member"] == rows["member"].iloc[0]
        assert preparer.transform(rows)[0, 1] == prepared[where.to_numpy(), 1][0]


def test_one_value_by_accident_is_ticked_on_request():
    frame = ticked_frame().replace({"member": {"x": "gold"}})
    assert TablePreparer().fit(frame).columns_ == ["size", "age"]
    preparer = TablePreparer(roles={"member": "boolean"}).fit(frame)
    assert preparer.columns_ == ["size", "member", "age"]


def test_read_analyze_and_the_preparer_agree(tmp_path):
    path = write(tmp_path / "t.csv", [["id", "a", "a", "worth"], *(
        [f"r{i}", str(i % 7), str(i % 5), "Unknown" if i == 3 else f"${i % 11}k"] for i in range(50)
    )])  # fmt: skip
    with pytest.warns(UserWarning, match=r"1 heading that occurred before was made unique: 'a \(2\)'"):
        frame = read(path)
    analysis = analyze(path, 2, shape="round")
    assert [note.kind for note in analysis.notes] == ["headings made unique", "not numbers", "number format"]
    np.testing.assert_array_equal(analysis.labels, analyze(frame, 2, shape="round").labels)
    prepared = TablePreparer().fit_transform(read_table(path))
    np.testing.assert_array_equal(prepared, TablePreparer().fit_transform(frame))
    assert KPOD(2, random_state=0).fit(prepared).labels_.shape == (50,)
