"""Timing, scoring and printing, shared by all benchmarks."""

from __future__ import annotations

import csv
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

RESULTS = Path(__file__).parent / "results"


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    """The result of a call and the seconds it took; warnings of the peers are not news here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        result = function()
        return result, time.perf_counter() - began


def ari(truth: np.ndarray, labels: np.ndarray) -> float:
    return float(adjusted_rand_score(truth, labels))


def progress(text: str) -> None:
    """What is running, on the terminal only."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()


def geometric_mean(values: Iterable[float]) -> float:
    return float(np.exp(np.mean(np.log(list(values)))))


class Sheet:
    """A table of results: printed as Markdown, kept as CSV."""

    def __init__(self, name: str, title: str, columns: list[str]) -> None:
        self.name, self.title, self.columns = name, title, columns
        self.rows: list[list[Any]] = []

    def add(self, *cells: Any) -> None:
        self.rows.append(list(cells))

    def column(self, name: str, **where: Any) -> list[Any]:
        """The cells of one column, of the rows that match."""
        wanted = {self.columns.index(key): value for key, value in where.items()}
        at = self.columns.index(name)
        return [row[at] for row in self.rows if all(row[i] == value for i, value in wanted.items())]

    def show(self) -> None:
        self.save()
        progress("")
        print(f"\n## {self.title}\n")
        print("| " + " | ".join(self.columns) + " |")
        print("|" + "---|" * len(self.columns))
        for row in self.rows:
            print("| " + " | ".join(map(_cell, row)) + " |")
        sys.stdout.flush()

    def save(self) -> None:
        """Keep what there is so far."""
        RESULTS.mkdir(exist_ok=True)
        with (RESULTS / f"{self.name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            writer.writerows(self.rows)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    return str(value)
