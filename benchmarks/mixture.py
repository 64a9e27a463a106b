"""Adjusted Rand scores of KPOD, GaussianMixture and shape "auto", which chooses; the time of an EM step.

Designs in which k-means fails by shape, and some in which it does not, then labelled real tables with
values removed at random, and the larger the likelier (self-masked). Those of R packages need Rscript and the
package; the rule was made on those of `MADE_ON`, and the others were held back. Columns are standardised; the
true number of clusters is given. `N_TABLES` in the environment asks for fewer tables, `DESIGNS` (names with
commas) for some tables.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import time
import warnings
from collections.abc import Callable
from functools import cache, partial

import numpy as np
from sklearn import datasets

from benchmarks.harness import Sheet, ari, progress
from kpod import KPOD
from kpod._findings.shape_comparison import Compared

FIRST_SEED = 4000
N_TABLES = int(os.environ.get("N_TABLES", "20"))
Design = tuple[np.ndarray, np.ndarray]


def centers(rng: np.random.Generator, k: int, p: int, apart: float) -> np.ndarray:
    return apart * rng.normal(size=(k, p))


def ellipses(rng: np.random.Generator) -> Design:
    y = rng.integers(3, size=400)
    roots = rng.normal(size=(3, 8, 9)) / 3
    X = np.einsum("nij,nj->ni", roots[y], rng.normal(size=(400, 9)))
    return X + centers(rng, 3, 8, 1.1)[y], y


def common_factor(rng: np.random.Generator, apart: float = 0.95) -> Design:
    y = rng.integers(4, size=500)
    noise = np.sqrt(0.6) * rng.normal(size=(500, 1)) + np.sqrt(0.4) * rng.normal(size=(500, 10))
    return centers(rng, 4, 10, apart)[y] + noise, y


def sizes(rng: np.random.Generator) -> Design:
    y = rng.choice(4, p=[0.8, 0.12, 0.05, 0.03], size=500)
    return centers(rng, 4, 8, 1.6)[y] + rng.normal(size=(500, 8)), y


def spreads(rng: np.random.Generator) -> Design:
    y = rng.integers(3, size=450)
    return centers(rng, 3, 8, 1.1)[y] + np.array([0.3, 1, 2.5])[y][:, None] * rng.normal(size=(450, 8)), y


def wild_cells(rng: np.random.Generator, share: float) -> Design:
    y = rng.integers(3, size=400)
    X = centers(rng, 3, 8, 1.25)[y] + rng.normal(size=(400, 8))
    return X + (rng.random(X.shape) < share) * 25 * rng.normal(size=X.shape), y


def noise_columns(rng: np.random.Generator) -> Design:
    y = rng.integers(4, size=300)
    means = np.hstack([centers(rng, 4, 10, 0.9), np.zeros((4, 20))])
    return means[y] + rng.normal(size=(300, 30)), y


def likert(rng: np.random.Generator) -> Design:
    """Answers from 1 to 5, with a style of answering."""
    y = rng.integers(3, size=500)
    X = 3 + centers(rng, 3, 12, 0.8)[y] + 0.9 * rng.normal(size=(500, 1)) + 0.7 * rng.normal(size=(500, 12))
    return np.clip(np.round(X), 1, 5), y


def round_groups(rng: np.random.Generator, n: int = 400, p: int = 8) -> Design:
    y = rng.integers(4, size=n)
    return centers(rng, 4, p, 1.2)[y] + rng.normal(size=(n, p)), y


def joined(rng: np.random.Generator) -> Design:
    """Two surveys with four questions in common, and six that only one of them asks."""
    X, y = round_groups(rng, 600, 10)
    first = rng.random(600) < 0.5
    X[np.ix_(first, [4, 5, 6])] = np.nan
    X[np.ix_(~first, [7, 8, 9])] = np.nan
    return X, y


def own_scales(rng: np.random.Generator) -> Design:
    """Rows with scales of their own, which no Gaussian fits."""
    y = rng.integers(3, size=400)
    return (centers(rng, 3, 8, 1.2)[y] + rng.normal(size=(400, 8))) * np.exp(
        0.6 * rng.normal(size=(400, 1))
    ), y


DESIGNS: dict[str, tuple[Callable[[np.random.Generator], Design], float]] = {
    "ellipses": (ellipses, 0.3),
    "one common factor": (common_factor, 0.3),
    "sizes 80 / 12 / 5 / 3": (sizes, 0.3),
    "spreads 0.3 / 1 / 2.5": (spreads, 0.3),
    "1 % wild cells": (partial(wild_cells, share=0.01), 0.3),
    "5 % wild cells": (partial(wild_cells, share=0.05), 0.3),
    "20 noise columns of 30": (noise_columns, 0.3),
    "Likert answers": (likert, 0.3),
    "round": (round_groups, 0.3),
    "two surveys joined": (joined, 0.0),
    "round at 80 % missing": (partial(round_groups, n=2000, p=20), 0.8),
    "rows with scales of their own": (own_scales, 0.3),
    "one common factor and nearer centers": (partial(common_factor, apart=0.75), 0.3),
}


def of_scikit_learn(load: Callable[[], object]) -> Design:
    table = load()
    return table.data, table.target


@cache
def of_r(package: str, name: str, classes: str, without: tuple[str, ...] = ()) -> Design:
    """A table of an R package; the class is what the columns `classes` say together."""
    import pandas as pd

    text = subprocess.run(
        ["Rscript", "-e", f"data({name}, package = '{package}'); write.csv({name}, row.names = FALSE)"],
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    names = classes.split("+")
    frame = pd.read_csv(io.StringIO(text)).dropna(subset=names)
    y = pd.factorize(frame[names].astype(str).agg(" ".join, axis=1))[0]
    return frame.drop(columns=[*names, *without]).select_dtypes("number").to_numpy(float), y


def has_package(name: str) -> bool:
    if not shutil.which("Rscript"):
        return False
    found = subprocess.run(
        ["Rscript", "-e", f"cat(requireNamespace('{name}', quietly = TRUE))"],
        capture_output=True,
        check=False,
        text=True,
    )
    return "TRUE" in found.stdout


OF_R: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "biopsy": ("MASS", "biopsy", "class", ("ID",)),
    "crabs": ("MASS", "crabs", "sp+sex", ("index",)),
    "fgl (glass)": ("MASS", "fgl", "type", ()),
    "Pima": ("MASS", "Pima.tr", "type", ()),
    "banknote": ("mclust", "banknote", "Status", ()),
    "thyroid": ("mclust", "thyroid", "Diagnosis", ()),
    "diabetes": ("mclust", "diabetes", "class", ()),
    "penguins": ("palmerpenguins", "penguins", "species", ("year",)),
    "body": ("gclus", "body", "Gender", ()),
    "vehicle": ("mlbench", "Vehicle", "Class", ()),
    "vowel": ("mlbench", "Vowel", "Class", ("V1",)),
    "ionosphere": ("mlbench", "Ionosphere", "Class", ()),
}
MADE_ON = ("iris", "wine", "breast cancer", "biopsy", "crabs", "fgl (glass)", "Pima", "banknote", "thyroid")
REAL: dict[str, Callable[[], Design]] = {
    "iris": partial(of_scikit_learn, datasets.load_iris),
    "wine": partial(of_scikit_learn, datasets.load_wine),
    "breast cancer": partial(of_scikit_learn, datasets.load_breast_cancer),
}
PACKAGES = {package for package, *_ in OF_R.values()}
INSTALLED = {package for package in PACKAGES if has_package(package)}
REAL |= {name: partial(of_r, *of) for name, of in OF_R.items() if of[0] in INSTALLED}


def at_random(share: float) -> Callable[[np.ndarray, np.random.Generator], np.ndarray]:
    return lambda X, rng: with_gaps(X, share, rng)


def self_masked(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The larger an entry, the likelier it is missing; 30 % of all."""
    chance = 1 / (1 + np.exp(-1.5 * (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)))
    return with_gaps(X, np.nan_to_num(np.minimum(0.3 * chance / np.nanmean(chance), 0.95)), rng)


