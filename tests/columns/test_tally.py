"""What is counted of a column in batches is what is counted of it at once."""

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from kpod._columns import tally
from kpod._columns.tally import Tally
from kpod._files.pieces.decoding import ColumnsToRows, Decoder

KNOWN = ("n_rows", "n_missing", "low", "high", "whole", "found", "head", "is_constant")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("codes", [(), ("-9", "x")])
@pytest.mark.parametrize("stretch", [3, 4_096])
def test_columns_in_batches_are_counted_as_at_once(dtype, codes, stretch, monkeypatch):
    monkeypatch.setattr(tally, "STRETCH", stretch)
    rng, n = np.random.default_rng(0), 5_000
    columns = {
        "measured": rng.normal(size=n),
        "whole": rng.integers(-9, 9, size=n),
        "late": np.where(np.arange(n) < n - 1, 1, 0.5),
        "constant": np.full(n, 3.0),
        "rows": np.arange(n),
        "nearly rows": np.where(np.arange(n) == n - 7, 0, np.arange(n)),
        "some rows": np.cumsum(rng.integers(1, 3, size=n)),
        "gaps": np.full(n, np.nan),
    }
    columns = {name: values.astype(dtype) for name, values in columns.items()}
    for name in ("measured", "whole"):
        columns[name][rng.random(n) < 0.3] = np.nan
    columns["measured"][:3_000] = np.nan  # batches without a number
    table = pa.table({name: pa.array(values, from_pandas=True) for name, values in columns.items()})
    decoders = [Decoder(name, missing=codes, tally=Tally(codes)) for name in columns]
    as_rows = ColumnsToRows(decoders, np.dtype(dtype))
    found = [as_rows(batch, None, 0).copy() for batch in table.to_batches(max_chunksize=700)]
    assert_array_equal(np.concatenate(found), np.column_stack(list(columns.values())))
    for decoder, values in zip(decoders, columns.values(), strict=True):
        once = Tally(codes)
        once.add(values.astype(np.float64))
        for name in KNOWN:
            assert_array_equal(getattr(decoder.tally, name), getattr(once, name), err_msg=name)
        counts = decoder.name in ("rows", "some rows")
        assert decoder.tally.counts_rows((1900, 2100)) == once.counts_rows((1900, 2100)) == counts
        assert decoder.missing_codes["null"] == np.isnan(values).sum()
