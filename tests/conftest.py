import os
from importlib.util import find_spec
from pathlib import Path

import hypothesis
import numpy as np
import pytest

from tests.helpers.browser import browser  # noqa: F401  # the fixture

# Any seed must pass. It is the same every time unless asked for: KPOD_TEST_SEED=any draws one, and the
# header says which.
ASKED = os.environ.get("KPOD_TEST_SEED", "0")
FIRST_SEED = np.random.SeedSequence().entropy % 10_000 if ASKED == "any" else int(ASKED)
os.environ["KPOD_TEST_SEED"] = str(FIRST_SEED)  # for all processes of a run


def pytest_report_header():
    return f"KPOD_TEST_SEED={FIRST_SEED}"


THREE_SEEDS = ("engine", "estimators", "kernels")
"""The folders with the arithmetic that all others build on; these get by with one seed a run."""


def pytest_generate_tests(metafunc):
    if "rng" in metafunc.fixturenames:
        n_seeds = 3 if Path(metafunc.module.__file__).parent.name in THREE_SEEDS else 1
        metafunc.parametrize("rng", range(n_seeds), indirect=True)


@pytest.fixture
def rng(request):
    return np.random.default_rng(FIRST_SEED + request.param)


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def dtype(request):
    return request.param


# No test depends on how busy the machine is.
hypothesis.settings.register_profile(
    "kpod", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("kpod")


@pytest.fixture(autouse=True)
def no_lines_after_a_while(monkeypatch):
    """Nothing is said because a while has passed. The core is tested without click, too."""
    if find_spec("click"):
        monkeypatch.setattr("kpod.cli.progress.BETWEEN_LINES", float("inf"))
    monkeypatch.setattr("kpod._common.long_waits.LONG", float("inf"))


@pytest.fixture
def shell():
    """Messages as the command line words them."""
    from kpod._common.options import read_in_the_shell

    with read_in_the_shell():
        yield
