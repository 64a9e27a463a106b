"""python -m paper run|tables|claims|plot: the experiments of Chi, Chi & Baraniuk (2016)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from paper.datasets import designs
from paper.methods import methods
from paper.results import ResultsError, opened
from paper.running import make_plan
from paper.showing import follow

MECHANISMS = ("MCAR", "MAR", "NMAR")


def names_of(kind: str, known: Iterable[str]) -> object:
    """An argument type: names separated by commas, or a message with the list of known ones."""
    known = list(known)

    def parse(text: str) -> list[str]:
        names = [name.strip() for name in text.split(",") if name.strip()]
        unknown = [name for name in names if name not in known]
        if unknown or not names:
            said = ", ".join(unknown) or "nothing"
            raise argparse.ArgumentTypeError(f"unknown {kind}: {said}; known are {', '.join(known)}")
        return list(dict.fromkeys(names))

    return parse


def at_least(least: int) -> object:
    def parse(text: str) -> int:
        value = int(text) if text.lstrip("-").isdecimal() else None
        if value is None or value < least:
            raise argparse.ArgumentTypeError(f"must be a whole number, {least} or more, not {text!r}")
        return value

    return parse


def parser() -> argparse.ArgumentParser:
    everything = argparse.ArgumentParser(prog="python -m paper", description=__doc__)
    commands = everything.add_subparsers(dest="command", required=True)
    tables, known = list(designs()), methods()

    def add(name: str, text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("--results", type=Path, default=Path("paper-results.csv"), metavar="FILE",
                             help="the results file (default: %(default)s)")  # fmt: skip
        command.add_argument("--tables", type=names_of("table", tables), default=tables, metavar="NAMES",
                             help=f"of {', '.join(tables)} (default: all)")  # fmt: skip
        return command

    run = add("run", "Run the experiments; what the results file holds already is not run again.")
    run.add_argument("--methods", type=names_of("method", known), default=list(known), metavar="NAMES",
                     help=f"of {', '.join(known)} (default: all)")  # fmt: skip
    run.add_argument("--mechanisms", type=names_of("mechanism", MECHANISMS), default=list(MECHANISMS),
                     metavar="NAMES", help=f"of {', '.join(MECHANISMS)} (default: all)")  # fmt: skip
    run.add_argument("--trials", type=at_least(1), default=100, help="per cell (default: %(default)s)")
    run.add_argument("--seed", type=at_least(0), default=2016, help="of the data (default: %(default)s)")
    run.add_argument("--workers", type=at_least(1), default=1, help="processes (default: %(default)s)")
    run.add_argument("--time-limit", type=at_least(1), default=120, metavar="SECONDS",
                     help="processor time of one fit; a cell in which one goes over it stays empty "
                          "(default: %(default)s)")  # fmt: skip
    run.add_argument("--quick", action="store_true",
                     help="every table in a few minutes: 2 trials, at most 5 seconds a fit")  # fmt: skip
    return everything


def run(options: argparse.Namespace) -> None:
    trials, limit = (2, 5) if options.quick else (options.trials, options.time_limit)
    plan = make_plan(options.tables, options.methods, options.mechanisms, trials, limit)
    with opened(options.results, options.seed) as results:
        follow(plan, results, seed=options.seed, n_workers=options.workers)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser().parse_args(arguments)
    try:
        {"run": run}[options.command](options)
    except ResultsError as error:
        sys.exit(f"python -m paper: {error}")
    except KeyboardInterrupt:
        sys.exit("\npython -m paper: interrupted; the same command goes on from here.")


if __name__ == "__main__":
    main()
