"""The tables of the paper's experiments, and a small incomplete one to try things on.

>>> from kpod import datasets
>>> datasets.load_incomplete_wine().data.shape
(178, 13)
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from scipy import sparse
from sklearn.datasets import load_wine
from sklearn.utils import Bunch

from kpod._common.arrays import row_starts
from kpod._common.errors import check_library
from kpod._common.typing import Floats, Labels, Positions
from kpod._missing.removal import RandomState, generator, mcar, takes_rng

__all__ = ["load_incomplete_wine", "make_mixture", "make_perturbed_wine", "make_ratings"]

WINE_FRACTION = 0.25
WINE_SEED = 2016
WINE_DESCRIPTION = """\
Chemical analyses of 178 wines from three cultivars (UCI Machine Learning Repository, "Wine"; 13 columns),
with a quarter of the entries removed completely at random. The complete table is
sklearn.datasets.load_wine().
"""


@takes_rng
def make_mixture(
    n_clusters: int = 10,
    *,
    n_samples: int = 500,
    n_features: int = 100,
    center_std: float = 10.0,
    cluster_std: float = 10.0**0.5,
    random_state: RandomState = None,
) -> tuple[Floats, Labels]:
    """Generate a mixture of round normal clusters, by default the paper's.

    Row i is drawn from N(c_l, cluster_std^2 I), its cluster l uniformly, the entries of the
    centers c from N(0, center_std^2).

    Parameters
    ----------
    n_clusters, n_samples, n_features : int
    center_std, cluster_std : float
        The standard deviations of the centers, and of the rows around their center.
    random_state : int, RandomState or Generator instance, or None, default=None

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    labels : ndarray of shape (n_samples,)

    Examples
    --------
    >>> from kpod.datasets import make_mixture
    >>> X, labels = make_mixture(25, random_state=0)
    >>> X.shape, int(labels.max())
    ((500, 100), 24)
    """
    rng = generator(random_state)
    centers = rng.normal(scale=center_std, size=(n_clusters, n_features))
    labels = rng.integers(n_clusters, size=n_samples, dtype=np.int32)
    return centers[labels] + rng.normal(scale=cluster_std, size=(n_samples, n_features)), labels


@takes_rng
def make_perturbed_wine(random_state: RandomState = None) -> tuple[Floats, Labels]:
    """The UCI wine table with normal noise of a tenth of each column's mean on every entry.

    Parameters
    ----------
    random_state : int, RandomState or Generator instance, or None, default=None
        Determines the noise.

    Returns
    -------
    X : ndarray of shape (178, 13)
    labels : ndarray of shape (178,), the three cultivars

    Examples
    --------
    >>> from kpod.datasets import make_perturbed_wine
    >>> make_perturbed_wine(random_state=0)[0].shape
    (178, 13)
    """
    rng = generator(random_state)
    wine = load_wine()
    noise = rng.normal(size=wine.data.shape) * np.abs(wine.data.mean(axis=0)) / 10
    return wine.data + noise, wine.target.astype(np.int32)


@takes_rng
def make_ratings(
    n_users: int = 60_000,
    n_items: int = 4_000,
    *,
    n_groups: int = 12,
    mean_activity: float = 110.0,
    random_state: RandomState = None,
) -> tuple[sparse.csr_array, Labels]:
    """Generate ratings from 1 to 5 by groups of users; which items are rated depends on popularity and taste.

    A rating is an item's mean, plus the taste of the user's group for it, plus the user's own
    offset, plus noise, rounded and clipped to 1..5. Users are more likely to rate popular items, those their
    group likes and those they like themselves, so ratings are not missing at random. By default, about 2 %
    of the table is rated.

    Parameters
    ----------
    n_users, n_items, n_groups : int
    mean_activity : float
        Approximate mean number of items that a user rates (log-normal over users).
    random_state : int, RandomState or Generator instance, or None, default=None

    Returns
    -------
    ratings : csr_array of shape (n_users, n_items), float32; not stored: not rated
    groups : ndarray of shape (n_users,)

    Examples
    --------
    >>> from kpod.datasets import make_ratings
    >>> ratings, groups = make_ratings(500, 200, n_groups=3, mean_activity=20, random_state=0)
    >>> ratings.shape, float(ratings.min()), float(ratings.data.max())
    ((500, 200), 0.0, 5.0)
    """
    rng = generator(random_state)
    popularity = (1.0 + np.arange(n_items)) ** -0.9
    rng.shuffle(popularity)
    log_popularity = np.log(popularity)
    item_mean = 3.4 + 0.21 * (log_popularity - log_popularity.mean()) / log_popularity.std()
    tastes = 0.8 * rng.normal(size=(n_groups, 8)) @ (rng.normal(size=(8, n_items)) / 8**0.5)
    sizes = rng.dirichlet(np.full(n_groups, 5.0))
    groups = np.sort(rng.choice(n_groups, n_users, p=sizes)).astype(np.int32)
    sigma = 1.1
    activity = rng.lognormal(np.log(mean_activity) - sigma**2 / 2, sigma, n_users)
    drawn = np.round(1.9 * np.clip(activity, 5, n_items / 3)).astype(np.int64)
    offsets = rng.normal(scale=0.4, size=n_users)

    kept_keys, kept_ratings = [], []
    for users in _batches(groups, drawn):
        group = groups[users[0]]
        chance = np.cumsum(popularity * np.exp(0.5 * tastes[group]))
        user = np.repeat(users, drawn[users])
        item = np.searchsorted(chance, rng.random(len(user)) * chance[-1], side="right")
        key = np.unique(user * n_items + np.minimum(item, n_items - 1))
        user, item = np.divmod(key, n_items)
        raw = item_mean[item] + tastes[group, item] + offsets[user] + 0.9 * rng.normal(size=len(key))
        rating = np.clip(np.round(raw), 1, 5).astype(np.float32)
        keep = rng.random(len(key)) < 1 / (1 + np.exp(-0.7 * (rating - 3.2)))
        kept_keys.append(key[keep])
        kept_ratings.append(rating[keep])

    user, item = np.divmod(np.concatenate(kept_keys), n_items)
    del kept_keys
    indptr = np.concatenate([[0], np.cumsum(np.bincount(user, minlength=n_users))])
    del user
    ratings = sparse.csr_array(
        (np.concatenate(kept_ratings), item.astype(np.int32), row_starts(indptr)), shape=(n_users, n_items)
    )
    order = rng.permutation(n_users)
    return ratings[order], groups[order]


def _batches(groups: Labels, drawn: Positions, size: int = 4_000_000) -> Iterator[Positions]:
    """Users of one group at a time, in batches of about `size` draws."""
    for group in np.unique(groups):
        users = np.flatnonzero(groups == group)
        n_batches = int(drawn[users].sum() // size) + 1
        yield from np.array_split(users, n_batches)


def load_incomplete_wine(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """The UCI wine table with a quarter of its entries missing completely at random.

    Parameters
    ----------
    return_X_y : bool, default=False
        Whether to return `(data, target)` instead of a Bunch.
    as_frame : bool, default=False
        Whether `data` is a pandas data frame and `target` a series, and the Bunch has `frame`, both together.

    Returns
    -------
    Bunch with `data` (ndarray of shape (178, 13), NaN in the gaps), `target` (the three
    cultivars), `frame`, `target_names`, `feature_names`, `DESCR` and `filename` (the CSV file it was read
    from); or a tuple of the first two.

    Examples
    --------
    >>> import numpy as np
    >>> from kpod.datasets import load_incomplete_wine
    >>> wine = load_incomplete_wine()
    >>> round(float(np.isnan(wine.data).mean()), 2)
    0.25
    >>> X, y = load_incomplete_wine(return_X_y=True, as_frame=True)
    >>> int(X["alcohol"].isna().sum())
    37
    """
    folder = files("kpod") / "data"
    table = folder / "wine_incomplete.csv"
    with table.open() as lines:
        names = next(lines).strip().split(",")
        data: Any = np.genfromtxt(lines, delimiter=",")
    with (folder / "wine_cultivars.csv").open() as lines:
        target: Any = np.loadtxt(lines, skiprows=1, dtype=np.int32)
    frame = None
    if as_frame:
        check_library("pandas", "as_frame=True")
        columns = dict(zip([*names, "target"], [*data.T, target], strict=True))
        frame = nw.from_dict(columns, backend="pandas").to_native()
        data, target = frame[names], frame["target"]
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        frame=frame,
        target_names=np.array([f"class_{number}" for number in range(3)]),
        feature_names=names,
        DESCR=WINE_DESCRIPTION,
        filename=str(table),
    )


def incomplete_wine_csv() -> str:
    """The text of the bundled CSV file, made anew."""
    wine = load_wine()
    data = mcar(wine.data, WINE_FRACTION, random_state=WINE_SEED)
    names = [name.replace("/", "_") for name in wine.feature_names]
    lines = [",".join("" if np.isnan(x) else f"{x:g}" for x in row) for row in data]
    return "\n".join([",".join(names), *lines]) + "\n"
