"""Is missingness informative? Adjusted Rand score with gaps ignored, used, and used where "auto" says so.

Twenty tables a design, of seeds from 5000 on, which no rule was tuned on; change `N_DRAWS` and `DESIGNS`
(names, separated by semicolons; part of a name will do) in the environment. Every table is a line of
results/gaps.csv, which grows: what it holds is not run again.
"""

# Every change takes the table, the classes and the randomness, whichever of them it needs.
# ruff: noqa: ARG001, ARG005

from __future__ import annotations

import csv
import os
import warnings
from collections.abc import Callable

import numpy as np
from scipy.stats import norm
from sklearn.metrics import adjusted_rand_score

from benchmarks.harness import RESULTS, Sheet, progress
from kpod import KPOD
from kpod.datasets import make_mixture, make_perturbed_wine
from kpod.missingness import by_class, by_driver, detection_limit, dropout, mar, mcar, modules, nmar

FIRST_SEED = 5000
N_DRAWS = int(os.environ.get("N_DRAWS", "20"))
WANTED = os.environ.get("DESIGNS", "").split(";")
FILE = RESULTS / "gaps.csv"
COLUMNS = ["design", "seed", "ignored", "used", "auto uses them"]
MUCH = 0.05

Rng = np.random.Generator
Table = tuple[np.ndarray, np.ndarray]
Make = Callable[[Rng], Table]


def logistic(t: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-t))


def gone(X: np.ndarray, chance: np.ndarray, rng: Rng) -> np.ndarray:
    return np.where(rng.random(X.shape) < chance, np.nan, X)


def groups(rng: Rng, spread: float, n: int = 1000, p: int = 20, k: int = 4, shares: object = None) -> Table:
    y = rng.choice(k, size=n, p=shares)
    return spread * rng.normal(size=(k, p))[y] + rng.normal(size=(n, p)), y


def sportisse(rng: Rng, mean: float) -> Table:
    """The designs of Sportisse et al.: 6 columns, 3 classes of shares 1/2, 1/4, 1/4."""
    y = rng.choice(3, size=250, p=[0.5, 0.25, 0.25])
    return mean * np.tile(np.eye(3), 2)[y] + rng.normal(size=(250, 6)), y


def of_wine(remove: Callable[..., np.ndarray], share: float, **options: object) -> Make:
    def make(rng: Rng) -> Table:
        X, y = make_perturbed_wine(rng)
        return remove(X, share, rng, **options), y

    return make


def of_mixture(k: int, remove: Callable[..., np.ndarray], share: float) -> Make:
    def make(rng: Rng) -> Table:
        X, y = make_mixture(k, random_state=rng)
        return remove(X, share, rng), y

    return make


def of_groups(
    change: Callable[[np.ndarray, np.ndarray, Rng], np.ndarray], spread: float = 0.6, **options
) -> Make:
    def make(rng: Rng) -> Table:
        X, y = groups(rng, spread, **options)
        return change(X, y, rng), y

    return make


def mnarz(mean: float, by_class_: tuple[float, ...]) -> Make:
    def make(rng: Rng) -> Table:
        X, y = sportisse(rng, mean)
        return gone(X, norm.cdf(by_class_)[y][:, None], rng), y

    return make


def mnary(rng: Rng) -> Table:
    X, y = sportisse(rng, 2.31)
    return gone(X, norm.cdf(-1.38 + np.tile([1.45, 0.2, -3.0], 2) * X), rng), y


def nuisance(X: np.ndarray, y: np.ndarray, rng: Rng) -> np.ndarray:
    chance = np.full(X.shape, 0.1)
    chance[:, :10] = np.where(rng.random((len(X), 1)) < 0.5, 0.6, 0.1)
    return gone(X, chance, rng)


def effort(X: np.ndarray, y: np.ndarray, rng: Rng) -> np.ndarray:
    return gone(X, rng.beta(1, 2, size=(len(X), 1)), rng)


def three_drivers(X: np.ndarray, y: np.ndarray, rng: Rng) -> np.ndarray:
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    chance = np.zeros(X.shape)
    for b in range(3):
        chance[:, 3 + 5 * b : 8 + 5 * b] = logistic(2 * z[:, b : b + 1] - 0.5)
    return gone(X, chance, rng)


