"""A fit that was stopped, or killed, goes on where it was and ends in the same result, to the bit."""

import errno
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

import kpod
from kpod import KPOD, _fitting
from kpod._engine import blocks, checkpoint, fit

from .conftest import clustered
from .test_scan import same_fit


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
    whole._listener, heard = stopping(-1)
    whole.fit(X, sample_weight=weights)
    stages = {line.split()[0] for line in heard}
    assert "start" in stages
    assert algorithm != "hartigan" or {"lloyd", "moves"} <= stages
    for after in sorted({1, 2, len(heard) // 3, len(heard) // 2, *range(len(heard) - 4, len(heard))} - {0}):
        model = KPOD(6, **settings, checkpoint=tmp_path / "kept", n_threads=2)
        model._listener, _ = stopping(after)
        with pytest.raises(Stop):
            model.fit(X, sample_weight=weights)
        model._listener, again = stopping(-1)
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
        model._listener, _ = stopping(after)
        with pytest.raises(Stop):
            model.fit(X)
        assert (tmp_path / "fit.npz").exists()
        model._listener, _ = stopping(-1)
        same_fit(whole, model.fit(X))


def test_a_random_start_is_the_one_that_was_drawn(tmp_path, monkeypatch):
    X, _ = clustered(np.random.default_rng(0), 300, 5, spread=1.5)
    numbers = []
    drawn = fit.draw
    monkeypatch.setattr(
        fit, "draw", lambda seeding, number: numbers.append(int(number)) or drawn(seeding, number)
    )
    model = KPOD(5, n_init=3, checkpoint=tmp_path, n_threads=1)
    model._listener, _ = stopping(2)
    with pytest.raises(Stop):
        model.fit(X)
    first = list(numbers)
    model._listener, _ = stopping(-1)
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
    model._listener = hear
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
        return subprocess.run(
            [*map(str, command), str(kill_at), str(tmp_path / "out.npz")], check=False, timeout=120
        )

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
    model._listener, _ = stopping(after)
    with pytest.raises(Stop):
        model.fit(X)
    model._listener, _ = stopping(-1)
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
        patch.setattr("kpod._fitting.version", lambda _: "0.0.1")
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

    monkeypatch.setattr(checkpoint.os, "fsync", full)
    with pytest.raises(OSError, match="cannot write the checkpoint: No space left"):
        checkpoint.write_whole(tmp_path / "fit.npz", {"a": np.zeros(3)})
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


def test_a_full_disk_is_said(tmp_path, monkeypatch):
    X, _ = clustered(np.random.default_rng(2), 300, 5, spread=1.5)
    code = """
        import sys, resource, numpy as np
        from kpod import KPOD
        from kpod._engine import checkpoint
        checkpoint.SECONDS = 0.0
        X = np.load(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
        KPOD(5, random_state=0, tol=0, checkpoint=sys.argv[2]).fit(X)
    """
    np.save(tmp_path / "x.npy", X)
    command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "x.npy"), str(tmp_path / "kept")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert "cannot write the checkpoint: File too large" in done.stderr
    assert not list((tmp_path / "kept").iterdir())


def test_a_saved_model_knows_no_directory(tmp_path):
    X, _ = clustered(np.random.default_rng(2), 100, 5)
    model = KPOD(2, random_state=0, checkpoint=tmp_path / "kept").fit(X)
    kpod.save(model, tmp_path / "model.kpod")
    assert kpod.load(tmp_path / "model.kpod").checkpoint is None
    assert model.checkpoint == tmp_path / "kept"


def test_the_choice_of_a_number_goes_on_too(tmp_path):
    X, _ = clustered(np.random.default_rng(4), 250, 6, k=4, spread=0.5)
    whole = kpod.choose_k(X, range(1, 7), random_state=0)
    fits, solve = [], _fitting.Fitting.solve
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
            patch.setattr(_fitting.Fitting, "solve", lambda *a, **b: fits.append(1) or solve(*a, **b))
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
