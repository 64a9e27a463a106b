"""Diagnosis of missingness: how much, where, which columns together, and what it is related to.

Everything is worked out from two matrices over (a sample of) the rows: which entries are missing, and
the standardised values of the others. Nothing is fitted to the table but, for Little's test, one
normal distribution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from kpod._common.column_groups import groups_of_array
from kpod._common.notebook import ReadsAsText
from kpod._common.typing import Floats, Positions
from kpod._inputs import containers, frames
from kpod._missing.association import (
    _by_label,
    _dense,
    _in_a_group,
    _most_varied,
    _sample,
    _strongest,
    gaps_by_value,
    gaps_together,
    uneven_rows,
)
from kpod._missing.between_groups import Gaps, GapTest
from kpod._missing.little import LittleTest, little_test
from kpod._missing.missingness_sentences import sentences, suggestion

MOST_ROWS = 10_000


@dataclass(frozen=True)
class Diagnosis(ReadsAsText):
    """The result of `diagnose`.

    Attributes
    ----------
    names : list of str
        Names of the columns.
    missing : ndarray of shape (n_columns,)
        Share missing in each column.
    n_rows, n_complete, n_compared : int
        Number of rows, of complete rows, and of rows compared (a sample of a large table).
    columns : ndarray of int
        The columns that were compared, with and without gaps; in very wide tables only those
        whose gaps vary most. The matrices below are over these columns.
    together : ndarray of shape (n_compared, n_compared)
        Correlations of gaps; 0 if not significant.
    values : ndarray of shape (n_compared, n_compared)
        At [j, l]: the mean of column l in rows where column j is missing, minus that in rows where it is
        observed, in standard deviations of l; 0 if not significant.
    uneven_rows : float
        The variance of the number of gaps per row, relative to independent gaps; about 1 if rows differ
        in it only by chance.
    n_uneven_rows : int
        Number of compared rows that have far more gaps than independent gaps would give.
    little : LittleTest
        Little's test of MCAR: `statistic`, `df`, `p`, and `reason` if it could not be computed.
    groups : list of str
        The labels; empty if none were given.
    by_group : ndarray of shape (n_groups, n_compared)
        Share missing by label in the columns compared.
    group_test : GapTest or None
        Whether labels differ in which values are missing: `p`, and `excess`, the statistic relative to
        its mean for labels assigned at random.
    sentence_ : str
        The findings in plain words, one per line.
    suggestion : str
        What to do about it; empty if the gaps are related to something, but too weakly to matter.
    levels : dict
        For columns with two levels, by position, the one that counts as high.

    Examples
    --------
    >>> from kpod.datasets import load_incomplete_wine
    >>> from kpod.missingness import Diagnosis, diagnose
    >>> found = diagnose(load_incomplete_wine().data)
    >>> isinstance(found, Diagnosis)
    True
    >>> found.n_rows, found.n_complete, found.missing.shape
    (178, 4, (13,))
    >>> print(found.sentence_.splitlines()[0])
    25% of the entries are missing, in 13 of 13 columns, most in column 5 (32%); 4 of 178 rows are complete.
    """

    names: list[str]
    missing: Floats
    n_rows: int
    n_complete: int
    n_compared: int
    columns: Positions
    together: Floats
    values: Floats
    uneven_rows: float
    n_uneven_rows: int
    little: LittleTest
    groups: list[str]
    by_group: Floats
    group_test: GapTest | None
    sentence_: str
    suggestion: str
    levels: Mapping[int, str] = field(default_factory=dict)

    @property
    def table(self) -> dict[str, Any]:
        """One entry for each column with gaps, the most gaps first.

        `column`, `missing`, `goes_with` (the column whose gaps are most like these, and `correlation`),
        `depends_on` (the column whose values differ most between rows that lack this one and rows that
        have it, and `difference` in standard deviations). Empty and 0 where nothing is significant.
        """
        place = {int(j): at for at, j in enumerate(self.columns)}
        lines = []
        for j in np.argsort(-self.missing, kind="stable"):
            if self.missing[j] == 0:
                break
            at = place.get(int(j))
            mate, correlation = _strongest(self.together, at)
            driver, difference = _strongest(self.values, at)
            lines.append((
                self.names[j],
                float(self.missing[j]),
                self.names[self.columns[mate]] if correlation else "",
                correlation,
                self.names[self.columns[driver]] if difference else "",
                difference,
            ))  # fmt: skip
        keys = ["column", "missing", "goes_with", "correlation", "depends_on", "difference"]
        return {key: [line[i] for line in lines] for i, key in enumerate(keys)}

    def __str__(self) -> str:
        """The findings and the suggestion, one below the other."""
        return "\n".join(filter(None, [self.sentence_, self.suggestion]))


def diagnose(X: Any, labels: Any = None) -> Diagnosis:
    """Describe how much of a table is missing, where, and what missingness is related to.

    Reports how much is missing and where; which columns are missing together; which columns'
    gaps are related to the *values* of others (rows where l is missing against rows where it is observed,
    by the difference of the means of column j in standard deviations of j); whether all this could be chance
    (Little's test of MCAR); and, with labels, whether clusters differ in which values are missing.

    Little's test compares the means of the rows of each pattern of gaps with those of a normal
    distribution fitted to all observed entries by EM,

        d^2 = sum over patterns s of n_s (mean_s - mu_s)' Sigma_s^-1 (mean_s - mu_s),

    chi-square with (sum of the columns of each pattern) - p degrees of freedom. It assumes normal
    columns, so outliers can also make it reject.

    Parameters
    ----------
    X : array-like, dataframe or sparse matrix of shape (n_samples, n_features)
        NaN and null are missing; in a sparse matrix, entries that are not stored are. Infinities count as
        observed but are not compared. The indicators of a category (see Notes of `KPOD`) are one column; in
        a sparse matrix, one each. For text, categories and dates in a data frame, only the gaps are used.
    labels : array-like of shape (n_samples,), default=None
        Clusters, or any other grouping of the rows. Rows with label -1 are left out of the comparison.

    Returns
    -------
    Diagnosis
        It prints as a few sentences; `table` has an entry for each column with gaps, and
        `kpod.plot.DiagnosisDisplay.from_diagnosis` draws it.

    References
    ----------
    R. J. A. Little, A test of missing completely at random for multivariate data with missing values,
    J. Am. Stat. Assoc. 83, 1198-1202 (1988).

    Examples
    --------
    >>> import numpy as np
    >>> from kpod.missingness import by_driver, diagnose
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> found = diagnose(by_driver(X, 0.2, random_state=0))
    >>> print(found.sentence_.splitlines()[0])
    20% of the entries are missing, in 2 of 3 columns; 295 of 500 rows are complete.
    >>> found.table["depends_on"]
    ['column 0', 'column 0']
    """
    from kpod._inputs import validation  # which loads scikit-learn, and `kpod describe` needs none of it

    if frames.is_frame(X) and len(others := frames.text_columns(X)):
        return diagnose_frame(frames.frame_of(X), others, labels)
    values, names = validation.as_table(X, None), validation.column_names(X)
    n_rows, n_columns = values.shape
    names = names or [f"column {j}" for j in range(n_columns)]
    if not sparse.issparse(values):
        values, names = by_source(values, names)
        return diagnose_gaps(np.isnan(values), values, names, labels)
    stored = np.flatnonzero(~np.isnan(values.data))
    of_column = np.bincount(values.indices[stored], minlength=n_columns)
    of_row = np.diff(np.searchsorted(stored, values.indptr))
    whole = ComparedTable(
        names, (n_rows - of_column) / n_rows, n_rows, int((of_row == n_columns).sum()), labels
    )
    dense = _dense(values, whole.rows, whole.columns)
    return whole.diagnosis(np.isnan(dense), dense)


def diagnose_frame(frame: Any, others: Sequence[str], labels: Any) -> Diagnosis:
    """Of a data frame some of whose columns are no numbers: of those, gaps alone are looked at."""
    values = np.full(frame.shape, np.nan)
    gaps = np.empty(frame.shape, bool)
    for j, name in enumerate(frame.columns):
        if name in others:
            gaps[:, j] = frame[name].is_null().to_numpy()
        else:
            values[:, j] = frames.column_as_floats(frame[name])
            gaps[:, j] = np.isnan(values[:, j])
    return diagnose_gaps(gaps, values, list(map(str, frame.columns)), labels)


def by_source(values: Floats, names: list[str]) -> tuple[Floats, list[str]]:
    """One column for each category, where its indicators are found among the columns.

    Two complements are one column of two values. Of more indicators, the first is there for the gaps, and
    named after all of them: as a value, a category is neither high nor low.
    """
    groups = groups_of_array(values)
    if not groups.present:
        return values, names
    out = values[:, groups.starts].astype(np.float64)
    of_more = groups.sizes > 2
    out[:, of_more] = np.where(np.isnan(out[:, of_more]), np.nan, 0.0)
    last = groups.starts + groups.sizes - 1
    parts = [
        f"{names[j]} to {names[end]}" if more else names[j]
        for j, end, more in zip(groups.starts, last, of_more, strict=True)
    ]
    return out, parts


@np.errstate(invalid="ignore")  # by a NaN that signals, such as NA of R
def diagnose_gaps(gaps: Gaps, values: Floats, names: Sequence[str], labels: Any = None) -> Diagnosis:
    """The same from gaps and values; NaN in `values` where nothing but the gaps is to be looked at."""
    n_complete = int((~gaps.any(axis=1)).sum())
    whole = ComparedTable(list(names), gaps.mean(axis=0), len(gaps), n_complete, labels)
    at = np.ix_(whole.rows, whole.columns)
    return whole.diagnosis(gaps[at], values[at].astype(np.float64))


class ComparedTable:
    """What is known of the whole table, and the rows and columns of it that are compared."""

    def __init__(
        self,
        names: Sequence[str],
        missing: Floats,
        n_rows: int,
        n_complete: int,
        labels: Any,
        levels: Mapping[int, str] | None = None,
    ) -> None:
        self.levels = levels or {}
        self.names, self.missing = list(names), np.asarray(missing, dtype=np.float64)
        self.n_rows, self.n_complete = n_rows, n_complete
        self.rows, self.columns = _sample(n_rows, MOST_ROWS), _most_varied(self.missing)
        self.labels = None if labels is None else _checked_labels(labels, n_rows)[self.rows]

    def diagnosis(self, gaps: Gaps, values: Floats) -> Diagnosis:
        """From the gaps and values of those rows and columns."""
        values = np.where(np.isfinite(values), values, np.nan)
        groups, by_group, test = _by_label(gaps, self.labels)
        parts: dict[str, Any] = {
            "names": self.names,
            "missing": self.missing,
            "n_rows": self.n_rows,
            "n_complete": self.n_complete,
            "n_compared": len(self.rows),
            "columns": self.columns,
            "together": gaps_together(gaps),
            "values": gaps_by_value(gaps, values),
            "uneven_rows": uneven_rows(gaps),
            "n_uneven_rows": n_uneven_rows(gaps),
            "little": little_test(values),
            "groups": groups,
            "by_group": by_group,
            "group_test": test,
            "levels": self.levels,
        }
        found = Diagnosis(**parts, sentence_="", suggestion="")
        return replace(found, sentence_="\n".join(sentences(found)), suggestion=suggestion(found))


def n_uneven_rows(gaps: Gaps) -> int:
    """Rows with more gaps than independent gaps would leave in one, by three standard deviations and two."""
    share, count = gaps.mean(axis=0), gaps.sum(axis=1)
    expected, spread = float(share.sum()), float(np.sqrt((share * (1 - share)).sum()))
    return int((count >= expected + max(2.0, 3 * spread)).sum())


def _checked_labels(labels: Any, n_rows: int) -> Any:
    given = containers.labels_in(labels, n_rows)
    if not _in_a_group(given).any():
        raise ValueError("labels are -1 throughout; there is no group to compare.")
    return given
