"""Text with blanks between fields, as many as it takes to line them up; R's write.table among it."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter

from kpod._common.errors import InputError
from kpod._common.options import option

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$|NA$")


def is_blank_separated(sample: str) -> bool:
    """Lines of as many fields as the header has, or one more (the names of rows), some of them numbers."""
    rows = fields_of(sample)
    if len(rows) < 2 or len(rows[0]) < 2:
        return False
    lengths = Counter(map(len, rows[1:]))
    length, times = lengths.most_common(1)[0]
    if length not in (len(rows[0]), len(rows[0]) + 1) or times < 0.95 * (len(rows) - 1):
        return False
    body = [row for row in rows[1:] if len(row) == length]
    return any(all(NUMBER.match(row[j]) for row in body) for j in range(length))


def fields_of(text: str) -> list[list[str]]:
    lines = [" ".join(line.split("\t")).strip() for line in text.splitlines()]
    return list(csv.reader([line for line in lines if line], delimiter=" ", skipinitialspace=True))


def with_tabs(data: bytes, source: str) -> bytes:
    """The same text with one tab between fields; row names without a heading get an empty one."""
    rows = fields_of(data.decode())
    length = Counter(map(len, rows[1:])).most_common(1)[0][0]
    header = rows[0] if length == len(rows[0]) else ["", *rows[0]]
    for number, row in enumerate(rows[1:], 2):
        if len(row) != length:
            raise InputError(
                f"{source}: line {number} has {len(row)} fields where the others have {length}; correct "
                f"it, or give the right {option('--delimiter')}."
            )
    out = io.StringIO()
    csv.writer(out, delimiter="\t", lineterminator="\n").writerows([header, *rows[1:]])
    return out.getvalue().encode()
