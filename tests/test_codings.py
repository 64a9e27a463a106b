"""The answer does not depend on how yes/no is written, and a category counts as one column."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline

from kpod import KPOD, TableEncoder

YES_NO = ("sex", "clutch")


def table(seed: int, n: int = 150) -> pd.DataFrame:
    """Three overlapping species with two yes/no columns, and gaps of which some go with the species."""
    rng = np.random.default_rng(seed)
    species = rng.integers(3, size=n)
    centers = 2.5 * rng.normal(size=(3, 4))
    frame = pd.DataFrame(
        centers[species] + rng.normal(size=(n, 4)), columns=["bill", "depth", "flipper", "mass"]
    )
    for name in YES_NO:
        frame[name] = (rng.random(n) < rng.uniform(0.2, 0.8, size=3)[species]).astype(float)
    rates = rng.uniform(0, 0.3, size=(3, 6))[species]
    return frame.mask(rng.random(frame.shape) < rates)


def as_text(values: pd.Series) -> pd.Series:
    return values.map({0.0: "no", 1.0: "yes"}).astype(object).where(values.notna(), None)


CODINGS = {
    "text": as_text,
    "bool": lambda values: values.astype("boolean"),
    "reversed": lambda values: 1 - values,
    "reversed text": lambda values: as_text(1 - values),
    "1/2": lambda values: 1 + values,
    "category": lambda values: as_text(values).astype("category"),
}


def coded(frame: pd.DataFrame, coding: str) -> pd.DataFrame:
    return frame.assign(**{name: CODINGS[coding](frame[name]) for name in YES_NO})


def fitted(frame: pd.DataFrame, scale: str = "standard", **parameters: object) -> KPOD:
    return make_pipeline(TableEncoder(scale=scale), KPOD(random_state=0, **parameters)).fit(frame)[-1]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "parameters",
    [
        {"n_clusters": 3},
        {"n_clusters": 3, "missingness": "informative"},
        {"n_clusters": 3, "missingness": "auto"},
        {"n_clusters": "auto"},
    ],
    ids=["fixed", "informative", "auto gaps", "auto k"],
)
@pytest.mark.parametrize("seed", range(3))
def test_the_answer_does_not_depend_on_how_yes_is_written(seed: int, parameters: dict[str, object]) -> None:
    frame = table(seed)
    plain = fitted(frame, **parameters)
    for coding in CODINGS if parameters["n_clusters"] == 3 else ("text", "reversed"):
        other = fitted(coded(frame, coding), **parameters)
        assert other.n_clusters_ == plain.n_clusters_, coding
        assert adjusted_rand_score(plain.labels_, other.labels_) == 1, coding
        assert other.objective_ == pytest.approx(plain.objective_), coding
        if parameters.get("missingness") == "auto":
            assert other.gap_choice_.use == plain.gap_choice_.use, coding
