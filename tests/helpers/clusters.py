"""Clusters on this machine, however busy it is."""

from contextlib import suppress

import dask
import pytest

from kpod._engine.workers import waiting

PATIENT = {
    "distributed.comm.timeouts.connect": "50 minutes",
    "distributed.comm.timeouts.tcp": "50 minutes",
    "kpod.no-workers-timeout": "50 minutes",
}


@pytest.fixture(autouse=True, scope="module")
def patient():
    """Nobody is given up, and nothing said, because an answer is late."""
    with suppress(ImportError):
        import distributed  # noqa: F401  # its settings are there first, or would be gone with these
    with dask.config.set(PATIENT), pytest.MonkeyPatch.context() as patch:
        patch.setattr(waiting, "SECONDS_TO_WARNING", float("inf"))
        yield
