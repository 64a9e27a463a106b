"""The paper's experiments: the same scores whoever runs them, and nothing lost whatever happens."""

import csv
import errno
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import rand_score

from kpod import KPOD
from paper import claims, results, running, tables
from paper.__main__ import main
from paper.datasets import Cell, Problem, designs, make_problem
from paper.fingerprint import fingerprints
from paper.methods import Method, MethodError, OverTimeError, _r, methods, soft, titles
from paper.objective import FAILED, OK, OVER_TIME, UNAVAILABLE, Outcome, judge, observed_loss
from paper.results import Record, ResultsError
from paper.running import Plan, Task, fit, make_plan, outcome_of_dead
from paper.summary import Summary

ROOT = Path(__file__).parents[2]
WINE = Cell("wine", "MCAR", 25)
MAR = Cell("wine", "MAR", 4)
NO_R = shutil.which("Rscript") is None


def problem(cell=WINE, trial=0, seed=1, limit=60):
    return make_problem(designs()[cell.table], cell, trial, seed, limit)


def run(*arguments):
    main(["run", *map(str, arguments)])


def scores_of(path):
    """Everything but the seconds, in a fixed order."""
    return sorted(
        (
            r.cell,
            r.trial,
            r.row,
            r.outcome.status,
            repr(r.outcome.rand),
            repr(r.outcome.ari),
            repr(r.outcome.loss),
        )
        for r in results.read(path)[1]
    )


class TestData:
    def test_the_complete_data_are_the_same_at_every_percentage(self):
        truths = [problem(Cell("wine", "NMAR", percent))[1] for percent in (5, 45)]
        tables_ = [problem(Cell("wine", "NMAR", percent))[0].complete for percent in (5, 45)]
        np.testing.assert_array_equal(*truths)
        np.testing.assert_array_equal(*tables_)

    def test_trials_mechanisms_and_seeds_differ(self):
        first = problem()[0].complete
        for other in (problem(trial=1), problem(seed=2), problem(Cell("wine", "MAR", 4))):
            assert not np.array_equal(other[0].complete, first)
        masks = [np.isnan(problem(trial=trial)[0].X) for trial in (0, 1)]
        assert not np.array_equal(*masks)

    def test_gaps_are_drawn_anew_at_every_percentage(self):
        few, many = (np.isnan(problem(Cell("wine", "MCAR", percent))[0].X) for percent in (5, 45))
        assert (few & ~many).any()

    @pytest.mark.parametrize("table", list(designs()))
    def test_shapes_shares_and_scale_are_the_protocols(self, table):
        design = designs()[table]
        for mechanism, percents in design.percents.items():
            for percent in percents:
                one, truth = problem(Cell(table, mechanism, percent))
                assert one.X.shape == ((178, 13) if table == "wine" else (500, 100))
                assert len(np.unique(truth)) == one.n_clusters
                gaps = np.isnan(one.X)
                assert 100 * gaps.mean() == pytest.approx(percent, abs=0.05)
                np.testing.assert_allclose(np.nanmean(one.X, axis=0), 0, atol=1e-12)
                np.testing.assert_allclose(np.nanstd(one.X, axis=0, ddof=1), 1)
                if mechanism == "MAR":
                    assert np.flatnonzero(gaps.any(axis=0)).tolist() == [0, 3, 6]
                if mechanism == "NMAR":
                    for values, gap in zip(one.complete.T, gaps.T, strict=True):
                        assert values[gap].max() <= values[~gap].min()

    def test_wine_is_noisy_by_a_tenth_of_the_mean(self):
        from sklearn.datasets import load_wine

        from paper.datasets import generator

        wine = load_wine().data
        noise = [designs()["wine"].make(generator(0, "x", t))[0] - wine for t in range(30)]
        np.testing.assert_allclose(np.std(noise, axis=(0, 1)), wine.mean(axis=0) / 10, rtol=0.05)


class TestObjective:
    def test_scores_are_those_of_the_labels(self):
        one, truth = problem()
        labels = np.arange(len(truth)) % 3
        outcome = judge(one.X, truth, labels, 1.5)
        assert outcome.status == OK
        assert outcome.rand == rand_score(truth, labels)
        assert outcome.seconds == 1.5
        assert judge(one.X, truth, truth, 0).rand == judge(one.X, truth, truth, 0).ari == 1

    def test_minus_one_is_a_group_of_its_own(self):
        truth = np.array([0, 0, 1, 1])
        X = np.array([[1.0], [3.0], [5.0], [9.0]])
        assert judge(X, truth, np.array([0, 0, -1, -1]), 0).rand == 1
        assert observed_loss(X, np.array([0, 0, -1, -1])) == 2 + 8

    def test_the_loss_is_the_estimators(self):
        X = problem()[0].X
        model = KPOD(3, random_state=0).fit(X)
        assert observed_loss(X, model.labels_) == pytest.approx(model.inertia_, rel=1e-12)

    def test_labels_of_another_length_are_a_failure(self):
        one, truth = problem()
        outcome = judge(one.X, truth, truth[:-1], 0)
        assert outcome.status == FAILED
        assert "177" in outcome.reason


