"""Pictures of a clustering, after scikit-learn's displays.

Each class has `from_estimator(model, X)`, which works out what is to be shown, and
`plot(ax=)`, which draws it; `ax_` and `figure_` are what it was drawn on. `model` is a fitted
`KPOD` or `GaussianMixture`, or a pipeline that ends in one; then everything is shown in the units of `X`.

Colours are those of Okabe & Ito, which survive colour-blindness; every cluster has a marker of
its own as well, for print without colour.

>>> import kpod
>>> from kpod.datasets import load_incomplete_wine
>>> X = load_incomplete_wine().data
>>> display = kpod.plot.RowsDisplay.from_estimator(kpod.KPOD(3, random_state=0).fit(X), X)
>>> display.figure_.savefig("rows.png")
"""

from __future__ import annotations

from kpod.plot._centers import CentersDisplay
from kpod.plot._choose import ChooseKDisplay
from kpod.plot._columns import ColumnsDisplay
from kpod.plot._diagnosis import DiagnosisDisplay
from kpod.plot._gaps import GapsDisplay
from kpod.plot._loss import LossDisplay
from kpod.plot._margins import MarginsDisplay
from kpod.plot._rows import RowsDisplay

__all__ = [
    "CentersDisplay",
    "ChooseKDisplay",
    "ColumnsDisplay",
    "DiagnosisDisplay",
    "GapsDisplay",
    "LossDisplay",
    "MarginsDisplay",
    "RowsDisplay",
]
