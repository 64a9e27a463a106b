"""How good is a clustering of an incomplete table? scikit-learn's measures, over observed entries.

The functions take what scikit-learn's of the same names take, and return the same on a complete
table. Gaps are NaN, None, NA, null or masked entries, and what a sparse table does not store. Rows
with a negative label (rows with nothing observed, in `KPOD.labels_`) are left out.

>>> from kpod import KPOD, metrics
>>> from kpod.datasets import load_incomplete_wine
>>> from sklearn.preprocessing import StandardScaler
>>> X = StandardScaler().fit_transform(load_incomplete_wine().data)
>>> round(metrics.silhouette_score(X, KPOD(3, random_state=0).fit_predict(X)), 2)
0.29
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import check_random_state

from kpod._common.typing import Floats, Labels
from kpod._inputs import containers, validation

__all__ = ["calinski_harabasz_score", "davies_bouldin_score", "silhouette_samples", "silhouette_score"]

NOTHING = 1e-8  # of another length: rounding
CHUNK_ENTRIES = 4_000_000  # of the distances between a chunk of rows and all others: 32 MB


def silhouette_score(
    X: Any, labels: Any, *, sample_size: int | None = None, random_state: Any = None
) -> float:
    r"""Mean silhouette of all rows.

    .. math:: \bar s = \frac1n \sum_i s_i, \qquad s_i = \frac{b_i - a_i}{\max(a_i, b_i)}

    with :math:`s_i` the silhouette of row i, see `silhouette_samples`.

    Parameters
    ----------
    X : array-like, dataframe or sparse matrix of shape (n_samples, n_features)
        The table; gaps are missing.
    labels : array-like of shape (n_samples,)
        The cluster of each row; rows with a negative label are left out.
    sample_size : int or None, default=None
        Compute it on a random sample of this many rows. For all rows, the time grows with the
        square of their number.
    random_state : int, RandomState instance or None, default=None
        Determines the sample.

    Returns
    -------
    float
        Between -1 and 1; rows that share no column with any other row of a cluster are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from kpod.metrics import silhouette_score
    >>> X = np.array([[1, 2], [1, np.nan], [9, 8], [np.nan, 8]])
    >>> round(silhouette_score(X, [0, 0, 1, 1]), 3)
    1.0
    """
    if sample_size is not None and (
        not isinstance(sample_size, Integral) or isinstance(sample_size, bool) or sample_size < 2
    ):
        raise ValueError(f"sample_size must be a whole number from 2 up, or None; got {sample_size!r}.")
    values, labels = _table_and_labels(X, labels)
    if sample_size is not None:
        rng = check_random_state(random_state)
        chosen = rng.permutation(values.shape[0])[:sample_size]
        values, labels = values[chosen], labels[chosen]
    (scores,) = _silhouettes(values, [labels])
    if np.isnan(scores).all():
        raise ValueError(
            "No row shares an observed column both with a row of its own cluster and with one of another "
            "cluster: the silhouette is undefined."
        )
    return float(np.nanmean(scores))


def silhouette_samples(X: Any, labels: Any) -> Floats:
    r"""Silhouette of each row, on distances over the columns that both rows have observed.

    .. math:: s_i = \frac{b_i - a_i}{\max(a_i, b_i)}

    with :math:`a_i` the mean distance of row i to the other rows of its cluster and :math:`b_i` the
    smallest of its mean distances to the rows of another cluster; 0 for a cluster of one row. The
    distance of two rows is that of `sklearn.metrics.pairwise.nan_euclidean_distances`,

    .. math:: d_{ij}^2 = \frac{p}{|O_i \cap O_j|} \sum_{c \in O_i \cap O_j} (x_{ic} - x_{jc})^2

    with :math:`O_i` the columns observed in row i. Pairs that share no column are left out of both means.

    Parameters
    ----------
    X : array-like, dataframe or sparse matrix of shape (n_samples, n_features)
        The table; gaps are missing.
    labels : array-like of shape (n_samples,)
        The cluster of each row; rows with a negative label are left out.

    Returns
    -------
    ndarray of shape (n_samples,)
        NaN for rows that were left out, and for rows that share no column with another row of their
        own cluster or with any row of the others.

    Examples
    --------
    >>> import numpy as np
    >>> from kpod.metrics import silhouette_samples
    >>> X = np.array([[1, 2], [1, np.nan], [9, 8], [np.nan, 8]])
    >>> silhouette_samples(X, [0, 0, 1, 1]).round(2)
    array([1., 1., 1., 1.])
    """
    values, kept = _table_and_labels(X, labels)
    given = containers.labels_in(labels, len(np.asarray(labels)))
    out = np.full(len(given), np.nan)
    out[_used(given)] = _silhouettes(values, [kept])[0]
    return out


def calinski_harabasz_score(X: Any, labels: Any) -> float:
    r"""Variance between clusters over variance within, over observed entries.

    .. math:: \frac{\sum_{lj} N_{lj} (c_{lj} - \bar x_j)^2 / (k - 1)}
                   {\sum_{i} \sum_{j \in O_i} (x_{ij} - c_{l(i)j})^2 / (\bar n - k)}

    with :math:`N_{lj}` the observed entries of cluster l in column j, :math:`c_{lj}` and
    :math:`\bar x_j` the means of the observed entries and :math:`\bar n = \sum N / p` the observed
    entries in a column on average, over the columns with anything observed.

    Parameters
    ----------
    X : array-like, dataframe or sparse matrix of shape (n_samples, n_features)
        The table; gaps are missing.
    labels : array-like of shape (n_samples,)
        The cluster of each row; rows with a negative label are left out.

    Returns
    -------
    float
        Larger is better.

    Examples
    --------
    >>> import numpy as np
    >>> from kpod.metrics import calinski_harabasz_score
    >>> X = np.array([[1, 2], [2, np.nan], [9, 8], [np.nan, 7]])
    >>> round(calinski_harabasz_score(X, [0, 0, 1, 1]), 1)
    57.7
    """
    values, labels = _table_and_labels(X, labels)
    between, within, counts, _, _ = _squares(values, labels)
    k = len(counts)
    live = counts.sum(axis=0) > 0
    rows = counts.sum() / live.sum()
    if within.sum() == 0:
        return 1.0  # as scikit-learn has it
    return float(between.sum() * (rows - k) / (within.sum() * (k - 1.0)))


def davies_bouldin_score(X: Any, labels: Any) -> float:
    r"""The spread of clusters relative to the distance between them, averaged over clusters.

    .. math:: \frac1k \sum_l \max_{m \ne l} \frac{s_l + s_m}{d_{lm}}

    with :math:`s_l` the mean distance of the rows of cluster l to its center over their observed
    columns, rescaled for those that are not (as in `KPOD.transform`), and :math:`d_{lm}` the
    distance of two centers over the columns observed in both clusters, rescaled likewise.

    Parameters
    ----------
    X : array-like, dataframe or sparse matrix of shape (n_samples, n_features)
        The table; gaps are missing.
    labels : array-like of shape (n_samples,)
        The cluster of each row; rows with a negative label are left out.

    Returns
    -------
    float
        Smaller is better; 0 is the minimum.

    Examples
    --------
    >>> import numpy as np
    >>> from kpod.metrics import davies_bouldin_score
    >>> X = np.array([[1, 2], [2, np.nan], [9, 8], [np.nan, 7]])
    >>> round(davies_bouldin_score(X, [0, 0, 1, 1]), 3)
    0.13
    """
    values, labels = _table_and_labels(X, labels)
    _, _, counts, centers, means = _squares(values, labels)
    k = len(counts)
    live = int((counts.sum(axis=0) > 0).sum())
    rows, columns, entries = _entries(values)
    squared = np.bincount(rows, (entries - means[columns] - centers[labels[rows], columns]) ** 2, len(labels))
    observed = np.bincount(rows, minlength=len(labels))
    reach = np.sqrt(squared * live / np.maximum(observed, 1))
    counted = np.bincount(labels, observed > 0, k)
    spread = np.bincount(labels, reach, k) / np.maximum(counted, 1)
    known = (counts > 0).astype(float)
    shared = known @ known.T
    filled = np.where(counts > 0, centers, 0.0)
    apart = filled**2 @ known.T + known @ (filled**2).T - 2 * filled @ filled.T
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.sqrt(np.maximum(apart, 0) * live / shared)
    farthest = np.max(distance, where=np.isfinite(distance), initial=0)
    if spread.max() <= NOTHING * farthest or farthest <= NOTHING * spread.max():
        return 0.0  # as scikit-learn has it
    np.fill_diagonal(distance, np.inf)
    distance[(distance == 0) | np.isnan(distance)] = np.inf
    return float(np.max((spread[:, None] + spread) / distance, axis=1).mean())


def _used(labels: Any) -> Any:
    """Rows that take part: a number below 0 means that the row has no cluster."""
    return labels >= 0 if labels.dtype.kind in "iuf" else np.ones(len(labels), bool)


def _table_and_labels(X: Any, labels: Any) -> tuple[Any, Labels]:
    """The rows that have a cluster, and their clusters as 0, 1, ..."""
    values = validation.as_table(X, None)
    given = containers.labels_in(labels, values.shape[0])
    data = values.data if sparse.issparse(values) else values
    if np.isinf(data).any():
        raise ValueError("X contains infinity. Replace it with NaN if it stands for a missing value.")
    used = _used(given)
    encoded = LabelEncoder().fit_transform(given[used])
    n_clusters, n_rows = len(np.unique(encoded)), int(used.sum())
    if not 1 < n_clusters < n_rows:
        raise ValueError(
            f"{n_clusters} {'cluster' if n_clusters == 1 else 'clusters'} in {n_rows:,} rows with a label: "
            "these measures need at least 2 clusters, and fewer clusters than rows."
        )
    return _in_range(values if used.all() else values[used]), encoded.astype(np.int32)


def _in_range(values: Any) -> Any:
    """The table with values whose squares can be added up: the measures do not depend on the scale."""
    data = values.data if sparse.issparse(values) else values
    largest = float(np.fmax.reduce(np.abs(data), axis=None, initial=0.0))
    if not (~np.isnan(data)).any():
        raise ValueError("X has no observed entry in the rows with a label.")
    if largest == 0 or 1e-100 < largest < 1e100:
        return values
    return values.astype(np.float64) * 2.0 ** -np.frexp(largest)[1]


def _entries(values: Any) -> tuple[Any, Any, Floats]:
    """Row, column and value of the observed entries."""
    if sparse.issparse(values):
        stored = ~np.isnan(values.data)
        rows = np.repeat(np.arange(values.shape[0]), np.diff(values.indptr))
        return rows[stored], values.indices[stored], values.data[stored].astype(np.float64)
    rows, columns = np.nonzero(~np.isnan(values))
    return rows, columns, values[rows, columns].astype(np.float64)


def _squares(values: Any, labels: Labels) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Sums of squares between and within by column; counts and centers by cluster and column.

    The centers are less the column means, which come last: squares of large values would leave no
    digits for small differences.
    """
    k, p = int(labels.max()) + 1, values.shape[1]
    rows, columns, entries = _entries(values)
    cells = labels[rows].astype(np.int64) * p + columns
    counts = np.bincount(cells, minlength=k * p).reshape(k, p).astype(np.float64)
    column_counts = counts.sum(axis=0)
    means = np.bincount(columns, entries, p) / np.maximum(column_counts, 1)
    centered = entries - means[columns]
    offsets = np.bincount(cells, centered, k * p).reshape(k, p) / np.maximum(counts, 1)
    within = np.bincount(columns, (centered - offsets[labels[rows], columns]) ** 2, p).astype(np.float64)
    return (counts * offsets**2).sum(axis=0), within, counts, offsets, means