class TestMethods:
    @pytest.mark.parametrize(
        "name", ["published", "default", "shapes", "mean", "neighbours", "iterative", "complete"]
    )
    def test_each_clusters_wine(self, name):
        outcomes = fit(Task(WINE, 0, name), seed=1, limit=60)
        assert len(outcomes) == len(methods()[name].rows)
        for outcome in outcomes:
            assert outcome.status == OK, outcome.reason
            assert outcome.rand > 0.75
            assert outcome.seconds > 0

    def test_the_default_ends_at_a_loss_no_higher_than_the_others(self):
        losses = {
            name: fit(Task(WINE, 0, name), seed=1, limit=60)[-1].loss
            for name in ("default", "published", "mean")
        }
        assert losses["default"] == min(losses.values())

    def test_what_a_method_raises_is_its_result(self, monkeypatch):
        def broken(problem):
            raise ZeroDivisionError("no luck")

        monkeypatch.setattr(
            "paper.running.methods", lambda: {"bad": Method("bad", {"bad": "Bad"}, broken, ())}
        )
        assert fit(Task(WINE, 0, "bad"), seed=1, limit=60) == [Outcome(FAILED, "ZeroDivisionError: no luck")]

    def test_no_method_sees_the_truth(self):
        assert not {"truth", "y", "target"} & set(Problem.__dataclass_fields__)


@pytest.mark.skipif(NO_R, reason="R not installed")
class TestR:
    @pytest.fixture(autouse=True)
    def processor_time_alone_counts(self, monkeypatch):
        monkeypatch.setattr(_r, "PATIENCE", 10**4)

    @pytest.mark.parametrize("name", ["amelia", "mice", "mi", "deletion"])
    def test_each_fills_in_a_wine_table_and_does_it_again(self, name):
        lacking = methods()[name].missing()
        if lacking:
            pytest.skip(lacking)
        one, truth = problem(MAR)
        filled, found = _r.run(_r.FOLDER / f"{name}.R", one)
        _r.check_filled(one.X, filled)
        assert len(found) == len(methods()[name].rows)
        for clustering in found:
            assert judge(one.X, truth, *(clustering.labels, clustering.seconds)).rand > 0.75
        again = [outcome.rand for outcome in fit(Task(MAR, 0, name), seed=1, limit=60)]
        assert again == [rand_score(truth, clustering.labels) for clustering in found]

    def script(self, tmp_path, body):
        path = tmp_path / "method.R"
        path.write_text(body)
        return path

    def test_tables_go_and_come_back_to_the_bit(self, tmp_path):
        X = np.random.default_rng(0).normal(size=(40, 7)) * 10.0 ** np.arange(-150, 200, 50)
        X[3, 2], X[0, 0] = np.nextafter(1, 2), 5e-324
        one = Problem(X, X, 2, 0, 30)
        filled, _ = _r.run(self.script(tmp_path, "fill <- function(X) X"), one)
        assert filled.tobytes() == X.tobytes()

    def test_gaps_arrive_as_gaps_and_nothing_else_changes(self, tmp_path):
        one, _ = problem()
        filled, _ = _r.run(self.script(tmp_path, "fill <- function(X) { X[is.na(X)] <- 7; X }"), one)
        np.testing.assert_array_equal(filled, np.where(np.isnan(one.X), 7, one.X))

    @pytest.mark.parametrize(
        ("body", "said"),
        [
            ('fill <- function(X) stop("no such luck")', "no such luck"),
            ("fill <- function(X) tools::pskill(Sys.getpid(), 6)", "SIGABRT"),
            ("fill <- function(X) X", "gaps were left"),
            ("library(nosuchpackage)", "nosuchpackage"),
        ],
    )
    def test_a_failure_says_why(self, tmp_path, body, said):
        with pytest.raises(MethodError, match=said) as caught:
            _r.run(self.script(tmp_path, body), problem()[0])
        assert not isinstance(caught.value, OverTimeError)

    def test_changed_entries_are_noticed(self, tmp_path):
        one, _ = problem()
        filled, _ = _r.run(self.script(tmp_path, "fill <- function(X) { X[is.na(X)] <- 0; X + 1e-9 }"), one)
        with pytest.raises(MethodError, match="came back changed"):
            _r.check_filled(one.X, filled)

    def test_processor_time_is_limited(self, tmp_path):
        with pytest.raises(OverTimeError, match="over 2 s"):
            _r.run(self.script(tmp_path, "fill <- function(X) repeat {}"), problem(limit=2)[0])


