"""What the gaps of a table say: how many, where, which go together, and with what they go.

Everything is worked out from two matrices over (a sample of) the rows: which entries are missing, and
the standardised values of the others. Nothing is fitted to the table but, for Little's test, one
normal distribution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse, special

from kpod._common.column_groups import groups_of_array
from kpod._common.typing import Floats, Positions
from kpod._common.words import counted, listed, percent, some
from kpod._inputs import containers
from kpod._missing.between_groups import Gaps, GapTest, compare_gaps, gaps_by_group

MOST_ROWS = 10_000
MOST_COLUMNS = 100
"""Larger tables are diagnosed by a sample of rows, and by the columns whose gaps vary most."""
MOST_PERMUTED = 2_000
LITTLE_ROWS, LITTLE_COLUMNS = 2_000, 30
LEVEL = 0.01
UNCLEAR = 0.05
"""Of the tests: the chance at most of saying that gaps are related where they are not."""
RELATED = 0.1
"""A correlation of gaps, and half a difference in standard deviations, below which nothing is said."""
STRONG, MATTERS = 0.5, 0.05
"""A difference in standard deviations that calls for an explanation, and a share missing that does."""
TOGETHER = 0.9
"""A correlation of gaps from which columns are said to be missing together."""
IN_TURN = 0.5
"""The same below 0, from which one column is said to be missing where another is present."""
UNEVEN = 2.0
"""The number of gaps per row varies so many times as much as independent gaps would."""
MOST_SAID = 3
AUTO = 'missingness="auto"'
"""As Python has it; the command line has an option for it."""
EM_STEPS, EM_TOLERANCE = 200, 1e-6


@dataclass(frozen=True)
class LittleTest:
    """Little's test of gaps that come completely at random.

    `p` is small where rows that lack different columns differ in the others; `reason` says why the test
    could not be computed, in which case the numbers are NaN.
    """

    statistic: float
    df: int
    p: float
    patterns: int
    reason: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """What `diagnose` found.

    Attributes
    ----------
    names : list of str
        Of the columns.
    missing : ndarray of shape (n_columns,)
        Share missing of each.
    n_rows, n_complete, n_compared : int
        Rows, how many of them lack nothing, and how many were compared: a sample of very many.
    columns : ndarray of int
        The columns that were compared: those with gaps and without, but of very wide tables only those
        whose gaps vary most. The matrices below are over these.
    together : ndarray of shape (n_compared, n_compared)
        Correlations of gaps; 0 where not significant.
    values : ndarray of shape (n_compared, n_compared)
        At [j, l]: the mean of column l in rows that lack column j less that in rows that have it, in
        standard deviations of l; 0 where not significant.
    uneven_rows : float
        The variance of the number of gaps per row over what independent gaps would have; about 1 where
        no row lacks more than others do but by chance.
    n_uneven_rows : int
        Rows compared that have far more gaps than independent gaps would leave in them.
    little : LittleTest
    groups : list of str
        The labels; empty without.
    by_group : ndarray of shape (n_groups, n_compared)
        Share missing by label of the columns compared.
    group_test : GapTest or None
        Whether labels differ in their gaps.
    sentences : list of str
        The findings in plain words.
    suggestion : str
        What to do about it; empty where the gaps are related to something, but too weakly to matter.
    levels : dict
        Of columns with two levels, by position, the one that counts as high.

    Examples
    --------
    >>> from kpod.datasets import load_incomplete_wine
    >>> from kpod.missingness import Diagnosis, diagnose
    >>> found = diagnose(load_incomplete_wine().data)
    >>> isinstance(found, Diagnosis)
    True
    >>> found.n_rows, found.n_complete, found.missing.shape
    (178, 4, (13,))
    >>> print(found.sentences[0])
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
    sentences: list[str]
    suggestion: str
    levels: Mapping[int, str] = field(default_factory=dict)

    @property
    def table(self) -> dict[str, Any]:
        """One entry for each column with gaps, those with the most first.

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
        """The sentences and the suggestion, one below the other."""
        return "\n".join(filter(None, [*self.sentences, self.suggestion]))


def diagnose(X: Any, labels: Any = None) -> Diagnosis:
    """Say how much of a table is missing, where, and what the gaps go with.

    Answered are: how much is missing and where; which columns are missing together; which columns'
    gaps go with the *values* of others (rows that lack l against rows that have it, by the difference
    of means of column j over the standard deviation of j); whether all this could be chance (Little's
    test); and with labels, whether clusters differ in what they lack.

    Little's test compares the means of the rows of each pattern of gaps with those of a normal
    distribution fitted to all observed entries by EM,

        d^2 = sum over patterns s of n_s (mean_s - mu_s)' Sigma_s^-1 (mean_s - mu_s),

    chi-square with (sum of the columns of each pattern) - p degrees of freedom. It takes columns to be
    normal: outliers make it reject, too.

    Parameters
    ----------
    X : array-like, dataframe or sparse matrix of shape (n_samples, n_features)
        NaN and null are missing; in a sparse matrix, what is not stored is. Infinities count as
        observed but are not compared. The indicators of a category (see Notes of `KPOD`) are one column, in
        a sparse matrix one each.
    labels : array-like of shape (n_samples,), default=None
        Clusters, or any other grouping of the rows. Rows with label -1 are left out of the comparison.

    Returns
    -------
    Diagnosis
        Printed, it reads as a few sentences; `table` has a line for each column with gaps, and
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
    >>> found = diagnose(by_driver(X, 0.2, rng=0))
    >>> print(found.sentences[0])
    20% of the entries are missing, in 2 of 3 columns; 295 of 500 rows are complete.
    >>> found.table["depends_on"]
    ['column 0', 'column 0']
    """
    from kpod._inputs import validation  # which loads scikit-learn, and `kpod describe` needs none of it

    values, names = validation.as_table(X, None), validation.column_names(X)
    n_rows, n_columns = values.shape
    names = names or [f"column {j}" for j in range(n_columns)]
    if not sparse.issparse(values):
        values, names = by_source(values, names)
        return diagnose_gaps(np.isnan(values), values, names, labels)
    stored = np.flatnonzero(~np.isnan(values.data))
    of_column = np.bincount(values.indices[stored], minlength=n_columns)
    of_row = np.diff(np.searchsorted(stored, values.indptr))
    whole = Whole(names, (n_rows - of_column) / n_rows, n_rows, int((of_row == n_columns).sum()), labels)
    dense = _dense(values, whole.rows, whole.columns)
    return whole.diagnosis(np.isnan(dense), dense)


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
    said = [
        f"{names[j]} to {names[end]}" if more else names[j]
        for j, end, more in zip(groups.starts, last, of_more, strict=True)
    ]
    return out, said


@np.errstate(invalid="ignore")  # by a NaN that signals, such as NA of R
def diagnose_gaps(gaps: Gaps, values: Floats, names: Sequence[str], labels: Any = None) -> Diagnosis:
    """The same from gaps and values; NaN in `values` where nothing but the gaps is to be looked at."""
    n_complete = int((~gaps.any(axis=1)).sum())
    whole = Whole(list(names), gaps.mean(axis=0), len(gaps), n_complete, labels)
    at = np.ix_(whole.rows, whole.columns)
    return whole.diagnosis(gaps[at], values[at].astype(np.float64))


class Whole:
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
        found = Diagnosis(**parts, sentences=[], suggestion="")
        return replace(found, sentences=sentences(found), suggestion=suggestion(found))


def gaps_together(gaps: Gaps) -> Floats:
    """Correlations of the gaps of different columns; 0 where not significant."""
    share = gaps.mean(axis=0)
    spread = np.sqrt(share * (1 - share))
    centered = (gaps - share) / np.where(spread > 0, spread, 1)
    correlations = centered.T @ centered / max(len(gaps), 1)
    np.fill_diagonal(correlations, 0)
    z = correlations * np.sqrt(max(len(gaps), 1))
    upper = np.triu(np.ones(z.shape, bool), 1) & (spread > 0)[:, None] & (spread > 0)
    kept = np.zeros(z.shape, bool)
    kept[upper] = _significant(2 * special.ndtr(-np.abs(z[upper])))
    return np.asarray(np.where(kept | kept.T, correlations, 0.0))


def gaps_by_value(gaps: Gaps, values: Floats) -> Floats:
    """Differences in mean between rows that lack a column and rows that have it; 0 where not significant."""
    known = ~np.isnan(values)
    means = np.where(known, values, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    z = np.where(known, values - means, 0.0)
    spread = np.sqrt((z**2).sum(axis=0) / np.maximum(known.sum(axis=0), 1))
    z /= np.where(spread > 0, spread, 1)
    lacking = gaps.astype(np.float64)
    counts = [lacking.T @ known, (1 - lacking).T @ known]
    sums = [lacking.T @ z, (1 - lacking).T @ z]
    squares = [lacking.T @ z**2, (1 - lacking).T @ z**2]
    enough = (counts[0] >= 2) & (counts[1] >= 2) & (spread > 0)
    np.fill_diagonal(enough, val=False)
    mean = [s / np.maximum(n, 1) for s, n in zip(sums, counts, strict=True)]
    variance = [
        np.maximum(q / np.maximum(n, 1) - m**2, 1e-12) / np.maximum(n - 1, 1)
        for q, n, m in zip(squares, counts, mean, strict=True)
    ]
    difference = mean[0] - mean[1]
    # Welch's t; Student's distribution with the smaller group's degrees of freedom is on the safe side.
    t = difference / np.sqrt(variance[0] + variance[1])
    kept = np.zeros(t.shape, bool)
    df = np.maximum(np.minimum(counts[0], counts[1])[enough] - 1, 1)
    kept[enough] = _significant(2 * special.stdtr(df, -np.abs(t[enough])))
    return np.asarray(np.where(kept, difference, 0.0))


def uneven_rows(gaps: Gaps) -> float:
    """The variance of the number of gaps per row over that of independent gaps."""
    share = gaps.mean(axis=0)
    independent = float((share * (1 - share)).sum())
    return float(gaps.sum(axis=1).var() / independent) if independent > 0 else 1.0


def n_uneven_rows(gaps: Gaps) -> int:
    """Rows with more gaps than independent gaps would leave in one, by three standard deviations and two."""
    share, count = gaps.mean(axis=0), gaps.sum(axis=1)
    expected, spread = float(share.sum()), float(np.sqrt((share * (1 - share)).sum()))
    return int((count >= expected + max(2.0, 3 * spread)).sum())


def little_test(values: Floats) -> LittleTest:
    """Little's test over the columns that vary, on a sample of the rows where there are many."""
    rows = values[~np.isnan(values).all(axis=1)]
    drawn = rows[_sample(len(rows), LITTLE_ROWS)]
    x = drawn[:, _varies(drawn)]
    x = x[~np.isnan(x).all(axis=1)]
    reason = _why_not(x, _why_no_gaps(values, x))
    if not reason:
        x = (x - np.nanmean(x, axis=0)) / np.nanstd(x, axis=0)
        kept, which = np.unique(~np.isnan(x), axis=0, return_inverse=True)
        which = np.asarray(which).ravel()
        try:
            return _little_statistic(x, kept, which, *normal_by_em(x, kept, which))
        except np.linalg.LinAlgError:
            reason = "some columns are combinations of others"
    return LittleTest(np.nan, 0, np.nan, 0, reason)


