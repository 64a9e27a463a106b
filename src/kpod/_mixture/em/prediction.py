"""Predictions of single entries by a mixture with factors, and new factors for the residuals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from kpod._common.typing import Floats, Positions
from kpod._mixture.em.expectation import Entries, Expected
from kpod._mixture.em.mixture_parameters import Parameters

POWER_STEPS = 15
SPARSE = 16  # places for an entry, beyond which residuals are a sparse matrix

Observed = tuple[Positions, Positions, Floats]  # row, column and value of entries


def predict_entries(of_rows: Expected, parameters: Parameters, rows: Positions, columns: Positions) -> Floats:
    """Expected values of some entries, given the observed ones of their rows, in the units of the table."""
    posterior = of_rows.posterior
    values: Floats = np.einsum("el,el->e", posterior[rows], parameters.means.T[columns])
    if of_rows.scores is None:
        return values
    scores, loadings = of_rows.scores * posterior[:, None], parameters.loadings
    if (loadings == loadings[:1]).all():
        return values + np.einsum("eq,eq->e", scores.sum(axis=2)[rows], loadings[0][columns])
    return values + np.einsum("eql,elq->e", scores[rows], loadings.transpose(1, 0, 2)[columns])


def add_factors(entries: Entries, observed: Observed, parameters: Parameters, number: int) -> Parameters:
    """So many more common factors, each along what the residuals have most in common (power iteration).

    `observed` are the entries, in the units of the table.
    """
    for _ in range(number):
        parameters = add_factor(entries, observed, parameters)
    return parameters


def add_factor(entries: Entries, observed: Observed, parameters: Parameters) -> Parameters:
    table, (rows, columns, values) = entries.table, observed
    of_rows = entries.expected(parameters, factors=True)
    left = values - predict_entries(of_rows, parameters, rows, columns)
    scale = 1 / np.sqrt(parameters.variances.mean(axis=0))
    residuals, mask = (
        matrix_of(rows, columns, of, (table.n_rows, table.n_columns))
        for of in (left * scale[columns], np.ones(len(rows)))
    )
    weights = np.ones(table.n_rows) if table.weights is None else table.weights
    direction = np.random.default_rng(0).normal(size=table.n_columns)
    direction /= np.linalg.norm(direction)

    def scores() -> Floats:
        found: Floats = (residuals @ direction) / np.maximum(mask @ direction**2, 1e-12)
        return found

    across = residuals.T
    for _ in range(POWER_STEPS):
        new = across @ scores()
        direction = new / max(float(np.linalg.norm(new)), 1e-300)
    size = np.sqrt(max(float(weights @ scores() ** 2) / max(entries.weight, 1e-300), 1e-12))
    loading = np.broadcast_to((direction * size / scale)[None, :, None], (parameters.k, table.n_columns, 1))
    return replace(parameters, loadings=np.concatenate([parameters.loadings, loading], axis=2))


def matrix_of(rows: Positions, columns: Positions, values: Floats, shape: tuple[int, int]) -> Any:
    """Entries as a matrix, zeros elsewhere: sparse where most are."""
    if shape[0] * shape[1] > SPARSE * len(values):
        return sparse.csr_array((values, (rows, columns)), shape)
    dense = np.zeros(shape)
    dense[rows, columns] = values
    return dense