def test_without_r_those_rows_say_so_and_the_rest_runs(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    _r.r_versions.cache_clear()
    path = tmp_path / "results.csv"
    try:
        run(
            "--results",
            path,
            "--tables",
            "wine",
            "--mechanisms",
            "MAR",
            "--methods",
            "mice,mean",
            "--trials",
            1,
        )
    finally:
        _r.r_versions.cache_clear()
    records = results.read(path)[1]
    assert {r.outcome.reason for r in records if r.row == "mice"} == {"R not installed"}
    assert {r.outcome.status for r in records if r.row == "mice"} == {UNAVAILABLE}
    assert {r.outcome.status for r in records if r.row == "mean"} == {OK}
    summary = Summary(records)
    assert "R not installed" in tables.as_text(summary, tables.make_sheets(summary, ["wine"], ["rand"]))


FAST = ["--tables", "wine", "--mechanisms", "MCAR", "--methods", "published,default,mean", "--trials", "2"]


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    """The results file of a run of `FAST`."""
    path = tmp_path_factory.mktemp("paper") / "results.csv"
    run("--results", path, *FAST)
    return path


@pytest.fixture
def finished(once, tmp_path):
    return Path(shutil.copy(once, tmp_path / "finished.csv"))


class TestRun:
    def test_again_and_with_two_workers_the_scores_are_the_same(self, finished, tmp_path):
        paths = [tmp_path / name for name in ("again", "two")]
        for path, workers in zip(paths, (1, 2), strict=True):
            run("--results", path, *FAST, "--workers", workers)
        assert len(scores_of(finished)) == 5 * 2 * 5
        assert scores_of(finished) == scores_of(paths[0]) == scores_of(paths[1])

    def test_the_methods_chosen_do_not_change_the_data(self, finished, tmp_path):
        run("--results", tmp_path / "b", "--tables", "wine", "--methods", "mean", "--trials", 1)
        ours = [line for line in scores_of(finished) if line[2] == "mean" and line[1] == 0]
        theirs = [
            line for line in scores_of(tmp_path / "b") if line[2] == "mean" and line[0].mechanism == "MCAR"
        ]
        assert ours == theirs

    def test_it_goes_on_where_it_was(self, tmp_path, capsys):
        path = tmp_path / "results.csv"
        run("--results", path, *FAST[:-2], "--trials", 1)
        before = path.read_bytes()
        run("--results", path, *FAST)
        assert path.read_bytes().startswith(before)
        assert "15 fits run, 30 asked for" in capsys.readouterr().err
        run("--results", path, *FAST)
        assert "0 fits run, 30 asked for" in capsys.readouterr().err
        assert len(scores_of(path)) == len(set(scores_of(path))) == 50

    def test_killed_at_any_moment_nothing_finished_is_lost(self, finished, tmp_path):
        path = tmp_path / "results.csv"
        command = [sys.executable, "-m", "paper", "run", "--results", path, *FAST, "--workers", "2"]
        seen = b""
        for n_lines in (4, 15, 30):
            process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL, start_new_session=True)
            while process.poll() is None and (not path.exists() or path.read_bytes().count(b"\n") < n_lines):
                time.sleep(0.005)
            before = path.read_bytes()
            process.kill()
            process.wait()
            text = path.read_bytes()
            assert text.startswith(before[: before.rfind(b"\n") + 1])
            assert text.startswith(seen)
            results.read(path)
            seen = text[: text.rfind(b"\n") + 1]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert path.read_bytes().startswith(seen)
        assert scores_of(path) == scores_of(finished)

    @pytest.mark.parametrize("lost", [1, 5, 40, 130])
    def test_a_line_cut_off_is_run_again(self, finished, lost):
        whole = scores_of(finished)
        os.truncate(finished, finished.stat().st_size - lost)
        assert len(results.read(finished)[1]) < len(whole)
        run("--results", finished, *FAST)
        assert set(scores_of(finished)) == set(whole)

    def test_over_time_ends_a_cell_and_is_tried_again_with_more(self, tmp_path, monkeypatch):
        # Processor time is what is limited; a busy machine must not be taken for a process that stands still.
        monkeypatch.setattr(running, "PATIENCE", 10**6)
        path = tmp_path / "results.csv"
        some = ["--results", path, "--tables", "k10", "--mechanisms", "NMAR", "--methods", "iterative"]
        run(*some, "--trials", 2, "--time-limit", 1)
        records = results.read(path)[1]
        over = [r for r in records if r.outcome.status == OVER_TIME]
        ended = {r.cell: r.trial for r in over}  # a fast machine may do the smallest in time
        assert ended
        assert {r.outcome.reason for r in over} == {"over 1 s"}
        assert all(r.trial <= ended.get(r.cell, 1) for r in records)
        plan = make_plan(["k10"], ["iterative"], ["NMAR"], trials=2, limit=1)
        plan.note(records)
        assert plan.left() == []
        plan = make_plan(["k10"], ["iterative"], ["NMAR"], trials=2, limit=2)
        plan.note(records)
        assert len(plan.left()) == sum(2 - trial for trial in ended.values())

    def test_a_fit_counts_once_all_its_rows_are_there(self):
        plan = Plan([Task(WINE, 0, "mean")], 10)
        plan.note([Record(WINE, 0, "mean", Outcome(OK), 10)])
        assert len(plan.left()) == 1
        plan.note([Record(WINE, 0, row, Outcome(OK), 10) for row in ("mean", "mean-10")])
        assert plan.left() == []

    def test_what_to_say_of_the_dead(self):
        assert outcome_of_dead(-signal.SIGXCPU, 7) == Outcome(OVER_TIME, "over 7 s")
        assert outcome_of_dead(-signal.SIGSEGV, 7).reason == "the process was killed (SIGSEGV)"
        for code in (-signal.SIGKILL, -signal.SIGTERM, 128 + signal.SIGTERM):
            assert outcome_of_dead(code, 7).reason.startswith("killed from outside (SIG")
        assert outcome_of_dead(3, 7).status == FAILED

    @pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM])
    @pytest.mark.parametrize("times", [1, 3])
    def test_a_worker_killed_from_outside_is_not_the_methods_failure(
        self, tmp_path, monkeypatch, sent, times
    ):
        """Once, and the fit is run again; again and again, and a later run tries."""
        left = [times]
        give = running.Worker.give

        def killed(worker, task):
            give(worker, task)
            if task.trial == 0 and left[0]:
                left[0] -= 1
                os.kill(worker.process.pid, sent)
                worker.process.join()

        monkeypatch.setattr(running.Worker, "give", killed)
        path = tmp_path / "results.csv"
        some = [
            "--results",
            path,
            "--tables",
            "wine",
            "--mechanisms",
            "MAR",
            "--methods",
            "mean",
            "--trials",
            2,
        ]
        run(*some)
        first = [r.outcome for r in results.read(path)[1] if r.trial == 0]
        assert {outcome.status for outcome in first} == ({OK} if times == 1 else {OK, FAILED})
        run(*some)
        plan = make_plan(["wine"], ["mean"], ["MAR"], trials=2, limit=120)
        plan.note(results.read(path)[1])
        assert plan.left() == []
        assert Summary(results.read(path)[1])

    def test_a_full_disk_is_one_line_and_nothing_is_half_written(self, finished, monkeypatch):
        before, held = finished.read_bytes(), finished.open()
        write = os.write

        def full(descriptor, data):
            if not os.path.sameopenfile(descriptor, held.fileno()):
                return write(descriptor, data)
            if len(data) > 20:
                return write(descriptor, bytes(data)[:20])
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "write", full)
        with pytest.raises(SystemExit, match="cannot be written: No space left on device"):
            run("--results", finished, *FAST[:-1], 3)
        held.close()
        assert finished.read_bytes() == before

    @pytest.mark.parametrize("kept", [0, 1, 2, 5, 40, 250, -30, -1])
    def test_a_heading_cut_off_is_written_again(self, finished, kept):
        whole = scores_of(finished)
        heading = b"".join(finished.read_bytes().splitlines(keepends=True)[:2])
        finished.write_bytes(heading[:kept])
        run("--results", finished, *FAST)
        assert finished.read_bytes().startswith(heading)
        assert set(scores_of(finished)) == set(whole)

    def test_what_is_not_a_heading_is_left_alone(self, tmp_path):
        notes = tmp_path / "notes.csv"
        notes.write_text("# my notes")
        with pytest.raises(SystemExit, match="line 1 is not one of a results file"):
            run("--results", notes, *FAST)
        assert notes.read_text() == "# my notes"


