"""kpod.choose_k: how many clusters? Hide observed entries, and see with how many they are predicted best.

Two questions, asked of the same hidden entries:

1. With how many centers are they predicted best? The smallest number within one standard error of
   the best is taken (paired: the same entries for every number).
2. Would *correlation* predict them as well as more centers do? Columns that go up and down together
   within a cluster let many centers in a row trace a single elongated group. So at the number found,
   and at every smaller one, Gaussian mixtures whose columns may be correlated within clusters
   predict the same entries; where fewer clusters do it better that way, the number
   is theirs. One correlated cluster is among them: the null hypothesis of no groups, with the same
   gaps, and nothing to simulate.
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline

from kpod._columns.preparing.preparer import TablePreparer
from kpod._common.progress import Progress
from kpod._estimators.kpod import KPOD
from kpod._estimators.mini_batch import MiniBatchKPOD
from kpod._findings.cluster_shapes import check_shape, choose_shape, why_not
from kpod._findings.number_by_density import check_by_density
from kpod._findings.shape_comparison import ROUND
from kpod._inputs import frames, validation
from kpod._model_selection.number_of_clusters import KChoice, Shapes
from kpod._model_selection.trials import clock


def choose_k(
    X: Any,
    k: Any = "auto",
    *,
    shape: str = "round",
    estimator: KPOD | Pipeline | None = None,
    sample_weight: Any = None,
    random_state: Any = None,
    progress: Progress | None = None,
    max_seconds: float | None = None,
) -> KChoice:
    r"""Choose the number of clusters by hiding observed entries and predicting them.

    Ten times (five above 20,000 observed entries), a tenth of the observed entries is hidden, the table is
    clustered without them, and they are predicted by the centers of their rows:

    .. math:: e(k) = \frac{1}{|H|} \sum_{(i,j) \in H} (x_{ij} - c_{l(i)j})^2

    The smallest k whose error is within one standard error of the smallest error is chosen, where the
    standard error is that of the difference (over rows). A number that is far worse in the first folds is
    not fitted to the others. If columns are correlated *within* the
    clusters found, so that centers count pieces rather than groups, the number is chosen again among
    Gaussian mixtures that allow for correlation, including a single correlated group. If clusters are
    not separate, because rows lie as densely between them as inside, the choice is not clear.

    Parameters
    ----------
    X : array-like, dataframe or sparse matrix of shape (n_samples, n_features)
        The table. The scale of a column is its weight: standardise columns first unless they share a unit. A
        data frame with non-numeric columns is prepared and scaled by `TablePreparer`, unless
        there is an `estimator`.
    k : "auto" or iterable of int, default="auto"
        The numbers to choose from. "auto" is 1 to 10, and up to 40 as long as more clusters
        predict better.
    shape : "round", "auto" or a type of covariance, default="round"
        The shape of the clusters in `model_`. "round" is that of k-means, a KPOD. "auto" also fits a
        `GaussianMixture` with the same number of clusters, and returns it if it fits better: the groups are
        elongated, correlated, or differ in size or spread. A type of covariance is fitted as requested.
        `shape_` says which shape was chosen, why, and where shapes disagree. Unless it is "round", the number
        of clusters is checked again by the log density of held-out rows, which also detects groups that
        differ in spread or have a few outlying cells.
    estimator : KPOD, or a pipeline that ends in one, default=None
        How to cluster; `n_clusters` is set here. The steps of a pipeline are fitted on X, and their output
        is clustered. With the `checkpoint` of a KPOD, a search that was killed resumes where it stopped.
    sample_weight : array-like of shape (n_samples,), default=None
        The weight of each row, in the clustering and in the errors.
    random_state : int, RandomState instance or None, default=None
        Determines which entries are hidden, and the starts; None uses that of the estimator.
    progress : callable, default=None
        A callback, called as `progress(done, total, text)` during the fits. If it has a method
        `announce`, that is called as `progress.announce(seconds)` if a wait of more than half a minute
        is expected. `total` is an estimate: it grows if more clusters help,
        and falls if a number of clusters is dropped.
    max_seconds : float, default=None
        Stop the search after this time, with the best answer so far: numbers of clusters that were not
        reached are not in `table_`, errors are based on fewer folds, and correlation may not have been
        tested. `clear_` is then False and `reason_` says why. The model is still fitted; answers depend on
        the speed of the machine. None means no limit.

    Returns
    -------
    KChoice
        `best_k_`, `sentence_`, `table_`, and the fitted `model_`: a KPOD, a GaussianMixture depending on
        `shape`, or a pipeline if there are steps before it; see `KChoice`.

    Notes
    -----
    With more than 20,000 rows, the choice is based on a random sample of 20,000 (`n_rows_`); the model is
    fitted on all rows.

    Examples
    --------
    >>> from kpod import choose_k
    >>> from kpod.datasets import make_mixture
    >>> from kpod.missingness import mcar
    >>> X, _ = make_mixture(4, n_samples=200, n_features=10, random_state=0)
    >>> choice = choose_k(mcar(X, 0.3, random_state=0), range(1, 7), random_state=0)
    >>> choice.best_k_, choice.clear_
    (4, True)
    >>> choice.model_.n_clusters
    4
    """
    check_shape(shape)
    if max_seconds is not None and not (isinstance(max_seconds, Real) and max_seconds >= 0):
        raise ValueError(f"max_seconds must be a number of seconds from 0 up, or None; got {max_seconds!r}.")
    deadline = None if max_seconds is None else clock() + float(max_seconds)
    if estimator is None:
        raw = frames.is_frame(X) and bool(frames.text_columns(X))
        estimator = make_pipeline(TablePreparer(), KPOD()) if raw else KPOD()
    if isinstance(estimator, Pipeline):
        validation.refuse_dask(X)  # before scikit-learn's transformers load it
        *steps, (name, last) = clone(estimator).steps
        for _, step in steps:
            X = X if step in (None, "passthrough") else step.fit_transform(X)
        choice = choose_k(
            X, k, shape=shape, estimator=last, sample_weight=sample_weight, random_state=random_state,
            progress=progress, max_seconds=max_seconds,
        )  # fmt: skip
        return replace(choice, model_=Pipeline([*steps, (name, choice.model_)]))
    if isinstance(estimator, MiniBatchKPOD):
        raise TypeError(
            "estimator must be a KPOD, got MiniBatchKPOD. Choose with a KPOD, and fit "
            "MiniBatchKPOD(n_clusters=choice.best_k_)."
        )
    if not isinstance(estimator, KPOD):
        raise TypeError(
            f"estimator must be a KPOD or a pipeline that ends in one, got {type(estimator).__name__}."
        )
    kpod = clone(estimator)
    if estimator._progress_line is not None:
        kpod._progress_line = estimator._progress_line
    if random_state is not None:
        kpod.set_params(random_state=random_state)
    model, choice = choose_number(X, k, kpod, shape, sample_weight, progress=progress, deadline=deadline)
    if shape == ROUND:
        return replace(choice, model_=model)
    if choice.model_ is not None:
        return choice
    found, about = choose_shape(X, model, shape, sample_weight)
    if about.n_separate_:
        choice = replace(choice, n_separate_=about.n_separate_)
    return replace(choice, model_=found, shape_=about)


def choose_number(
    X: Any,
    k: Any,
    kpod: KPOD,
    shape: str,
    sample_weight: Any = None,
    *,
    progress: Progress | None = None,
    deadline: float | None = None,
) -> tuple[KPOD, KChoice]:
    """The KPOD of the number that is chosen, and why; with the model of its shape if that decided."""
    reason = "" if shape == ROUND else why_not(X, kpod, shape)
    shapes: Shapes = "offered" if shape == ROUND else "not compared" if reason else "compared"
    kpod.set_params(n_clusters="auto")
    choice = kpod._fit(X, sample_weight, k, progress, shapes=shapes, deadline=deadline).choice_
    del kpod.choice_
    kpod.__dict__.pop("_progress_line", None)
    kpod.set_params(n_clusters=choice.best_k_)
    return check_by_density(X, kpod, choice, shape, sample_weight) if shapes == "compared" else (kpod, choice)
