"""Adjusted Rand scores of KPOD and its peers under the ways in which values go missing.

Three classes in 300 rows and 12 columns; a third of the entries go, by each generator of
`kpod.missingness`. Every fit is a line of the results file, which grows: what it holds is not run again, so
a run can be interrupted. The fast methods see 20 tables of each kind, mice and mi the first few of them;
`METHODS` (names with commas) and `N_TABLES` in the environment ask for less.
"""

# Every mechanism takes the table, the classes and the randomness, whichever of them it needs.
# ruff: noqa: ARG005

from __future__ import annotations

import csv
import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.harness import RESULTS, ari, progress
from kpod.missingness import (
    by_class,
    by_driver,
    by_nuisance_group,
    by_row,
    by_value,
    detection_limit,
    dropout,
    mcar,
    modules,
)
from paper.datasets import Problem
from paper.methods import methods

FIRST_SEED = 7000
N_CLASSES, N_ROWS, N_COLUMNS, SPREAD = 3, 300, 12, 0.8
SHARE = 1 / 3
LIMIT = 120  # processor seconds for a fit in R
FILE = RESULTS / "mechanisms.csv"
COLUMNS = ["mechanism", "method", "seed", "ari"]

MECHANISMS: dict[str, Callable[..., np.ndarray]] = {
    "chance (MCAR)": lambda X, y, rng: mcar(X, SHARE, rng),
    "by class (MNARz)": lambda X, y, rng: by_class(X, SHARE, rng, labels=y),
    "by value (MNARy)": lambda X, y, rng: by_value(X, SHARE, rng),
    "detection limit": lambda X, y, rng: detection_limit(X, SHARE, rng),
    "modules": lambda X, y, rng: modules(X, SHARE, rng, size=4),
    "modules by class": lambda X, y, rng: modules(X, SHARE, rng, size=4, labels=y),
    "dropout": lambda X, y, rng: dropout(X, SHARE, rng),
    "dropout by class": lambda X, y, rng: dropout(X, SHARE, rng, labels=y),
    "rows that answer little": lambda X, y, rng: by_row(X, SHARE, rng),
    "nuisance group": lambda X, y, rng: by_nuisance_group(X, SHARE, rng),
    "one driver": lambda X, y, rng: by_driver(X, SHARE, rng),
}


def stepmix_with_gaps(problem: Problem) -> np.ndarray:
    """StepMix with the values as Gaussian columns and which are missing as binary ones."""
    from stepmix.stepmix import StepMix

    gaps = np.isnan(problem.X)
    gaps = gaps[:, gaps.any(axis=0)]
    model = StepMix(
        problem.n_clusters,
        measurement={
            "values": {"model": "gaussian_diag_nan", "n_columns": problem.X.shape[1]},
            "gaps": {"model": "binary", "n_columns": gaps.shape[1]},
        },
        random_state=problem.seed,
        progress_bar=0,
        verbose=0,
    )
    both = np.hstack([problem.X, gaps])
    return model.fit(both).predict(both)


def of_paper(name: str) -> Callable[[Problem], np.ndarray]:
    """A method of the paper's tables, with ten starts where it has them."""
    return lambda problem: methods()[name].fit(problem)[-1].labels


METHODS: dict[str, tuple[int, Callable[[Problem], np.ndarray]]] = {
    "ignore": (20, of_paper("default")),
    "informative": (20, of_paper("informative")),
    "auto": (20, of_paper("auto")),
    "mean filling": (20, of_paper("mean")),
    "StepMix with gaps": (20, stepmix_with_gaps),
    "mice": (5, of_paper("mice")),
    "mi": (3, of_paper("mi")),
}


def make_problem(mechanism: str, seed: int) -> tuple[Problem, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(N_CLASSES, size=N_ROWS)
    complete = SPREAD * rng.normal(size=(N_CLASSES, N_COLUMNS))[truth] + rng.normal(size=(N_ROWS, N_COLUMNS))
    X = MECHANISMS[mechanism](complete, truth, rng)
    X = (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)
    return Problem(X, complete, N_CLASSES, seed, LIMIT), truth


def score(mechanism: str, method: str, seed: int) -> str:
    """The adjusted Rand score, or why there is none."""
    problem, truth = make_problem(mechanism, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return f"{ari(truth, METHODS[method][1](problem)):.4f}"
        except Exception as error:  # whatever a peer raises is its result
            return f"{type(error).__name__}: {error}"[:100]


def done() -> list[dict[str, str]]:
    if not FILE.exists():
        return []
    with FILE.open(newline="") as file:
        return list(csv.DictReader(file))


def left() -> Iterator[tuple[str, str, int]]:
    """Table by table, so that what is cut short covers every mechanism and method."""
    known = {(line["mechanism"], line["method"], int(line["seed"])) for line in done()}
    wanted = os.environ.get("METHODS", ",".join(METHODS)).split(",")
    most = int(os.environ.get("N_TABLES", "20"))
    for draw in range(min(most, max(n for n, _ in METHODS.values()))):
        for method, (n, _) in METHODS.items():
            for mechanism in MECHANISMS:
                task = mechanism, method, FIRST_SEED + draw
                if draw < n and method in wanted and task not in known:
                    yield task


def table() -> tuple[list[str], list[list[str]]]:
    """The mean score by mechanism and method; what failed is counted."""
    found: dict[tuple[str, str], list[str]] = {}
    for line in done():
        found.setdefault((line["mechanism"], line["method"]), []).append(line["ari"])

    def cell(mechanism: str, method: str) -> str:
        texts = found.get((mechanism, method), [])
        numbers = [float(text) for text in texts if is_number(text)]
        failed = f" ({len(texts) - len(numbers)} failed)" if len(numbers) < len(texts) else ""
        return (f"{np.mean(numbers):.2f}" if numbers else "") + failed

    counts = {
        method: {len(found.get((mechanism, method), [])) for mechanism in MECHANISMS} for method in METHODS
    }
    header = ["", *(f"{method} ({'-'.join(map(str, sorted(n)))})" for method, n in counts.items())]
    return header, [[mechanism, *(cell(mechanism, method) for method in METHODS)] for mechanism in MECHANISMS]


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def run() -> None:
    new = not FILE.exists()
    with FILE.open("a", newline="") as file:
        writer: Any = csv.writer(file)
        if new:
            writer.writerow(COLUMNS)
        for task in list(left()):
            progress(", ".join(map(str, task)))
            writer.writerow([*task, score(*task)])
            file.flush()
    progress("")
    header, rows = table()
    for line in (header, ["---"] * len(header), *rows):
        print("| " + " | ".join(line) + " |")
