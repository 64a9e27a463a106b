"""What a fit leaves in an estimator: all of it at once, and nothing if the fit fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def store_fitted(estimator: Any, attributes: Mapping[str, Any]) -> None:
    """Give an estimator the attributes of a fit that has succeeded, instead of those of any fit before."""
    for name in [name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")]:
        delattr(estimator, name)
    for name, value in attributes.items():
        setattr(estimator, name, value)


def column_names(estimator: Any) -> dict[str, Any]:
    """The attribute with the names of the columns, of an estimator that has seen any."""
    return {name: value for name, value in vars(estimator).items() if name == "feature_names_in_"}
