"""Whether missingness is informative about the clusters, decided from the table itself.

Four questions, answered with ordinary fits of (a sample of) the rows:

1. Do the clusters of the values differ in which values are missing? If not, there is nothing to use.
2. Are gaps of different columns correlated *within* those clusters (modules, dropout, rows that answer
   little)? The model takes them to be independent there, and would count one piece of news many times.
3. **Columns are left out, values and gaps alike**, and clusters are found from the others, once with
   their gaps and once without. Which clusters predict the values of a column that they have not seen
   better? Gaps that depend on something else than the clusters (a driver, a nuisance group, a module)
   predict the gaps of a column, but not its values. Where the number of clusters is open, too, the clusters
   without gaps are those that would be taken, or as many as with gaps, whichever predict better.
4. Do the clusters found with the gaps still know what the plain ones knew of the left-out columns? Gaps
   that follow factors of the values predict other columns well, but what they find is something else.

The constants were chosen with the designs of `python -m benchmarks gaps` in sight, on other seeds: the
benchmark shows what the rule does on them, not what it would do on designs nobody thought of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from kpod._common.column_groups import ColumnGroups
from kpod._common.notebook import ReadsAsText
from kpod._common.sentences.formatting import SMALLEST, counted, percent
from kpod._common.typing import Floats, Labels, Positions
from kpod._engine.blocks import some_rows
from kpod._engine.executors import Executor
from kpod._engine.table import Table, make_table
from kpod._missing.between_groups import Gaps, compare_gaps
from kpod._model_selection.holdout import entries

MOST_ROWS = 2_000
ROWS_PER_CLUSTER = 20
MOST_COLUMNS = 300  # compared by questions 1 and 2, those whose gaps vary most
LEAST_COLUMNS = 3
LEAST_ROWS = 20
N_PERMUTATIONS = 99
LEVEL = 0.01
UNCLEAR = 0.05  # a p value up to which a difference is not clear, and not absent either
N_FOLDS = 5  # of columns
N_DIVISIONS = 2  # of the columns into folds
N_NULL = 3
TOGETHER = 3.0  # times as strongly as by chance: gaps are correlated within clusters,
MOST = 0.8  # and then so many columns must be predicted better,
CLEARLY = 2.0  # by so many standard errors,
AT_LEAST = 0.5  # instead of so many
MOST_LOST = 0.08  # of what plain clusters explain: more, and the gaps follow something else

Fit = Callable[[Table, Executor, int, bool], Labels]
"""The labels of a table with so many clusters, its gaps used or not."""


class TooFewRowsError(ValueError):
    """Fewer rows have an entry than there are clusters."""


@dataclass(frozen=True)
class MissingnessDecision(ReadsAsText):
    """Whether gaps are used, and why.

    Attributes
    ----------
    use : bool
    reason : str
        The reason in plain words.
    p : float
        p-value of the test whether clusters differ in which values are missing; NaN if it was not run.
    together : float
        How strongly gaps of different columns are correlated within clusters, relative to chance.
    n_columns, n_better : int
        Number of columns that were left out, and of those that clusters predict better with the gaps.
    change : float
        The median relative change of the prediction error, -0.05 for 5 % less.
    lost : float
        The share of what plain clusters explain of the left-out columns that clusters found with the
        gaps fail to explain.
    """

    use: bool
    reason: str
    p: float = np.nan
    together: float = np.nan
    n_columns: int = 0
    n_better: int = 0
    change: float = np.nan
    lost: float = np.nan

    def __str__(self) -> str:
        """One sentence."""
        return f"gaps {'used' if self.use else 'ignored'}: {self.reason}"


def decide_missingness(
    values: Any,
    table: Table,
    executor: Executor,
    fit: Fit,
    n_clusters: int,
    rng: np.random.Generator,
    n_plain: int | None = None,
    *,
    first_only: bool = False,
) -> MissingnessDecision:
    """Decide whether the gaps of a table are to be used for so many clusters.

    `values` is the table as an array with NaN or CSR; `fit` gives labels. Where another number of clusters
    would be taken with the gaps ignored, `n_plain`, gaps have to predict better than these clusters, too.
    With `first_only`, by the first question alone, which takes one fit of the values.
    """
    rows = np.flatnonzero(table.usable)
    most = max(MOST_ROWS, ROWS_PER_CLUSTER * n_clusters)
    if len(rows) > most:
        rows = np.sort(rng.permutation(rows)[:most])
    columns = np.flatnonzero(table.live)
    cannot = why_not(table, n_clusters, len(rows), table.n_live)
    if cannot:
        return MissingnessDecision(use=False, reason=cannot)
    weights = np.ones(len(rows)) if table.weights is None else table.weights[rows]
    part = _columns(some_rows(values, rows), columns)
    groups = table.groups.among(columns)

    def labels(kept: Positions, n_clusters: int = n_clusters, *, gaps: bool) -> Labels:
        given = None if table.weights is None else weights
        of_columns = make_table(_columns(part, kept), executor, weights=given, groups=groups.among(kept))
        if of_columns.usable.sum() < n_clusters:
            raise TooFewRowsError
        return fit(of_columns, executor, n_clusters, gaps)

    try:
        return run_checks(
            part, groups, labels, weights, n_clusters, n_plain or n_clusters, rng, first_only=first_only
        )
    except TooFewRowsError:
        return MissingnessDecision(use=False, reason="too little is observed to check the gaps by")


def run_checks(
    part: Any,
    groups: ColumnGroups,
    labels: Callable[..., Labels],
    weights: Floats,
    n_clusters: int,
    n_plain: int,
    rng: np.random.Generator,
    *,
    first_only: bool = False,
) -> MissingnessDecision:
    """The four questions; `labels(columns, gaps=)` clusters by some of the columns.

    The indicators of a category are one column: left out together, and predicted together.
    """
    n_columns, n_sources = part.shape[1], groups.n_sources
    plain = labels(np.arange(n_columns), gaps=False)
    placed = plain >= 0
    gaps = _gaps(_columns(part, groups.starts) if groups.present else part)[placed]
    test = compare_gaps(gaps, plain[placed].astype(np.intp), rng, N_PERMUTATIONS)
    if test.p > LEVEL:
        clearly = "clearly " if test.p <= UNCLEAR else ""
        reason = f"the clusters do not {clearly}differ in which values are missing (p = {test.p:.2f})"
        return MissingnessDecision(use=False, reason=reason, p=test.p)
    if first_only:
        return MissingnessDecision(
            use=True, reason=f"the clusters differ in which values are missing (p = {test.p:.2f})", p=test.p
        )
    together = within_cluster_dependence(gaps, plain[placed], rng)
    n_folds = min(N_FOLDS, n_sources)
    errors = np.zeros((N_DIVISIONS, 5, n_columns))
    most = max(n_clusters, n_plain)
    for division in range(N_DIVISIONS):
        order = rng.permutation(n_sources)
        for fold in range(n_folds):
            out = groups.columns_of(order[fold::n_folds])
            kept = np.setdiff1d(np.arange(n_columns), out)
            without, with_gaps = labels(kept, gaps=False), labels(kept, gaps=True)
            own = without if n_plain == n_clusters else labels(kept, n_plain, gaps=False)
            for at, by in enumerate(((), (without,), (with_gaps,), (with_gaps, without), (own,))):
                errors[division, at, out] = prediction_errors(_columns(part, out), weights, most, *by)
    errors = groups.sums(errors)
    varies = errors[0, 0] > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        explained = (errors[:, [1, 4]] / errors[:, [0]])[:, :, varies].sum(axis=(0, 2))
        changes = np.log(errors[:, 2] / errors[:, [1, 4][int(explained.argmin())]]).mean(axis=0)
    return verdict(changes, share_lost(errors.mean(axis=0)[:4]), test.p, together)


def why_not(table: Table, n_clusters: int, n_rows: int, n_columns: int) -> str:
    """Why there is nothing to decide; empty if there is."""
    too_few = f"{counted(n_rows, 'row')} {'is' if n_rows == 1 else 'are'} too few to check the gaps by"
    reasons = {
        "nothing is missing": not table.has_gaps,
        "there is one cluster only": n_clusters < 2,
        f"of {counted(n_columns, 'column')}, none can be spared to check the gaps by": (
            n_columns < LEAST_COLUMNS
        ),
        too_few: n_rows < max(LEAST_ROWS, 2 * n_clusters),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def share_lost(errors: Floats) -> float:
    """Of what plain clusters explain of left-out columns, the share that clusters with gaps leave to explain.

    `errors` are those of no clusters, plain ones, those found with the gaps, and both one after the other.
    """
    none, plain, gaps, both = errors[:, errors[0] > 0] / errors[0, errors[0] > 0]
    explained = float((none - plain).sum())
    return float((gaps - both).sum()) / explained if explained > 0 else 0.0


def verdict(change: Floats, lost: float, p: float, together: float) -> MissingnessDecision:
    """What follows from the log ratios of errors, column by column, and from what is lost."""
    change = change[np.isfinite(change)]
    n, n_better = len(change), int((change < 0).sum())
    median = float(np.expm1(np.median(change))) if n else np.nan
    if n < LEAST_COLUMNS:
        reason = (
            f"the clusters differ in which values are missing (p = {p:.2f}), but there is too little to "
            "check that by"
        )
        return MissingnessDecision(use=False, reason=reason, p=p, together=together)
    spread = float(change.std(ddof=1) / np.sqrt(n))
    t = float(change.mean()) / max(spread, 1e-12)
    tied = together > TOGETHER
    better = median < 0 and (t < -CLEARLY and n_better >= MOST * n if tied else t < -AT_LEAST)
    use = better and lost <= MOST_LOST
    differ = f"the clusters differ in which values are missing (p = {p:.2f})"
    only = "only " if 2 * n_better <= n else ""
    change_text = "stays the same"
    if abs(median) > SMALLEST:
        change_text = f"{'falls' if median < 0 else 'rises'} by {percent(abs(median), 1)}"
    found = (
        f"clusters found with the gaps predict {only}{n_better} of {n} left-out columns better (the median "
        f"error {change_text})"
    )
    if use:
        reason = f"{differ}, and {found}"
    elif better:
        reason = (
            f"{differ}, and {found}, but they miss {percent(lost)} of what clusters of the values alone "
            "explain: the gaps follow something else"
        )
    elif tied and median < 0:
        reason = (
            f"{differ}, but gaps of different columns are correlated within them, {together:.1f} times as "
            f"strongly as by chance, and {found}, which is not enough in that case"
        )
    else:
        reason = f"{differ}, but {found}"
    return MissingnessDecision(use, reason, p, together, n, n_better, median, lost)


def prediction_errors(unseen: Any, weights: Floats, n_clusters: int, *labels: Labels) -> Floats:
    """The squared error in each column of its entries predicted by the mean of their cluster without them.

    Rows without a cluster, and entries alone in theirs, are predicted by the mean of the column. Of several
    clusterings, each predicts what those before it leave.
    """
    rows, columns, x = entries(unseen)
    p, w = unseen.shape[1], weights[rows]
    n_column = np.bincount(columns, w, p)
    x = x - (np.bincount(columns, w * x, p) / np.maximum(n_column, 1e-300))[columns]
    for found in labels:
        cell, inside = found[rows].astype(np.intp) * p + columns, found[rows] >= 0
        count = np.bincount(cell[inside], w[inside], n_clusters * p)
        total = np.bincount(cell[inside], (w * x)[inside], n_clusters * p)
        left = np.where(inside, count[cell] - w, 0.0)
        others = left > 1e-9 * w
        x = x - np.where(others, (total[cell] - w * x) / np.where(others, left, 1.0), 0.0)
    return np.bincount(columns, w * x**2, p).astype(np.float64)


def within_cluster_dependence(gaps: Gaps, labels: Labels, rng: np.random.Generator) -> float:
    """The largest eigenvalue of the correlations of gaps within clusters, over that of shuffled gaps.

    Shuffled is each column by itself within each cluster, so that 1 is what chance does.
    """
    varied = gaps[:, gaps.any(axis=0) & ~gaps.all(axis=0)].astype(np.float64)
    groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]

    def largest(table: Floats) -> float:
        off = table.copy()
        for rows in groups:
            off[rows] -= off[rows].mean(axis=0)
        spread = off.std(axis=0)
        off = off[:, spread > 1e-9] / spread[spread > 1e-9]
        return float(np.linalg.eigvalsh(off.T @ off / len(off))[-1]) if off.shape[1] else 1.0

    drawn = []
    for _ in range(N_NULL):
        shuffled = varied.copy()
        for rows in groups:
            shuffled[rows] = rng.permuted(shuffled[rows], axis=0)
        drawn.append(largest(shuffled))
    return largest(varied) / float(np.mean(drawn))


def _columns(values: Any, columns: Positions) -> Any:
    if not sparse.issparse(values):
        return np.ascontiguousarray(values[:, columns])
    part = sparse.csr_array(values[:, columns])
    part.sort_indices()
    out = sparse.csr_array(part.shape, dtype=part.dtype)
    out.data, out.indices, out.indptr = part.data, part.indices.astype(np.int32), part.indptr.astype(np.int64)
    return out


def _gaps(values: Any) -> Gaps:
    """Which entries are missing, of the columns whose gaps vary most."""
    rows, columns, _ = entries(values)
    share = np.bincount(columns, minlength=values.shape[1]) / values.shape[0]
    chosen = np.sort(np.argsort(-share * (1 - share), kind="stable")[:MOST_COLUMNS])
    place = np.full(values.shape[1], -1)
    place[chosen] = np.arange(len(chosen))
    here = place[columns] >= 0
    out = np.ones((values.shape[0], len(chosen)), dtype=bool)
    out[rows[here], place[columns[here]]] = False
    return out
