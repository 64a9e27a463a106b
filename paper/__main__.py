"""python -m paper run|tables|claims|plot: the experiments of Chi, Chi & Baraniuk (2016)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from kpod._common.errors import InputError
from kpod._files.atomic import check_writable, written_whole
from paper import claims, results, tables
from paper.datasets import designs
from paper.methods import methods
from paper.progress import follow
from paper.running import make_plan
from paper.summary import Summary

MECHANISMS = ("MCAR", "MAR", "NMAR")
RESULTS = Path(__file__).parent / "results"
QUICK_TRIALS, QUICK_LIMIT = 2, 5


def names_of(kind: str, known: Iterable[str]) -> Callable[[str], list[str]]:
    """An argument type: names separated by commas, or a message with the list of known ones."""
    known = list(known)

    def parse(text: str) -> list[str]:
        names = [name.strip() for name in text.split(",") if name.strip()]
        unknown = [name for name in names if name not in known]
        if unknown or not names:
            said = ", ".join(map(repr, unknown)) or "none given"
            raise argparse.ArgumentTypeError(f"unknown {kind}: {said}; known are {', '.join(known)}")
        return [name for name in known if name in names]

    return parse


def at_least(least: int) -> Callable[[str], int]:
    """An argument type: a whole number that is not too small."""

    def parse(text: str) -> int:
        value = int(text) if text.lstrip("-").isdecimal() else None
        if value is None or value < least:
            raise argparse.ArgumentTypeError(f"must be a whole number, {least} or more, not {text!r}")
        return value

    return parse


def parser() -> argparse.ArgumentParser:
    everything = argparse.ArgumentParser(prog="python -m paper", description=__doc__)
    commands = everything.add_subparsers(dest="command", required=True)
    known_tables, known_methods = list(designs()), list(methods())

    def add(name: str, text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument(
            "--results", type=Path, metavar="FILE", help="the results file (default: the full run's)"
        )
        command.add_argument(
            "--quick", action="store_true",
            help=f"results file of a few minutes: {QUICK_TRIALS} trials, at most {QUICK_LIMIT} seconds a fit",
        )  # fmt: skip
        if name != "claims":
            command.add_argument(
                "--tables", type=names_of("table", known_tables), default=known_tables, metavar="NAMES",
                help=f"some of {', '.join(known_tables)} (default: all)",
            )  # fmt: skip
        return command

    run = add("run", "Run the experiments. What the results file holds already is not run again.")
    run.add_argument(
        "--methods", type=names_of("method", known_methods), default=known_methods, metavar="NAMES",
        help=f"some of {', '.join(known_methods)} (default: all)",
    )  # fmt: skip
    run.add_argument(
        "--mechanisms", type=names_of("mechanism", MECHANISMS), default=list(MECHANISMS), metavar="NAMES",
        help=f"some of {', '.join(MECHANISMS)} (default: all)",
    )  # fmt: skip
    run.add_argument("--trials", type=at_least(1), help="per cell (default: 100)")
    run.add_argument("--seed", type=at_least(0), default=2016, help="of all data (default: %(default)s)")
    run.add_argument("--workers", type=at_least(1), default=1, help="processes (default: %(default)s)")
    run.add_argument(
        "--time-limit", type=at_least(1), metavar="SECONDS",
        help="of the processor, for one fit; a cell in which one goes over it stays empty (default: 120)",
    )  # fmt: skip

    show = add("tables", "Show the tables of what has been run.")
    show.add_argument("--format", choices=list(tables.FORMATS), default="text", help="(default: %(default)s)")
    show.add_argument(
        "--scores", type=names_of("score", tables.SCORES), default=["rand", "ari", "seconds"],
        metavar="NAMES", help=f"some of {', '.join(tables.SCORES)} (default: rand,ari,seconds)",
    )  # fmt: skip
    show.add_argument("--output", type=Path, metavar="FILE", help="write to a file")

    say = add("claims", "Say which of the paper's claims hold in what has been run.")
    say.add_argument("--format", choices=["text", "markdown"], default="text", help="(default: %(default)s)")
    say.add_argument("--output", type=Path, metavar="FILE", help="write to a file")

    plot = add("plot", "Draw Rand scores and seconds against the percentage missing.")
    plot.add_argument(
        "--output", type=Path, default=Path(), metavar="FOLDER", help="where the pictures go (default: here)"
    )
    return everything


def results_file(options: argparse.Namespace) -> Path:
    return options.results or RESULTS / ("quick.csv" if options.quick else "full.csv")


def run(options: argparse.Namespace) -> None:
    trials = options.trials or (QUICK_TRIALS if options.quick else 100)
    limit = options.time_limit or (QUICK_LIMIT if options.quick else 120)
    plan = make_plan(options.tables, options.methods, options.mechanisms, trials, limit)
    RESULTS.mkdir(exist_ok=True)
    with results.opened(results_file(options), options.seed) as file:
        follow(plan, file, seed=options.seed, n_workers=options.workers)


def summary_of(options: argparse.Namespace) -> Summary:
    return Summary(results.read(results_file(options))[1])


def put(text: str, output: Path | None) -> None:
    if output is None:
        sys.stdout.write(text)
        return
    check_writable(output)
    with written_whole(output) as file:
        file.write(text.encode())


def show_tables(options: argparse.Namespace) -> None:
    summary = summary_of(options)
    sheets = tables.make_sheets(summary, options.tables, options.scores)
    put(tables.FORMATS[options.format](summary, sheets), options.output)


def show_claims(options: argparse.Namespace) -> None:
    summary = summary_of(options)
    found, ranked = claims.check_claims(summary), claims.rankings(summary)
    put(claims.as_text(found, ranked, markdown=options.format == "markdown"), options.output)


def plot(options: argparse.Namespace) -> None:
    from paper.plot import draw

    if not options.output.is_dir():
        raise InputError(f"{options.output}: is not a folder; make it first.")
    summary = summary_of(options)
    for table in options.tables:
        path = draw(summary, table, options.output)
        print(path if path else f"{table}: not run, nothing to draw")


COMMANDS = {"run": run, "tables": show_tables, "claims": show_claims, "plot": plot}


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser().parse_args(arguments)
    try:
        COMMANDS[options.command](options)
    except (InputError, results.ResultsError) as error:
        sys.exit(f"python -m paper: {error}")
    except KeyboardInterrupt:
        sys.exit("\npython -m paper: interrupted; the same command goes on from here.")
    except BrokenPipeError:
        sys.exit(1)


if __name__ == "__main__":
    main()
