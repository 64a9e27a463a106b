"""Workers that come and go, and tables that Dask holds in ways of its own: none of it shows in a bit."""

import pytest

from kpod import KPOD
from kpod._engine import sizes
from tests.engine.test_dask import in_chunks, same, table, until
from tests.helpers.clusters import patient  # noqa: F401  # the fixture

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed", "ignore::ResourceWarning")


@pytest.fixture(autouse=True)
def on_workers(monkeypatch):
    """Small tables stay on the cluster, as those stay that are not small."""
    monkeypatch.setattr(sizes, "SMALL_REMOTE_TABLE", 0)


@pytest.fixture(scope="module")
def cluster():
    """A worker that writes to its disk whatever is held beyond some kilobytes."""
    spilling = {"distributed.worker.memory.target": 1e-5, "distributed.worker.memory.spill": False}
    with (
        dask.config.set(spilling),
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, memory_limit="2GB", dashboard_address=":0", silence_logs=100
        ) as cluster,
    ):
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster, set_as_default=False) as client:
        yield client


def model():
    return KPOD(5, n_init=1, random_state=3)


def spilled(dask_worker):
    return len(dask_worker.data.disk)


def test_blocks_that_were_spilled_are_read_back(client):
    here, far, on_disk = model().fit(in_chunks(table())), model(), []
    far._progress_line = lambda line: on_disk.append(max(client.run(spilled).values()))
    with client.as_current():
        far.fit(in_chunks(table()))
    assert max(on_disk) > 0
    same(here, far)


def test_a_persisted_collection_is_as_good(client):
    here = model().fit(in_chunks(table()))
    with client.as_current():
        kept = in_chunks(table()).persist()
        distributed.wait(kept)
        same(here, model().fit(kept))


def test_workers_that_join_and_leave_between_iterations_show_in_no_bit(client, cluster):
    here, far, seen = model().fit(in_chunks(table())), model(), []

    def change(line):
        if "lloyd" in line and len(seen) < 2:
            n = 3 - len(client.nthreads())
            cluster.scale(n)
            until(lambda: len(client.nthreads()) == n)
            seen.append(n)

    far._progress_line = change
    with client.as_current():
        far.fit(in_chunks(table()))
    same(here, far)
    assert seen == [2, 1]
