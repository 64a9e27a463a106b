"""How many clusters: how often the number is right, next to peers; how sure; and what it costs.

The draws are those of seeds from 1000 on, which no rule was tuned on. To check with others, set
`FIRST_SEED` in the environment; `PARTS=cost,confidence,choices,gaps,peers` runs some parts only. Every answer
of `choices` and `peers` goes to results/choose_draws.csv at once, so that a run that was stopped can be
continued; delete that file after changing the rule.
"""

from __future__ import annotations

import csv
import os
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.metrics import silhouette_score

from benchmarks import peers
from benchmarks.gaps import MISLEADING, SPEAKING
from benchmarks.harness import RESULTS, Sheet, ari, progress, timed
from kpod import KPOD, choose_k
from kpod._mixture.confidence import soften
from kpod.datasets import make_mixture, make_perturbed_wine
from kpod.missingness import mcar

FIRST_SEED = int(os.environ.get("FIRST_SEED", "1000"))
N_DRAWS = int(os.environ.get("N_DRAWS", "20"))
N_LONG_DRAWS = int(os.environ.get("N_LONG_DRAWS", "20"))  # of the paper's mixtures, which take longest
N_PEER_DRAWS = int(os.environ.get("N_PEER_DRAWS", "5"))
N_GAP_DRAWS = int(os.environ.get("N_GAP_DRAWS", "5"))
PARTS = os.environ.get("PARTS", "cost,confidence,choices,gaps,peers").split(",")
DRAWS = RESULTS / "choose_draws.csv"

Table = tuple[np.ndarray, int]
Answer = tuple[int, bool, float]  # number, whether the choice was clear, processor seconds


def standardised(X: np.ndarray) -> np.ndarray:
    return (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)


def paper(k: int, missing: float) -> Callable[[np.random.Generator], Table]:
    return lambda rng: (mcar(make_mixture(k, random_state=rng)[0], missing, rng), k)


def wine(rng: np.random.Generator) -> Table:
    return standardised(mcar(load_wine().data, 0.25, rng)), 3


def noisy_wine(rng: np.random.Generator) -> Table:
    return standardised(mcar(make_perturbed_wine(rng)[0], 0.25, rng)), 3


def common(rng: np.random.Generator, n: int, p: int, r: float) -> np.ndarray:
    """Noise of variance 1; all columns have correlation r, by one factor."""
    return np.sqrt(r) * rng.normal(size=(n, 1)) + np.sqrt(1 - r) * rng.normal(size=(n, p))


def neighbours(rng: np.random.Generator, n: int, p: int, r: float) -> np.ndarray:
    """Noise of variance 1; columns d apart have correlation r^d."""
    noise = rng.normal(size=(n, p))
    for j in range(1, p):
        noise[:, j] = r * noise[:, j - 1] + np.sqrt(1 - r * r) * noise[:, j]
    return noise


def one_gaussian(kind: str, missing: float = 0.3) -> Callable[[np.random.Generator], Table]:
    def draw(rng: np.random.Generator) -> Table:
        X = {
            "independent": lambda: rng.normal(size=(500, 20)),
            "common": lambda: common(rng, 500, 20, 0.6),
            "neighbours": lambda: neighbours(rng, 500, 20, 0.6),
            "any": lambda: rng.normal(size=(500, 20)) @ rng.normal(size=(20, 20)) / 20**0.5,
        }[kind]()
        return mcar(X, missing, rng), 1

    return draw


def four(spread: float) -> Callable[[np.random.Generator], Table]:
    def draw(rng: np.random.Generator) -> Table:
        labels = rng.integers(4, size=1000)
        X = spread * rng.normal(size=(4, 20))[labels] + rng.normal(size=(1000, 20))
        return mcar(X, 0.3, rng), 4

    return draw


def three_correlated(r: float, kind: str, missing: float = 0.2) -> Callable[[np.random.Generator], Table]:
    def draw(rng: np.random.Generator) -> Table:
        labels = rng.integers(3, size=400)
        means = 1.5 * rng.normal(size=(3, 10))
        noise = (neighbours if kind == "neighbours" else common)(rng, 400, 10, r)
        if kind == "own":  # the same size of correlation, with other signs in every cluster
            noise *= rng.choice([-1, 1], size=(3, 10))[labels]
        return mcar(means[labels] + noise, missing, rng), 3

    return draw


