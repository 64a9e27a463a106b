"""Peak memory of a fit over the table itself, 2,000,000 x 50 float32."""

from __future__ import annotations

from benchmarks.harness import Sheet, progress
from benchmarks.peers import peak_memory

CODE = """
import re, warnings, numpy as np
warnings.simplefilter("ignore")
from kpod import KPOD
rng = np.random.default_rng(0)
X = np.empty((2_000_000, 50), np.float32)
for rows in np.array_split(X, 200):
    rng.standard_normal(out=rows, dtype=np.float32)
    rows += rng.integers(10, size=(len(rows), 1)).astype(np.float32)
    rows[rng.random(rows.shape, dtype=np.float32) < 0.3] = np.nan
KPOD(2, n_init=1, max_iter=2).fit(X[:20_000])
def peak():  # not ru_maxrss, which a process inherits from its parent
    return 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
open("/proc/self/clear_refs", "w").write("5")  # forget the peak of making the table
before = peak()
KPOD(10, {settings}, random_state=0, max_iter=20).fit(X)
print((peak() - before) / X.nbytes)
"""


def run() -> None:
    sheet = Sheet(
        "memory", "Peak memory over the table, 2,000,000 x 50 float32, k=10", ["method", "share of the table"]
    )
    for name, settings in {
        "KPOD(), k-means++": "n_init=1",
        "KPOD(lloyd), random": "n_init=1, algorithm='lloyd', init='random'",
    }.items():
        progress(f"memory: {name}")
        sheet.add(name, peak_memory(CODE.format(settings=settings)))
    sheet.show()