def factor(loading: float, n: int = 1) -> Callable[[np.ndarray, np.ndarray, Rng], np.ndarray]:
    """Factors on all columns drive the gaps."""

    def change(X: np.ndarray, y: np.ndarray, rng: Rng) -> np.ndarray:
        f = rng.normal(size=(len(X), n))
        on_gaps = np.full((1, X.shape[1]), 2.0) if n == 1 else 1.2 * rng.normal(size=(n, X.shape[1]))
        return gone(X + f @ (loading * rng.normal(size=(n, X.shape[1]))), logistic(f @ on_gaps - 0.8), rng)

    return change


def trend(X: np.ndarray, y: np.ndarray, rng: Rng) -> np.ndarray:
    """Values drift from the first row to the last, and ever more of half the columns is missing."""
    t = np.linspace(-1.5, 1.5, len(X))[:, None]
    chance = np.full(X.shape, 0.1)
    chance[:, ::2] = logistic(2 * t - 0.5)
    return gone(X + t * (0.5 * rng.normal(size=(1, X.shape[1]))), chance, rng)


def refusals(X: np.ndarray, y: np.ndarray, rng: Rng) -> np.ndarray:
    """One class refuses half of the questions."""
    chance = np.full(X.shape, 0.05)
    chance[:, :10] = np.where(y == 0, 0.6, 0.05)[:, None]
    return gone(X, chance, rng)


def heavy(rng: Rng) -> Table:
    y = rng.integers(4, size=1000)
    return mcar(0.8 * rng.normal(size=(4, 20))[y] + rng.standard_t(2, size=(1000, 20)), 0.3, rng), y


def uneven(rng: Rng) -> Table:
    y = rng.integers(4, size=1000)
    noise = np.array([0.5, 1, 1, 2])[y][:, None] * rng.normal(size=(1000, 20))
    return mcar(0.8 * rng.normal(size=(4, 20))[y] + noise, 0.3, rng), y


def one_column(X: np.ndarray, y: np.ndarray, rng: Rng) -> np.ndarray:
    chance = np.zeros(X.shape)
    chance[:, 3] = np.array([0.05, 0.3, 0.6, 0.95])[y]
    return gone(X, chance, rng)


def some_columns(X: np.ndarray, y: np.ndarray, rng: Rng) -> np.ndarray:
    chance = np.zeros(X.shape)
    chance[:, :5] = rng.uniform(0.05, 0.9, size=(4, 5))[y]
    return gone(X, chance, rng)


def forms(X: np.ndarray, y: np.ndarray, rng: Rng) -> np.ndarray:
    """Three versions of a form, each without a block of columns."""
    asked = rng.integers(3, size=(len(X), 1))
    block = np.repeat([-1, 0, 1, 2], [2, 6, 6, 6])
    return np.where(block == asked, np.nan, X)


def sites(X: np.ndarray, y: np.ndarray, rng: Rng) -> np.ndarray:
    rates = np.where(rng.random((5, X.shape[1])) < 0.3, 0.95, 0.08)
    return gone(X, rates[rng.integers(5, size=len(X))], rng)


def skips(X: np.ndarray, y: np.ndarray, rng: Rng) -> np.ndarray:
    """Answers decide which questions come next."""
    out = X.copy()
    out[np.ix_(X[:, 0] < np.quantile(X[:, 0], 0.4), range(1, 8))] = np.nan
    out[np.ix_(X[:, 10] > np.quantile(X[:, 10], 0.6), range(11, 17))] = np.nan
    return out


def weak_effort(X: np.ndarray, y: np.ndarray, rng: Rng) -> np.ndarray:
    u = 1.3 * rng.normal(size=len(X)) + np.array([-0.5, 0, 0, 0.5])[y]
    return gone(X, logistic(u - 0.8)[:, None] + 0 * X, rng)


def bursts(X: np.ndarray, y: np.ndarray, rng: Rng) -> np.ndarray:
    """Each column fails for 50 rows on end, six times."""
    out = X.copy()
    for j in range(X.shape[1]):
        for start in rng.integers(len(X), size=6):
            out[start : start + 50, j] = np.nan
    return out


def half_driven(X: np.ndarray, y: np.ndarray, rng: Rng) -> np.ndarray:
    chance = np.zeros(X.shape)
    chance[:, 4:] = logistic(2.5 * (X[:, :1] - X[:, 0].mean()) / X[:, 0].std() - 0.5)
    return gone(X, chance, rng)