SHORT = ["--tables", "wine", "--mechanisms", "MAR", "--methods", "mean,default", "--trials"]


def changed(tmp_path, *, versions=None, **changes):
    """The results file of a short run, with another heading."""
    path = tmp_path / "results.csv"
    run("--results", path, *SHORT[:-2], "mean", "--trials", 1)
    first, _, rest = path.read_text().partition("\n")
    heading = json.loads(first[1:]) | changes
    heading["versions"] |= versions or {}
    path.write_text(f"# {json.dumps(heading)}\n{rest}")
    return path


class TestVersions:
    """What a method found counts as long as the packages that it rests on are the same."""

    def made_with(self, path, **versions):
        first, _, rest = path.read_text().partition("\n")
        heading = json.loads(first[1:])
        heading["versions"] |= versions
        path.write_text(f"# {json.dumps(heading)}\n{rest}")

    def test_methods_that_do_not_rest_on_it_go_on_and_others_are_run_again(self, tmp_path, capsys):
        path = tmp_path / "results.csv"
        run("--results", path, *SHORT, 2)
        whole = scores_of(path)
        self.made_with(path, kpod="0.0.1")
        before = path.read_bytes()
        run("--results", path, *SHORT, 2)
        assert "10 fits run, 20 asked for" in capsys.readouterr().err
        assert path.read_bytes().startswith(before)
        assert scores_of(path) == whole  # of what was run twice, the last counts, once
        again = path.read_text()[len(before) :]
        assert again.startswith("# {")
        assert {line.split(",")[4] for line in again.splitlines()[1:]} == {"default", "default-1"}

    def test_no_mean_is_one_over_two_versions(self, tmp_path):
        path = tmp_path / "results.csv"
        run("--results", path, *SHORT, 3)
        self.made_with(path, kpod="0.0.1")
        assert len(results.read(path)[1]) == 3 * 5 * 4, "as long as it was not run again, it counts"
        run("--results", path, *SHORT, 1)
        counts = {row: len(Summary(results.read(path)[1]).at(MAR, row).outcomes) for row in titles()}
        assert {row: n for row, n in counts.items() if n} == {
            "mean": 3, "mean-10": 3, "default": 1, "default-1": 1,
        }  # fmt: skip

    @pytest.mark.parametrize("package", ["numpy", "scikit-learn", "python"])
    def test_an_imputer_of_scikit_learn_rests_on_more(self, tmp_path, capsys, package):
        path = changed(tmp_path, versions={package: "1.0"})
        run("--results", path, *SHORT[:-2], "mean", "--trials", 1)
        assert "5 fits run, 5 asked for" in capsys.readouterr().err.splitlines()[-1]

    def test_nothing_is_written_where_nothing_is_run(self, tmp_path):
        path = changed(tmp_path, versions={"kpod": "0.0.1", "mice": "0.1"})
        before = path.read_bytes()
        run("--results", path, *SHORT[:-2], "mean", "--trials", 1)
        assert path.read_bytes() == before

    def test_a_package_installed_later_is_noted(self, tmp_path):
        path = changed(tmp_path, versions={"numpy": None})
        run("--results", path, *SHORT[:-2], "mean", "--trials", 2)
        heading, records = results.read(path)
        assert heading["versions"]["numpy"] == np.__version__
        assert len(records) == 5 * 2 * 2

    def test_every_method_rests_on_packages_whose_versions_are_noted(self):
        noted = set(results.present_versions())
        for method in methods().values():
            assert method.packages
            assert set(method.packages) <= noted, method.name
        own = {name for name, method in methods().items() if "kpod" in method.packages}
        assert own == {"published", "default", "informative", "auto", "shapes"}
        for name, package in {"amelia": "Amelia", "mice": "mice", "mi": "mi"}.items():
            assert methods()[name].packages == ("R", package)

    @pytest.mark.parametrize("name", ["mcar", "mar", "nmar"])
    def test_another_mask_is_noticed(self, monkeypatch, name):
        """Of the tables of each seed, also where no version says so."""
        from paper import datasets, fingerprint

        before = fingerprint.fingerprint("wine", 1)
        original = getattr(datasets, name)

        def one_gap_more(*args, **kwargs):
            X = original(*args, **kwargs)
            X[tuple(np.argwhere(~np.isnan(X))[0])] = np.nan
            return X

        monkeypatch.setattr(datasets, name, one_gap_more)
        assert fingerprint.fingerprint("wine", 1) != before != fingerprint.fingerprint("wine", 2)

    def test_other_values_and_other_scores_are_noticed(self, monkeypatch):
        from paper import datasets, fingerprint

        before = fingerprint.fingerprint("k10", 1)
        with monkeypatch.context() as patch:
            patch.setattr(datasets, "scale", lambda X, scale=datasets.scale: scale(X) * 1.001)
            assert fingerprint.fingerprint("k10", 1) != before
        with monkeypatch.context() as patch:
            patch.setattr("paper.objective.rand_score", lambda truth, labels: 0.5)
            assert fingerprint.fingerprint("k10", 1) != before
        assert fingerprint.fingerprint("k10", 1) == before

    def test_the_full_run_can_be_gone_on_with(self):
        """Its tables are those of now, and imputers of the same versions score as they did."""
        path = ROOT / "paper/results/full.csv"
        (heading, *_), found = results.read_all(path)
        assert heading["tables"] == fingerprints(heading["seed"])
        present = results.present_versions()
        packages = methods()["mean"].packages
        if results.changes(packages, heading["versions"], present):
            pytest.skip("made with other versions of NumPy or scikit-learn")
        for cell in (WINE, MAR, Cell("wine", "NMAR", 45), Cell("k25", "NMAR", 75)):
            before = {r.row: r.outcome for _, r in found if (r.cell, r.trial) == (cell, 7)}
            now = dict(zip(("mean", "mean-10"), fit(Task(cell, 7, "mean"), heading["seed"], 60), strict=True))
            for row, outcome in now.items():
                assert outcome.loss == pytest.approx(before[row].loss, rel=1e-6)
                assert outcome.rand == pytest.approx(before[row].rand, rel=1e-6)


