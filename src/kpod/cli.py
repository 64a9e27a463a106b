"""The command line. Commands parse, call and show; the work is done elsewhere.

Only click is imported here, so that `kpod --help` and completion are quick.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kpod import __version__
from kpod._files import InputError, check_writable, printable

if TYPE_CHECKING:
    from kpod._summary import Clustering
    from kpod._tables import Choice, TableFile

DEMO_REPORT = "kpod-demo.html"
MOST_PATTERNS = 8


def run(args: Sequence[str] | None = None) -> int:  # noqa: PLR0911
    """Run a command; the exit code is 0, 1 for what was given, 2 for how it was asked."""
    try:
        return int(cli.main(args, prog_name="kpod", standalone_mode=False) or 0)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "kpod"
        return fail(f"{error.format_message().rstrip('.')}; see {command} --help.", 2)
    except click.ClickException as error:
        return fail(error.format_message())
    except (click.Abort, KeyboardInterrupt):
        return fail("stopped; nothing half-done was kept.")
    except OSError as error:
        where = f"{printable(error.filename)}: " if error.filename else ""
        return fail(f"{where}{error.strerror or printable(error)}.")
    except ModuleNotFoundError as error:
        return fail(f"the package {error.name} is missing: pip install 'scikit-kpod[cli]'.")
    except MemoryError:
        return fail("not enough memory for this table.")
    except Exception as error:
        if "KPOD_TRACEBACK" in os.environ:
            raise
        kind = "" if isinstance(error, ValueError) else f"unexpected {type(error).__name__}: "
        return fail(kind + " ".join(printable(line) for line in str(error).splitlines()))


def fail(message: str, code: int = 1) -> int:
    click.echo(f"kpod: {message}", err=True)
    return code


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 1 something is wrong with what was given, 2 with how it was asked.",
)
@click.version_option(__version__, prog_name="kpod")
def cli() -> None:
    """Cluster the rows of a table with missing entries: no imputing, no deleting, no tuning.

    \b
    From a CSV file to a report:
      kpod fit data.csv -k 3 -o clusters.csv --report report.html

    \b
    Try it on a bundled table:
      kpod demo

    \b
    Completion in bash (zsh and fish alike), in ~/.bashrc:
      eval "$(_KPOD_COMPLETE=bash_source kpod)"
    """


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


@cli.command(short_help="Cluster a table.")
@in_file("data")
@click.option("-k", "--clusters", type=click.IntRange(min=1), required=True, help="The number of clusters.")
@labelling
@out_file("--centers", help="The centers, in the original units, with the observed entries behind each.")
@out_file("--model", help="The model, for kpod predict.")
@out_file("--report", help="A report in one HTML file, to open, print or send.")
@choosing
@click.option("--no-scale", is_flag=True, help="Do not standardise the columns: they share a unit.")
@reading
@click.option(
    "--algorithm",
    type=click.Choice(["hartigan", "lloyd", "mm"]),
    default="hartigan",
    show_default=True,
    help="hartigan ends lowest; mm is the published one.",
)
@click.option(
    "--starts", type=click.IntRange(min=1), help="The best of so many.  [default: 10; 1 on large tables]"
)
@click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Decides the starts."
)
def fit(
    data: str,
    clusters: int,
    output: str | None,
    label: str,
    quiet: bool,
    as_json: bool,
    centers: str | None,
    model: str | None,
    report: str | None,
    columns: tuple[str, ...],
    exclude: tuple[str, ...],
    ids: tuple[str, ...],
    no_scale: bool,
    algorithm: str,
    starts: int | None,
    seed: int,
    **read: Any,
) -> None:
    """Cluster the rows of DATA: CSV, TSV, Parquet, Feather or Arrow; - is standard input.

    Cells that are empty or say NA, NaN, null, ? and the like are gaps; which were found is said.
    Columns of text and identifiers are set aside and carried through. Columns are standardised
    over their observed entries unless --no-scale.

    \b
    Examples:
      kpod fit data.csv -k 3 > clusters.csv
      kpod fit data.csv -k 3 -o clusters.parquet --report report.html --model wine.kpod
      kpod fit survey.csv -k 5 --missing -9 --missing 999 --exclude weight --id person
      zcat data.csv.gz | kpod fit - -k 3 --json -o clusters.csv | jq .clusters
    """
    output = output_for(output, as_json)
    check_outputs(data, {"-o": output, "--centers": centers, "--model": model, "--report": report})
    from kpod import _modelfile, _reading, _tables, _writing
    from kpod._progress import Progress

    with Progress(quiet) as progress:
        progress.doing(f"reading {data}")
        table = _reading.read_table(data, **read)
        check_label(table, label)
        choice = _tables.choose_columns(table, columns, exclude, ids)
        settings = {
            "n_clusters": clusters,
            "algorithm": algorithm,
            "n_init": starts or "auto",
            "random_state": seed,
        }
        progress.doing("clustering")
        clustering, pipeline, notes = cluster(table, choice, settings, not no_scale, progress)
        summary = summary_of(table, choice, clustering, notes, not no_scale)
        progress.doing("writing")
        if centers:
            _writing.write_table(centers_table(clustering, label), centers, table.dialect)
        if model:
            _modelfile.save(_modelfile.Model(pipeline, choice.used, list(read["missing"])), model)
        if report:
            progress.doing("drawing the report")
            write_report(table, choice, clustering, summary, report)
        if output:  # last: what has gone down a pipe cannot be taken back
            write_labels(table, label, clustering.labels, output)
    say(summary, quiet, as_json, written(output, centers, model, report))


@cli.command(short_help="Assign new rows to the clusters of a model.")
@in_file("model")
@in_file("data")
@labelling
@reading
def predict(
    model: str, data: str, output: str | None, label: str, quiet: bool, as_json: bool, **read: Any
) -> None:
    """Assign the rows of DATA, gaps and all, to the clusters of MODEL, made by kpod fit --model.

    Columns are matched by name; the marks of gaps given to kpod fit hold here too.

    \b
    Examples:
      kpod predict wine.kpod new.csv > clusters.csv
      kpod predict wine.kpod - -o clusters.parquet < new.csv
    """
    output = output_for(output, as_json)
    check_outputs(data, {"-o": output})
    check_outputs(model, {"-o": output})
    from kpod import _modelfile, _reading, _tables
    from kpod._progress import Progress

    with Progress(quiet) as progress:
        progress.doing(f"reading {data}")
        with noting() as notes:
            opened = _modelfile.load(model)
        read["missing"] = [*opened.missing, *read["missing"]]
        table = _reading.read_table(data, **read)
        check_label(table, label)
        known = {column.name for column in table.columns}
        absent = [_tables.shown(name) for name in opened.columns if name not in known]
        if absent:
            raise InputError(
                f"{table.source}: lacks {', '.join(absent[:8])}, which the model was fitted on; add the "
                "columns (empty where unknown), or fit a model without them."
            )
        aside = dict.fromkeys(sorted(known - set(opened.columns)), "not in the model")
        progress.doing("assigning rows")
        values = _tables.matrix(table, opened.columns, all_missing=True)
        labels = opened.pipeline.predict(values)
        if output:
            progress.doing("writing")
            write_labels(table, label, labels, output)
    kpod = opened.pipeline[-1]
    sizes = [int((labels == c).sum()) for c in range(kpod.n_clusters)]
    summary = {
        **summary_of_data(table, _tables.Choice(opened.columns, aside)),
        "clusters": [
            {"cluster": c, "rows": n, "sentence": f"cluster {c}: {n:,} rows"} for c, n in enumerate(sizes)
        ],
        "unassigned": int((labels < 0).sum()),
        "notes": notes,
    }
    say(summary, quiet, as_json, written(output))


@cli.command(short_help="What a table holds, and what it lacks.")
@in_file("data")
@reading
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def describe(data: str, as_json: bool, **read: Any) -> None:
    """Describe DATA: per column its type, share missing and range; the patterns of gaps.

    \b
    Examples:
      kpod describe data.csv
      kpod describe survey.csv --missing -9 --json | jq .columns
    """
    from kpod import _describe, _reading
    from kpod._progress import Progress

    with Progress(quiet=False) as progress:
        progress.doing(f"reading {data}")
        described = _describe.describe(_reading.read_table(data, **read), MOST_PATTERNS)
    if as_json:
        echo_json(described)
    else:
        _describe.show(described)


@cli.command(short_help="Cluster a bundled table, end to end.")
@click.option(
    "--report",
    type=click.Path(dir_okay=False),
    default=DEMO_REPORT,
    show_default=True,
    help="Where to write the report.",
)
def demo(report: str) -> None:
    """Cluster the bundled incomplete wine table, show what came out and write a report."""
    check_outputs("", {"--report": report})
    from kpod import _describe, _reading, _tables
    from kpod._progress import Progress
    from kpod.datasets import load_incomplete_wine

    wine = load_incomplete_wine()
    with Progress(quiet=False) as progress:
        table = _reading.read_table(wine.filename)
        table.source = "the bundled wine table"
        choice = _tables.choose_columns(table)
        clustering, _, notes = cluster(table, choice, {"n_clusters": 3, "random_state": 0}, True, progress)
        summary = summary_of(table, choice, clustering, notes, True)
        progress.doing("drawing the report")
        write_report(table, choice, clustering, summary, report)
    _describe.show_demo(summary, clustering, wine.target, str(Path(report).resolve()))


def output_for(output: str | None, as_json: bool) -> str | None:
    if not as_json:
        return output or "-"
    if output == "-":
        raise click.UsageError("--json and -o - both want standard output")
    return output


def check_outputs(data: str, outputs: dict[str, str | None]) -> None:
    """Whatever can be known to go wrong with the outputs, before the work is done."""
    taken = {Path(data).resolve(): "the data"} if data and data != "-" else {}
    streams = [option for option, path in outputs.items() if path == "-"]
    if streams and streams != ["-o"]:
        raise click.UsageError(f"{streams[-1]} needs the name of a file, not -")
    for option, path in outputs.items():
        if path is None or path == "-":
            continue
        target = Path(path).resolve()
        if target in taken:
            raise InputError(
                f"{option} {printable(path)} would overwrite {taken[target]}; give another name."
            )
        taken[target] = option
        check_writable(path)
        if option in ("-o", "--centers"):
            from kpod._writing import format_of

            format_of(path)


def check_label(table: TableFile, label: str) -> None:
    if label in [column.name for column in table.columns]:
        raise InputError(
            f"{table.source}: already has a column '{printable(label)}'; name ours otherwise with --label."
        )


@contextmanager
def noting() -> Iterator[list[str]]:
    """Warnings as notes, one line each."""
    import warnings

    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    notes += dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught)


def cluster(
    table: TableFile, choice: Choice, settings: dict[str, Any], scale: bool, progress: Any
) -> tuple[Clustering, Any, list[str]]:
    """Fit, keeping what the fit warns of."""
    import numpy as np
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    from kpod._estimator import KPOD
    from kpod._summary import Clustering

    values = choice.matrix(table)
    n_usable = int((~np.isnan(values)).any(axis=1).sum())
    if settings["n_clusters"] > n_usable:
        raise InputError(
            f"{table.source}: -k {settings['n_clusters']} asks for more clusters than there are rows with "
            f"anything observed ({n_usable:,}); ask for fewer."
        )
    kpod = KPOD(**settings, verbose=2 if progress.visible else 0)
    steps: list[tuple[str, Any]] = [("scale", StandardScaler())] if scale else []
    with noting() as notes, progress.following():
        pipeline = Pipeline([*steps, ("kpod", kpod)]).fit(values)
    kpod.set_params(verbose=0)
    return Clustering.of(pipeline, values, choice.used), pipeline, notes


def summary_of_data(table: TableFile, choice: Choice) -> dict[str, Any]:
    used = [table.column(name) for name in choice.used]
    marks: dict[str, int] = {}
    for column in used:
        for mark, n in column.marks.items():
            marks[mark] = marks.get(mark, 0) + n
    missing = sum(column.missing for column in used)
    return {
        "kpod": __version__,
        "data": table.source,
        "rows": table.n_rows,
        "columns": choice.used,
        "set_aside": choice.aside,
        "text_file": vars(table.dialect) if table.dialect else None,
        "missing": missing,
        "missing_share": missing / (table.n_rows * len(used)),
        "marks": dict(sorted(marks.items(), key=lambda item: -item[1])),
    }


def summary_of(
    table: TableFile, choice: Choice, c: Clustering, notes: list[str], scale: bool
) -> dict[str, Any]:
    from kpod._summary import finite

    kpod = c.kpod
    return {
        **summary_of_data(table, choice),
        "settings": {
            "clusters": kpod.n_clusters,
            "algorithm": kpod.algorithm,
            "starts": kpod.n_init,
            "seed": kpod.random_state,
            "scaled": scale,
        },
        "loss": float(kpod.inertia_),
        "iterations": len(kpod.loss_curve_),
        "converged": c.converged,
        "clusters": [
            {
                "cluster": cluster,
                "rows": int(c.sizes[cluster]),
                "sentence": c.sentence(cluster),
                "center": dict(zip(c.names, map(finite, c.centers[cluster]), strict=True)),
                "observed": dict(zip(c.names, map(int, c.counts[cluster]), strict=True)),
            }
            for cluster in range(c.k)
        ],
        "unassigned": int((c.labels < 0).sum()),
        "notes": notes,
    }


def write_labels(table: TableFile, label: str, labels: Any, output: str) -> None:
    from kpod import _writing

    typed = _writing.format_of(output) != "csv"
    _writing.write_table(_writing.with_labels(table, label, labels, typed=typed), output, table.dialect)


def centers_table(c: Clustering, label: str) -> Any:
    """A row for each cluster: its rows, its centers, and the observed entries behind each."""
    import pyarrow as pa

    table = pa.table({label: pa.array(range(c.k), pa.int32())})
    for name, values in zip(c.names, c.centers.T, strict=True):
        table = table.append_column(name, pa.array(values, from_pandas=True))
    counts = {f"observed {name}": values for name, values in zip(c.names, c.counts.T, strict=True)}
    for name, values in {"rows": c.sizes, **counts}.items():
        while name in table.column_names:  # a column of the user's has that name already
            name += "_"  # noqa: PLW2901
        table = table.append_column(name, pa.array(values).cast(pa.int64()))
    return table


def write_report(
    table: TableFile, choice: Choice, clustering: Clustering, summary: dict[str, Any], path: str
) -> None:
    from kpod._describe import report_source
    from kpod._report import Report

    ids = [name for name, why in choice.aside.items() if why.startswith("identifier")]
    settings = {key: str(value) for key, value in summary["settings"].items()}
    Report(
        clustering,
        title=f"Clusters in {table.source}",
        settings={"command": command_line(), **settings, "kpod": __version__},
        source=report_source(summary),
        row_names=table.raw[ids[0]] if ids else None,
    ).save(path)


def command_line() -> str:
    import shlex

    return shlex.join(["kpod", *sys.argv[1:]])


def written(*paths: str | None) -> list[str]:
    return [path for path in paths if path and path != "-"]


def say(summary: dict[str, Any], quiet: bool, as_json: bool, files: list[str]) -> None:
    if as_json:
        echo_json({**summary, "written": files})
    elif not quiet:
        from kpod._describe import show_fit

        show_fit(summary, files)


def echo_json(content: Any) -> None:
    import json

    click.echo(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False))