def correlated(rng: Rng) -> Table:
    X, y = groups(rng, 0.8)
    return mcar(X + 0.8 * rng.normal(size=(1000, 1)), 0.3, rng), y


def limit_correlated(rng: Rng) -> Table:
    X, y = groups(rng, 0.8)
    return nmar(X + 0.4 * rng.normal(size=(1000, 1)), 0.3, rng), y


def upper_half(X: np.ndarray, y: np.ndarray, rng: Rng) -> np.ndarray:
    return detection_limit(X, 0.2, rng, end="high", columns=range(0, 20, 2))


SPEAKING: dict[str, tuple[Make, int]] = {
    **{f"wine NMAR {s} %": (of_wine(nmar, s / 100), 3) for s in (5, 15, 25, 35, 45)},
    **{f"mixture {k} NMAR {s} %": (of_mixture(k, nmar, s / 100), k) for k in (10, 25) for s in (50, 75)},
    "by class (MNARz)": (mnarz(2.85, (-1.1, 0.3, 0.0)), 3),
    "by class, harder": (mnarz(3.3, (-0.55, 0.25, 1.7)), 3),
    "by value (MNARy)": (mnary, 3),
    "detection limit, means .6": (of_groups(lambda X, y, r: nmar(X, 0.3, r)), 4),
    "detection limit, means 1": (of_groups(lambda X, y, r: nmar(X, 0.3, r), 1.0), 4),
    "80 rows by class": (
        of_groups(lambda X, y, r: gone(X, r.uniform(0.05, 0.7, size=(4, 20))[y], r), 1.0, n=80), 4,
    ),
    "both ends of the scale": (of_groups(lambda X, y, r: detection_limit(X, 0.3, r, end="both"), 0.7), 4),
    "one column by class": (of_groups(one_column), 4),
    "5 columns by class": (of_groups(some_columns), 4),
    "the upper end of half the columns": (of_groups(upper_half, 0.7), 4),
    "self-masking": (of_groups(lambda X, y, r: gone(X, logistic(-2 * X - 0.7), r), 0.7, n=600, k=5, p=15), 5),
    "weakly by class": (
        of_groups(lambda X, y, r: gone(X, np.where(r.random((4, 20)) < 0.5, 0.15, 0.4)[y], r)), 4,
    ),
    "unequal classes": (
        of_groups(
            lambda X, y, r: by_class(X, 0.35, r, labels=y), 1.0, n=400, p=10, k=3, shares=[0.7, 0.2, 0.1]
        ), 3,
    ),
    "detection limit, correlated columns": (limit_correlated, 4),
    "refusals of one class": (of_groups(refusals), 4),
    "detection limit and chance": (of_groups(lambda X, y, r: gone(nmar(X, 0.2, r), 0.15, r), 0.8), 4),
}  # fmt: skip
MISLEADING: dict[str, tuple[Make, int]] = {
    **{f"wine MCAR {s} %": (of_wine(mcar, s / 100), 3) for s in (5, 15, 25, 35, 45)},
    **{f"wine MAR {s} %": (of_wine(mar, s / 100, columns=[0, 3, 6]), 3) for s in (4, 8, 12, 16, 19)},
    **{f"mixture {k} MCAR {s} %": (of_mixture(k, mcar, s / 100), k) for k in (10, 25) for s in (50, 75)},
    **{f"nuisance group, means {m}": (of_groups(nuisance, m), 4) for m in (0.6, 1.0)},
    **{f"modules, means {m}": (of_groups(lambda X, y, r: modules(X, 0.4, r), m), 4) for m in (0.6, 1.0)},
    **{f"rows that answer little, means {m}": (of_groups(effort, m), 4) for m in (0.6, 1.0)},
    **{
        f"one driver, means {m}": (of_groups(lambda X, y, r: by_driver(X, 0.47, r), m), 4) for m in (0.6, 1.0)
    },
    "one driver, 8 clusters, 4 asked for": (of_groups(lambda X, y, r: by_driver(X, 0.47, r), k=8), 4),
    "a factor drives the gaps": (of_groups(factor(0.3)), 4),
    "a strong factor drives the gaps": (of_groups(factor(0.5)), 4),
    "two strong factors drive the gaps": (of_groups(factor(0.5, 2)), 4),
    "three factors drive the gaps, 6 clusters": (of_groups(factor(0.4, 3), 0.7, k=6), 6),
    "a trend drives values and gaps": (of_groups(trend), 4),
    "three drivers": (of_groups(three_drivers), 4),
    "modules by class": (of_groups(lambda X, y, r: modules(X, 0.4, r, labels=y)), 4),
    "dropout by class": (of_groups(lambda X, y, r: dropout(X, 0.4, r, labels=y)), 4),
    "dropout, 200 rows": (of_groups(lambda X, y, r: dropout(X, 0.3, r, labels=y), 0.9, n=200), 4),
    "heavy tails": (heavy, 4),
    "clusters of different spread": (uneven, 4),
    "correlated columns": (correlated, 4),
    "60 rows, 200 columns": (of_groups(lambda X, y, r: mcar(X, 0.4, r), 0.5, n=60, p=200, k=3), 3),
    "27 of 30 columns complete": (of_groups(lambda X, y, r: mar(X, 0.03, r, columns=[0, 1, 2]), p=30), 4),
    "2 % MCAR": (of_groups(lambda X, y, r: mcar(X, 0.02, r)), 4),
    "4 columns": (of_groups(lambda X, y, r: mcar(X, 0.2, r), 2.0, n=300, p=4, k=3), 3),
    "sizes 85/5/5/5": (of_groups(lambda X, y, r: mcar(X, 0.3, r), 0.8, shares=[0.85, 0.05, 0.05, 0.05]), 4),
    "three versions of a form": (of_groups(forms, 0.7), 4),
    "five sites": (of_groups(sites, 0.7), 4),
    "skipped questions": (of_groups(skips, 0.7), 4),
    "effort, weakly by class": (of_groups(weak_effort, 0.7), 4),
    "failures in bursts": (of_groups(bursts), 4),
    "one driver of half the columns": (of_groups(half_driven, 1.0, n=300, p=8, k=3), 3),
    "120 rows that answer little": (of_groups(effort, 1.0, n=120, p=10, k=3), 3),
}


