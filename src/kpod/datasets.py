"""The tables of the paper's experiments, and a small incomplete one to try things on."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
from sklearn.datasets import load_wine
from sklearn.utils import Bunch

from kpod._blocks import Floats, Labels
from kpod.missingness import Rng, mcar

__all__ = ["load_incomplete_wine", "make_mixture", "make_perturbed_wine"]

WINE_FRACTION = 0.25
WINE_SEED = 2016


def make_mixture(
    n_clusters: int = 10,
    *,
    n_rows: int = 500,
    n_columns: int = 100,
    center_std: float = 10.0,
    cluster_std: float = 10.0**0.5,
    rng: Rng = None,
) -> tuple[Floats, Labels]:
    """A mixture of round normal clusters, by default the paper's.

    Row i is drawn from N(c_l, cluster_std^2 I), its cluster l uniformly, the entries of the
    centers c from N(0, center_std^2).

    Returns
    -------
    X : ndarray of shape (n_rows, n_columns)
    labels : ndarray of shape (n_rows,)

    Examples
    --------
    >>> from kpod.datasets import make_mixture
    >>> X, labels = make_mixture(25, rng=0)
    >>> X.shape, int(labels.max())
    ((500, 100), 24)
    """
    rng = np.random.default_rng(rng)
    centers = rng.normal(scale=center_std, size=(n_clusters, n_columns))
    labels = rng.integers(n_clusters, size=n_rows, dtype=np.int32)
    return centers[labels] + rng.normal(scale=cluster_std, size=(n_rows, n_columns)), labels


def make_perturbed_wine(rng: Rng = None) -> tuple[Floats, Labels]:
    """The UCI wine table with normal noise of a tenth of each column's mean on every entry.

    Returns
    -------
    X : ndarray of shape (178, 13)
    labels : ndarray of shape (178,), the three cultivars

    Examples
    --------
    >>> from kpod.datasets import make_perturbed_wine
    >>> make_perturbed_wine(rng=0)[0].shape
    (178, 13)
    """
    rng = np.random.default_rng(rng)
    wine = load_wine()
    noise = rng.normal(size=wine.data.shape) * np.abs(wine.data.mean(axis=0)) / 10
    return wine.data + noise, wine.target.astype(np.int32)


def load_incomplete_wine() -> Bunch:
    """The UCI wine table with a quarter of its entries missing completely at random.

    Returns
    -------
    Bunch with `data` (ndarray of shape (178, 13), NaN in the gaps), `target` (the three
    cultivars), `feature_names` and `filename` (the CSV file it was read from).

    Examples
    --------
    >>> import numpy as np
    >>> from kpod.datasets import load_incomplete_wine
    >>> wine = load_incomplete_wine()
    >>> round(float(np.isnan(wine.data).mean()), 2)
    0.25
    """
    folder = files("kpod") / "data"
    table = folder / "wine_incomplete.csv"
    with table.open() as lines:
        names = next(lines).strip().split(",")
        data = np.genfromtxt(lines, delimiter=",")
    with (folder / "wine_cultivars.csv").open() as lines:
        target = np.loadtxt(lines, skiprows=1, dtype=np.int32)
    return Bunch(data=data, target=target, feature_names=names, filename=str(table))


def incomplete_wine_csv() -> str:
    """The text of the bundled CSV file, made anew."""
    wine = load_wine()
    data = mcar(wine.data, WINE_FRACTION, rng=WINE_SEED)
    names = [name.replace("/", "_") for name in wine.feature_names]
    lines = [",".join("" if np.isnan(x) else f"{x:g}" for x in row) for row in data]
    return "\n".join([",".join(names), *lines]) + "\n"
