"""Stability: cluster resampled tables, and compare the clusters.

Each resample draws rows with replacement (as weights, so that nothing is copied) and hides a tenth
of the observed entries; what stays a cluster through both is not an accident of these rows or of
these gaps. Rows are drawn in the order of what they contain, so that neither the order of the table nor
the place where it is changes a finding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import check_random_state

from kpod._common.notebook import ReadsAsText
from kpod._common.sentences.formatting import listed
from kpod._common.typing import Floats, Labels, Positions
from kpod._engine.blocks import some_rows
from kpod._engine.executors import threads
from kpod._engine.sampling import order_by_content
from kpod._engine.table import make_table
from kpod._findings.fitted_clusters.models import model_and_table
from kpod._inputs import validation
from kpod._inputs.samples import brought_here
from kpod._model_selection import holdout

RESAMPLES = 50
STARTS = 3
MOST_ROWS = 20_000
# Hennig's rules of thumb in the manual of fpc's clusterboot.
STABLE, DOUBTFUL, DISSOLVED = 0.75, 0.6, 0.5


@dataclass
class Stability(ReadsAsText):
    """The result of `stability`.

    Attributes
    ----------
    jaccard_ : ndarray of shape (n_clusters,)
        Mean Jaccard similarity of each cluster to the most similar cluster of a resample.
    recovered_ : ndarray of shape (n_clusters,)
        Share of the resamples in which that similarity is at least .75.
    dissolved_ : ndarray of shape (n_clusters,)
        Share of the resamples in which it is at most .5.
    ari_ : float
        Mean adjusted Rand index between the clustering and those of the resamples.
    jaccard_samples_ : ndarray of shape (n_resamples, n_clusters)
    ari_samples_ : ndarray of shape (n_resamples,)
    n_rows_ : int
        Number of rows the resamples are drawn from; fewer than the table has if it is large.
    sentence_ : str
        The finding in plain words.
    """

    jaccard_: Floats
    recovered_: Floats
    dissolved_: Floats
    ari_: float
    jaccard_samples_: Floats
    ari_samples_: Floats
    n_rows_: int
    sentence_: str

    def __str__(self) -> str:
        lines = ["cluster  Jaccard  recovered  dissolved"]
        for c, (jaccard, recovered, dissolved) in enumerate(
            zip(self.jaccard_, self.recovered_, self.dissolved_, strict=True)
        ):
            lines.append(f"{c:7d}  {jaccard:7.2f}  {recovered:9.0%}  {dissolved:9.0%}")
        return "\n".join([*lines, "", self.sentence_])


def stability(
    model: Any,
    X: Any = None,
    *,
    n_resamples: int = RESAMPLES,
    sample_weight: Any = None,
    random_state: Any = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> Stability:
    r"""How stable each cluster is when rows are resampled and entries hidden.

    For each of `n_resamples` bootstrap samples of the rows, with a tenth of the observed entries
    hidden as well, the table is clustered again, by a model of the same kind (a mixture keeps its
    shape). With :math:`A` the rows of a cluster and :math:`B_m`
    those of the clusters found (both among the rows drawn), the cluster's similarity is

    .. math:: \max_m \frac{|A \cap B_m|}{|A \cup B_m|}

    as in `clusterboot` of R's fpc [1]_. A mean of at least .75 indicates a stable cluster; between .6 and
    .75 there is a pattern, but it is doubtful which rows belong to it; below .6 the cluster should not
    be trusted. The result does not depend on the order of the rows or on where the table is stored, except
    for Dask and Spark tables with more than 50,000 rows, whose sample depends on their order.

    Parameters
    ----------
    model : KPOD, GaussianMixture, a pipeline that ends in one, or Analysis
        The fitted model; an analysis has its table already.
    X : array-like, dataframe or sparse matrix of shape (n_samples, n_features), default=None
        The table that it was fitted on. A large Dask collection or Spark DataFrame is sampled.
    n_resamples : int, default=50
    sample_weight : array-like of shape (n_samples,), default=None
        The weights of the fit.
    random_state : int, RandomState instance or None, default=None
    progress : callable, default=None
        A callback, called as `progress(done, total, text)` after every resample.

    Returns
    -------
    Stability

    References
    ----------
    .. [1] Hennig (2007). Cluster-wise assessment of cluster stability. Computational Statistics &
       Data Analysis 52.

    Examples
    --------
    >>> from kpod import KPOD, stability
    >>> from kpod.datasets import make_mixture
    >>> from kpod.missingness import mcar
    >>> X, _ = make_mixture(3, n_samples=150, n_features=10, random_state=0)
    >>> X = mcar(X, 0.3, random_state=0)
    >>> stability(KPOD(3, random_state=0).fit(X), X, random_state=0).jaccard_.round(1)
    array([1., 1., 1.])
    """
    if not isinstance(n_resamples, Integral) or isinstance(n_resamples, bool) or n_resamples < 1:
        raise ValueError(f"n_resamples must be a whole number from 1 up, got {n_resamples!r}.")
    rng = check_random_state(random_state)
    X, sample_weight, *_ = brought_here(X, sample_weight)
    fitted, seen = model_and_table(model, X)
    values, labels = validation.as_table(seen, fitted), np.asarray(fitted.predict(seen))
    given = getattr(model, "_weights", None) if sample_weight is None else sample_weight
    weights = validation.check_weights(given, values.shape[0])
    ordered = order_by_content(values, weights)
    rows = ordered[((labels >= 0) & (True if weights is None else weights > 0))[ordered]]
    if len(rows) > MOST_ROWS:
        rows = rows[np.sort(rng.permutation(len(rows))[:MOST_ROWS])]
    table, labels = some_rows(values, rows), labels[rows]
    chance = np.ones(len(rows)) if weights is None else weights[rows]
    k = fitted.n_clusters_
    jaccard, ari = np.full((n_resamples, k), np.nan), np.empty(n_resamples)
    with threads(fitted._n_threads()) as executor:
        for b in range(n_resamples):
            drawn = rng.multinomial(len(rows), chance / chance.sum()).astype(np.float64)
            seed = int(rng.randint(2**31 - 1))
            whole = make_table(table, executor, weights=drawn, groups=fitted._groups())
            (fold,) = holdout.folds(whole, executor, seed, n_folds=1)
            found = fitted._labels_again(fold.table, executor, STARTS, seed)
            inside = drawn > 0
            jaccard[b] = similarities(labels[inside], found[inside], k)
            ari[b] = adjusted_rand_score(labels[inside], found[inside])
            if progress:
                progress(b + 1, int(n_resamples), "resamples")
    drawn_in = np.isfinite(jaccard).sum(axis=0)  # of a cluster, resamples that drew a row
    means = np.where(drawn_in > 0, np.nansum(jaccard, axis=0) / np.maximum(drawn_in, 1), np.nan)
    return Stability(
        jaccard_=means,
        recovered_=(jaccard >= STABLE).mean(axis=0),
        dissolved_=(np.nan_to_num(jaccard) <= DISSOLVED).mean(axis=0),
        ari_=float(ari.mean()),
        jaccard_samples_=jaccard,
        ari_samples_=ari,
        n_rows_=len(rows),
        sentence_=in_words(means, float(ari.mean()), int(n_resamples)),
    )


def similarities(labels: Labels, found: Labels, k: int) -> Floats:
    """Of each cluster, the Jaccard similarity to the most similar one found; NaN if it has no rows."""
    both = np.zeros((k, k))
    np.add.at(both, (labels, found), 1.0)
    union = both.sum(axis=1)[:, None] + both.sum(axis=0)[None] - both
    with np.errstate(invalid="ignore"):
        best = np.max(np.where(union > 0, both / union, 0.0), axis=1)
    return np.where(both.sum(axis=1) > 0, best, np.nan)


def in_words(jaccard: Floats, ari: float, n_resamples: int) -> str:
    """The finding in plain words, without statistics."""
    k = len(jaccard)
    if k == 1:
        return "There is only one cluster, so its stability cannot be judged."
    doubtful = [str(c) for c in np.flatnonzero((jaccard < STABLE) & (jaccard >= DOUBTFUL))]
    bad = [str(c) for c in unstable(jaccard)]
    how = f"in {n_resamples} resampled tables (mean agreement: adjusted Rand index {ari:.2f})"
    if not doubtful and not bad:
        every = "Both" if k == 2 else f"All {k}"
        if (
            ari < DOUBTFUL
        ):  # a large cluster resembles itself whatever its rows, a cluster of one row by chance
            return f"{every} clusters come back {how}, but which rows belong to them is doubtful."
        return f"{every} clusters are stable {how}."
    if len(bad) == k:
        return f"None of the {k} clusters is stable {how}: do not rely on them."
    parts = []
    if len(doubtful) + len(bad) < k:
        stable = k - len(doubtful) - len(bad)
        parts.append(f"{stable} of {k} clusters {'is' if stable == 1 else 'are'} stable {how}.")
    else:
        parts.append(f"No cluster is fully stable {how}.")
    if doubtful:
        parts.append(f"Which rows belong to {_clusters(doubtful)} is doubtful.")
    if bad:
        parts.append(
            f"Do not rely on {_clusters(bad)}: another sample of rows would give other clusters there."
        )
    return " ".join(parts)


def unstable(jaccard: Floats) -> Positions:
    """The clusters not to be relied on; with one cluster, there is nothing to judge."""
    return np.flatnonzero(~(jaccard >= DOUBTFUL)) if len(jaccard) > 1 else np.empty(0, np.intp)


def _clusters(names: list[str]) -> str:
    return f"cluster{'' if len(names) == 1 else 's'} {listed(names)}"
