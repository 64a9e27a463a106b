"""Parameters of the mixture, checked before anything is computed."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from kpod._estimators.parameters import MISSINGNESS, check_integer, is_auto
from kpod._kernels.mixture import FACTORS_AT_MOST
from kpod._mixture.covariance_shape import SHAPES, WITH_FACTORS


def check_mixture_parameters(model: Any) -> None:
    """Refuse parameters of a GaussianMixture that cannot be used, alone or together."""
    for name, least in (("n_components", 1), ("max_iter", 1)):
        check_integer(name, getattr(model, name), least)
    for name, auto in (("n_init", "'auto' or "), ("n_threads", "None or ")):
        value = getattr(model, name)
        if not is_auto(value) and not (name == "n_threads" and value is None):
            check_integer(name, value, 1, auto)
    for name in ("tol", "reg_covar", "variance_prior"):
        value = getattr(model, name)
        if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < np.inf:
            raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}.")
    if model.reg_covar == 0:
        raise ValueError("reg_covar must be above 0, or clusters of constant columns would have no density.")
    if model.covariance_type not in ("auto", *SHAPES):
        raise ValueError(
            f"covariance_type must be one of {['auto', *SHAPES]}, got {model.covariance_type!r}."
        )
    check_choices(model)
    factors = model.n_factors
    if factors is None or is_auto(factors):
        return
    if (
        not isinstance(factors, Integral)
        or isinstance(factors, bool)
        or not 1 <= int(factors) <= FACTORS_AT_MOST
    ):
        raise ValueError(
            f"n_factors must be None, 'auto' or an integer from 1 to {FACTORS_AT_MOST}, got {factors!r}."
        )
    if model.covariance_type not in ("auto", *WITH_FACTORS):
        raise ValueError(
            f"covariance_type={model.covariance_type!r} has no factors: use n_factors=None, or "
            f"covariance_type 'auto' or one of {list(WITH_FACTORS)}."
        )


def check_choices(model: Any) -> None:
    if model.missingness not in MISSINGNESS:
        raise ValueError(f"missingness must be one of {list(MISSINGNESS)}, got {model.missingness!r}.")
    for name in ("outlier_cells", "select_columns"):
        value = getattr(model, name)
        if not isinstance(value, bool | np.bool_) and not is_auto(value):
            raise ValueError(f"{name} must be True, False or 'auto', got {value!r}.")
    if model.select_columns is True and (
        model.covariance_type not in ("auto", "tied_diag", "diag", "tied")
        or (model.n_factors is None and model.covariance_type == "tied")
    ):
        raise ValueError(
            "select_columns=True is for covariance_type 'auto', 'tied_diag' and 'diag', and for 'tied' "
            f"with factors, not for {model.covariance_type!r} with n_factors={model.n_factors!r}."
        )
