"""Measured figures in the pages: each stands between markers, made from results that are committed.

    <!-- table: small -->           a block of its own: a table, or a paragraph
    ...
    <!-- end -->

    takes <!-- figure: dense-time 30% -->0.31<!-- end --> of the time

The first word names an entry of BLOCKS, further words are its arguments.
"""

import re

from docs.figures import FIGURES
from docs.tables import TABLES

BLOCKS = TABLES | FIGURES
MARKED = re.compile(r"(<!-- (?:table|figure): ([^>]+?) -->)(\n?).*?(<!-- end -->)", re.S)


def with_figures(page):
    """A page with what stands between its markers as the results have it."""

    def fill(match):
        name, *arguments = match[2].split()
        return f"{match[1]}{match[3]}{BLOCKS[name](*arguments)}{match[3]}{match[4]}"

    return MARKED.sub(fill, page)


def names_in(page):
    """The blocks that a page asks for."""
    return {match[2].split()[0] for match in MARKED.finditer(page)}


def without_figures(page):
    """What people wrote: the page less its blocks, code, formulas, addresses and links."""
    for pattern in (
        MARKED.pattern,
        r"```.*?```",
        r"<!--.*?-->",
        r"`[^`\n]*`",
        r"\]\([^)]*\)",
        r"(?m)^    [^\n]*$",
    ):
        page = re.sub(pattern, lambda match: "\n" * match[0].count("\n"), page, flags=re.S)
    return page
