"""Workbooks, in the child process: the cells of one sheet, row by row.

The library that reads workbooks allocates the rectangle from the first cell to the last, and one stray cell
in the far corner makes that 17 billion cells. So rows and columns without cells are squeezed out before: the
parts of the archive are unpacked here, checked, renumbered where they need it, and packed anew.
"""

from __future__ import annotations

import io
import re
import zipfile
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from kpod._columns.positions_in_files import letters
from kpod._common.errors import printable
from kpod._files.sandbox.frames import Writer
from kpod._files.sandbox.parsers import UnreadableError

ZIP = b"PK\x03\x04"
LONGEST_GAP = 50
"""Empty rows or columns in a row that are kept; titles and remarks are not looked for beyond them."""
SPARSE = 16
"""Cells of the rectangle for each that is filled, from which on a sheet is squeezed."""
SMALL = 1 << 14  # cells; a rectangle that costs nothing
AT_ONCE = 1000
MOST_COLUMNS, MOST_ROWS = 1 << 14, 1 << 20

ATTRIBUTES = rb"""((?:[^>"']|"[^"]*"|'[^']*')*?)"""
CELL = re.compile(rb"<((?:[\w.-]+:)?)(row|c)(?=[\s/>])" + ATTRIBUTES + rb"(/?)>")
PLACE = re.compile(rb"""\sr\s*=\s*["']([A-Z]{0,3})(\d{1,7})["']""")
REPEATED = re.compile(rb"""\s(?:[\w.-]+:)?number-(?:rows|columns)-repeated\s*=\s*["'](\d{1,9})["']""")
ODS = re.compile(
    rb"<(/?)((?:[\w.-]+:)?)(table|table-row|table-cell|covered-table-cell)(?=[\s/>])" + ATTRIBUTES + rb"(/?)>"
)
NAMED = re.compile(rb"""\s(?:[\w.-]+:)?name\s*=\s*(?:"([^"]*)"|'([^']*)')""")


class Squeeze:
    """Numbers of rows or columns, and where they are once long gaps between used ones are shortened."""

    def __init__(self, used: Iterable[int]) -> None:
        self.old = [-1, *sorted(used)]
        self.new = [-1]
        for before, after in zip(self.old, self.old[1:], strict=False):
            self.new.append(self.new[-1] + min(after - before, LONGEST_GAP + 1))

    def to_new(self, number: int) -> int:
        return self.moved(number, self.old, self.new)

    def to_old(self, number: int) -> int:
        return self.moved(number, self.new, self.old)

    @staticmethod
    def moved(number: int, here: list[int], there: list[int]) -> int:
        at = bisect_right(here, number) - 1
        moved = there[at] + number - here[at]
        return moved if at + 1 == len(there) else min(moved, there[at + 1])


Squeezes = dict[str, tuple[Squeeze, Squeeze]]
"""Of rows and columns, by the name of the sheet."""


def write_workbook(out: Writer, data: bytes, sheet: str | None) -> None:
    """The sheet's name, those of the others and the merged cells; then rows with their numbers."""
    import python_calamine

    try:
        data, squeezes = checked(data) if data[:4] == ZIP else (data, {})
        book = python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(data))
        names = list(book.sheet_names)
    except MemoryError:
        raise
    except Exception as error:
        raise UnreadableError(
            ": is a zip archive or a damaged workbook; unpack it, or save the sheet as CSV."
        ) from error
    if not names:
        raise UnreadableError(": has no sheets.")
    if sheet is not None and sheet not in names:
        raise UnreadableError(
            f": no sheet '{printable(sheet)}'; there are {', '.join(map(printable, names))}."
        )
    if sheet is None:
        sheet = next((name for name in names if sheet_of(book, name).total_height), names[0])
    page = sheet_of(book, sheet)
    _, left = page.start or (0, 0)
    rows, columns = squeezes.get(sheet, (Squeeze(()), Squeeze(())))
    out.plain({
        "sheet": sheet,
        "others": [name for name in names if name != sheet],
        "columns": [columns.to_old(left + j) for j in range(page.width)],
        "spans": [(*first, last[0]) for first, last in page.merged_cell_ranges or () if last[0] > first[0]],
    })  # fmt: skip
    block: list[Any] = []
    for i, row in numbered(page.iter_rows()):
        block.append((rows.to_old(i), row))
        if len(block) == AT_ONCE:
            out.cells(block)
            block = []
    out.cells(block)


