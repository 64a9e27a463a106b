"""Run the fits that are still to be done, each with a limit, on one or several processes.

A worker is a process that takes one fit after another. A fit that uses up its processor time, or
crashes, takes its worker with it: that is noted as its outcome, and another worker goes on. A
worker that was killed from outside is not the method's failure: its fit is run again.
"""

from __future__ import annotations

import multiprocessing
import resource
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from time import monotonic

from threadpoolctl import threadpool_limits

from paper.datasets import Cell, designs, make_problem
from paper.methods import MethodError, OverTimeError, methods
from paper.methods._r import PATIENCE
from paper.objective import FAILED, OVER_TIME, UNAVAILABLE, Outcome, judge
from paper.results import Record, Results

KILLED = "killed from outside"
FROM_OUTSIDE = {signal.SIGKILL, signal.SIGTERM, signal.SIGHUP}
MOST_KILLS = 3
TERMINATED = 128 + signal.SIGTERM


@dataclass(frozen=True)
class Task:
    """One fit: a method on the table of one trial."""

    cell: Cell
    trial: int
    method: str

    def __str__(self) -> str:
        return f"{self.method}, {self.cell}, trial {self.trial}"


@dataclass
class Plan:
    """What is to be run, and what need not be any more.

    A cell is empty if the method ran out of time in any trial; the rest of its trials are not run.
    What ran out of a shorter time than is given now is tried again, and so is what was not installed,
    or killed from outside.
    """

    tasks: list[Task]
    limit: int
    done: set[Task] = field(default_factory=set)
    over_time: set[tuple[Cell, str]] = field(default_factory=set)

    def note(self, records: Iterable[Record]) -> None:
        known = methods()
        of_row = {row: method for method in known.values() for row in method.rows}
        rows: dict[Task, set[str]] = {}
        for record in records:
            if record.row not in of_row:
                continue
            method = of_row[record.row]
            task = Task(record.cell, record.trial, method.name)
            again = record.outcome.status == OVER_TIME and record.limit < self.limit
            again |= record.outcome.reason.startswith(KILLED)
            if again or record.outcome.status == UNAVAILABLE:
                continue
            rows.setdefault(task, set()).add(record.row)
            if rows[task] == set(method.rows):
                self.done.add(task)
            if record.outcome.status == OVER_TIME:
                self.over_time.add((record.cell, method.name))

    def wanted(self, task: Task) -> bool:
        return task not in self.done and (task.cell, task.method) not in self.over_time

    def left(self) -> list[Task]:
        return [task for task in self.tasks if self.wanted(task)]


def make_plan(
    tables: Iterable[str], names: Iterable[str], mechanisms: Iterable[str], trials: int, limit: int
) -> Plan:
    """All fits asked for: trial by trial, so that what is cut short covers every cell."""
    known, chosen = designs(), [methods()[name] for name in names]
    cells = [
        Cell(table, mechanism, percent)
        for table in tables
        for mechanism, percents in known[table].percents.items()
        if mechanism in mechanisms
        for percent in percents
    ]
    tasks = [
        Task(cell, trial, method.name)
        for trial in range(trials)
        for cell in cells
        for method in chosen
        if method.mechanisms is None or cell.mechanism in method.mechanisms
    ]
    return Plan(tasks, limit)


def fit(task: Task, seed: int, limit: int) -> list[Outcome]:
    """The outcome of each row of the task's method."""
    method = methods()[task.method]
    problem, truth = make_problem(designs()[task.cell.table], task.cell, task.trial, seed, limit)
    lacking = method.missing()
    if lacking:
        return [Outcome(UNAVAILABLE, lacking)] * len(method.rows)
    try:
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")  # of the methods; what counts is how they do
            found = method.fit(problem)
    except OverTimeError as error:
        return [Outcome(OVER_TIME, str(error))] * len(method.rows)
    except MethodError as error:
        return [Outcome(FAILED, str(error))] * len(method.rows)
    except Exception as error:  # whatever a method raises is its result
        return [Outcome(FAILED, f"{type(error).__name__}: {error}"[:200])] * len(method.rows)
    return [judge(problem.X, truth, one.labels, one.seconds) for one in found]