class TestRefusals:
    @pytest.mark.parametrize(
        ("status", "scores"),
        [
            ("ok", "nan,0.5,1,1"),
            ("ok", "inf,0.5,1,1"),
            ("ok", "-5,0.5,1,1"),
            ("ok", "0.5,2,1,1"),
            ("ok", "0.5,0.5,-1,1"),
            ("ok", "0.5,0.5,1,inf"),
            ("ok", ",,,"),
            ("failed", "0.5,0.5,1,1"),
            ("fine", "0.5,0.5,1,1"),
            ("", "0.5,0.5,1,1"),
            ("fine", ",,,"),
            ("", ",,,"),
        ],
    )
    def test_scores_that_cannot_be(self, finished, status, scores):
        with finished.open("a") as file:
            file.write(f"wine,MCAR,5,7,mean,{status},{scores},120,\n")
        with pytest.raises(results.ResultsError, match="line 53 is not one of a results file"):
            results.read(finished)

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"protocol": 0}, "protocol 0, now 1"),
            ({"seed": 7}, "seed 7, now 2016"),
            ({"tables": {"wine": "0", "k10": "0"}}, "other tables of wine; other tables of k10; other"),
            ({"tables": {}}, "other tables of wine"),
        ],
    )
    def test_results_of_others_are_not_mixed(self, tmp_path, changes, said):
        path = changed(tmp_path, **changes)
        before = path.read_bytes()
        with pytest.raises(SystemExit, match=re.escape(said)):
            run("--results", path, "--methods", "mean")
        assert path.read_bytes() == before

    @pytest.mark.parametrize("text", ["a,b\n1,2\n", "# {}\n", "# []\n", "\x00\xff", "# not json\n"])
    def test_another_file_is_left_alone(self, tmp_path, text):
        path = tmp_path / "table.csv"
        path.write_text(text)
        with pytest.raises(SystemExit, match=r"table\.csv"):
            run("--results", path, "--methods", "mean")
        assert path.read_text() == text

    def test_a_spoilt_line_is_named(self, tmp_path):
        path = changed(tmp_path)
        path.write_text(path.read_text() + "wine,MAR,x,0,mean,ok,,,,,1,\n")
        with pytest.raises(ResultsError, match="line 13 is not one"):
            results.read(path)

    def test_two_runs_at_once_do_not_share_a_file(self, tmp_path):
        path = tmp_path / "results.csv"
        with (
            results.opened(path, 0),
            pytest.raises(ResultsError, match="another run"),
            results.opened(path, 0),
        ):
            pass

    @pytest.mark.parametrize(
        ("option", "value", "known"),
        [
            ("--methods", "mice,magic", "published, default, informative, auto, shapes, amelia"),
            ("--tables", "beer", "wine, k10, k25"),
            ("--mechanisms", "", "MCAR, MAR, NMAR"),
        ],
    )
    def test_unknown_names_get_the_known_ones(self, capsys, option, value, known):
        with pytest.raises(SystemExit):
            run(option, value)
        assert known in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("option", "value"), [("--trials", "0"), ("--workers", "two"), ("--time-limit", "-1")]
    )
    def test_numbers_are_checked(self, capsys, option, value):
        with pytest.raises(SystemExit):
            run(f"{option}={value}")
        assert f"not '{value}'" in capsys.readouterr().err

    def test_what_was_never_run_is_said(self, tmp_path):
        for command in ("tables", "claims", "plot"):
            with pytest.raises(SystemExit, match="no such file; `python -m paper run` makes it"):
                main([command, "--results", str(tmp_path / "none.csv")])


