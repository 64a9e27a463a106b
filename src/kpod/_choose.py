"""How many clusters? Hide observed entries, and see with how many they are predicted best.

Two questions, asked of the same hidden entries:

1. With how many centers are they predicted best? The smallest number within one standard error of
   the best is taken (paired: the same entries for every number).
2. Would *correlation* predict them as well as more centers do? Columns that go up and down together
   within a cluster let many centers in a row trace a single elongated group. So at the number found,
   and at every smaller one, Gaussian mixtures whose columns may be correlated within clusters
   (`kpod._mixture`) predict the same entries; where fewer clusters do it better that way, the number
   is theirs. One correlated cluster is among them: the null hypothesis of no groups, with the same
   gaps, and nothing to simulate.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone

from kpod._estimator import KPOD
from kpod._search import FIRST_RANGE, LAST_RANGE, Progress, Search, Verdict, above
from kpod._typing import Floats

SECOND_MINIMUM = 2.0  # standard errors by which numbers between two minima lie above them
DISAGREEMENT = 0.8  # adjusted Rand index below which the sentence says that clusters and groups differ


@dataclass
class KChoice:
    """What `choose_k` found.

    Attributes
    ----------
    best_k_ : int
        The number of clusters; the best guess where `clear_` is False.
    clear_ : bool
        Whether the choice is clear.
    reason_ : str
        Why it is not; empty if it is.
    sentence_ : str
        The finding in plain words.
    model_ : KPOD
        Fitted with `best_k_` clusters on the whole table.
    table_ : dict of ndarrays
        One entry for each number of clusters tried, `k`: `error`, the mean squared error of hidden
        entries predicted by the centers, and its standard error `error_se`; `above_best`, by how much
        it lies above the smallest, with the paired standard error `above_best_se`; `loss`, the loss
        for each observed entry; `silhouette`; `correlated_error`, the error of the best mixture with
        correlated columns, NaN where none was tried.
    column_errors_ : ndarray of shape (len(k), n_features)
        `error` by column; NaN where nothing of a column was hidden.
    centers_k_ : int
        The number that centers alone ask for. More than `best_k_` where columns are correlated within
        clusters.
    correlated_ : bool
        Whether columns are correlated within clusters by so much that it matters for the choice.
    n_hidden_ : int
        Number of entries that were hidden, over all folds.
    n_rows_ : int
        Number of rows that the choice rests on; fewer than the table has if it is large.
    """

    best_k_: int
    clear_: bool
    reason_: str
    sentence_: str
    model_: KPOD
    table_: dict[str, Any]
    column_errors_: Floats
    centers_k_: int
    correlated_: bool
    n_hidden_: int
    n_rows_: int

    def __str__(self) -> str:
        return f"{self.text_table()}\n\n{self.sentence_}"

    def text_table(self) -> str:
        """The table as text."""
        t = self.table_
        correlated = bool(np.isfinite(t["correlated_error"]).any())
        header = "  k   held-out error      above best          loss  silhouette"
        lines = [header + ("   correlated" if correlated else "")]
        for i, k in enumerate(t["k"]):
            line = (
                f"{k:3d}   {t['error'][i]:.4g} ± {t['error_se'][i]:<8.2g}  "
                f"{t['above_best'][i]:.2g} ± {t['above_best_se'][i]:<8.2g}  {t['loss'][i]:8.4g}  "
                f"{_number(t['silhouette'][i], '.3f'):>8}"
            )
            if correlated:
                line += f"  {_number(t['correlated_error'][i], '.4g'):>10}"
            lines.append(line + ("  <-" if k == self.best_k_ else ""))
        return "\n".join(lines)


def _number(value: float, form: str) -> str:
    return format(value, form) if np.isfinite(value) else ""


def choose_k(
    X: Any,
    k: Any = "auto",
    *,
    estimator: KPOD | None = None,
    sample_weight: Any = None,
    random_state: Any = None,
    progress: Progress | None = None,
) -> KChoice:
    r"""Choose the number of clusters by hiding observed entries and predicting them.

    Five times, a tenth of the observed entries is hidden, the table is clustered without them, and
    the entries are predicted by the centers of their rows:

    .. math:: e(k) = \frac{1}{|H|} \sum_{(i,j) \in H} (x_{ij} - c_{l(i)j})^2

    The smallest k whose error lies within one standard error of the smallest error is taken, the
    standard error being that of the difference (over rows). If columns are correlated *within* the
    clusters found, so that centers count pieces rather than groups, the number is chosen again among
    Gaussian mixtures that allow for correlation; one correlated group is among them.

    Parameters
    ----------
    X : array-like, dataframe or sparse matrix of shape (n_samples, n_features)
        The table. Columns count by their scale: standardise them first unless they share a unit.
    k : "auto" or iterable of int, default="auto"
        The numbers to choose from. "auto" is 1 to 10, and up to 40 for as long as more clusters
        predict better.
    estimator : KPOD, default=None
        How to cluster; `n_clusters` and `random_state` are set here.
    sample_weight : array-like of shape (n_samples,), default=None
        The weight of each row, in the clustering and in the errors.
    random_state : int, RandomState instance or None, default=None
        Determines what is hidden, and the starts.
    progress : callable, default=None
        Called as `progress(done, total, text)` while fits are run; `total` may grow.

    Returns
    -------
    KChoice
        `best_k_`, `sentence_`, `table_`, and the fitted `model_`; see there.

    Notes
    -----
    On more than 20,000 rows, the choice rests on a random sample of 20,000 (`n_rows_`); the model is
    fitted on all.

    Examples
    --------
    >>> from kpod import choose_k
    >>> from kpod.datasets import make_mixture
    >>> from kpod.missingness import mcar
    >>> X, _ = make_mixture(4, n_samples=200, n_features=10, rng=0)
    >>> choice = choose_k(mcar(X, 0.3, rng=0), range(1, 7), random_state=0)
    >>> choice.best_k_, choice.clear_
    (4, True)
    >>> choice.model_.n_clusters
    4
    """
    search = Search.of(X, estimator, sample_weight, random_state, progress)
    ks, extendable = _numbers(k, search.usable)
    search.plan(len(ks) * (search.n_folds + 1))
    search.try_centers(ks)
    while extendable and search.centers_choice() == max(search.centers) and max(search.centers) < search.most:
        end = max(search.centers)
        more = range(end + 1, min(2 * end, LAST_RANGE, search.most) + 1)
        search.plan(len(more) * (search.n_folds + 1))
        search.try_centers(more)
    return conclusion(search, extendable)


def _numbers(k: Any, usable: int) -> tuple[list[int], bool]:
    """The numbers of clusters to try, and whether more may be tried."""
    if isinstance(k, str):
        if k != "auto":
            raise ValueError(f"k must be 'auto' or the numbers of clusters to choose from, got {k!r}.")
        return list(range(1, min(FIRST_RANGE, max(1, usable // 2)) + 1)), True
    if isinstance(k, Integral) or not isinstance(k, Iterable):
        raise ValueError(
            f"k must be 'auto' or several numbers to choose from, such as range(1, 11); got {k!r}. "
            "For a fixed number use KPOD(n_clusters=...)."
        )
    given = list(k)
    for value in given:
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
            raise ValueError(f"k must hold whole numbers from 1 up, got {value!r}.")
    ks = sorted({int(value) for value in given})
    if not ks:
        raise ValueError("k is empty: give at least one number of clusters, such as range(1, 11).")
    if ks[-1] > usable:
        raise ValueError(
            f"k goes up to {ks[-1]}, but only {usable} rows of X have anything observed: "
            f"at most {usable} clusters can be asked for."
        )
    return ks, False


def conclusion(search: Search, extendable: bool) -> KChoice:
    """The result, in numbers and in words."""
    verdict = search.verdict()
    reason = why_unclear(search, verdict, extendable)
    model = clone(search.estimator).set_params(n_clusters=verdict.k, random_state=search.seed)
    model.fit(search.whole, sample_weight=search.whole_weights)
    numbers = sorted(search.centers)
    errors = [search.centers[n].errors for n in numbers]
    best = min(errors, key=lambda e: e.mean)
    above_best = [e.above(best) for e in errors]
    mixtures = [search.correlated.get(n) for n in numbers]
    table = {
        "k": np.array(numbers),
        "error": np.array([e.mean for e in errors]),
        "error_se": np.array([e.standard_error for e in errors]),
        "above_best": np.array([difference for difference, _ in above_best]),
        "above_best_se": np.array([error for _, error in above_best]),
        "loss": np.array([search.loss(n) for n in numbers]),
        "silhouette": np.array([search.silhouette(n) for n in numbers]),
        "correlated_error": np.array([np.nan if m is None else m.best.mean for m in mixtures]),
    }
    return KChoice(
        best_k_=verdict.k,
        clear_=not reason,
        reason_=reason,
        sentence_=in_words(search, verdict, reason),
        model_=model,
        table_=table,
        column_errors_=np.array([e.column_means for e in errors]),
        centers_k_=verdict.by_centers,
        correlated_=verdict.correlated,
        n_hidden_=sum(len(fold.rows) for fold in search.folds),
        n_rows_=search.X.shape[0],
    )


def why_unclear(search: Search, verdict: Verdict, extendable: bool) -> str:
    """The reason why the choice is not clear; empty if it is."""
    k, curve, last = verdict.k, verdict.curve, max(search.centers)
    if k == last and len(search.centers) > 1 and k > 1:
        where = "the most that were tried" if extendable else "the end of the range"
        return f"the error on hidden entries is still falling at {last} clusters, {where}"
    if verdict.doubt:
        return verdict.doubt
    best = min(curve, key=lambda n: curve[n].mean)
    between = [n for n in curve if k < n < best and above(curve[n], curve[best]) > SECOND_MINIMUM]
    if between:
        return f"{k} and {best} clusters predict hidden entries about equally well, and numbers between worse"
    return ""


def in_words(search: Search, verdict: Verdict, reason: str) -> str:
    """The finding as a reader without statistics would want it."""
    k, curve = verdict.k, verdict.curve
    sentences = []
    if reason:
        sentences.append(f"No clear choice: {reason}. {clusters(k)} {'is' if k == 1 else 'are'} used.")
    elif k > 1:
        gain = ""
        if 1 in curve and curve[1].mean > 0:
            one = "one correlated group" if verdict.correlated else "one cluster"
            gain = f", {1 - curve[k].mean / curve[1].mean:.0%} better than with {one}"
        sentences.append(
            f"{clusters(k)}: hidden entries are predicted best with {k}{gain}; fewer clusters predict them "
            "worse, and more do not predict them better."
        )
    elif verdict.correlated:
        sentences.append(
            "One cluster: the columns are correlated, and a single correlated group predicts hidden entries "
            f"as well as several would. Centers alone would cut it into {verdict.by_centers} pieces."
        )
    else:
        sentences.append(
            "One cluster: more centers do not predict hidden entries better, so there is no sign of groups."
        )
    if verdict.correlated and k > 1:
        pieces = (
            f"; centers alone would ask for {verdict.by_centers} pieces" if verdict.by_centers > k else ""
        )
        sentences.append(f"Columns are correlated within clusters, which was allowed for{pieces}.")
        agreement = search.agreement(verdict)
        if agreement < DISAGREEMENT:
            sentences.append(
                "The round clusters of k-means match the groups found that way only in part "
                f"(adjusted Rand index {agreement:.2f})."
            )
    if search.X.shape[0] < search.usable:
        sentences.append(f"The choice rests on a random sample of {search.X.shape[0]:,} rows.")
    return " ".join(sentences)


def clusters(k: int) -> str:
    return "One cluster" if k == 1 else f"{k} clusters"