# name: draw, numbers to choose from, share asked for, whether "no clear choice" will do
DESIGNS = {
    "wine, 25 % missing": (wine, range(1, 11), 0.9, False),
    "one Gaussian, independent": (one_gaussian("independent"), range(1, 11), 0.9, False),
    "one Gaussian, common factor, r = .6": (one_gaussian("common"), range(1, 11), 0.9, False),
    "one Gaussian, common factor, complete": (one_gaussian("common", 0), range(1, 11), 0.9, False),
    "4 clusters, means 0.6": (four(0.6), range(1, 11), 0.75, False),
    "4 clusters, means 1.0": (four(1.0), range(1, 11), 0.95, False),
    "3 clusters, common factor, r = .3": (three_correlated(0.3, "common"), range(1, 11), 0.8, True),
    "3 clusters, common factor, r = .6": (three_correlated(0.6, "common"), range(1, 11), 0.8, True),
    "3 clusters, common factor, r = .6, complete": (
        three_correlated(0.6, "common", 0),
        range(1, 11),
        0.8,
        True,
    ),
    "paper's mixture, k = 10, 25 % missing": (paper(10, 0.25), range(2, 31), 0.95, False),
    "paper's mixture, k = 10, 50 % missing": (paper(10, 0.5), range(2, 31), 0.95, False),
    "paper's mixture, k = 25, 25 % missing": (paper(25, 0.25), range(2, 31), 0.95, False),
    "paper's mixture, k = 25, 50 % missing": (paper(25, 0.5), range(2, 31), 0.95, False),
    "wine with noise, 25 % missing": (noisy_wine, range(1, 11), None, False),
    "one Gaussian, neighbours, r = .6": (one_gaussian("neighbours"), range(1, 11), None, False),
    "one Gaussian, any covariance": (one_gaussian("any"), range(1, 11), None, False),
    "3 clusters, neighbours, r = .6": (three_correlated(0.6, "neighbours"), range(1, 11), None, True),
    "3 clusters, signs of their own, r = .3": (three_correlated(0.3, "own"), range(1, 11), None, True),
    "3 clusters, signs of their own, r = .6": (three_correlated(0.6, "own"), range(1, 11), None, True),
}
GAP_DESIGNS = [
    "wine NMAR 25 %",
    "wine NMAR 45 %",
    "by class (MNARz)",
    "by value (MNARy)",
    "detection limit, means .6",
    "detection limit, means 1",
    "unequal classes",
    "wine MCAR 25 %",
    "nuisance group, means 1.0",
    "modules, means 1.0",
    "rows that answer little, means 1.0",
    "one driver, means 1.0",
]
PEER_DESIGNS = [
    "wine, 25 % missing",
    "one Gaussian, independent",
    "one Gaussian, common factor, r = .6",
    "4 clusters, means 0.6",
    "4 clusters, means 1.0",
    "3 clusters, common factor, r = .3",
    "3 clusters, common factor, r = .6",
]


def numbers(answers: list[Answer]) -> str:
    """How often each number was given; in brackets those without a clear choice."""
    counted = Counter(str(k) if clear else f"({k})" for k, clear, _ in answers)
    return ", ".join(f"{k}: {n}" for k, n in sorted(counted.items(), key=lambda item: -item[1]))


def kept_answers() -> dict[tuple[str, str, int], Answer]:
    """What earlier runs answered, by design, method and seed."""
    if not DRAWS.exists():
        return {}
    with DRAWS.open(newline="") as file:
        return {
            (row["design"], row["method"], int(row["seed"])): (
                int(row["k"]),
                row["clear"] == "True",
                float(row["seconds"]),
            )
            for row in csv.DictReader(file)
        }


