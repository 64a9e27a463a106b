"""Columns turned into rows, counted and standardised, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from kpod._kernels.columns import count_observed, interleave, standardise

TYPES = [np.float32, np.float64]


def batch(rng, n, p, dtype):
    """Columns, bitmaps that begin anywhere in a byte, and the rows that they are."""
    columns = [rng.normal(size=n).astype(dtype) for _ in range(p)]
    first = rng.integers(0, 30, size=p)
    columns[0][rng.random(n) < 0.2] = np.nan
    columns[-1][:] = np.round(columns[-1])
    rows, bits = np.stack(columns, axis=1), []
    for j in range(p):
        there = rng.random(first[j] + n) < 0.7
        bits.append(None if j % 3 == 2 else np.packbits(there, bitorder="little"))
        if bits[j] is not None:
            rows[~there[first[j] :], j] = np.nan
    return columns, bits, first, rows


def nothing(p):
    return np.full(p, np.inf), np.full(p, -np.inf), np.zeros(p, np.int64), np.ones(p, np.uint8)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("n", "p"), [(1, 1), (7, 2), (256, 3), (257, 20), (3_000, 5)])
def test_columns_become_rows_and_are_counted(dtype, n, p):
    rng = np.random.default_rng(n + p)
    low, high, gaps, whole = nothing(p)
    parts = [batch(rng, n, p, dtype) for _ in range(2)]  # of one table, one after the other
    for columns, bits, first, expected in parts:
        out = np.empty((n, p), dtype)
        interleave(columns, bits, first, out, low, high, gaps, whole)
        assert out.tobytes() == expected.tobytes()
    rows = np.concatenate([part[3] for part in parts]).astype(np.float64)
    np.testing.assert_array_equal(gaps, np.isnan(rows).sum(axis=0))
    np.testing.assert_array_equal(low, np.fmin.reduce(rows, initial=np.inf))
    np.testing.assert_array_equal(high, np.fmax.reduce(rows, initial=-np.inf))
    np.testing.assert_array_equal(whole, (np.isnan(rows) | (np.floor(rows) == rows)).all(axis=0))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("at_once", [1, 5])
def test_rows_are_standardised_as_numpy_does_it(dtype, at_once):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(103, 7)).astype(dtype)
    rows[rng.random(rows.shape) < 0.3] = np.nan
    mean, scale = rng.normal(size=7), rng.random(7) + 0.1
    out = np.empty_like(rows)
    standardise(rows, np.tile(mean, at_once), np.tile(scale, at_once), out)
    np.testing.assert_array_equal(out, ((rows.astype(np.float64) - mean) / scale).astype(dtype))


@pytest.mark.parametrize("dtype", TYPES)
def test_observed_entries_are_counted_by_group(dtype):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(500, 9)).astype(dtype)
    rows[rng.random(rows.shape) < 0.4] = np.nan
    groups = rng.integers(-1, 4, size=500).astype(np.int32)
    expected = [(~np.isnan(rows[groups == group])).sum(axis=0) for group in range(5)]
    np.testing.assert_array_equal(count_observed(rows, groups, 5), expected)


def test_what_does_not_fit_together_is_refused():
    columns, bits, first, rows = batch(np.random.default_rng(0), 20, 3, np.float32)
    out, *counts = np.empty_like(rows), *nothing(3)
    with pytest.raises(ValueError, match="length"):
        interleave([columns[0][:19], *columns[1:]], bits, first, out, *counts)
    with pytest.raises(ValueError, match="bitmap"):
        interleave(columns, [bits[0][:2], *bits[1:]], first, out, *counts)
    with pytest.raises(ValueError, match="bitmap"):
        interleave(columns, bits, first - 40, out, *counts)
    with pytest.raises(ValueError, match="columns"):
        interleave(columns[:2], bits, first, out, *counts)
    with pytest.raises(ValueError, match="as much"):
        interleave(columns, bits, first, out, *nothing(2))
    with pytest.raises(ValueError, match="fit together"):
        standardise(rows, np.zeros(4), np.ones(4), out)
    with pytest.raises(ValueError, match="another array"):
        standardise(rows, np.zeros(3), np.ones(3), rows)
    with pytest.raises(ValueError, match="number"):
        count_observed(rows, np.full(20, 2, np.int32), 2)
    with pytest.raises(ValueError, match="rows"):
        count_observed(rows, np.zeros(19, np.int32), 2)