def numbered(rows: Iterable[list[Any]]) -> Iterator[tuple[int, list[Any]]]:
    """Rows with their numbers, without empty cells at their ends; of many empty rows, the first ones."""
    empty = LONGEST_GAP  # and none above the first that is not
    for i, row in enumerate(rows):
        length = next((j for j in range(len(row), 0, -1) if row[j - 1] != ""), 0)
        empty = 0 if length else empty + 1
        if empty <= LONGEST_GAP:
            yield i, row[:length]


def sheet_of(book: Any, name: str) -> Any:
    try:
        return book.get_sheet_by_name(name)
    except MemoryError:
        raise
    except Exception as error:
        raise UnreadableError(f", sheet '{printable(name)}': damaged: {printable(error)}.") from error


def checked(data: bytes) -> tuple[bytes, Squeezes]:
    """The archive, its parts checked against its directory and sparse sheets squeezed; and how.

    A part that unpacks to more than the directory says, or to something else than its checksum, is an error.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = [name for name in archive.namelist() if name.endswith((".xml", ".rels", ".bin", "mimetype"))]
        parts = {name: archive.read(name) for name in names}
    squeezes: Squeezes = {}
    if "content.xml" in parts:
        parts["content.xml"] = squeezed_ods(parts["content.xml"], squeezes)
    for sheet, name in sheet_parts(parts):
        parts[name] = squeezed_xlsx(parts[name], sheet, squeezes)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return out.getvalue(), squeezes


def sheet_parts(parts: dict[str, bytes]) -> Iterator[tuple[str, str]]:
    """The names of sheets in an .xlsx file, and the names of the parts that hold them."""
    from xml.etree import ElementTree as ET

    book, relations = parts.get("xl/workbook.xml"), parts.get("xl/_rels/workbook.xml.rels")
    if book is None or relations is None:
        return
    targets = {one.get("Id"): one.get("Target", "") for one in ET.fromstring(relations)}
    for one in ET.fromstring(book).iter():
        if one.tag.rpartition("}")[2] == "sheet":
            by_id = next((value for name, value in one.items() if name.rpartition("}")[2] == "id"), None)
            target = targets.get(by_id, "")
            part = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
            if part in parts and not part.endswith(".bin"):
                yield one.get("name", ""), part


def is_sparse(n_rows: int, n_columns: int, n_cells: int) -> bool:
    return n_rows * n_columns > SMALL + SPARSE * n_cells


def squeezed_xlsx(part: bytes, sheet: str, squeezes: Squeezes) -> bytes:
    """A sheet of an .xlsx file, renumbered if it is sparse."""
    found = PLACE.findall(part)
    n_columns = max((column_number(name) + 1 for name in {name for name, _ in found}), default=0)
    n_rows = max(map(int, {digits for _, digits in found}), default=0)
    unplaced = part.count(b"<c>")
    if not is_sparse(n_rows, max(n_columns, min(MOST_COLUMNS, unplaced)), len(found) + unplaced):
        return part
    places = list(places_of(part))
    used = {place[:2] for place in places if place[2]}
    rows, columns = {row for row, _ in used}, {column for _, column in used}
    if not used or not is_sparse(1 + max(rows) - min(rows), 1 + max(columns) - min(columns), len(used)):
        return part
    by_row, by_column = squeezes[sheet] = Squeeze(rows), Squeeze(columns)
    following = iter(places)

    def renumbered(tag: re.Match[bytes]) -> bytes:
        prefix, name, attributes, end = tag.groups()
        if name == b"row":
            return b"" if end else b"<%brow>" % prefix
        row, column, is_used = next(following)
        if not is_used:
            return b""
        place = f' r="{letters(by_column.to_new(column))}{by_row.to_new(row) + 1}"'.encode()
        return b"<%bc%b%b%b>" % (prefix, place, PLACE.sub(b"", attributes), end)

    return CELL.sub(renumbered, part)


def places_of(part: bytes) -> Iterator[tuple[int, int, bool]]:
    """Row and column of each cell, from 0, and whether there is anything in it."""
    row, column = -1, 0
    for tag in CELL.finditer(part):
        _, name, attributes, end = tag.groups()
        place = PLACE.search(attributes)
        if name == b"row":
            row, column = int(place[2]) - 1 if place else row + 1, 0
            continue
        if place:
            row, column = int(place[2]) - 1, column_number(place[1])
        yield row, column, not end
        column += 1


def column_number(name: bytes) -> int:
    """The number of a column, from 0; A is 0, and so is nothing."""
    number = 0
    for letter in name:
        number = 26 * number + letter - ord("A") + 1
    return max(0, number - 1)


def squeezed_ods(content: bytes, squeezes: Squeezes) -> bytes:
    """The sheets of an OpenDocument file, with fewer empty rows and cells where one is sparse."""
    tables = [tag for tag in ODS.finditer(content) if tag[3] == b"table" and not tag[5]]
    if [bool(tag[1]) for tag in tables] != [False, True] * (len(tables) // 2):  # one within another
        return content
    pieces, end = [], 0
    for start, stop in zip(tables[::2], tables[1::2], strict=True):
        name = NAMED.search(start[4])
        inside = content[start.end() : stop.start()]
        pieces.append(content[end : start.end()])
        pieces.append(squeezed_table(inside, unescaped(name[1] or name[2]), squeezes) if name else inside)
        end = stop.start()
    return b"".join([*pieces, content[end:]])


def squeezed_table(table: bytes, sheet: str, squeezes: Squeezes) -> bytes:
    """One sheet of an OpenDocument file."""
    rows = list(rows_of(table))
    used = [(row, n, cells) for _, _, row, n, cells in rows if any(cell.used for cell in cells)]
    spans = [(cell.column, cell.n) for _, _, cells in used for cell in cells if cell.used]
    n_rows, n_columns = (max((at + n for at, n, *_ in where), default=0) for where in (used, spans))
    n_cells = sum(n * cell.n for _, n, cells in used for cell in cells if cell.used)
    if n_rows > MOST_ROWS or n_columns > MOST_COLUMNS or not is_sparse(n_rows, n_columns, n_cells):
        return table
    by_row = Squeeze({row + i for row, n, _ in used for i in range(n)})
    by_column = Squeeze({column + i for column, n in spans for i in range(n)})
    squeezes[sheet] = by_row, by_column
    pieces, end = [], 0
    for tag, stop, row, n, cells in rows:
        pieces.append(table[end : tag.start()])
        end = tag.start()
        if any(cell.used for cell in cells):
            for cell in cells:
                if not cell.used:
                    pieces.append(table[end : cell.tag.start()])
                    pieces.append(repeated(cell.tag, moved_length(by_column, cell.column, cell.n)))
                    end = cell.tag.end()
        else:
            pieces.append(repeated(tag, moved_length(by_row, row, n)))
            end = stop
    return b"".join([*pieces, table[end:]])


@dataclass(frozen=True)
class Run:
    """Equal cells beside one another in an OpenDocument file, written once."""

    tag: re.Match[bytes]
    column: int
    n: int

    @property
    def used(self) -> bool:
        return not self.tag[5] or b"value" in self.tag[4] or b"formula" in self.tag[4]


def rows_of(table: bytes) -> Iterator[tuple[re.Match[bytes], int, int, int, list[Run]]]:
    """For each run of equal rows its tag, where it ends, its number, how many they are, and their cells."""
    row = column = 0
    start: re.Match[bytes] | None = None
    cells: list[Run] = []
    for tag in ODS.finditer(table):
        again = REPEATED.search(tag[4])
        n = int(again[1]) if again else 1
        if tag[3] != b"table-row":
            if not tag[1]:
                cells.append(Run(tag, column, n))
                column += n
            continue
        if not tag[1]:
            start, length, cells, column = tag, n, [], 0
        if start is not None and (tag[1] or tag[5]):
            yield start, tag.end(), row, length, cells
            start, row = None, row + length


def moved_length(squeeze: Squeeze, start: int, n: int) -> int:
    return squeeze.to_new(start + n) - squeeze.to_new(start)


def repeated(tag: re.Match[bytes], n: int) -> bytes:
    """An empty row or cell, so many times."""
    what = b"rows" if tag[3] == b"table-row" else b"columns"
    return b'<%b%b %bnumber-%b-repeated="%d"/>' % (tag[2], tag[3], tag[2], what, n) if n else b""


def unescaped(text: bytes) -> str:
    from html import unescape

    return unescape(text.decode())