def keep(*cells: object) -> None:
    is_new = not DRAWS.exists()
    with DRAWS.open("a", newline="") as file:
        writer = csv.writer(file)
        if is_new:
            writer.writerow(["design", "method", "seed", "k", "clear", "seconds"])
        writer.writerow(cells)


def processor_timed(function: Callable[[], Any]) -> tuple[Any, float]:
    """The result of a call and its processor seconds, over all threads: busy machines tell these as well."""
    before = time.process_time()
    return timed(function)[0], time.process_time() - before


def answers_of(name: str, method: str, choose: Callable[..., tuple[int, bool]], n_draws: int) -> list[Answer]:
    """The answers of one method to the draws of a design: kept ones, and new ones that are kept."""
    draw, ks, _, _ = DESIGNS[name]
    kept, answers = kept_answers(), []
    for seed in range(FIRST_SEED, FIRST_SEED + n_draws):
        progress(f"choose: {name}, {method}, draw {seed - FIRST_SEED + 1}")
        if (name, method, seed) not in kept:
            X, _ = draw(np.random.default_rng([seed, len(name)]))
            (k, clear), seconds = processor_timed(lambda X=X, ks=ks, seed=seed: choose(X, ks, seed))
            keep(name, method, seed, k, clear, f"{seconds:.3g}")
            kept[name, method, seed] = k, clear, seconds
        answers.append(kept[name, method, seed])
    return answers


def by_kpod(X: np.ndarray, ks: range, seed: int) -> tuple[int, bool]:
    choice = choose_k(X, ks, random_state=seed)
    return choice.best_k_, choice.clear_


def choices() -> None:
    sheet = Sheet(
        "choose",
        f"How many clusters: choose_k on draws from seed {FIRST_SEED} on; (k) is k without a clear choice",
        ["design", "true", "draws", "right", "right or unclear", "asked for", "largest clear", "chosen"],
    )
    for name, (draw, _, wanted, unclear_will_do) in DESIGNS.items():
        true = draw(np.random.default_rng(0))[1]
        n_draws = N_LONG_DRAWS if name.startswith("paper") else N_DRAWS
        answers = answers_of(name, "kpod.choose_k", by_kpod, n_draws)
        right = float(np.mean([k == true for k, _, _ in answers]))
        either = float(np.mean([k == true or not clear for k, clear, _ in answers]))
        largest = max((k for k, clear, _ in answers if clear), default=None)
        asked = "" if wanted is None else f"{wanted:.0%}{' or unclear' if unclear_will_do else ''}"
        sheet.add(name, true, n_draws, right, either, asked, largest, numbers(answers))
        sheet.save()
    sheet.show()


def by_silhouette(X: np.ndarray, ks: range, seed: int) -> int:
    def score(k: int) -> float:
        return silhouette_score(X, KMeans(k, n_init=10, random_state=seed).fit_predict(X))

    return max((k for k in ks if k > 1), key=score)


def by_gap(X: np.ndarray, ks: range, seed: int, n_references: int = 10) -> int:
    """The gap statistic (Tibshirani, Walther & Hastie 2001), uniform over the range of each column."""
    rng = np.random.default_rng(seed)
    references = [rng.uniform(X.min(axis=0), X.max(axis=0), X.shape) for _ in range(n_references)]

    def log_loss(X: np.ndarray, k: int) -> float:
        return float(np.log(KMeans(k, n_init=3, random_state=seed).fit(X).inertia_))

    gaps, errors = [], []
    for k in ks:
        of_references = [log_loss(reference, k) for reference in references]
        gaps.append(np.mean(of_references) - log_loss(X, k))
        errors.append(np.std(of_references) * np.sqrt(1 + 1 / n_references))
    for i in range(len(gaps) - 1):
        if gaps[i] >= gaps[i + 1] - errors[i + 1]:
            return ks[i]
    return ks[-1]


def by_stepmix(X: np.ndarray, ks: range, seed: int) -> int:
    model = peers.load("stepmix.stepmix", "StepMix")

    def bic(k: int) -> float:
        settings = {"measurement": "continuous_nan", "random_state": seed, "n_init": 3}
        return float(model(n_components=k, progress_bar=0, verbose=0, **settings).fit(X).bic(X))

    return min(ks, key=bic)


