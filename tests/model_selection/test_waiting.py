"""A choice that takes long says so beforehand. No test looks at a real clock."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.metrics import adjusted_rand_score

from kpod import KPOD, choose_k
from kpod._common.long_waits import LONG, Wait, duration, seconds_left
from kpod._model_selection import trials
from kpod.cli.progress import Progress
from tests.helpers.command import kpod as run
from tests.helpers.tables import clustered


@pytest.fixture(autouse=True)
def long_waits_are_announced(monkeypatch):
    monkeypatch.setattr("kpod._common.long_waits.LONG", LONG)


class Clock:
    """A clock that goes on by so much whenever it is looked at."""

    def __init__(self, step=0.0):
        self.now, self.step = 100.0, step

    def __call__(self):
        self.now += self.step
        return self.now


def test_the_rest_takes_as_long_for_each_unit():
    assert seconds_left(1, 60, 2.0) == 118.0
    assert seconds_left(60, 60, 2.0) == 0
    assert seconds_left(0, 60, 0.0) == 0
    assert seconds_left(70, 60, 2.0) == 0  # more than was planned


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(31, "30 seconds"), (89, "90 seconds"), (95, "2 minutes"), (240, "4 minutes"), (9000, "2.5 hours")],
)
def test_durations_are_read_as_one_says_them(seconds, said):
    assert duration(seconds) == said


def test_long_waits_are_announced_once_and_short_ones_never():
    said, clock = [], Clock()
    wait = Wait(said.append, clock)
    wait.begin(20)
    for _ in range(20):  # 20 units of a second
        clock.now += 1
        wait.step(1)
    assert said == []
    wait.begin(100)
    for _ in range(100):
        clock.now += 1
        wait.step(1)
    assert said == [99.0]
    wait.begin(100)  # another stage: longer than was said
    clock.now += 2
    wait.step(1)
    assert said == [99.0, 198.0]
    wait.begin(50)  # no later than was said
    clock.now += 2
    wait.step(1)
    assert said == [99.0, 198.0]


def test_the_work_of_a_search_is_foreseen(rng):
    """What is planned is what is done, so that the estimate of a steady pace is right all along."""
    X, _ = clustered(rng, 80, 5, 3, 0.1)
    plans = []

    class Told:
        def announce(self, seconds):
            raise AssertionError(seconds)

        def __call__(self, *_):
            pass

    begin, step, skip = Wait.begin, Wait.step, Wait.skip
    try:
        Wait.skip = lambda self, units: (plans[-1].__setitem__(0, plans[-1][0] - units), skip(self, units))[1]
        Wait.begin = lambda self, planned: (plans.append([planned, 0.0]), begin(self, planned))[1]
        Wait.step = lambda self, units: (plans[-1].__setitem__(1, plans[-1][1] + units), step(self, units))[1]
        choice = choose_k(X, range(1, 5), random_state=0, progress=Told())
    finally:
        Wait.begin, Wait.step, Wait.skip = begin, step, skip
    assert plans[0] == [0.0, 0.0]
    assert plans[1][0] == plans[1][1] <= 11 * sum(k + 2 for k in range(1, 5))
    for planned, done in plans[2:]:  # mixtures, which may end sooner
        assert 0 < done <= planned + 4 * (choice.centers_k_ + 3)


def slow(monkeypatch):
    """A clock by which every fit takes ten seconds."""
    monkeypatch.setattr(Wait.__init__, "__defaults__", (Clock(10.0),))


@pytest.mark.filterwarnings("ignore:No clear choice")
def test_it_is_said_by_python_and_the_command_line(monkeypatch, tmp_path, capsys):
    slow(monkeypatch)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    X, _ = clustered(np.random.default_rng(0), 16, 4, 2, 0.1, 0.1)
    said = []

    class Told:
        announce = said.append

        def __call__(self, *_):
            pass

    choose_k(X, range(1, 4), random_state=0, progress=Told())
    assert said
    assert min(said) > LONG
    KPOD("auto", random_state=0, verbose=1).fit(X)
    assert "choosing the number of clusters takes about" in capsys.readouterr().out
    np.savetxt(tmp_path / "t.csv", X, delimiter=",", header="a,b,c,d", comments="")
    options = ["fit", tmp_path / "t.csv", "-o", tmp_path / "o.csv"]
    text = run(monkeypatch, *options).err  # which is no terminal
    assert "choosing the number of clusters takes about" in text
    assert text.index("takes about") < text.index("cluster 0")
    assert "takes about" not in run(monkeypatch, *options, "-k", "2").err
    assert "takes about" not in run(monkeypatch, *options, "--quiet").err


def test_it_is_said_above_a_spinner(monkeypatch):
    lines = []
    progress = Progress(quiet=False)
    progress.status = SimpleNamespace(console=SimpleNamespace(print=lines.append))
    progress.announce(240)
    (line,) = lines
    assert line.startswith("choosing the number of clusters takes about 4 minutes more; with a given number")


@pytest.mark.filterwarnings("ignore:missingness='informative' uses the gaps")
@pytest.mark.parametrize("missingness", ["ignore", "informative"])
@pytest.mark.parametrize("seconds", [0, 2, 9, 25, 40])
def test_a_search_that_is_stopped_has_the_best_answer_so_far(seconds, missingness, monkeypatch):
    clock = Clock(1.0)
    monkeypatch.setattr(trials, "clock", clock)
    monkeypatch.setattr(sys.modules["kpod._findings.choose_k"], "clock", clock)
    X, truth = clustered(np.random.default_rng(0), 150, 8, 3, 0.2)
    told = []
    choice = choose_k(
        X,
        estimator=KPOD(missingness=missingness),
        random_state=0,
        max_seconds=seconds,
        progress=lambda *args: told.append(args),
    )
    assert told[-1][0] == told[-1][1]
    assert not choice.clear_
    assert "stopped" in choice.reason_
    assert choice.reason_ in choice.sentence_
    tried = choice.table_["k"]
    assert_array_equal(tried, np.arange(1, len(tried) + 1))  # the first ones
    assert len(tried) <= max(1, seconds)
    assert choice.best_k_ in tried
    assert np.isfinite(choice.table_["error"]).all()
    expected = KPOD(choice.best_k_, missingness=missingness, random_state=0).fit(X)
    assert_array_equal(choice.model_.labels_, expected.labels_)
    if seconds >= 9:
        assert choice.best_k_ == 3
        assert adjusted_rand_score(truth, choice.model_.labels_) > 0.9


def test_a_search_is_stopped_from_the_command_line(monkeypatch, tmp_path):
    X, _ = clustered(np.random.default_rng(0), 60, 4, 2, 0.1)
    np.savetxt(tmp_path / "t.csv", X, delimiter=",", header="a,b,c,d", comments="")
    for command in ("choose-k", "fit"):
        done = run(monkeypatch, command, tmp_path / "t.csv", "--max-seconds", 0)
        assert "the search was stopped" in done.out + done.err
        assert done.code == 0


def test_a_search_with_time_enough_is_the_same():
    X, _ = clustered(np.random.default_rng(0), 80, 5, 3, 0.2)
    one, other = (choose_k(X, range(1, 5), random_state=0, max_seconds=s) for s in (None, 10_000))
    assert one.sentence_ == other.sentence_
    assert_array_equal(one.table_["error"], other.table_["error"])


@pytest.mark.parametrize("seconds", [-1, "a minute", np.nan])
def test_seconds_that_are_none_are_refused(seconds):
    with pytest.raises(ValueError, match="max_seconds must be"):
        choose_k(np.eye(5), max_seconds=seconds)
