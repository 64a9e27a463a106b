"""Damaged files of every kind: refused in one line, or read; never a signal, never a traceback.

KPOD_FUZZ=2000 tries as many of each kind.
"""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.campaigns.damage import KINDS

CASES = int(os.environ.get("KPOD_FUZZ", "30"))
AT_ONCE = 500


def tried(kinds, first, count):
    """What came of each case, by kind; the last words of a process that died."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.campaigns.damage", str(first), str(count), *kinds],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, (
        f"{done.stdout.splitlines()[-1:]}: exit code {done.returncode} {done.stderr[-2000:]}"
    )
    for line in done.stdout.splitlines():
        kind, _, outcome = line.split(" ", 2)
        yield kind, outcome


@pytest.mark.timeout(600 + 8 * CASES)
@pytest.mark.parametrize("group", KINDS)
def test_a_damaged_file_is_refused_in_one_line_or_read(group):
    outcomes = {kind: Counter() for kind in KINDS[group]}
    for first in range(0, CASES, AT_ONCE):
        for kind, outcome in tried(KINDS[group], first, min(AT_ONCE, CASES - first)):
            outcomes[kind][outcome] += 1
    for kind, counts in outcomes.items():
        print(kind, dict(counts))
        assert counts["refused"] > 0, "no damage was done"
        assert set(counts) <= {"refused", "accepted"}
        assert counts.total() == CASES