def imputed(imputer: Callable[[], Any], choose: Callable[[np.ndarray, range, int], int]) -> Any:
    return lambda X, ks, seed: (choose(imputer().fit_transform(X), ks, seed), True)


PEERS = {
    "silhouette, mean-imputed": imputed(peers.mean_imputer, by_silhouette),
    "silhouette, neighbour-imputed": imputed(peers.neighbour_imputer, by_silhouette),
    "gap statistic, mean-imputed": imputed(peers.mean_imputer, by_gap),
    "gap statistic, neighbour-imputed": imputed(peers.neighbour_imputer, by_gap),
    "StepMix, BIC": lambda X, ks, seed: (by_stepmix(X, ks, seed), True),
}


def against_peers() -> None:
    sheet = Sheet(
        "choose_peers",
        f"The same against peers, {N_PEER_DRAWS} draws each: share right, and what was chosen",
        ["design", "true", "method", "right", "chosen", "processor seconds a table"],
    )
    for name in PEER_DESIGNS:
        true = DESIGNS[name][0](np.random.default_rng(0))[1]
        for method, choose in {**PEERS, "kpod.choose_k": by_kpod}.items():
            try:
                answers = answers_of(name, method, choose, N_PEER_DRAWS)
            except peers.UnavailableError as error:
                sheet.add(name, true, f"{method}: {error}", None, None, None)
                continue
            right = float(np.mean([k == true for k, _, _ in answers]))
            seconds = float(np.mean([seconds for _, _, seconds in answers]))
            sheet.add(name, true, method, right, numbers(answers), seconds)
            sheet.save()
    sheet.show()


def calibration_error(confidence: np.ndarray, hit: np.ndarray) -> float:
    """Mean distance of confidence and accuracy over ten bins."""
    tenth = np.minimum((confidence * 10).astype(int), 9)
    return sum(
        abs(hit[tenth == b].mean() - confidence[tenth == b].mean()) * (tenth == b).mean()
        for b in np.unique(tenth)
    )


def matched(found: np.ndarray, truth: np.ndarray, k: int) -> np.ndarray:
    """The true cluster that each cluster found stands for."""
    table = np.zeros((k, k))
    np.add.at(table, (found, truth), 1)
    return linear_sum_assignment(-table)[1]


def confidence() -> None:
    sheet = Sheet(
        "choose_confidence",
        "How sure: 10,000 x 10, 4 clusters, 30 % missing, 5 draws; calibration error by accuracy reached",
        ["shares", "accuracy", "tables", "calibration error, mean", "largest", "asked for",
         "center error, k-means", "center error, mixture"],
    )  # fmt: skip
    for shares in ([0.25, 0.25, 0.25, 0.25], [0.55, 0.25, 0.15, 0.05]):
        results = []
        for spread in (0.5, 0.7, 0.9, 1.1, 1.3, 1.6):
            for seed in range(FIRST_SEED, FIRST_SEED + 5):
                progress(
                    f"choose: confidence, shares {shares}, spread {spread}, draw {seed - FIRST_SEED + 1}"
                )
                rng = np.random.default_rng([seed, int(10 * spread)])
                truth = rng.choice(4, p=shares, size=10_000)
                means = spread * rng.normal(size=(4, 10))
                X = mcar(means[truth] + rng.normal(size=(10_000, 10)), 0.3, rng)
                seen = ~np.isnan(X).all(axis=1)
                X, truth = X[seen], truth[seen]
                model, _ = timed(lambda X=X: KPOD(4, random_state=0).fit(X))
                soft = soften(X, model.labels_, 4)
                posterior = soft.probabilities(X)
                found = posterior.argmax(axis=1)
                of = matched(found, truth, 4)
                hit = of[found] == truth
                of_labels = matched(model.labels_, truth, 4)
                results.append(
                    (
                        hit.mean(),
                        calibration_error(posterior.max(axis=1), hit),
                        np.sqrt(((model.cluster_centers_ - means[of_labels]) ** 2).mean()),
                        np.sqrt(((soft.centers - means[of]) ** 2).mean()),
                    )
                )
        table = np.array(results)
        for low, high, wanted in (
            (0.85, 1.01, 0.03),
            (0.735, 0.85, 0.04),
            (0.6, 0.735, 0.07),
            (0, 0.6, None),
        ):
            here = table[(table[:, 0] >= low) & (table[:, 0] < high)]
            if len(here):
                name = "/".join(f"{100 * share:.0f}" for share in shares)
                errors = here[:, 1]
                size = len(here)
                sheet.add(name, float(here[:, 0].mean()), size, float(errors.mean()), float(errors.max()),
                          wanted, float(here[:, 2].mean()), float(here[:, 3].mean()))  # fmt: skip
    sheet.show()


