"""Numbers and categories together: scores against known classes, and time against KPrototypes.

The simulated design has 600 rows in 4 clusters, 4 numbers and 8 categories. How far the clusters are
apart was set by the peers: numbers alone get about .43, and StepMix, which knows the model the
table was drawn from, about .83. Gaps come at random, everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline

from benchmarks import peers
from benchmarks.harness import Sheet, ari, progress, timed
from kpod import KPOD, TablePreparer

HEART = Path(__file__).parents[1] / "tests" / "data" / "heart.csv"
MEASURED = ["age", "blood_pressure", "cholesterol", "heart_rate", "oldpeak", "vessels"]
FIRST_SEED = 1000
N_DRAWS = 4
DESIGNS = [("heart", 0.0), ("heart", 0.2), ("heart", 0.4), ("simulated", 0.0), ("simulated", 0.3)]
N_ROWS, N_PEER_ROWS = 100_000, 5_000


def heart() -> tuple[pd.DataFrame, np.ndarray]:
    table = pd.read_csv(HEART)
    truth = table.pop("disease").to_numpy()
    for name in table.columns.difference(MEASURED):
        table[name] = table[name].astype(str)
    return table, truth


def simulated(
    rng: np.random.Generator, n: int = 600, k: int = 4, numbers: int = 4, categories: int = 8,
    spread: float = 1.1, concentration: float = 1.3,
) -> tuple[pd.DataFrame, np.ndarray]:  # fmt: skip
    """Normal numbers, and categories of 3 to 5 levels with shares drawn for each cluster."""
    truth = rng.integers(k, size=n)
    values = spread * rng.normal(size=(k, numbers))[truth] + rng.normal(size=(n, numbers))
    columns = {f"x{j}": values[:, j] for j in range(numbers)}
    for j in range(categories):
        levels = int(rng.integers(3, 6))
        ends = rng.dirichlet(np.full(levels, concentration), k).cumsum(axis=1)
        codes = (rng.random(n)[:, None] > ends[truth]).sum(axis=1).clip(max=levels - 1)
        columns[f"c{j}"] = np.array([f"l{level}" for level in range(levels)])[codes]
    return pd.DataFrame(columns), truth


def is_number(table: pd.DataFrame) -> list[bool]:
    return [bool(pd.api.types.is_numeric_dtype(kind)) for kind in table.dtypes]


def numbers_only(table: pd.DataFrame, k: int, seed: int) -> np.ndarray:
    return make_pipeline(TablePreparer(categories="all"), KPOD(k, random_state=seed)).fit_predict(
        table.loc[:, is_number(table)]
    )


def everything(table: pd.DataFrame, k: int, seed: int) -> np.ndarray:
    return make_pipeline(TablePreparer(categories="all"), KPOD(k, random_state=seed)).fit_predict(table)


def filled(table: pd.DataFrame) -> pd.DataFrame:
    """Standardised numbers and words, gaps at the mean and the most common level."""
    out = table.copy()
    for name, number in zip(table.columns, is_number(table), strict=True):
        column = table[name]
        out[name] = (
            ((column - column.mean()) / column.std()).fillna(0.0)
            if number
            else column.fillna(column.mode()[0])
        )
    return out


def k_prototypes(table: pd.DataFrame, k: int, seed: int, n_init: int = 3) -> np.ndarray:
    model = peers.load("kmodes.kprototypes", "KPrototypes")(k, n_init=n_init, random_state=seed)
    categories = [j for j, number in enumerate(is_number(table)) if not number]
    return model.fit_predict(filled(table).to_numpy(), categorical=categories)


def stepmix(table: pd.DataFrame, k: int, seed: int) -> np.ndarray:
    """A mixture of normal and categorical columns, fitted to the observed entries by EM."""
    numbers = is_number(table)
    coded = table.copy()
    for name, number in zip(table.columns, numbers, strict=True):
        if number:
            coded[name] = (table[name] - table[name].mean()) / table[name].std()
        else:
            coded[name] = table[name].astype("category").cat.codes.astype(float).where(table[name].notna())
    kinds = {
        kind: {"model": model, "n_columns": len(names), "columns": names}
        for kind, model, names in (
            ("numbers", "continuous_nan", list(table.columns[numbers])),
            ("words", "categorical_nan", list(table.columns[~np.array(numbers)])),
        )
    }
    ordered = coded[[*kinds["numbers"]["columns"], *kinds["words"]["columns"]]]
    measurement = {
        kind: {"model": about["model"], "n_columns": about["n_columns"]} for kind, about in kinds.items()
    }
    model = peers.load("stepmix.stepmix", "StepMix")(
        n_components=k, measurement=measurement, n_init=3, random_state=seed, progress_bar=0, verbose=0
    )
    return model.fit(ordered).predict(ordered)


METHODS: dict[str, Callable[[pd.DataFrame, int, int], np.ndarray]] = {
    "KPOD, numbers only": numbers_only,
    "KPOD, TablePreparer": everything,
    "KPrototypes, filled first": k_prototypes,
    "StepMix, mixed": stepmix,
}


def scores() -> Sheet:
    sheet = Sheet("mixed", "Mixed columns: mean adjusted Rand score", ["design", "missing", "method", "ARI"])
    for design, missing in DESIGNS:
        draws = 1 if design == "heart" and not missing else N_DRAWS
        found: dict[str, list[float]] = {name: [] for name in METHODS}
        for seed in range(FIRST_SEED, FIRST_SEED + draws):
            rng = np.random.default_rng(seed)
            table, truth = heart() if design == "heart" else simulated(rng)
            table = table.mask(rng.random(table.shape) < missing)
            k = len(np.unique(truth))
            for name, method in METHODS.items():
                progress(f"{design} {missing:.0%} {seed} {name}")
                try:
                    labels, _ = timed(
                        lambda method=method, table=table, k=k, seed=seed: method(table, k, seed)
                    )
                    found[name].append(ari(truth, np.asarray(labels)))
                except peers.UnavailableError:
                    continue
        for name, values in found.items():
            sheet.add(
                design, f"{missing:.0%}", name, round(float(np.mean(values)), 2) if values else "unavailable"
            )
    return sheet


def speed() -> Sheet:
    sheet = Sheet(
        "mixed-speed",
        "100,000 x (14 + 6), 20 % missing, 5 clusters, one start",
        ["method", "rows", "seconds", "us a row"],
    )
    rng = np.random.default_rng(FIRST_SEED)
    table, _ = simulated(rng, N_ROWS, 5, 14, 6)
    table = table.mask(rng.random(table.shape) < 0.2)
    model = make_pipeline(TablePreparer(categories="all"), KPOD(5, n_init=1, random_state=0))
    _, ours = timed(lambda: model.fit(table))
    sheet.add("KPOD, TablePreparer", N_ROWS, round(ours, 2), round(1e6 * ours / N_ROWS, 1))
    try:
        some = table.head(N_PEER_ROWS)
        _, theirs = timed(lambda: k_prototypes(some, 5, 0, n_init=1))
        sheet.add("KPrototypes", N_PEER_ROWS, round(theirs, 2), round(1e6 * theirs / N_PEER_ROWS, 1))
    except peers.UnavailableError as error:
        sheet.add("KPrototypes", N_PEER_ROWS, str(error), "")
    return sheet


def run() -> None:
    scores().show()
    speed().show()