def work(tasks: Connection, seed: int, limit: int) -> None:
    """The life of a worker: it ends when nobody is left to send it a task."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))  # so that R, where it runs, is ended too
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    while True:
        try:
            task = tasks.recv()
            used = resource.getrusage(resource.RUSAGE_SELF)
            spent = int(used.ru_utime + used.ru_stime)
            resource.setrlimit(resource.RLIMIT_CPU, (spent + limit + 1, hard))
            tasks.send(fit(task, seed, limit))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return


class Worker:
    """A process that fits, seen from outside."""

    def __init__(self, seed: int, limit: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.limit = limit
        self.tasks, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, seed, limit), daemon=True)
        self.process.start()
        theirs.close()
        self.task: Task | None = None
        self.began = 0.0

    def give(self, task: Task) -> None:
        self.task, self.began = task, monotonic()
        self.tasks.send(task)

    @property
    def late(self) -> bool:
        """Whether it stands still: processor time is limited, sleep is not."""
        return monotonic() - self.began > (PATIENCE + 1) * self.limit

    def take(self, task: Task) -> list[Outcome]:
        """The outcomes of its task, be it that they are those of a process that is gone."""
        try:
            if self.tasks.poll():
                return self.tasks.recv()
            outcome = Outcome(OVER_TIME, "stood still")
        except (EOFError, ConnectionResetError):
            self.process.join()
            outcome = outcome_of_dead(self.process.exitcode or 0, self.limit)
        return [outcome] * len(methods()[task.method].rows)

    def end(self) -> None:
        self.tasks.close()
        if self.task is not None:
            self.process.terminate()
        self.process.join(timeout=5)
        self.process.kill()
        self.process.join()


def outcome_of_dead(code: int, limit: int) -> Outcome:
    """What to note for a fit whose process ended with this code."""
    if -code == signal.SIGXCPU:
        return Outcome(OVER_TIME, f"over {limit} s")
    if -code in FROM_OUTSIDE or code == TERMINATED:
        name = signal.Signals(-code if code < 0 else signal.SIGTERM).name
        return Outcome(FAILED, f"{KILLED} ({name}), perhaps for want of memory")
    if code < 0:
        return Outcome(FAILED, f"the process was killed ({signal.Signals(-code).name})")
    return Outcome(FAILED, f"the process ended with status {code}")


def run(plan: Plan, results: Results, *, seed: int, n_workers: int) -> Iterator[list[Task]]:
    """Run what the plan has left; yields what is running, at every change and every second."""
    plan.note(results.records)
    waiting, kills, again = iter(plan.tasks), Counter[Task](), list[Task]()
    workers: list[Worker] = []
    try:
        workers += [Worker(seed, plan.limit) for _ in range(min(n_workers, len(plan.left())))]
        while True:
            for worker in workers:
                if worker.task is None:
                    task = again.pop() if again else next(filter(plan.wanted, waiting), None)
                    if task is None:
                        break
                    worker.give(task)
            running = {worker: worker.task for worker in workers if worker.task is not None}
            yield list(running.values())
            if not running:
                return
            ready = wait([worker.tasks for worker in running], timeout=1)
            for worker, task in running.items():
                if worker.tasks not in ready and not worker.late:
                    continue
                outcomes = worker.take(task)
                kills[task] += outcomes[0].reason.startswith(KILLED)
                if outcomes[0].reason.startswith(KILLED) and kills[task] < MOST_KILLS:
                    again.append(task)
                else:
                    note(task, outcomes, plan, results)
                if outcomes[0].status == OVER_TIME or not worker.process.is_alive():
                    worker.end()
                    workers[workers.index(worker)] = Worker(seed, plan.limit)
                worker.task = None
    finally:
        for worker in workers:
            worker.end()


def note(task: Task, outcomes: list[Outcome], plan: Plan, results: Results) -> None:
    """Put the outcomes on record before anything else is done."""
    records = [
        Record(task.cell, task.trial, row, outcome, plan.limit)
        for row, outcome in zip(methods()[task.method].rows, outcomes, strict=True)
    ]
    results.append(records)
    plan.note(records)
