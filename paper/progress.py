"""What a run shows while it runs: on a terminal a bar, in a log a line a minute."""

from __future__ import annotations

import sys
from time import monotonic

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from paper.results import Results
from paper.running import Plan, run

EVERY = 60.0


def follow(plan: Plan, results: Results, *, seed: int, n_workers: int) -> None:
    """Run the plan to its end, and say how far it is."""
    plan.note(results.records)
    total = len(plan.left())
    console = Console(stderr=True, highlight=False)
    columns = BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}")
    said = monotonic()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("", total=total)
        for running in run(plan, results, seed=seed, n_workers=n_workers):
            done = total - len(plan.left())
            text = "; ".join(map(str, running))
            progress.update(bar, completed=done, description=text)
            if not console.is_terminal and running and monotonic() - said > EVERY:
                said = monotonic()
                print(f"{done} of {total} fits done; running {text}", file=sys.stderr, flush=True)
    print(f"{total} fits run, {len(plan.tasks)} asked for: {results.file.name}", file=sys.stderr)
