"""Options that commands share, as decorators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def together(*decorators: Decorator) -> Decorator:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def in_file(name: str) -> Decorator:
    return click.argument(name, type=click.Path(allow_dash=True))


def out_file(*names: str, help: str) -> Decorator:  # noqa: A002
    return click.option(*names, type=click.Path(dir_okay=False, allow_dash=True), help=help)


class Clusters(click.ParamType):  # type: ignore[type-arg]
    """A number of clusters, a range to choose from (2-8), or auto."""

    name = "number"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """An int, a range, or "auto"."""
        text = str(value).strip()
        if text == "auto":
            return text
        least, dash, most = text.partition("-")
        if text.isdecimal() and int(text) >= 1:
            return int(text)
        if dash and least.isdecimal() and most.isdecimal() and 1 <= int(least) < int(most):
            return range(int(least), int(most) + 1)
        message = f"'{value}' is neither a number from 1 up, nor a range such as 2-8, nor auto"
        return self.fail(message, param, ctx)


def clusters(text: str) -> Decorator:
    return click.option(
        "-k", "--clusters", type=Clusters(), default="auto", show_default=True, metavar="NUMBER", help=text
    )


reading = together(
    click.option(
        "--missing", multiple=True, metavar="MARK", help="One more mark of a gap, -9 say. Repeatable."
    ),
    click.option(
        "--delimiter", metavar="CHAR", help="What parts the fields of a text file. [default: sniffed]"
    ),
    click.option("--decimal", type=click.Choice([".", ","]), help="The decimal mark. [default: sniffed]"),
    click.option("--encoding", metavar="NAME", help="utf-8, cp1252, latin-1, ... [default: sniffed]"),
)
choosing = together(
    click.option("--columns", multiple=True, metavar="NAMES", help="Cluster these columns only (a,b,c)."),
    click.option("--exclude", multiple=True, metavar="NAMES", help="Set these columns aside."),
    click.option(
        "--id", "ids", multiple=True, metavar="NAMES", help="These columns identify rows: set aside."
    ),
)
labelling = together(
    out_file(
        "-o",
        "--output",
        help="The table with its clusters: .csv, .tsv, .parquet, .feather or .arrow; "
        "- is CSV on standard output.  [default: -]",
    ),
    click.option(
        "--label", default="cluster", show_default=True, help="Name of the column with the clusters."
    ),
    click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors."),
    click.option(
        "--json",
        "as_json",
        is_flag=True,
        help="A machine-readable summary on standard output; the table then needs -o.",
    ),
)