def _why_not(x: Floats, no_gaps: str) -> str:
    """Why Little's test cannot be computed; empty if it can."""
    seen = (~np.isnan(x)).astype(np.float64)
    reasons = {
        "fewer than two columns of numbers vary": x.shape[1] < 2,
        no_gaps: bool(no_gaps),
        f"there are more than {LITTLE_COLUMNS} columns": x.shape[1] > LITTLE_COLUMNS,
        "there are too few rows for so many columns": len(x) <= 2 * x.shape[1],
        "two of the columns are hardly ever observed in the same row": bool((seen.T @ seen < 3).any()),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _varies(values: Floats) -> Gaps:
    """Which columns have different values."""
    known = ~np.isnan(values)
    low = np.where(known, values, np.inf).min(axis=0, initial=np.inf)
    high = np.where(known, values, -np.inf).max(axis=0, initial=-np.inf)
    return np.asarray(high > low)


def _why_no_gaps(values: Floats, x: Floats) -> str:
    """Why nothing is missing in `x`, the part of the table that Little's test is about; empty if it is."""
    numbers, lacking = values[:, ~np.isnan(values).all(axis=0)], np.isnan(values[:, _varies(values)])
    if np.isnan(x).any():
        return ""
    if not np.isnan(numbers).any():
        return "none of the columns of numbers has gaps"
    if not lacking.any():
        return "the columns of numbers that have gaps do not vary"
    if (lacking.all(axis=1) == lacking.any(axis=1)).all():
        return "every row has either all of the columns of numbers or none"
    return "there are so few gaps that a random sample of the rows has none"


def _little_statistic(
    x: Floats, kept: Gaps, which: Positions, mean: Floats, covariance: Floats
) -> LittleTest:
    inverse = _inverses(kept, covariance)
    z = np.where(kept[which], x - mean, 0.0)
    sums = np.zeros(kept.shape)
    np.add.at(sums, which, z)
    rows = np.bincount(which, minlength=len(kept))
    statistic = float((np.einsum("sij,sj->si", inverse, sums) * sums).sum(axis=1) @ (1 / rows))
    df = int(kept.sum() - kept.shape[1])
    return LittleTest(statistic, df, float(special.chdtrc(df, statistic)), len(kept))


def normal_by_em(x: Floats, kept: Gaps, which: Positions) -> tuple[Floats, Floats]:
    """Mean and covariance of a normal distribution, by maximum likelihood over the observed entries.

    `kept` are the patterns of observed columns, `which` that of each row.
    """
    n, p = x.shape
    filled = np.where(kept[which], x, 0.0)
    mean, covariance = filled.sum(axis=0) / kept[which].sum(axis=0), np.eye(p)
    rows = np.bincount(which, minlength=len(kept)).astype(np.float64)
    for _ in range(EM_STEPS):
        inverse = _inverses(kept, covariance)
        weights = covariance @ inverse  # of each pattern: what observed deviations say of every column
        residual = np.where(kept[which], filled - mean, 0.0)
        expected = np.einsum("nij,nj->ni", weights[which], residual)
        spare = covariance - weights @ covariance
        both = ~kept[:, :, None] & ~kept[:, None, :]
        new_mean = mean + expected.mean(axis=0)
        step = expected - (new_mean - mean)
        new = step.T @ step / n + np.einsum("s,sij->ij", rows, np.where(both, spare, 0.0)) / n
        moved = max(float(np.abs(new - covariance).max()), float(np.abs(new_mean - mean).max()))
        mean, covariance = new_mean, (new + new.T) / 2
        if moved < EM_TOLERANCE:
            break
    if np.linalg.eigvalsh(covariance)[0] < 1e-8:
        raise np.linalg.LinAlgError
    return mean, covariance


def _inverses(kept: Gaps, covariance: Floats) -> Floats:
    """The inverse covariance of each pattern's columns, 0 elsewhere."""
    both = kept[:, :, None] & kept[:, None, :]
    inner = np.where(both, covariance, np.eye(len(covariance)))
    return np.asarray(np.where(both, np.linalg.inv(inner), 0.0))


def sentences(found: Diagnosis) -> list[str]:
    """The findings in plain words."""
    said = [_how_much(found)]
    if not found.missing.any():
        return said
    parts = []
    if found.n_compared < found.n_rows:
        parts.append(f"{counted(found.n_compared, 'row')} drawn at random")
    if len(found.columns) < len(found.names):
        parts.append(f"the {counted(len(found.columns), 'column')} whose gaps vary most")
    if parts:
        said.append(f"The following is based on {listed(parts)}.")
    by_value = _value_sentences(found)
    said += [*_together_sentences(found), *by_value]
    if found.uneven_rows > UNEVEN:
        said.append(_uneven_sentence(found))
    said.append(_little_sentence(found.little, related=bool(by_value)))
    if found.group_test is not None:
        said.append(_group_sentence(found, found.group_test))
    return said


def _how_much(found: Diagnosis) -> str:
    n = int((found.missing > 0).sum())
    if n == 0:
        return f"Nothing is missing in {counted(found.n_rows, 'row')}."
    most = found.missing.max()
    even = most - found.missing[found.missing > 0].min() < 0.05 or n == 1
    which = some([found.names[j] for j in np.flatnonzero(found.missing == most)], most=MOST_SAID)
    where = "" if even else f", most in {which} ({percent(most)})"
    return (
        f"{percent(float(found.missing.mean()))} of the entries are missing, in {n:,} of "
        f"{counted(len(found.names), 'column')}{where}; {found.n_complete:,} of "
        f"{counted(found.n_rows, 'row')} {'is' if found.n_complete == 1 else 'are'} complete."
    )


def _together_sentences(found: Diagnosis) -> list[str]:
    names = [found.names[j] for j in found.columns]
    blocks = _blocks(found.together)
    said = [
        f"{some([names[j] for j in block])} are nearly always missing together."
        for block in sorted(blocks, key=len, reverse=True)[:MOST_SAID]
        if len(block) > 1
    ]
    # What holds of a column holds of all that are missing with it.
    first = [block[0] for block in blocks]
    rest = np.triu(found.together[np.ix_(first, first)])
    for text, sign, least in (
        ("Columns often missing together (correlation of gaps)", 1, RELATED),
        ("Where one is missing, the other tends to be present (correlation of gaps)", -1, IN_TURN),
    ):
        pairs = [
            f"{names[first[i]]} and {names[first[j]]} ({rest[i, j]:+.2f})"
            for i, j in _largest(rest)
            if sign * rest[i, j] >= least
        ]
        if pairs:
            said.append(f"{text}: {listed(pairs[:MOST_SAID])}.")
    return said


def _blocks(together: Floats) -> list[list[int]]:
    """Columns that are missing together, every two of a block; the others by themselves."""
    blocks: list[list[int]] = []
    for j in range(len(together)):
        fits = (block for block in blocks if (together[j, block] > TOGETHER).all())
        block = next(fits, None)
        if block is None:
            blocks.append([j])
        else:
            block.append(j)
    return blocks


def _value_sentences(found: Diagnosis) -> list[str]:
    names = [found.names[j] for j in found.columns]
    said = []
    for j, other in _largest(found.values)[:MOST_SAID]:
        difference = found.values[j, other]
        if abs(difference) < 2 * RELATED:
            break
        level = found.levels.get(int(found.columns[other]))
        if level is None:
            how = f"are {'higher' if difference > 0 else 'lower'} in {names[other]}"
        else:
            how = f"{'more' if difference > 0 else 'less'} often have {names[other]} {level}"
        said.append(f"Rows that lack {names[j]} {how}, by {abs(difference):.1f} standard deviations.")
    return said


def _little_sentence(little: LittleTest, *, related: bool) -> str:
    if little.reason:
        return f"Whether gaps are purely random could not be tested (Little's test): {little.reason}."
    numbers = f"(Little's test: chi-square {little.statistic:.0f}, {little.df} df, p {_p(little.p)})"
    if little.p < LEVEL:
        return (
            "Gaps are not purely random: rows that lack different columns differ in the other columns "
            f"{numbers}."
        )
    if related and little.p < UNCLEAR:
        return f"A single test of all such differences together is less clear {numbers}."
    if related:
        return f"A single test of all such differences together would not have noticed them {numbers}."
    return f"The observed values give no sign that gaps are not purely random {numbers}."


def _uneven_sentence(found: Diagnosis) -> str:
    """On rows with many gaps; how many they are is said where it is one, or nothing stands out."""
    who = {0: "", 1: "One row has far more gaps than the others: "}.get(
        found.n_uneven_rows, "Some rows have far more gaps than others: "
    )
    said = (
        f"{who}the number of gaps per row varies {found.uneven_rows:.1f} times as much as it would if gaps "
        "were independent."
    )
    return said[0].upper() + said[1:]


def _group_sentence(found: Diagnosis, test: GapTest) -> str:
    what = "clusters" if found.groups[0].startswith("cluster ") else "groups"
    if test.p > LEVEL:
        clearly = "clearly " if test.p <= UNCLEAR else ""
        return f"The {what} do not {clearly}differ in what they lack."
    spread = found.by_group.max(axis=0) - found.by_group.min(axis=0)
    cells = []
    for j in np.argsort(-spread, kind="stable")[:MOST_SAID]:
        least, most = int(found.by_group[:, j].argmin()), int(found.by_group[:, j].argmax())
        low, high = (percent(found.by_group[group, j]) for group in (least, most))
        if low != high:
            cells.append(
                f"{found.names[found.columns[j]]} (missing in {low} of {found.groups[least]}, {high} of "
                f"{found.groups[most]})"
            )
    if not cells:
        return f"The {what} differ in what they lack, but by less than 1% of the rows in every column."
    most_in = "" if len(found.columns) == 1 else "most in " if len(cells) > 1 else "above all in "
    return f"The {what} differ in what they lack, {most_in}{listed(cells)}."


def suggestion(found: Diagnosis) -> str:
    """What to do about it; empty where the gaps are related to something, but too weakly to matter."""
    check = f"find out why these values are missing. {AUTO} checks whether the gaps should count."
    if not found.missing.any():
        return "There are no gaps to decide about."
    if found.group_test is not None and found.group_test.p <= LEVEL:
        spread = found.by_group.max(axis=0) - found.by_group.min(axis=0)
        return f"The gaps are related to the clusters: {check}" if spread.max() >= MATTERS else ""
    gaps = found.missing[found.columns] >= MATTERS
    if found.group_test is None and np.abs(found.values[gaps]).max(initial=0) >= STRONG:
        return f"The gaps are related to the values: {check}"
    if bool(found.values.any()) or found.little.p < LEVEL or found.uneven_rows > UNEVEN:
        return ""
    return "There is no sign that the gaps carry information; the observed values are enough."


def _by_label(gaps: Gaps, labels: Any) -> tuple[list[str], Floats, GapTest | None]:
    if labels is None:
        return [], np.zeros((0, gaps.shape[1])), None
    kept = _in_a_group(labels)
    names, groups = np.unique(labels[kept], return_inverse=True)
    counts, sizes = gaps_by_group(gaps[kept], groups)
    drawn = _sample(len(groups), MOST_PERMUTED)
    test = compare_gaps(gaps[kept][drawn], groups[drawn], np.random.default_rng(0))
    numbers = np.issubdtype(names.dtype, np.integer)
    said = [f"cluster {name}" if numbers else str(name) for name in names]
    return said, counts / sizes[:, None], test


def _in_a_group(labels: Any) -> Gaps:
    unplaced = labels == -1 if np.issubdtype(labels.dtype, np.number) else np.zeros(len(labels), bool)
    return np.asarray(~unplaced, dtype=bool)


def _checked_labels(labels: Any, n_rows: int) -> Any:
    given = containers.labels_in(labels, n_rows)
    if not _in_a_group(given).any():
        raise ValueError("labels are -1 throughout; there is no group to compare.")
    return given


def _most_varied(missing: Floats) -> Positions:
    if len(missing) <= MOST_COLUMNS:
        return np.arange(len(missing))
    return np.sort(np.argsort(-missing * (1 - missing), kind="stable")[:MOST_COLUMNS])


def _sample(n: int, most: int) -> Positions:
    """All rows, or a fixed random sample of them."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False))


def _dense(table: Any, rows: Positions, columns: Positions) -> Floats:
    """Some rows and columns of a CSR array with NaN in the gaps."""
    part = table[rows][:, columns].tocoo()
    out = np.full(part.shape, np.nan)
    out[part.row, part.col] = part.data
    return out


def _significant(p: Floats) -> Gaps:
    """Which of many tests reject, with a false discovery rate of `LEVEL` (Benjamini & Hochberg)."""
    order = np.argsort(p, kind="stable")
    passed = np.flatnonzero(p[order] <= LEVEL * np.arange(1, len(p) + 1) / max(len(p), 1))
    out = np.zeros(len(p), bool)
    out[order[: passed[-1] + 1 if len(passed) else 0]] = True
    return out


def _strongest(matrix: Floats, at: int | None) -> tuple[int, float]:
    if at is None:
        return 0, 0.0
    j = int(np.abs(matrix[at]).argmax())
    return j, float(matrix[at, j])


def _largest(matrix: Floats) -> list[tuple[int, int]]:
    """The places of the entries other than 0, largest first."""
    order = np.argsort(-np.abs(matrix), axis=None, kind="stable")[: int((matrix != 0).sum())]
    return [(int(i), int(j)) for i, j in zip(*np.unravel_index(order, matrix.shape), strict=True)]


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.2g}"