def made_up(
    rand=lambda cell, row, trial: 0.9, seconds=lambda cell, row: 1.0, n_trials=5, fails=lambda c, row: ""
):
    """Records of every cell, with the scores given."""
    found = []
    for design in designs().values():
        for mechanism, percents in design.percents.items():
            for percent in percents:
                cell = Cell(design.name, mechanism, percent)
                for row in titles():
                    if row.startswith(("deletion", "soft")) and mechanism != "MAR":
                        continue
                    for trial in range(n_trials):
                        why = fails(cell, row)
                        outcome = Outcome(why or FAILED, "made to") if why else Outcome(
                            OK, rand=rand(cell, row, trial), ari=rand(cell, row, trial), loss=1.0,
                            seconds=seconds(cell, row))  # fmt: skip
                        found.append(Record(cell, trial, row, outcome, 60))
    return Summary(found)


class TestTables:
    def test_means_and_errors_are_those_of_the_trials(self):
        summary = made_up(lambda cell, row, trial: 0.8 + 0.01 * trial)
        entry = summary.at(WINE, "mice")
        assert entry.mean("rand") == pytest.approx(0.82)
        assert entry.error("rand") == pytest.approx(np.std([0, 0.01, 0.02, 0.03, 0.04], ddof=1) / 5**0.5)
        assert tables.entry_text(summary, WINE, "mice", "rand") == "0.820 ± 0.007"

    def test_a_cell_with_a_failure_is_empty_and_says_why(self):
        def fails(cell, row):
            return FAILED if row == "amelia" and cell.percent == 45 else OVER_TIME if row == "mi" else ""

        summary = made_up(fails=fails)
        sheets = tables.make_sheets(summary, ["wine"], ["rand"])
        assert tables.entry_text(summary, Cell("wine", "MCAR", 45), "amelia", "rand") == ""
        for render in (tables.as_text, tables.as_markdown):
            text = render(summary, sheets)
            assert "Amelia, MCAR 45 %: failed in 5 of 5 trials: made to" in text
            assert "mi, NMAR 5 %, 15 %, 25 %, 35 %, 45 %: over 60 s" in text

    def test_there_are_six_with_the_papers_numbers_and_more_beside(self):
        sheets = tables.make_sheets(made_up(), list(designs()), ["rand", "ari", "seconds"])
        titles_ = [sheet.title for sheet in sheets]
        assert [t.split(".")[0] for t in titles_ if t.startswith("Table")] == [
            f"Table {i}" for i in range(1, 7)
        ]
        assert sum(t.startswith("Beside") for t in titles_) == 3

    def test_the_best_are_marked(self):
        def rand(cell, row, trial):
            return {"mice": 0.95, "mi": 0.95 - 0.02 * (trial - 2), "complete": 1.0}.get(row, 0.9)

        summary = made_up(rand)
        best = [row for row in titles() if tables.is_best(summary, WINE, row, "rand")]
        assert best == ["mi", "mice"]

    def test_a_single_trial_in_common_compares_nothing(self):
        assert made_up(n_trials=1).difference(WINE, "mice", "mi") is None
        assert made_up(n_trials=2).difference(WINE, "mice", "mi").mean == 0

    def test_a_single_trial_is_not_called_the_best(self):
        assert not tables.is_best(made_up(n_trials=1), WINE, "mice", "rand")
        assert tables.is_best(made_up(n_trials=2), WINE, "mice", "rand")

    def test_csv_has_every_figure(self):
        summary = made_up()
        text = tables.as_csv(summary, tables.make_sheets(summary, ["k10"], ["rand"]))
        lines = list(csv.DictReader(io.StringIO(text)))
        assert len(lines) == 6 * len([row for row in titles() if not row.startswith(("deletion", "soft"))])
        assert {line["mean"] for line in lines} == {"0.9"}
        assert {line["trials"] for line in lines} == {"5"}

    def test_latex_has_a_column_for_each_and_nothing_unescaped(self):
        summary = made_up()
        text = tables.as_latex(summary, tables.make_sheets(summary, ["wine", "k10"], ["rand", "seconds"]))
        widths = {line.count("&") for line in text.splitlines() if line.endswith(r"\\")}
        assert widths == {6, 4}
        assert not re.search(r"(?<!\\)%", text)
        assert "±" not in text

    @pytest.mark.parametrize("form", list(tables.FORMATS))
    def test_the_command_writes_each_format(self, finished, tmp_path, capsys, form):
        out = tmp_path / "out"
        main(["tables", "--results", str(finished), "--format", form])
        main(["tables", "--results", str(finished), "--format", form, "--output", str(out)])
        assert out.read_text() == capsys.readouterr().out
        assert len(out.read_text().splitlines()) > 10


