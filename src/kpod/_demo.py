"""Cluster the bundled incomplete wine table and print what came out."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import rand_score
from sklearn.preprocessing import StandardScaler

from kpod import KPOD
from kpod.datasets import load_incomplete_wine


def main() -> None:
    """Print the demonstration."""
    wine = load_incomplete_wine()
    observed = ~np.isnan(wine.data)
    scaler = StandardScaler().fit(wine.data)
    model = KPOD(n_clusters=3, random_state=0).fit(scaler.transform(wine.data))
    centers = scaler.inverse_transform(model.cluster_centers_)
    n_rows, n_columns = wine.data.shape

    percent = 100 * (1 - observed.mean())
    print(f"Wine: {n_rows} rows, {n_columns} columns, {percent:.1f} % of the entries missing,")
    print(f"      {int(observed.all(axis=1).sum())} rows complete. Standardised columns, 10 starts.\n")
    print("Centers in the original units (in brackets: observed entries behind each)")
    width = max(map(len, wine.feature_names))
    print(" " * width + "".join(f"{f'cluster {c}':>20}" for c in range(3)))
    sizes = np.bincount(model.labels_, minlength=3)
    print(f"{'rows':<{width}}" + "".join(f"{size:>20}" for size in sizes))
    for j, name in enumerate(wine.feature_names):
        cells = "".join(f"{centers[c, j]:>13.4g} {f'({model.counts_[c, j]:.0f})':>6}" for c in range(3))
        print(f"{name:<{width}}{cells}")
    print("\nLoss over the observed entries, by iteration")
    for iteration, loss in enumerate(model.loss_curve_, 1):
        step = "lloyd" if iteration <= model.n_iter_ else "moves"
        print(f"  {iteration:>3} {step} {loss:10.3f}  {'#' * int(40 * loss / model.loss_curve_[0])}")
    print(f"\nRand score against the three cultivars: {rand_score(wine.target, model.labels_):.3f}")


if __name__ == "__main__":
    main()
