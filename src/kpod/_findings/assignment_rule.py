"""The clusters as a rule of a few splits, by which a new row can be assigned by hand.

A small decision tree on the columns in their own units. How often it is right is measured on rows that it
was not made from (five folds); it has as many leaves as that is worth.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.tree import DecisionTreeClassifier

from kpod._common.notebook import ReadsAsText
from kpod._common.sentences.rule_sentences import rule_lines, rule_sentence
from kpod._common.typing import Floats, Labels
from kpod._findings.fitted_clusters.clustering import Clustering
from kpod._findings.fitted_clusters.entries import DenseEntries

MOST_ROWS = 5_000
"""Of more rows, a sample makes the rule."""
MOST_CLUSTERS = 12
WORTH = 0.01
"""What another leaf must add to the accuracy."""
FOLDS = 5
LEAST_ROWS = 20


@dataclass(frozen=True)
class Condition:
    """A column below a value, or not; `or_missing` where rows without a value go the same way.

    A level of a category is below 0.5 in rows that have another one. With `by_gap`, having a value decides.
    """

    column: str
    level: str
    other: str
    is_yes_no: bool
    below: bool
    value: float
    or_missing: bool
    by_gap: bool = False


@dataclass(frozen=True)
class Leaf:
    """Where all conditions hold, the cluster of most rows."""

    conditions: tuple[Condition, ...]
    cluster: int
    n_rows: int
    """Rows of the table for which they hold; of those looked at, where it is large."""
    n_right: int
    """Of these, the rows of that cluster."""


@dataclass(frozen=True)
class Rule(ReadsAsText):
    """A rule of a few splits that assigns rows to clusters.

    Attributes
    ----------
    leaves : list of Leaf
        Conditions that exclude each other, and the cluster where they hold.
    accuracy : float
        The share of held-out rows that it assigns to their cluster.
    baseline : float
        The share of the largest cluster: the accuracy of assigning all rows to it.
    n_rows : int
        The number of rows used.
    sampled : bool
        Whether these are a sample.
    sentence_ : str
    """

    leaves: list[Leaf]
    accuracy: float
    baseline: float
    n_rows: int
    sampled: bool = False

    @property
    def sentence_(self) -> str:
        return rule_sentence(self)

    def __str__(self) -> str:
        return "\n".join([self.sentence_, *(f"  {line}" for line in rule_lines(self))])

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        leaves = [
            {**vars(leaf), "conditions": [vars(one) for one in leaf.conditions]} for leaf in self.leaves
        ]
        return {
            **vars(self),
            "leaves": leaves,
            "sentence": self.sentence_,
            "lines": rule_lines(self),
        }


def rule_of(c: Clustering) -> Rule | None:
    """The rule, if there are several clusters, and enough rows in memory to validate it."""
    placed = np.flatnonzero(c.labels >= 0)
    if not 1 < c.k <= MOST_CLUSTERS or len(placed) < LEAST_ROWS or not isinstance(c.table, DenseEntries):
        return None
    if len(placed) > MOST_ROWS:
        placed = np.sort(np.random.default_rng(0).choice(placed, MOST_ROWS, replace=False))
    values, labels = np.asarray(c.table.rows(placed), dtype=np.float64), c.labels[placed]
    tree, accuracy = smallest_tree(values, labels, c.k)
    baseline = float(c.sizes.max() / c.sizes.sum())
    sampled = len(labels) < int(c.sizes.sum())
    return Rule(leaves_of(c, tree, values, labels), accuracy, baseline, len(labels), sampled)


def smallest_tree(values: Floats, labels: Labels, k: int) -> tuple[DecisionTreeClassifier, float]:
    """The tree with the fewest leaves that is right nearly as often as larger ones."""
    tried: dict[int, float] = {}
    folds = KFold(FOLDS, shuffle=True, random_state=0)
    for n_leaves in range(k, 2 * k + 1):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of clusters that are not in every fold
            guessed = cross_val_predict(small_tree(n_leaves), values, labels, cv=folds)
        tried[n_leaves] = float((guessed == labels).mean())
    best = max(tried.values())
    chosen = min(n for n, accuracy in tried.items() if accuracy >= best - WORTH)
    return small_tree(chosen).fit(values, labels), tried[chosen]


def small_tree(n_leaves: int) -> DecisionTreeClassifier:
    return DecisionTreeClassifier(max_leaf_nodes=n_leaves, random_state=0)


def leaves_of(c: Clustering, classifier: Any, values: Floats, labels: Labels) -> list[Leaf]:
    """The leaves of a tree, those of the first cluster first."""
    tree = classifier.tree_
    path = np.asarray(classifier.decision_path(values).todense(), dtype=bool)
    out = []

    def descend(node: int, conditions: tuple[Condition, ...]) -> None:
        if tree.children_left[node] < 0:
            cluster = int(classifier.classes_[tree.value[node][0].argmax()])
            here = path[:, node]
            right = int((labels[here] == cluster).sum())
            out.append(Leaf(joined(conditions), cluster, int(here.sum()), right))
            return
        j = int(tree.feature[node])
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        low = np.nanmax(values[path[:, left], j], initial=-np.inf)  # trees compare in single precision
        high = np.nanmin(values[path[:, right], j], initial=np.inf)
        missing_left = bool(tree.missing_go_to_left[node])
        has_gaps = bool(np.isnan(values[:, j]).any())
        for below, child in ((True, left), (False, right)):
            condition = condition_of(c, j, below, low, high, has_gaps and missing_left == below)
            descend(child, (*conditions, condition))

    descend(0, ())
    return sorted(out, key=lambda leaf: (leaf.cluster, -leaf.n_rows))


def condition_of(c: Clustering, j: int, below: bool, low: float, high: float, or_missing: bool) -> Condition:
    level = c.levels[j]
    name, of, other = (c.names[j], "", "") if level is None else (level.column, level.name, level.other or "")
    by_gap = not (np.isfinite(low) and np.isfinite(high))
    value = 0.0 if by_gap else plain_between(low, high)
    is_yes_no = level is None and c.is_yes_no[j]
    return Condition(name, of, other, is_yes_no, below, value, or_missing, by_gap)


def joined(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """Without those that a stricter one of the same column and side implies."""
    strictest: dict[tuple[str, str, bool], Condition] = {}
    in_gap: dict[str, Condition] = {}
    for one in conditions:  # further down is stricter
        if one.by_gap:
            in_gap[one.column] = one
            continue
        key = (one.column, one.level, one.below)
        missing = one.or_missing and (key not in strictest or strictest[key].or_missing)
        strictest[key] = replace(one, or_missing=missing)
    out = []
    for one in strictest.values():
        gap = in_gap.get(one.column)
        if gap is None or not gap.or_missing:  # of a value that is missing, nothing else can be asked
            out.append(one if gap is None else replace(one, or_missing=False))
    told = {one.column for one in out}
    return (*out, *(gap for name, gap in in_gap.items() if gap.or_missing or name not in told))


def plain_between(low: float, high: float) -> float:
    """The number with the fewest digits above one value, and up to another."""
    middle = (low + high) / 2
    size = max(abs(low), abs(high), high - low)
    for digits in range(1 - int(np.ceil(np.log10(size))) if size > 0 else 0, 25):
        found = round(middle, digits)
        if low < found <= high:
            return float(found)
    return float(high)
