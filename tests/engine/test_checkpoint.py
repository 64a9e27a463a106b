"""A fit that was stopped, or killed, goes on where it was and ends in the same result, to the bit."""

import errno
import io
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

import kpod
from kpod import KPOD
from kpod._common import system
from kpod._engine import blocks, checkpoint, fit
from kpod._estimators import kpod as kpod_module
from tests.conftest import FIRST_SEED
from tests.files.test_scan import same_fit
from tests.helpers.tables import clustered


class Stop(Exception):  # noqa: N818
    """What a test throws into a fit."""


@pytest.fixture(autouse=True)
def every_iteration(monkeypatch):
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "SHARE", 1e9)


@pytest.fixture(params=["dense", "csr"])
def X(request, dtype):
    X, _ = clustered(np.random.default_rng(7), 700, 6, k=6, missing=0.4, spread=1.2, dtype=dtype)
    X[::41] = np.nan
    if request.param == "dense":
        return X
    return sparse.csr_array((X[~np.isnan(X)], np.nonzero(~np.isnan(X))), X.shape)


def stopping(after):
    """A listener that stops a fit after so many lines."""
    heard = []

    def hear(line):
        heard.append(line)
        if len(heard) == after:
            raise Stop

    return hear, heard


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("algorithm", "missingness"),
    [("lloyd", "ignore"), ("hartigan", "ignore"), ("mm", "ignore"), ("hartigan", "informative")],
)
def test_stopped_anywhere_it_ends_in_the_same_bits(algorithm, missingness, X, tmp_path, monkeypatch):
    if algorithm == "mm" and sparse.issparse(X):
        pytest.skip("not for sparse tables")
    monkeypatch.setattr(blocks, "ENTRIES_PER_BLOCK", 1 << 10)
    monkeypatch.setattr(fit, "SHORT_WORK", 0)  # starts one after the other, blocks on threads
    weights = np.random.default_rng(0).random(700) if algorithm != "mm" else None
    settings = {"algorithm": algorithm, "n_init": 2, "random_state": 3, "tol": 0, "max_iter": 60}
    settings["missingness"] = missingness
    whole = KPOD(6, **settings)
    whole._progress_line, heard = stopping(-1)
    whole.fit(X, sample_weight=weights)
    stages = {line.split()[0] for line in heard}
    assert "start" in stages
    assert algorithm != "hartigan" or {"lloyd", "moves"} <= stages
    for after in sorted({1, 2, len(heard) // 3, len(heard) // 2, *range(len(heard) - 4, len(heard))} - {0}):
        model = KPOD(6, **settings, checkpoint=tmp_path / "kept", n_threads=2)
        model._progress_line, _ = stopping(after)
        with pytest.raises(Stop):
            model.fit(X, sample_weight=weights)
        model._progress_line, again = stopping(-1)
        model.fit(X, sample_weight=weights)
        same_fit(whole, model)
        assert len(again) <= len(heard) - after + 3
        assert not list((tmp_path / "kept").iterdir())


@pytest.mark.filterwarnings("ignore")
def test_starts_side_by_side(X, tmp_path):
    """Some have ended, some are under way, some have not begun."""
    settings = {"n_init": 6, "random_state": 1, "tol": 0, "n_threads": 3}
    whole = KPOD(6, **settings).fit(X)
    for after in (5, 30, 60):
        model = KPOD(6, **settings, checkpoint=tmp_path)
        model._progress_line, _ = stopping(after)
        with pytest.raises(Stop):
            model.fit(X)
        assert (tmp_path / "fit.npz").exists()
        model._progress_line, _ = stopping(-1)
        same_fit(whole, model.fit(X))


def test_a_random_start_is_the_one_that_was_drawn(tmp_path, monkeypatch):
    X, _ = clustered(np.random.default_rng(0), 300, 5, spread=1.5)
    numbers = []
    drawn = fit.draw
    monkeypatch.setattr(
        fit, "draw", lambda seeding, number: numbers.append(int(number)) or drawn(seeding, number)
    )
    model = KPOD(5, n_init=3, checkpoint=tmp_path, n_threads=1)
    model._progress_line, _ = stopping(2)
    with pytest.raises(Stop):
        model.fit(X)
    first = list(numbers)
    model._progress_line, _ = stopping(-1)
    model.fit(X)
    assert numbers[: len(first)] == first
    assert len(numbers) == 3  # the one under way was not drawn again
    assert len(set(numbers)) == 3


FIT = """
    import os, signal, sys, warnings
    import numpy as np
    import kpod
    from kpod._engine import checkpoint
    warnings.simplefilter("ignore")
    checkpoint.SECONDS, checkpoint.SHARE = 0.0, 1e9
    table = kpod.scan(sys.argv[1], scale=True, scratch=sys.argv[2])
    settings = {"random_state": 0, "tol": 0, "n_init": 2, "n_threads": 1}
    model = kpod.KPOD(8, algorithm=sys.argv[4], checkpoint=sys.argv[3], **settings)
    heard = []
    def hear(line):
        heard.append(line)
        if len(heard) == int(sys.argv[5]):
            os.kill(os.getpid(), signal.SIGKILL)
    model._progress_line = hear
    model.fit(table)
    found = {"labels": model.labels_, "centers": model.cluster_centers_, "loss": model.inertia_}
    np.savez(sys.argv[6], **found, n=len(heard))
"""


@pytest.mark.parametrize("algorithm", ["lloyd", "hartigan"])
def test_killed_and_taken_up_again(algorithm, tmp_path):
    X, _ = clustered(np.random.default_rng(1), 3000, 8, k=8, missing=0.4, spread=1.0)
    np.save(tmp_path / "x.npy", X)
    kept = tmp_path / "kept"

    def run(checkpoint, kill_at):
        command = [
            sys.executable,
            "-c",
            textwrap.dedent(FIT),
            tmp_path / "x.npy",
            tmp_path,
            checkpoint,
            algorithm,
        ]
        return subprocess.run([*map(str, command), str(kill_at), str(tmp_path / "out.npz")], check=False)

    assert run(tmp_path / "other", -1).returncode == 0
    with np.load(tmp_path / "out.npz") as file:
        whole = dict(file)
    kill_at = int(whole["n"]) - 2
    assert run(kept, kill_at).returncode == -signal.SIGKILL
    assert [path.name for path in kept.iterdir()] == ["fit.npz"]
    assert run(kept, -1).returncode == 0
    with np.load(tmp_path / "out.npz") as file:
        assert int(file["n"]) < kill_at
        for name in ("labels", "centers", "loss"):
            assert_array_equal(file[name], whole[name])
    assert not list(kept.iterdir())
    assert not list(tmp_path.glob("*.scratch"))


def stopped(directory, X, after=4, **settings):
    model = KPOD(**{"n_clusters": 5, "random_state": 0, "tol": 0, **settings}, checkpoint=directory)
    model._progress_line, _ = stopping(after)
    with pytest.raises(Stop):
        model.fit(X)
    model._progress_line, _ = stopping(-1)
    return model


def test_another_table_or_another_fit_is_refused(tmp_path):
    X, _ = clustered(np.random.default_rng(2), 400, 5, spread=1.5)
    model = stopped(tmp_path, X)
    other = X.copy()
    other[[3, 4]] = other[[4, 3]]
    with pytest.raises(
        ValueError, match=r"The checkpoint in .* belongs to another table. .*fit.npz to start over"
    ):
        model.fit(other)
    for name, value in {
        "n_clusters": 4,
        "random_state": 1,
        "tol": 0.1,
        "init": "random",
        "n_init": 3,
    }.items():
        with pytest.raises(ValueError, match=rf"The checkpoint in .* has {name}="):
            KPOD(**{**model.get_params(), name: value}).fit(X)
    with pytest.raises(ValueError, match="belongs to another table"):
        model.fit(X, sample_weight=np.arange(1.0, 401))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kpod._estimators.plan.version", lambda _: "0.0.1")
        with pytest.raises(ValueError, match=r"has kpod='.*', not '0\.0\.1'"):
            model.fit(X)
    (tmp_path / "fit.npz").write_bytes((tmp_path / "fit.npz").read_bytes()[:200])
    with pytest.raises(ValueError, match=r"fit.npz: damaged, or not a checkpoint"):
        model.fit(X)
    (tmp_path / "fit.npz").unlink()
    model.fit(X)


def test_a_checkpoint_that_cannot_be_written_leaves_no_part_of_it(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(system.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"), system.temporary_beside(tmp_path / "a", "b") as file:
        file.write(b"c")
    assert not list(tmp_path.iterdir())


def test_a_directory_in_use_is_not_kept_open(tmp_path):
    with checkpoint.Checkpoint(tmp_path, {}):
        before = len(list(Path("/dev/fd").iterdir()))
        for _ in range(5):
            with pytest.raises(ValueError, match="in use by another fit"):
                checkpoint.locked(tmp_path)
        assert len(list(Path("/dev/fd").iterdir())) == before


def test_directories(tmp_path):
    X, _ = clustered(np.random.default_rng(2), 100, 5)
    (tmp_path / "file").write_text("x")
    with pytest.raises(ValueError, match="cannot use this directory"):
        KPOD(2, checkpoint=tmp_path / "file").fit(X)
    with (
        checkpoint.Checkpoint(tmp_path / "used", {}),
        pytest.raises(ValueError, match="in use by another fit"),
    ):
        KPOD(2, checkpoint=tmp_path / "used").fit(X)
    KPOD(2, checkpoint=str(tmp_path / "used")).fit(X)
    KPOD(2, checkpoint=tmp_path / "of" / "several" / "levels").fit(X)
    assert (tmp_path / "of" / "several" / "levels").is_dir()


class Payload:
    """An object that runs code when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_a_checkpoint_from_elsewhere_runs_no_code(tmp_path):
    """Files from elsewhere are hostile."""
    X, _ = clustered(np.random.default_rng(2), 100, 5)
    np.savez(tmp_path / "fit.npz", head=np.array([Payload(tmp_path / "ran")], dtype=object))
    with pytest.raises(ValueError, match=r"fit.npz: damaged, or not a checkpoint"):
        KPOD(2, checkpoint=tmp_path).fit(X)
    assert not (tmp_path / "ran").exists()


def test_writes_are_seconds_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "SECONDS", 3600.0)
    X, _ = clustered(np.random.default_rng(2), 300, 5, spread=1.5)
    stopped(tmp_path, X, after=6)
    assert not list(tmp_path.iterdir())
    now = [0.0]
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(checkpoint, "SHARE", 0.05)
    kept = checkpoint.Checkpoint(tmp_path, {})
    assert not kept.is_due()
    now[0] = 3601.0
    assert kept.is_due()
    kept._written, kept._took = now[0], 360.0
    now[0] += 3601.0
    assert not kept.is_due()  # writing took long: a twentieth of the time at the most
    now[0] += 3601.0
    assert kept.is_due()
    kept.close()


SMALL = clustered(np.random.default_rng(2), 300, 5, spread=1.5)[0]


def full_at(monkeypatch, *writes):
    """A disk without room for the writes of these numbers; all that were tried."""
    tried, written = [], checkpoint.write_arrays

    def write(file, arrays):
        tried.append(len(tried))
        if tried[-1] in writes:
            file.write(b"PK")
            raise OSError(errno.ENOSPC, "No space left on device")
        written(file, arrays)

    monkeypatch.setattr(checkpoint, "write_arrays", write)
    return tried


def test_a_full_disk_does_not_end_a_fit(tmp_path, monkeypatch):
    """One warning; the fit goes on and ends in the same bits, and the next checkpoint is tried again."""
    whole = KPOD(5, random_state=0, tol=0).fit(SMALL)
    tried = full_at(monkeypatch, 1, 2, 4)
    model = KPOD(5, random_state=0, tol=0, checkpoint=tmp_path)
    with pytest.warns(RuntimeWarning) as record:
        model.fit(SMALL)
    assert len(tried) > 5
    (warning,) = record
    assert "could not be written: No space left on device" in str(warning.message)
    assert str(tmp_path) in str(warning.message)
    same_fit(whole, model)
    assert not list(tmp_path.iterdir())


def test_after_a_full_disk_the_last_good_checkpoint_is_there(tmp_path, monkeypatch):
    full_at(monkeypatch, *range(3, 1000))
    model = KPOD(5, random_state=0, tol=0, n_init=2, n_threads=1, checkpoint=tmp_path)
    model._progress_line, _ = stopping(8)
    with pytest.raises(Stop), pytest.warns(RuntimeWarning, match="could not be written"):
        model.fit(SMALL)
    assert [path.name for path in tmp_path.iterdir()] == ["fit.npz"]
    monkeypatch.undo()
    model._progress_line, again = stopping(-1)
    same_fit(KPOD(5, random_state=0, tol=0, n_init=2).fit(SMALL), model.fit(SMALL))
    whole = KPOD(5, random_state=0, tol=0, n_init=2, n_threads=1)
    whole._progress_line, lines = stopping(-1)
    whole.fit(SMALL)
    assert len(again) < len(lines)


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 16 kB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "kpod-test", str(disk)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs root, to make a small disk (tmpfs)")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_on_a_disk_that_is_really_full(small_disk):
    whole = KPOD(5, random_state=0, tol=0).fit(SMALL)
    (small_disk / "other").write_bytes(bytes(10_000))
    model = KPOD(5, random_state=0, tol=0, checkpoint=small_disk / "kept")
    with pytest.warns(RuntimeWarning, match="could not be written: No space left on device") as record:
        model.fit(SMALL)
    assert len(record) == 1
    same_fit(whole, model)
    assert not list((small_disk / "kept").iterdir())


def test_beyond_a_limit_on_file_sizes(tmp_path):
    code = """
        import sys, resource, numpy as np
        from kpod import KPOD
        from kpod._engine import checkpoint
        checkpoint.SECONDS = 0.0
        X = np.load(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
        print(len(KPOD(5, random_state=0, tol=0, checkpoint=sys.argv[2]).fit(X).labels_))
    """
    np.save(tmp_path / "x.npy", SMALL)
    command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "x.npy"), str(tmp_path / "kept")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "300\n"
    assert done.stderr.count("could not be written: File too large") == 1
    assert not list((tmp_path / "kept").iterdir())


def test_a_checkpoint_that_cannot_be_deleted_is_warned_of(tmp_path, monkeypatch):
    def refuse(self, missing_ok=False):
        raise OSError(errno.EROFS, "Read-only file system")

    model = KPOD(5, random_state=0, checkpoint=tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        with pytest.warns(RuntimeWarning, match="could not be deleted: Read-only file system"):
            model.fit(SMALL)
    assert len(model.labels_) == 300


def test_no_link_is_followed(tmp_path):
    """Neither where a checkpoint is written, nor where one is read."""
    target, kept = tmp_path / "precious", tmp_path / "kept"
    target.write_text("precious")
    kept.mkdir()
    for name in ("fit.npz.part", ".fit.npz.part", ".fit.npz.x.part"):
        (kept / name).symlink_to(target)
    KPOD(5, random_state=0, checkpoint=kept).fit(SMALL)
    assert target.read_text() == "precious"
    assert (kept / "fit.npz.part").is_symlink()
    for there in (target, tmp_path / "absent"):
        (kept / "fit.npz").symlink_to(there)
        with pytest.raises(ValueError, match=r"fit\.npz: damaged, or not a checkpoint.*Delete it"):
            KPOD(5, checkpoint=kept).fit(SMALL)
        (kept / "fit.npz").unlink()
    assert target.read_text() == "precious"
    assert not (tmp_path / "absent").exists()


def test_parts_of_a_killed_process_are_cleared_away(tmp_path):
    (tmp_path / ".fit.npz.abc.part").write_bytes(b"PK")
    (tmp_path / "mine.part").write_text("x")
    KPOD(5, random_state=0, checkpoint=tmp_path).fit(SMALL)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.part"]


def test_a_checkpoint_outlives_the_stages_after_the_descent(tmp_path, monkeypatch):
    """Stopped in EM, or where the results are put together, the descent need not be done again."""
    settings = {"random_state": 0, "tol": 0, "probability": True, "n_init": 3}
    whole = KPOD(5, **settings).fit(SMALL)
    for owner, stage in ((KPOD, "_mixture"), (kpod_module, "fitted_attributes"), (kpod_module, "warn_of")):

        def stop(*_):
            raise Stop

        model = KPOD(5, **settings, checkpoint=tmp_path)
        with monkeypatch.context() as patch:
            patch.setattr(owner, stage, stop)
            with pytest.raises(Stop):
                model.fit(SMALL)
        assert (tmp_path / "fit.npz").exists()
        model._progress_line, heard = stopping(-1)
        model.fit(SMALL)
        assert not any(line.split()[0] in ("lloyd", "moves") for line in heard)
        same_fit(whole, model)
        assert_array_equal(whole.mixture_centers_, model.mixture_centers_)
        assert not list(tmp_path.iterdir())


def edited(path, change):
    """A checkpoint written again with other arrays."""
    with np.load(path) as file:
        arrays = dict(file)
    change(arrays)
    np.savez(path, **arrays)


def repeated(arrays):
    for name, value in arrays.items():
        if value.ndim:
            arrays[name] = np.repeat(value, 2, axis=0)


def singles(arrays):
    for name, value in arrays.items():
        if value.dtype == np.float64:
            arrays[name] = value.astype(np.float32)


def npy_bytes():
    file = io.BytesIO()
    np.save(file, np.ones(3))
    return file.getvalue()


def archive(path, **members):
    with zipfile.ZipFile(path, "w") as file:
        for name, text in members.items():
            file.writestr(f"{name}.npy", text)


def compressed(path):
    with np.load(path) as file:
        arrays = dict(file)
    np.savez_compressed(path, **arrays)


def some(word):
    return lambda arrays: arrays.pop(next(name for name in arrays if word in name))


ODD = {
    "without its head": lambda path: edited(path, some("head")),
    "without the centers": lambda path: edited(path, some("/centers")),
    "without the sums": lambda path: edited(path, some("/totals_sums")),
    "without the digest": lambda path: edited(path, some("digest")),
    "a name too many": lambda path: edited(path, lambda arrays: arrays.update({"x": np.ones(3)})),
    "a head that is a list": lambda path: edited(path, lambda arrays: arrays.update(head=np.array("[]"))),
    "a nested head": lambda path: edited(path, lambda arrays: arrays.update(head=np.array("[" * 100_000))),
    "other shapes": lambda path: edited(path, repeated),
    "single precision": lambda path: edited(path, singles),
    "an array": lambda path: path.write_bytes(npy_bytes()),
    "a pickle": lambda path: path.write_bytes(pickle.dumps({"head": 1})),
    "an empty file": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("checkpoint"),
    "half of it": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "another archive": archive,
    "an archive of text": lambda path: archive(path, format="1"),
    "compressed": compressed,
    "a directory": lambda path: path.unlink() or path.mkdir(),
    "a pipe": lambda path: path.unlink() or os.mkfifo(path),
}


@pytest.mark.parametrize("odd", ODD)
def test_odd_contents_are_refused_by_name(odd, tmp_path):
    model = stopped(tmp_path, SMALL, after=4)
    ODD[odd](tmp_path / "fit.npz")
    with pytest.raises(ValueError, match=r"fit\.npz: damaged, or not a checkpoint") as caught:
        model.fit(SMALL)
    assert str(caught.value).endswith("Delete it to start over.")
    assert "\n" not in str(caught.value)


N_FLIPS = 300


def test_any_flipped_bit_is_refused_or_harmless(tmp_path):
    """Wherever a file is damaged: an error that names it, or the same arrays."""
    stopped(tmp_path, SMALL, after=6)
    path = tmp_path / "fit.npz"
    good, rng = path.read_bytes(), np.random.default_rng(FIRST_SEED)
    arrays = checkpoint.read_arrays(io.BytesIO(good))
    refused = 0
    for _ in range(N_FLIPS):
        spoiled = bytearray(good)
        spoiled[rng.integers(len(good))] ^= 1 << rng.integers(8)
        path.write_bytes(spoiled)
        try:
            with pytest.raises(Stop), checkpoint.Checkpoint(tmp_path, {}):
                raise Stop  # so that the file stays
        except ValueError as error:
            refused += 1
            assert "fit.npz: damaged, or not a checkpoint" in str(error)
            continue
        again = checkpoint.read_arrays(io.BytesIO(spoiled))
        assert again.keys() == arrays.keys()
        for name, value in arrays.items():
            assert_array_equal(again[name], value)
    assert refused > N_FLIPS / 2


def test_another_format_is_refused(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "FORMAT", checkpoint.FORMAT + 1)
        model = stopped(tmp_path, SMALL)
    with pytest.raises(ValueError, match=rf"has format number {checkpoint.FORMAT + 1}, and this version"):
        model.fit(SMALL)
    edited(tmp_path / "fit.npz", lambda arrays: arrays.pop("format"))  # as version 0.1 had it
    with pytest.raises(ValueError, match="it has no format number"):
        model.fit(SMALL)


def test_a_saved_model_knows_no_directory(tmp_path):
    X, _ = clustered(np.random.default_rng(2), 100, 5)
    model = KPOD(2, random_state=0, checkpoint=tmp_path / "kept").fit(X)
    kpod.save(model, tmp_path / "model.kpod")
    assert kpod.load(tmp_path / "model.kpod").checkpoint is None
    assert model.checkpoint == tmp_path / "kept"


def test_the_choice_of_a_number_goes_on_too(tmp_path):
    X, _ = clustered(np.random.default_rng(4), 250, 6, k=4, spread=0.5)
    whole = kpod.choose_k(X, range(1, 7), random_state=0)
    fits, solve = [], fit.Fit.solve
    for after in (2, 20, 45):
        done = []

        def stop(number, total, text, done=done, after=after):
            done.append(text)
            if len(done) == after:
                raise Stop

        estimator = KPOD(checkpoint=tmp_path)
        with pytest.raises(Stop):
            kpod.choose_k(X, range(1, 7), estimator=estimator, random_state=0, progress=stop)
        with pytest.raises(ValueError, match="has chosen from="):
            kpod.choose_k(X, range(1, 6), estimator=estimator, random_state=0)
        fits.clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fit.Fit, "solve", lambda *a, **b: fits.append(1) or solve(*a, **b))
            again = kpod.choose_k(X, range(1, 7), estimator=estimator, random_state=0)
        assert len(fits) <= 6 * 11 + 1 - (after - 2)
        assert again.sentence_ == whole.sentence_
        for name, values in whole.table_.items():
            assert_array_equal(again.table_[name], values)
        same_fit(again.model_, whole.model_)
        assert not list(tmp_path.iterdir())


def test_a_start_that_ended_is_kept_at_once(tmp_path, monkeypatch):
    """Not only when the next one keeps something, which may be long after."""
    ended, kept = checkpoint.Checkpoint.ended, []

    def watched(self, number, solution):
        ended(self, number, solution)
        with np.load(tmp_path / "fit.npz") as file:
            kept.append(f"done/{number}/objective" in file.files)

    monkeypatch.setattr(checkpoint.Checkpoint, "ended", watched)
    X, _ = clustered(np.random.default_rng(0), 200, 4)
    KPOD(3, n_init=3, n_threads=1, random_state=0, checkpoint=tmp_path).fit(X)
    assert kept == [True] * 3
