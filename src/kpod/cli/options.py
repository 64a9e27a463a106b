"""Options that commands share, as decorators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from kpod._common.errors import InputError, printable

SHAPES = ("full", "tied", "diag", "spherical", "tied_diag", "tied_spherical")
"""Types of covariance of a mixture."""

DEFAULT_SCALE = "standard"

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class File(click.Path):
    """The name of a file; errors of reading and writing are worded later."""

    def __init__(self) -> None:
        super().__init__(allow_dash=True, readable=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not value:
            self.fail("needs the name of a file", param, ctx)
        return super().convert(value, param, ctx)


FILE = File()


def together(*decorators: Decorator) -> Decorator:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def in_file(name: str) -> Decorator:
    return click.argument(name, type=FILE)


def in_files(name: str) -> Decorator:
    return together(
        click.argument(name, type=FILE, nargs=-1, required=True),
        click.option(
            "--scratch",
            metavar="DIR",
            type=click.Path(),
            help="Read the table in pieces, with a scratch file in DIR.  [default: in pieces only if it does "
            "not fit in memory]",
        ),
    )


shape = click.option(
    "--shape",
    type=click.Choice(["round", "auto", *SHAPES]),
    default="auto",
    show_default=True,
    help="The shape of the clusters: round, as in k-means, or elongated, correlated or of different "
    "spread (a Gaussian mixture); auto compares them and says why clusters are not round.",
)
max_seconds = click.option(
    "--max-seconds",
    type=click.FloatRange(min=0),
    help="Stop choosing the number of clusters after this many seconds, with the best answer so far.",
)
checkpoint = click.option(
    "--checkpoint",
    metavar="DIR",
    type=click.Path(),
    help="Save progress in DIR; after a crash, the same command resumes from there.",
)


def out_file(*names: str, help: str) -> Decorator:  # noqa: A002
    return click.option(*names, type=FILE, metavar="FILE", help=help)


class Character(click.ParamType):  # type: ignore[type-arg]
    """One character, or \\t as a shell hands on a tab."""

    name = "char"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value == r"\t":
            return "\t"
        if len(value) != 1 or not value.isascii() or value in '"\n\r\0':
            self.fail(r"must be one character, such as ';', or \t for a tab", param, ctx)
        return value


class Text(click.ParamType):  # type: ignore[type-arg]
    """Text that can go into a file; what the terminal could not decode cannot."""

    name = "text"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if any("\udc80" <= character <= "\udcff" for character in value):
            self.fail("is not valid UTF-8", param, ctx)
        return value


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


class Shrinkage(click.ParamType):  # type: ignore[type-arg]
    """A number from 0 up, or auto."""

    name = "number"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """A float, or "auto"."""
        if value == "auto":
            return value
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if not 0 <= number < float("inf"):
            self.fail(f"'{value}' is neither a number from 0 up nor auto", param, ctx)
        return number


def clusters(text: str) -> Decorator:
    return click.option(
        "-k", "--clusters", type=Clusters(), default="auto", show_default=True, metavar="NUMBER", help=text
    )


reading = together(
    click.option(
        "--missing",
        multiple=True,
        metavar="VALUE",
        type=Text(),
        help="Another value that means missing: -9, or income=98,99 for one column. Repeatable.",
    ),
    click.option(
        "--delimiter",
        metavar="CHAR",
        type=Character(),
        help="Field delimiter of a text file. [default: detected]",
    ),
    click.option("--decimal", type=click.Choice([".", ","]), help="Decimal mark. [default: detected]"),
    click.option(
        "--encoding", metavar="NAME", help="Encoding of a text file, such as cp1252. [default: detected]"
    ),
    click.option(
        "--sheet", metavar="NAME", help="Sheet of a workbook. [default: the first that is not empty]"
    ),
    click.option(
        "--header",
        type=click.IntRange(0),
        metavar="NUMBER",
        help="Rows of headings in a text file or sheet; 0 for none. [default: detected]",
    ),
    click.option(
        "--strict",
        is_flag=True,
        help="Refuse headings that are empty or not unique, and text among numbers, instead of repairing "
        "them.",
    ),
)
long_form = together(
    click.option(
        "--rows", metavar="NAME", help="For ratings, one per line: the column that names the rows (users)."
    ),
    click.option("--items", metavar="NAME", help="For ratings: the column that names the items."),
    click.option("--values", metavar="NAME", help="For ratings: the column with the values."),
)
choosing = together(
    click.option(
        "--columns",
        multiple=True,
        metavar="NAMES",
        help="Columns to cluster by: a,b,c or a pattern such as q_*.",
    ),
    click.option("--exclude", multiple=True, metavar="NAMES", help="Columns to leave out of the clustering."),
    click.option(
        "--id", "ids", multiple=True, metavar="NAMES", help="Columns that identify rows; never clustered."
    ),
    click.option(
        "--as",
        "roles",
        multiple=True,
        metavar="NAMES=ROLE",
        type=Text(),
        help="Override the role of columns: number, boolean, category, ordered (or "
        "ordered:low,mid,high), date, identifier or text. Repeatable.",
    ),
)
preparing = together(
    click.option(
        "--drop-rows",
        multiple=True,
        metavar="ROWS",
        type=Text(),
        help="Rows to leave out: duplicates, aggregates (sums of other rows), or COLUMN=VALUE,VALUE. "
        "Repeatable.",
    ),
    click.option(
        "--one-row-per",
        metavar="NAME",
        type=Text(),
        help="Column that names individuals with several rows; these are combined into one.",
    ),
    click.option(
        "--combine",
        type=click.Choice(["mean", "last", "change"]),
        default="mean",
        show_default=True,
        help="With --one-row-per: the mean of the numbers, the last, or the last minus the first.",
    ),
    click.option(
        "--categories",
        multiple=True,
        is_flag=False,
        flag_value="all",
        metavar="[NAMES]",
        help="Also cluster by categories: the named columns, or all of them.",
    ),
    click.option("--weight", metavar="NAME", help="Column with row weights."),
    click.option(
        "--scale",
        type=click.Choice(["standard", "auto", "robust", "none"]),
        default=DEFAULT_SCALE,
        show_default=True,
        help="How numbers are scaled: standard, by mean and standard deviation; auto also takes logarithms "
        "of skewed columns and limits columns in which a few values hold most of the variance, and names "
        "them; robust, by median and interquartile range.",
    ),
    click.option("--no-scale", is_flag=True, help="The same as --scale none, for columns that share a unit."),
    click.option("--robust", is_flag=True, help="The same as --scale robust."),
    click.option("--log", multiple=True, metavar="NAMES", help="Columns to replace by their logarithms."),
    click.option(
        "--clip",
        type=click.FloatRange(0, 0.5, min_open=True, max_open=True),
        metavar="SHARE",
        help="Clip each column at its SHARE and 1 - SHARE quantiles, e.g. 0.01.",
    ),
    click.option(
        "--shrinkage",
        type=Shrinkage(),
        metavar="NUMBER",
        help="Pull centers with few entries towards the column means, as if NUMBER more entries were there; "
        "auto chooses.",
    ),
)


def table_output(what: str) -> Decorator:
    return out_file(
        "-o",
        "--output",
        help=f"The table {what}: .csv, .tsv, .parquet, .feather, .arrow or .xlsx; a folder (dir/) gets one "
        "file for each file of DATA; - is CSV on standard output.  [default: -]",
    )


log_json = click.option(
    "--log-json",
    is_flag=True,
    help="Log progress to standard error as JSON, one object per line.",
)
telling = together(
    click.option("-q", "--quiet", is_flag=True, help="Print errors only."),
    log_json,
    click.option(
        "--json",
        "as_json",
        is_flag=True,
        help="Print a machine-readable summary to standard output; the table then needs -o.",
    ),
)
labelling = together(
    table_output("with its clusters"),
    click.option(
        "--label",
        default="cluster",
        show_default=True,
        type=Text(),
        help="Name of the column with the clusters.",
    ),
    click.option(
        "--confidence",
        is_flag=True,
        help="Add two columns: confidence (probability of the row's cluster) and second (the most likely "
        "other cluster).",
    ),
    telling,
)

READING = ("delimiter", "decimal", "encoding", "sheet", "header", "strict", "scratch")


def reading_options(options: dict[str, Any]) -> dict[str, Any]:
    """How to read a file, in the names of Python."""
    from kpod._columns.missing_codes import from_options

    read = {name: options[name] for name in READING if name in options}
    return {**read, "missing_values": from_options(options["missing"])}


@contextmanager
def opened(data: Sequence[str], options: dict[str, Any], progress: Any) -> Iterator[Any]:
    """The table in the files given; what it keeps on a disk is gone in the end."""
    from kpod._common.system import keep_freed_memory
    from kpod._files.opening import open_table

    keep_freed_memory()
    table = open_table(
        list(data),
        columns=options.get("columns", ()),
        exclude=(*options.get("exclude", ()), *options.get("ids", ())),
        weight=options.get("weight"),
        progress=progress,
        **reading_options(options),
    )
    try:
        yield table
    finally:
        table.close()


def analysis_options(options: dict[str, Any]) -> dict[str, Any]:
    """How to prepare and cluster a table, in the names of Python."""
    from kpod._columns.missing_codes import from_options

    same = (
        "weight",
        "outcome",
        "clip",
        "one_row_per",
        "combine",
        "rows",
        "items",
        "values",
        "shape",
        "max_seconds",
        "missingness",
        "algorithm",
        "shrinkage",
        "checkpoint",
    )
    several = ("columns", "exclude", "ids", "categories", "log", "drop_rows")
    return {
        "n_clusters": options["clusters"],
        "random_state": options["seed"],
        "missing_values": from_options(options["missing"]) or None,
        "roles": roles_of(options["roles"]),
        "scale": scale_of(options),
        **{name: list(options[name]) for name in several if options[name]},
        **{name: options[name] for name in same if options.get(name) is not None},
        **({"n_init": options["starts"]} if options.get("starts") else {}),
    }


def scale_of(options: dict[str, Any]) -> str:
    """How to scale: --scale, or one of its two short forms."""
    flags = {"--no-scale": "none", "--robust": "robust"}
    given = {flag: how for flag, how in flags.items() if options[flag.removeprefix("--").replace("-", "_")]}
    if options["scale"] != DEFAULT_SCALE:
        given[f"--scale {options['scale']}"] = options["scale"]
    if len(set(given.values())) > 1:
        raise InputError(f"{' and '.join(given)} exclude each other.")
    return next(iter(given.values()), DEFAULT_SCALE)


def roles_of(texts: Sequence[str]) -> dict[str, str | list[str]]:
    """--as COLUMN=ROLE; an order may follow: --as size=ordered:small,medium,large."""
    from kpod._columns.preparing.columns_in_use import DECIDED

    out: dict[str, str | list[str]] = {}
    for text in texts:
        columns, equals, role = text.rpartition("=")
        role, _, order = role.partition(":")
        role = role.strip().lower()
        if not equals or role not in DECIDED:
            raise InputError(
                f"--as {printable(text)}: expected COLUMN=ROLE, with a role of {', '.join(DECIDED)}."
            )
        levels = [part.strip() for part in order.split(",") if part.strip()]
        out[columns] = levels if levels and role == "ordered" else role
    return out


def new_rows_options(options: dict[str, Any]) -> dict[str, Any]:
    """How to read new rows, in the names of Python."""
    long_form = {f"--{name}": options.get(name) for name in ("rows", "items", "values")}
    return {**reading_options(options), "long_form": long_form}
