"""Diagnose the missingness of a table, or simulate it in a complete one.

`diagnose` says how much of a table is missing and where, which columns are missing together, and with
which values and clusters the gaps go.

The other functions make gaps, by the mechanisms that the literature on missing data uses. Each takes a
table, the fraction of all entries to remove and a source of randomness, and returns a copy with exactly
that many gaps, to the nearest entry (`modules`: to the nearest module). By what decides which entries go:

- nothing: `mcar`;
- values that stay: `mar`, `by_driver`;
- the values that go: `nmar`, `detection_limit`, `by_value`;
- the cluster: `by_class`, and `modules` and `dropout` with labels;
- something else about the row: `by_row`, `by_nuisance_group`, `modules` and `dropout` without labels.

Only the third and fourth kind say something about clusters of values.

>>> import numpy as np
>>> from kpod import missingness
>>> table = np.arange(20.0).reshape(5, 4)
>>> int(np.isnan(missingness.mcar(table, 0.25, random_state=0)).sum())
5
"""

from kpod._missing.diagnosis import Diagnosis, diagnose
from kpod._missing.removal import by_value, detection_limit, mar, mcar, nmar
from kpod._missing.structured_removal import by_class, by_driver, by_nuisance_group, by_row, dropout, modules

__all__ = [
    "Diagnosis",
    "by_class",
    "by_driver",
    "by_nuisance_group",
    "by_row",
    "by_value",
    "detection_limit",
    "diagnose",
    "dropout",
    "mar",
    "mcar",
    "modules",
    "nmar",
]