def with_gaps() -> None:
    """The number of clusters and whether gaps count, both left open, on designs of `benchmarks.gaps`."""
    sheet = Sheet(
        "choose_gaps",
        f"KPOD('auto', missingness='auto') on draws from seed {FIRST_SEED} on; (k): no clear choice",
        ["design", "true", "draws", "gaps used", "chosen", "ari", "ari, gaps ignored"],
    )
    known = SPEAKING | MISLEADING
    for name in GAP_DESIGNS:
        make, true = known[name]
        answers, used, scores = [], 0, []
        for seed in range(FIRST_SEED, FIRST_SEED + N_GAP_DRAWS):
            progress(f"choose: {name}, draw {seed - FIRST_SEED + 1}")
            X, classes = make(np.random.default_rng([seed, len(name)]))
            X = standardised(X)
            models = [KPOD("auto", missingness=word, random_state=seed).fit(X) for word in ("auto", "ignore")]
            answers.append((models[0].n_clusters_, models[0].choice_.clear_, 0.0))
            used += models[0].missingness_decision_.use
            scores.append([ari(classes, model.labels_) for model in models])
        sheet.add(name, true, N_GAP_DRAWS, used, numbers(answers), *np.mean(scores, axis=0).tolist())
        sheet.save()
    sheet.show()


def best_of_three(X: np.ndarray) -> tuple[KPOD, float]:
    """One default fit with 10 clusters, and the shortest of three times."""
    return min((timed(lambda: KPOD(10, random_state=0).fit(X)) for _ in range(3)), key=lambda fit: fit[1])


def cost() -> None:
    sheet = Sheet(
        "choose_cost",
        "What it costs: choose_k over 1 to 10, over a default fit with 10 clusters; time, and processor time",
        ["table", "one fit, s", "choose_k, s", "ratio", "ratio, processor", "asked for", "chosen"],
    )
    rng = np.random.default_rng(FIRST_SEED)
    large = rng.normal(size=(10, 20))[rng.integers(10, size=1_000_000)] + rng.normal(size=(1_000_000, 20))
    large[rng.random(large.shape) < 0.3] = np.nan
    pieces = three_correlated(0.6, "common")(rng)[0]
    tables = {
        "500 x 100, the paper's mixture, k = 10": (paper(10, 0.25)(rng)[0], 100),
        "500 x 100, one Gaussian, common factor": (mcar(common(rng, 500, 100, 0.6), 0.3, rng), 100),
        "400 x 10, 3 clusters, common factor": (pieces, None),
        "1,000,000 x 20, 10 clusters, float32": (large.astype(np.float32), 15),
    }
    for name, (X, wanted) in tables.items():
        progress(f"choose: cost, {name}")
        (_, one), processor = processor_timed(lambda X=X: best_of_three(X))
        (choice, seconds), chosen = processor_timed(
            lambda X=X: timed(lambda: choose_k(X, range(1, 11), random_state=0))
        )
        sheet.add(name, one, seconds, seconds / one, 3 * chosen / processor, wanted, choice.best_k_)
    sheet.show()


def run() -> None:
    parts = {
        "cost": cost,
        "confidence": confidence,
        "choices": choices,
        "gaps": with_gaps,
        "peers": against_peers,
    }
    for part in PARTS:
        parts[part]()
