"""Systems that lack what Linux has; here, it is taken away."""

import platform
import subprocess
import sys

import numpy as np
import pytest

from kpod._engine.executors import threads

# Windows has none of these; macOS has no posix_fallocate and no sched_getaffinity.
LACKING = """
import mmap, os, sys
sys.modules["fcntl"] = None
for module, names in [(mmap, ["MAP_PRIVATE"]), (os, ["O_DIRECTORY", "posix_fallocate", "sched_getaffinity"])]:
    for name in names:
        delattr(module, name)
import numpy as np
from kpod import KPOD
from kpod._engine import step
"""


def run_lacking(code, *args):
    command = [sys.executable, "-W", "error", "-c", LACKING + code, *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_fits_need_no_locks_and_no_private_maps(tmp_path):
    """In memory and in a mapped file: the same labels."""
    X = np.random.default_rng(0).normal(size=(200, 4))
    X[::3, 1] = np.nan
    np.save(tmp_path / "x.npy", X)
    code = """
step.SMALL_ROOM = 1
X = np.load(sys.argv[1] + "/x.npy")
in_memory = KPOD(3, random_state=0).fit(X).labels_
room = step.room(10, np.dtype(float), sys.argv[1])
room += 1
mapped = KPOD(3, random_state=0).fit(np.load(sys.argv[1] + "/x.npy", mmap_mode="r")).labels_
print(len(set(in_memory)), (mapped == in_memory).all(), room.sum())
"""
    assert run_lacking(code, tmp_path) == "3 True 10.0\n"


def test_what_needs_locks_says_so(tmp_path):
    code = """
from kpod._files.pieces.scratch import Scratch
for attempt in [lambda: KPOD(2, checkpoint=sys.argv[1]).fit(np.eye(4)), lambda: Scratch(sys.argv[1], 8)]:
    try:
        attempt()
    except ValueError as error:
        print(error)
"""
    checkpoint, scratch = run_lacking(code, tmp_path).splitlines()
    assert checkpoint == "checkpoint needs file locks, which this operating system does not support."
    assert scratch == "scan needs file locks, which this operating system does not support."


def test_threads_share_no_iterator():
    """Without the GIL, two threads may get the same item of one; a generator refuses even with it."""

    class Items(list):
        def __iter__(self):
            for item in range(len(self)):
                sum(range(20_000))  # long enough for another thread to come in
                yield item

    with threads(4) as executor:
        assert executor.map(lambda item: item, Items(range(300))) == list(range(300))


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other libraries keep what they like")
def test_freed_memory_is_used_again():
    code = """
import resource, sys
from kpod._common.system import keep_freed_memory
if sys.argv[1] == "kept":
    keep_freed_memory()
for _ in range(20):
    _ = b"x" * 100_000_000
    del _
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
"""
    given_back, kept = (
        int(
            subprocess.run(
                [sys.executable, "-c", code, how], capture_output=True, text=True, check=True
            ).stdout
        )
        for how in ("as it is", "kept")
    )
    assert kept < given_back / 2
