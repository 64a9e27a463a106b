"""The result of a search for the number of clusters, in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from kpod._common.notebook import ReadsAsText
from kpod._common.options import in_the_shell, option
from kpod._common.sentences.formatting import percent
from kpod._common.typing import Floats
from kpod._model_selection.correlated import NumberVerdict, predicted
from kpod._model_selection.holdout import Errors, above
from kpod._model_selection.number_search import Search

RIVAL = 2.0  # standard errors above the best: another number that close is a rival of the one chosen
CLEARLY_WORSE = 3.0  # standard errors; less is no proof against clusters that are separate
HUMP = 2.5  # standard errors by which a number between the two is worse than both
DISAGREEMENT = 0.8  # adjusted Rand index below which the sentence says that clusters and groups differ
TIME_IS_UP = (
    "the search was stopped after max_seconds, so that not everything was tried that it takes to be sure"
)
Shapes = Literal["offered", "compared", "not compared"]
"""Of the clusters, once their number is chosen: round unless asked for, compared with others, or round."""
COLUMNS = ("error", "error_se", "above_best", "above_best_se", "loss", "silhouette", "correlated_error")


@dataclass
class KChoice(ReadsAsText):
    """The result of `choose_k`.

    Attributes
    ----------
    best_k_ : int
        The number of clusters; the best guess if `clear_` is False.
    clear_ : bool
        Whether the choice is clear.
    reason_ : str
        Why the choice is not clear; empty if it is.
    sentence_ : str
        The finding in plain words.
    table_ : dict of ndarrays
        One entry for each number of clusters tried, `k`: `error`, the mean squared error of hidden
        entries predicted by the centers, and its standard error `error_se`; `above_best`, the difference
        to the smallest error, with the paired standard error `above_best_se` (for a number that is far worse
        in the first folds, these are from those folds alone). `loss`, the loss per observed
        entry, and `silhouette` (of at most 1,000 rows): for `best_k_` those of the fit, for other numbers
        from one start. `correlated_error`, the error of the best mixture with correlated columns, NaN if none
        was tried; unless `shape` is "round", `log_density`, the mean log density of held-out
        rows (of normal scores of the columns). If `gaps_` is True, errors include those of predicting
        the gaps: minus twice their log-likelihood, times the variance of hidden entries.
    column_errors_ : ndarray of shape (len(k), n_features) or None
        Squared errors of hidden entries by column; NaN if nothing of a column was hidden. Not kept in
        model files.
    centers_k_ : int
        The number chosen by centers alone. More than `best_k_` if columns are correlated within
        clusters.
    correlated_ : bool
        Whether columns are correlated within clusters strongly enough to matter for the choice.
    n_hidden_ : int
        Number of entries that were hidden, over all folds.
    n_rows_ : int
        Number of rows that the choice is based on; fewer than the table has if it is large.
    gaps_ : bool
        Whether gaps were used, and therefore predicted as well.
    n_separate_ : int
        How many separate groups the clusters form: two clusters with rows as dense between them as inside
        are one group.
    model_ : KPOD, GaussianMixture, Pipeline or None
        The model fitted with `best_k_` clusters on the whole table, with the shape in `shape_`; a pipeline if
        one was given; None in `KPOD.choice_`, which belongs to that model.
    shape_ : ShapeChoice or None
        The shape of the clusters, and why it was chosen; None if `shape` was "round".
    doubt_ : str
        What `reason_` is about: "time", "last number", "correlation", "two numbers" or "separation"; empty if
        the choice of centers is clear. Not kept in model files.
    """

    best_k_: int
    clear_: bool
    reason_: str
    sentence_: str
    table_: dict[str, Any]
    column_errors_: Floats | None
    centers_k_: int
    correlated_: bool
    n_hidden_: int
    n_rows_: int
    gaps_: bool = False
    n_separate_: int = 1
    model_: Any = None
    shape_: Any = None
    doubt_: str = ""

    def __str__(self) -> str:
        shape = "" if self.shape_ is None else f" {self.shape_.sentence_}"
        return f"{self.text_table()}\n\n{self.sentence_}{shape}"

    def text_table(self) -> str:
        """The table as text."""
        t = self.table_
        correlated = bool(np.isfinite(t["correlated_error"]).any())
        error = _with_error(t["error"], t["error_se"], ".4g", 11)
        above = _with_error(t["above_best"], t["above_best_se"], ".2g", 8)
        loss = _aligned([f"{value:.4g}" for value in t["loss"]], 8)
        heads = f"{'held-out error':>{len(error[0]) - 2}}  {'above best':>{len(above[0]) - 2}}  "
        header = f"  k{heads}{'loss':>{len(loss[0]) + 1}}  silhouette"
        density = t.get("log_density")
        header += "   correlated" * correlated + "  log density" * (density is not None)
        lines = [header]
        for i, k in enumerate(t["k"]):
            line = f"{k:3d}{error[i]}{above[i]}{loss[i]}{_number(t['silhouette'][i], '.3f'):>12}"
            if correlated:
                line += f"{_number(t['correlated_error'][i], '.4g'):>13}"
            if density is not None:
                line += f"{_number(density[i], '.3f'):>13}"
            lines.append(line + ("  <-" if k == self.best_k_ else ""))
        return "\n".join(lines)


def _with_error(values: Floats, errors: Floats, form: str, least: int) -> list[str]:
    """Values and their errors, aligned at the sign between them."""
    texts = _aligned([format(value, form) for value in values], least)
    errors_text = [f"{error:.2g}" for error in errors]
    width = max(7, *map(len, errors_text))
    return [f"{text} ± {error:<{width}}" for text, error in zip(texts, errors_text, strict=True)]


def _aligned(texts: list[str], least: int) -> list[str]:
    width = max(least, 2 + max(map(len, texts)))
    return [text.rjust(width) for text in texts]


def _number(value: float, form: str) -> str:
    return format(value, form) if np.isfinite(value) else ""


def conclusion(search: Search, among: Any = None, *, shapes: Shapes = "offered") -> KChoice:
    """What comes of trying some numbers of clusters, None for "auto": in numbers and in words.

    Their shape is described later, if shapes are compared.
    """
    extendable = search.try_all("auto" if among is None else among)
    verdict = search.verdict()
    late = search.counter.is_late
    search.settle(verdict.k)
    doubt, reason = ("time", TIME_IS_UP) if late else why_unclear(search, verdict, extendable)
    numbers = sorted(search.trials.by_k)
    curve = search.trials.errors
    errors = [curve[n] for n in numbers]
    best = min(errors, key=lambda e: e.mean)
    above_best = [e.above(best) for e in errors]
    mixtures = [verdict.mixtures.get(n) for n in numbers]
    table = {
        "k": np.array(numbers),
        "error": np.array([e.mean for e in errors]),
        "error_se": np.array([e.standard_error for e in errors]),
        "above_best": np.array([difference for difference, _ in above_best]),
        "above_best_se": np.array([error for _, error in above_best]),
        "loss": np.array([search.loss(n) for n in numbers]),
        "silhouette": np.array(search.silhouettes()),
        "correlated_error": np.array([np.nan if m is None else m.mean for m in mixtures]),
    }
    return KChoice(
        best_k_=verdict.k,
        clear_=not reason,
        reason_=reason,
        sentence_=in_words(search, verdict, reason, shapes),
        table_=table,
        column_errors_=np.array([e.column_means for e in errors]),
        centers_k_=verdict.by_centers,
        correlated_=verdict.correlated,
        n_hidden_=sum(fold.n_hidden for fold in search.folds),
        n_rows_=search.table.n_rows,
        gaps_=search.gaps,
        n_separate_=search.n_apart(verdict.k) if verdict.k > 1 else 1,
        doubt_=doubt,
    )


def too_little(reason: str) -> KChoice:
    """One cluster, because there are too few entries to hide."""
    empty = {name: np.array([np.nan]) for name in COLUMNS}
    return KChoice(
        best_k_=1,
        clear_=False,
        reason_=reason,
        sentence_=f"No clear choice: {reason} One cluster is used.",
        table_={"k": np.array([1]), **empty},
        column_errors_=None,
        centers_k_=1,
        correlated_=False,
        n_hidden_=0,
        n_rows_=0,
    )


def why_unclear(search: Search, verdict: NumberVerdict, extendable: bool) -> tuple[str, str]:
    """What the doubt is about, and the reason why the choice is not clear; both empty if it is."""
    k, curve, last, hidden = verdict.k, verdict.curve, max(search.trials.by_k), predicted(search.gaps)
    if k == last and len(search.trials.by_k) > 1 and k > 1:
        where = "the most that were tried" if extendable else "the end of the range"
        return "last number", f"the error on {hidden} is still falling at {last} clusters, {where}"
    if verdict.doubt:
        return "correlation", verdict.doubt
    pieces = verdict.by_centers
    if k == 1 < pieces:
        narrow = above(curve[pieces], curve[1]) < CLEARLY_WORSE
        if narrow and search.n_apart(pieces) == pieces:
            return "correlation", (
                f"columns are correlated, and one correlated group predicts {hidden} slightly better "
                f"than {pieces} clusters do, but these are separate: few rows lie between them"
            )
    for found, number in ((curve, k), (search.trials.errors, pieces)):
        other = rival(found, number) if k > 1 else None
        if other is not None:
            fewer, more = sorted((number, other))
            return "two numbers", (
                f"{fewer} and {more} clusters predict {hidden} about equally well, and numbers in "
                "between predict them worse"
            )
    apart = search.n_apart(k) if k > 1 else k
    if apart < k:
        only = f"they form only {apart} separate groups" if apart > 1 else "they are not separate groups"
        between = "them as inside them" if apart == 1 else "some of them as inside them"
        return "separation", (
            f"{k} clusters predict {hidden} best, but {only}: rows are as dense between {between}, "
            "as when a curve or a trend is cut into pieces"
        )
    return "", ""


def rival(curve: dict[int, Errors], k: int) -> int | None:
    """The best number that predicts about as well as k does although one in between is worse than both."""
    best = min(curve.values(), key=lambda e: e.mean)

    def is_rival(n: int) -> bool:
        between = [curve[m] for m in curve if min(k, n) < m < max(k, n)]
        worse = (min(above(errors, curve[k]), above(errors, curve[n])) for errors in between)
        return above(curve[n], best) <= RIVAL and max(worse, default=0.0) > HUMP

    return min(filter(is_rival, curve), key=lambda n: curve[n].mean, default=None)


def in_words(search: Search, verdict: NumberVerdict, reason: str, shapes: Shapes) -> str:
    """The finding in plain words, without statistics."""
    k, curve = verdict.k, verdict.curve
    them = "them and the gaps" if search.gaps else "them"
    sentences = []
    if len(search.trials.by_k) == 1 and reason != TIME_IS_UP:
        sentences.append(f"Only one number was tried, {k}, so there was nothing to choose from.")
    elif reason:
        guess = "One cluster is" if k == 1 else f"{k} clusters are"
        sentences.append(f"No clear choice: {reason}. {guess} used as the best guess.")
    elif k > 1:
        clusters, one = f"{k} clusters", "one cluster"
        if verdict.correlated:
            clusters, one = f"{k} groups with correlated columns", "one such group"
        gain = ""
        if 1 in curve and curve[k].mean < curve[1].mean:
            gain = f" (error {percent(1 - curve[k].mean / curve[1].mean)} lower than with {one})"
        fewer = "fewer do worse" if k > min(search.trials.by_k) else "fewer were not tried"
        sentences.append(
            f"{k} clusters: when observed values are hidden, {clusters} predict {them} best{gain}; "
            f"{fewer}, and more do no better."
        )
    elif verdict.correlated:
        sentences.append(
            "One cluster, so no separate groups: the columns are correlated, and a single group with "
            f"correlated columns predicts {predicted(search.gaps)} as well as several clusters do. k-means "
            f"alone would have cut it into {verdict.by_centers} pieces."
        )
    else:
        sentences.append(
            "One cluster, so no separate groups: when observed values are hidden, more clusters do not "
            f"predict {them} any better."
        )
    if verdict.correlated and k > 1:
        if verdict.by_centers > k:
            sentences.append(
                f"k-means, which does not allow for correlation, would have chosen {verdict.by_centers}."
            )
        comparable = not search.table.groups.present  # no Gaussian fits categories
        agreement = 1.0 if shapes == "compared" and comparable else search.mixtures.agreement(verdict)
        if agreement < DISAGREEMENT:
            offer = ""
            if shapes == "offered" and comparable:
                shape_auto = option("--shape", "auto")
                where = shape_auto if in_the_shell() else f"`kpod.choose_k` with {shape_auto}"
                offer = f"; {where} compares other shapes"
            sentences.append(
                "The groups found that way are not round, and the clusters of k-means match them only in "
                f"part (adjusted Rand index {agreement:.2f}){offer}."
            )
    if search.table.n_rows < search.usable:
        sentences.append(f"The choice is based on a random sample of {search.table.n_rows:,} rows.")
    return " ".join(sentences)
