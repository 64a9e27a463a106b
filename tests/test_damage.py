"""Damaged files of every kind: refused in one line, or read; never a signal, never a traceback.

KPOD_FUZZ=2000 tries as many of each kind.
"""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.damage import KINDS

CASES = int(os.environ.get("KPOD_FUZZ", "40"))
AT_ONCE = 500


def tried(kind, first, count):
    """What came of each case; the last words of a process that died."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.damage", kind, str(first), str(count)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent.parent,
    )
    assert done.returncode == 0, (
        f"{kind} {done.stdout.splitlines()[-1:]}: exit code {done.returncode} {done.stderr[-2000:]}"
    )
    return [line.partition(" ")[2] for line in done.stdout.splitlines()]


@pytest.mark.timeout(300 + CASES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_is_refused_in_one_line_or_read(kind):
    outcomes = Counter()
    for first in range(0, CASES, AT_ONCE):
        outcomes.update(tried(kind, first, min(AT_ONCE, CASES - first)))
    print(kind, dict(outcomes))
    assert outcomes["refused"] > 0, "no damage was done"
    assert set(outcomes) <= {"refused", "accepted"}
