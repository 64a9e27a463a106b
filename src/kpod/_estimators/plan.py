"""From parameters to a plan: the random generator, the start, and the fingerprint of a checkpoint."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib.metadata import version
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from kpod._common.typing import Floats
from kpod._common.warnings import warn
from kpod._engine.checkpoint import Checkpoint, fingerprint
from kpod._engine.executors import Executor
from kpod._engine.fit import FitPlan, Init
from kpod._engine.table import Table
from kpod._estimators.parameters import is_auto
from kpod._inputs import validation


def drawn_from(random_state: Any) -> int | np.random.RandomState:
    """The random generator of one fit: a copy, so that a generator passed in continues with other numbers.

    Of NumPy's own, a seed: a copy takes half as long as the fit of a small table.
    """
    if isinstance(random_state, Integral) and 0 <= int(random_state) < 2**32:
        return int(random_state)
    given = check_random_state(random_state)
    if random_state is None:
        return int(given.randint(2**31 - 1))
    own = copy.deepcopy(given)
    given.randint(2)
    return own


def init_of(model: Any) -> str | Floats | Init:
    """The parameter `init` as a plan has it: what is given as centers, now or by a function, is checked."""
    init = model.init
    if isinstance(init, str):
        return init
    if callable(init):
        return checked(init, model)
    if not is_auto(model.n_init) and model.n_init != 1:
        warn(
            f"init is an array, so a single start is run and n_init={model.n_init} is ignored.",
            RuntimeWarning,
        )
    return centers_of(init, model)


def checked(init: Callable[..., Any], model: Any) -> Init:
    return lambda values, n_clusters, random_state: centers_of(
        init(values, n_clusters, random_state=random_state), model
    )


def centers_of(init: Any, model: Any) -> Floats:
    validation.refuse_dask(init, "init")
    return validation.as_array(init, model)


def checkpoint_of(
    model: Any, plan: FitPlan, table: Table, executor: Executor, numbers: Any
) -> AbstractContextManager[Checkpoint | None]:
    """Where to leave what is needed to go on, if anywhere; it is gone once the fit has ended."""
    if model.checkpoint is None:
        return nullcontext()
    seed, init = model.random_state, plan.init
    if callable(init):
        init = getattr(model.init, "__qualname__", type(model.init).__qualname__)
    return Checkpoint(
        model.checkpoint,
        {
            "kpod": version("scikit-kpod"),
            "n_clusters": "auto" if plan.n_clusters is None else plan.n_clusters,
            "chosen from": None if numbers is None else str(numbers),
            "max_iter": plan.max_iter,
            "tol": plan.tol,
            "shrinkage": "auto" if plan.shrinkage is None else plan.shrinkage,
            "missingness": model.missingness,
            "algorithm": model.algorithm,
            "n_init": "auto" if plan.n_starts is None else plan.n_starts,
            "init": init if isinstance(init, str) else np.asarray(init, np.float64).tolist(),
            "random_state": int(seed) if isinstance(seed, Integral) else str(type(seed).__name__),
            "table": fingerprint(table, executor),
        },
    )
