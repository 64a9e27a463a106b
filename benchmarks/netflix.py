"""The full size of the Netflix prize: 480,189 users, 17,770 films, 100 million ratings, k=20."""

from __future__ import annotations

import resource
import time

from benchmarks.harness import Sheet, ari, progress
from kpod import KPOD, ObservedScaler
from kpod.datasets import make_ratings

N_GROUPS = 20
MEAN_ACTIVITY = 268.0  # gives 98 million


class Stepwise(KPOD):
    """KPOD that shows each iteration as it ends, and keeps the time it did."""

    def _report(self, step: str, iteration: int, loss: float) -> None:
        self.times_ = [*getattr(self, "times_", []), time.perf_counter()]
        progress(f"netflix: {step} {iteration}, loss {loss:.6g}")


def run() -> None:
    progress("netflix: making 100 million ratings (a few minutes)")
    ratings, groups = make_ratings(
        480_189, 17_770, n_groups=N_GROUPS, mean_activity=MEAN_ACTIVITY, random_state=0
    )
    n_ratings = ratings.nnz
    progress("netflix: centring rows and columns")
    X = ObservedScaler(rows="center", scale=False).fit_transform(ratings)
    del ratings
    began = time.perf_counter()
    model = Stepwise(N_GROUPS, n_init=1, random_state=0, verbose=2).fit(X)
    seconds = time.perf_counter() - began
    steps = len(model.loss_curve_)
    sheet = Sheet(
        "netflix",
        "480,189 x 17,770, k=20, one start, rows centred",
        ["ratings", "iterations and sweeps", "seconds each", "seconds in all", "peak GB resident", "ARI"],
    )
    sheet.add(
        n_ratings,
        steps,
        (model.times_[-1] - model.times_[0]) / (steps - 1),
        seconds,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        ari(groups, model.labels_),
    )
    sheet.show()