def silhouette_scores(values: Any, labelings: Sequence[Labels]) -> list[float]:
    """The mean silhouettes of several clusterings of the same rows; NaN where one has none.

    Distances are computed once for all of them. Rows with a negative label are left out, the same of each.
    """
    used = labelings[0] >= 0
    n_used = int(used.sum())
    encoded = [
        np.unique(labels[used], return_inverse=True)[1].ravel().astype(np.int32) for labels in labelings
    ]
    out = np.full(len(encoded), np.nan)
    defined = [i for i, labels in enumerate(encoded) if n_used and 0 < labels.max() < n_used - 1]
    if defined:
        kept = _in_range(values if used.all() else values[used])
        for i, scores in zip(defined, _silhouettes(kept, [encoded[i] for i in defined]), strict=True):
            known = scores[~np.isnan(scores)]
            out[i] = known.mean() if len(known) else np.nan
    return [float(score) for score in out]


def _silhouettes(values: Any, labelings: Sequence[Labels]) -> list[Floats]:
    """Silhouettes of several clusterings, from the distances of a chunk of rows to all rows at a time."""
    n = values.shape[0]
    filled, mask, squares = _centered(values)
    live = int((np.asarray(mask.sum(axis=0)) > 0).sum())
    out = [np.empty(n) for _ in labelings]
    members = [np.eye(int(labels.max()) + 1)[labels] for labels in labelings]
    chunk = max(1, CHUNK_ENTRIES // n)
    for start in range(0, n, chunk):
        at = slice(start, min(start + chunk, n))
        shared = _dense(mask[at] @ mask.T)
        apart = _dense(squares[at] @ mask.T + mask[at] @ squares.T - 2 * (filled[at] @ filled.T))
        with np.errstate(divide="ignore", invalid="ignore"):
            distances = np.sqrt(np.maximum(apart, 0) * (live / shared))
        compared = (shared > 0).astype(np.float64)
        compared[np.arange(at.stop - at.start), np.arange(at.start, at.stop)] = 0.0
        distances = np.where(compared > 0, distances, 0.0)
        for scores, labels, member in zip(out, labelings, members, strict=True):
            scores[at] = _silhouettes_of(distances, compared, labels[at], member)
    return out


def _silhouettes_of(distances: Floats, compared: Floats, own: Labels, member: Floats) -> Floats:
    """Silhouettes of some rows, from their distances to all rows and which of these compare."""
    sums, numbers, here = distances @ member, compared @ member, np.arange(len(own))
    with np.errstate(divide="ignore", invalid="ignore"):
        means = sums / numbers
    inside = means[here, own]
    means[here, own] = np.inf
    outside = np.nanmin(np.where(np.isnan(means), np.inf, means), axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        score = (outside - inside) / np.maximum(inside, outside)
    score[(inside == 0) & (outside == 0)] = 0.0
    score[~np.isfinite(outside)] = np.nan
    score[member.sum(axis=0)[own] == 1] = 0.0
    return np.asarray(score)


def _dense(a: Any) -> Floats:
    return np.asarray(a.toarray() if sparse.issparse(a) else a, dtype=np.float64)


def _centered(values: Any) -> tuple[Any, Any, Any]:
    """Values less the column means (0 where missing), the mask, and the squares; CSR stays CSR."""
    if sparse.issparse(values):
        rows, columns, entries = _entries(values)
        counts = np.maximum(np.bincount(columns, minlength=values.shape[1]), 1)
        centered = entries - (np.bincount(columns, entries, values.shape[1]) / counts)[columns]

        def table(data: Floats) -> Any:
            return sparse.csr_array((data, (rows, columns)), shape=values.shape)

        return table(centered), table(np.ones(len(entries))), table(centered**2)
    observed = ~np.isnan(values)
    filled = np.where(observed, values, 0.0).astype(np.float64)
    filled = np.where(observed, filled - filled.sum(axis=0) / np.maximum(observed.sum(axis=0), 1), 0.0)
    return filled, observed.astype(np.float64), filled**2