class TestClaims:
    def verdicts(self, summary):
        return [claim.verdict for claim in claims.check_claims(summary)]

    def as_published(self):
        """A world in which all of the paper is true."""

        def fails(cell, row):
            if row == "amelia" and cell.table == "wine":
                return FAILED if cell.percent >= {"MCAR": 35, "MAR": 16, "NMAR": 35}[cell.mechanism] else ""
            if row == "mice" and cell.table == "wine":
                return FAILED if cell.mechanism == "MAR" and cell.percent == 19 else ""
            return FAILED if row in ("amelia", "mi") and cell.table != "wine" else ""

        def seconds(cell, row):
            return 2.0 if row == "published" and cell.table == "k25" else 1.0

        return {"fails": fails, "seconds": seconds}

    def test_they_hold_where_they_are_true(self):
        assert self.verdicts(made_up(**self.as_published())) == [
            "holds", "holds", "holds", "not comparable", "holds", "holds",
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("cell", "row", "gap", "claim"),
        [
            (Cell("wine", "MAR", 4), "mi", -0.06, 1),
            (Cell("wine", "MAR", 19), "deletion", -0.11, 1),
            (Cell("wine", "MCAR", 45), "mi", 0.03, 3),
            (Cell("wine", "NMAR", 25), "mice", 0.06, 3),
            (Cell("k10", "NMAR", 50), "mice", 0.01, 5),
            (Cell("k10", "MCAR", 25), "mice", -0.03, 5),
        ],
    )
    def test_one_cell_decides(self, cell, row, gap, claim):
        def rand(at, which, trial):
            return 0.9 + (gap if (at, which) == (cell, row) else 0)

        found = claims.check_claims(made_up(rand, **self.as_published()))
        assert [c.number for c in found if c.verdict == "fails"] == [claim]
        deciding = [line for part in found[claim - 1].parts if part.verdict == "fails" for line in part.cells]
        assert any(str(cell) in line for line in deciding)

    def test_failures_are_claimed_where_they_are_and_only_there(self):
        world = self.as_published()
        assert self.verdicts(made_up(seconds=world["seconds"]))[1] == "fails"

        def everywhere(cell, row):
            return world["fails"](cell, row) or (FAILED if row == "mi" and cell.percent == 5 else "")

        assert self.verdicts(made_up(seconds=world["seconds"], fails=everywhere))[1] == "fails"

    @pytest.mark.parametrize(("n_lost", "verdict"), [(1, "holds"), (2, "fails")])
    def test_one_cell_of_25_clusters_may_be_lost_two_may_not(self, n_lost, verdict):
        lost = [Cell("k25", "MCAR", 25), Cell("k25", "NMAR", 75)][:n_lost]

        def rand(cell, row, trial):
            return 0.95 if cell in lost and row == "mice" else 0.9

        assert self.verdicts(made_up(rand, **self.as_published()))[5] == verdict

    def test_running_out_of_less_time_than_theirs_is_not_comparable(self):
        world = self.as_published()

        def fails(cell, row):
            return (
                OVER_TIME if row in ("amelia", "mi") and cell.table != "wine" else world["fails"](cell, row)
            )

        claim = claims.check_claims(made_up(seconds=world["seconds"], fails=fails))[4]
        assert [part.verdict for part in claim.parts[:2]] == ["not comparable"] * 2

    def test_what_was_not_run_is_not_judged(self):
        assert set(self.verdicts(Summary([]))) == {"not run"}
        assert set(self.verdicts(made_up(n_trials=1, **self.as_published()))) <= {
            "not run",
            "holds",
            "not comparable",
        }

    def test_the_default_is_reported_against_everyone(self):
        def rand(cell, row, trial):
            return 0.95 if row == "neighbours-10" and cell == WINE else 0.9

        found = dict(claims.everywhere(made_up(rand), "default", "ari"))
        assert found.pop(WINE) == "behind KNNImputer, 10 starts by 0.050 ± 0.000"
        assert set(found.values()) == {"best, or within one standard error of it"}

    def test_the_command_says_all_six(self, finished, capsys):
        main(["claims", "--results", str(finished)])
        assert re.findall(r"^Claim (\d)", capsys.readouterr().out, re.M) == list("123456")