def standardised(X: np.ndarray) -> np.ndarray:
    return (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)


def scores(make: Make, k: int, seed: int) -> tuple[float, float, bool]:
    """With gaps ignored and used, and whether "auto" uses them."""
    X, truth = make(np.random.default_rng(seed))
    X = standardised(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {
            how: KPOD(k, missingness=how, random_state=seed).fit(X)
            for how in ("ignore", "informative", "auto")
        }
    used = found["auto"].missingness_decision_.use
    same = found["informative" if used else "ignore"]
    assert (found["auto"].labels_ == same.labels_).all()
    return (
        adjusted_rand_score(truth, found["ignore"].labels_),
        adjusted_rand_score(truth, found["informative"].labels_),
        used,
    )


def done() -> list[dict[str, str]]:
    if not FILE.exists():
        return []
    with FILE.open(newline="") as file:
        return list(csv.DictReader(file))


def summarise(name: str, title: str, designs: dict[str, tuple[Make, int]]) -> None:
    columns = ["design", "ignored", "used", "auto", "auto uses them", "auto over .05 below ignored"]
    sheet = Sheet(name, f"{title} (adjusted Rand score)", columns)
    lines = done()
    for design in designs:
        here = [line for line in lines if line["design"] == design]
        if not here:
            continue
        plain, used = (np.array([float(line[how]) for line in here]) for how in ("ignored", "used"))
        chosen = np.array([line["auto uses them"] == "True" for line in here])
        auto = np.where(chosen, used, plain)
        sheet.add(
            design,
            *(f"{values.mean():.2f}" for values in (plain, used, auto)),
            f"{chosen.sum()} of {len(chosen)}",
            int((auto < plain - MUCH).sum()),
        )
    sheet.show()


def run() -> None:
    known, new = {(line["design"], int(line["seed"])) for line in done()}, not FILE.exists()
    designs = {
        name: how for name, how in (SPEAKING | MISLEADING).items() if any(part in name for part in WANTED)
    }
    with FILE.open("a", newline="") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(COLUMNS)
        for seed in range(FIRST_SEED, FIRST_SEED + N_DRAWS):
            for design, (make, k) in designs.items():
                if (design, seed) in known:
                    continue
                progress(f"{design}, seed {seed}")
                plain, used, chosen = scores(make, k, seed)
                writer.writerow([design, seed, f"{plain:.4f}", f"{used:.4f}", chosen])
                file.flush()
    summarise("gaps-speaking", "Informative missingness", SPEAKING)
    summarise("gaps-misleading", "Missingness that is not informative, or misleads", MISLEADING)