MECHANISMS = {
    "10 % missing": at_random(0.1),
    "30 % missing": at_random(0.3),
    "50 % missing": at_random(0.5),
    "self-masked": self_masked,
}


def with_gaps(X: np.ndarray, share: float | np.ndarray, rng: np.random.Generator) -> np.ndarray:
    gaps = (rng.random(X.shape) < share) | np.isnan(X)
    kept = np.where(np.isnan(X), 0.0, rng.random(X.shape)).argmax(axis=1)
    gaps[np.arange(len(X)), kept] &= gaps.sum(axis=1) < X.shape[1]
    X = np.where(gaps, np.nan, X)
    return (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)


def scores(X: np.ndarray, y: np.ndarray, seed: int) -> tuple[float, float, float, float, bool]:
    """Of KPOD, the mixture and "auto"; how many times longer that takes; whether it is round."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kpod = KPOD(len(np.unique(y)), random_state=seed).fit(X)
        one = time.process_time() - began
        compared = Compared.of(X, kpod, "auto", None, None)
        kept, _ = compared.refusal()
    times = (time.process_time() - began) / one
    of_kpod, of_mixture = (ari(y, model.labels_) for model in (kpod, compared.mixture))
    return of_kpod, of_mixture, of_kpod if kept else of_mixture, times, bool(kept)


def add(sheet: Sheet, name: str, results: list[tuple[float, float, float, float, bool]]) -> None:
    kpod, mixture, auto, times, kept = np.array(results, float).T
    error = (auto - kpod).std() / np.sqrt(len(results))
    means = (round(float(of.mean()), 2) for of in (kpod, mixture, auto))
    kept_round = f"{int(kept.sum())} of {len(kept)}"
    sheet.add(name, *means, round(float(error), 2), kept_round, round(float(np.median(times)), 1))
    sheet.save()


def run() -> None:
    sheet = Sheet(
        "mixture",
        "Groups that are not round",
        ["table", "KPOD", "mixture", "shape auto", "error", "kept round", "times"],
    )
    wanted = os.environ.get("DESIGNS", ",".join([*DESIGNS, *REAL])).split(",")
    for number, (name, (design, share)) in enumerate(DESIGNS.items()):
        if name not in wanted:
            continue
        results = []
        for seed in range(FIRST_SEED, FIRST_SEED + N_TABLES):
            progress(f"{name}, table {seed}")
            rng = np.random.default_rng([number, seed])
            X, y = design(rng)
            results.append(scores(with_gaps(X, share, rng), y, seed))
        add(sheet, name, results)
    for name, load in REAL.items():
        for mechanism, remove in MECHANISMS.items():
            if name not in wanted:
                continue
            results = []
            for seed in range(FIRST_SEED, FIRST_SEED + max(1, N_TABLES // 2)):
                progress(f"{name}, {mechanism}, table {seed}")
                X, y = load()
                results.append(scores(remove(X, np.random.default_rng([99, seed])), y, seed))
            add(sheet, f"{name}, {mechanism}", results)
    sheet.show()
    em_step()


def em_step() -> None:
    """The fastest EM step of 20,000 x 20, k = 5, with 2 factors in common, on one and two threads."""
    from kpod._engine.executors import threads
    from kpod._engine.table import make_table
    from kpod._mixture.covariance_shape import Shape
    from kpod._mixture.em.expectation import Entries
    from kpod._mixture.em.iteration import from_labels, smallest_variances
    from kpod._mixture.em.maximisation import Constraints, maximise
    from kpod._mixture.em.mixture_parameters import Prior

    rng = np.random.default_rng(0)
    y = rng.integers(5, size=20_000)
    X = rng.normal(size=(5, 20))[y] + rng.normal(size=(20_000, 2)) @ rng.normal(size=(2, 20))
    X = with_gaps(X + rng.normal(size=X.shape), 0.3, rng)
    shape = Shape("tied", 2)
    for n_threads in (1, 2):
        with threads(n_threads) as executor:
            table = make_table(X, executor)
            entries = Entries(table, executor)
            floor = smallest_variances(table.variances, table.live, 1e-6)
            within = Constraints(floor, table.fallback, Prior())
            parameters = from_labels(entries, shape, y.astype(np.int32), 5, within)
            best = np.inf
            for _ in range(50):
                began = time.perf_counter()
                parameters = maximise(shape, parameters, entries.sums(parameters), within)
                best = min(best, time.perf_counter() - began)
        print(f"EM step of 20,000 x 20, k = 5, 2 factors, {n_threads} threads: {1e3 * best:.1f} ms")