def test_pictures_are_drawn_of_what_was_run(finished, tmp_path, capsys):
    main(["plot", "--results", str(finished), "--output", str(tmp_path)])
    assert "k10: not run, nothing to draw" in capsys.readouterr().out
    assert (tmp_path / "paper-wine.png").read_bytes().startswith(b"\x89PNG")
    assert not (tmp_path / "paper-k10.png").exists()


def test_a_picture_has_a_panel_a_mechanism_and_bands(tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    from paper.plot import draw

    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *args, **kwargs: drawn.append(figure))
    draw(made_up(lambda cell, row, trial: 0.8 + 0.01 * trial), "wine", tmp_path)
    (figure,) = drawn
    panels = figure.axes
    assert [panel.get_title() for panel in panels[:3]] == ["MCAR", "MAR", "NMAR"]
    assert len(panels) == 6
    assert panels[3].get_yscale() == "log"
    for panel in panels:
        assert len(panel.collections) == len(panel.lines) >= 9


class TestSoftConstraints:
    def test_distances_run_over_the_columns_both_observe(self, rng):
        Z = np.where(rng.random((8, 3)) < 0.4, np.nan, rng.normal(size=(8, 3)))
        expected = np.nansum((Z[:, None] - Z[None]) ** 2, axis=2)
        np.testing.assert_allclose(soft.squared_distances(Z), expected, atol=1e-12)

    @pytest.mark.parametrize("weight", [0.0, 0.3, 0.9])
    def test_a_pass_never_raises_the_objective(self, rng, weight):
        X = rng.normal(size=(40, 3))
        apart = soft.squared_distances(np.where(rng.random((40, 2)) < 0.3, np.nan, rng.normal(size=(40, 2))))
        labels = np.arange(40) % 3
        before = soft.objective(X, apart, labels, 3, weight)
        found = soft.descend(X, apart, labels, 3, weight)
        assert soft.objective(X, apart, found, 3, weight) < before
        assert (soft.descend(X, apart, found, 3, weight) == found).all()

    def test_it_needs_a_complete_column(self):
        X = np.where(np.eye(6, 3) > 0, np.nan, 1.0)
        with pytest.raises(MethodError, match="no column is complete"):
            soft.fit(Problem(X, X, 2, 0, 30))

    def test_without_weight_it_is_deletion(self):
        one, _ = problem(MAR)
        complete = ~np.isnan(one.X).any(axis=0)
        kmeans = KMeans(3, n_init=10, random_state=0).fit(one.X[:, complete])
        labels = soft.best(one, complete, 0.0)
        assert soft.objective(one.X[:, complete], np.ones((178, 178)), labels, 3, 0.0) <= 1.0001 * (
            kmeans.inertia_ / ((one.X[:, complete] - one.X[:, complete].mean(axis=0)) ** 2).sum()
        )
