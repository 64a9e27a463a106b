"""Mapped files that are written to during a fit are refused by name and rows: no mix of old and new rows."""

import os
import shutil

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import kpod
from kpod import KPOD, MiniBatchKPOD
from kpod._engine import blocks
from kpod._engine.windows import Window, watched
from kpod._inputs.scanned import ScannedTable
from tests.helpers.tables import clustered


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "ENTRIES_PER_BLOCK", 1 << 10)  # several blocks
    np.save(tmp_path / "x.npy", table())
    return tmp_path / "x.npy"


def table():
    return clustered(np.random.default_rng(1), 1000, 6, k=5, missing=0.3, spread=0.9)[0]


def write(path, row, *, unnoticed=False):
    """Another value in a row; `unnoticed` by the file's time, as through a map of another process."""
    about = os.stat(path)  # noqa: PTH116
    X = np.load(path, mmap_mode="r+")
    X[row] = 7.0
    X.flush()
    # The clock of a file system has a few milliseconds, and two writes may be within them.
    times = (about.st_atime_ns, about.st_mtime_ns + (0 if unnoticed else 10_000_000))
    os.utime(path, ns=times)


def fit_and(act, X, at="lloyd 2:", model=None):
    model = KPOD(5, init=table()[:5], tol=0) if model is None else model
    model._progress_line = lambda line: act() if at in line else None
    return model.fit(X)


KINDS = {
    "mapped": lambda path: np.load(path, mmap_mode="r"),
    "writable": lambda path: np.load(path, mmap_mode="r+"),
    "private": lambda path: np.load(path, mmap_mode="c"),
    "scanned": kpod.scan,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unnoticed", [False, True])
def test_files_that_are_written_to_during_a_fit_are_refused(kind, unnoticed, path):
    rows = "in rows 6[0-9][0-9] to [67][0-9][0-9]" if unnoticed else "noticed at rows"
    with pytest.raises(ValueError, match=rf"x\.npy (changed|was written to) while .*{rows}.*Fit again when"):
        fit_and(lambda: write(path, 650, unnoticed=unnoticed), KINDS[kind](path))


def test_so_are_sparse_ones(path):
    """Whose entries are mapped, as those of a CSR table in an .npz file may be."""
    entries = np.load(path, mmap_mode="r").ravel()
    indices, indptr = np.tile(np.arange(6, dtype=np.int32), 1000), np.arange(0, 6001, 6)
    X = ScannedTable(blocks.csr_of(entries, indices, indptr, (1000, 6)), None, [str(path)])
    for unnoticed in (True, False):
        with pytest.raises(ValueError, match=r"x\.npy (was written to|changed) while"):
            fit_and(lambda: write(path, 650, unnoticed=unnoticed), X)  # noqa: B023
        np.save(path, table())


@pytest.mark.parametrize("method", ["predict", "score", "transform"])
def test_fitted_models_refuse_them_too(method, path, monkeypatch):
    model = KPOD(5, init=table()[:5]).fit(table())
    X = np.load(path, mmap_mode="r")
    opened = blocks.DenseBlock._open

    def writing(self, *args):
        if self.first > 600:
            write(path, 650)
        return opened(self, *args)

    monkeypatch.setattr(blocks.DenseBlock, "_open", writing)
    with pytest.raises(ValueError, match=r"x\.npy was written to"):
        getattr(model, method)(X)


def test_mini_batches_refuse_them_too(path):
    model = MiniBatchKPOD(5, init=table()[:5], batch_size=200)
    with pytest.raises(ValueError, match=r"x\.npy was written to"):
        fit_and(lambda: write(path, 650), np.load(path, mmap_mode="r"), "batch 2:", model)


def test_files_that_are_replaced_or_deleted_live_on(path):
    """The map shows the old file: nothing changed."""
    here = KPOD(5, init=table()[:5], tol=0).fit(table())
    for act in (lambda: shutil.move(str(path) + ".new", path), path.unlink):
        np.save(str(path) + ".new.npy", 2 * table())
        os.rename(str(path) + ".new.npy", str(path) + ".new")  # noqa: PTH104
        model = fit_and(act, np.load(path, mmap_mode="r"))
        assert_array_equal(model.labels_, here.labels_)
        assert_array_equal(model.cluster_centers_, here.cluster_centers_)
        np.save(path, table())


def test_tables_in_memory_and_scratch_files_are_not_watched(path, tmp_path):
    assert watched(table()) is None
    scanned = kpod.scan(path, scale=True, scratch=tmp_path)
    assert Window.of(scanned.values) is not None
    assert watched(scanned.values) is None
