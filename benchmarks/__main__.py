"""python -m benchmarks all, or any of the names below."""

from __future__ import annotations

import argparse
import importlib
import platform
import time

import sklearn
from threadpoolctl import threadpool_info

import kpod

IN_ALL = ["small", "dense", "step", "rows", "growth", "memory", "sparse", "gap_speed"]
NAMES = [
    *IN_ALL,
    "command_line",
    "fastest",
    "mixed",
    "mixture",
    "shape_peers",
    "shape_real",
    "calibration",
    "choose",
    "verdict",
    "budget",
    "gaps",
    "mechanisms",
    "starts",
    "disk",
    "places",
    "netflix",
    "cluster",
    "minibatch",
    "scale",
    "scales",
    "sweep",
]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("which", nargs="+", choices=[*NAMES, "all"])
    which = parser.parse_args().which
    names = IN_ALL if "all" in which else which
    threads = {library["user_api"]: library["num_threads"] for library in threadpool_info()}
    print(
        f"kpod {kpod.__version__}, scikit-learn {sklearn.__version__}, Python {platform.python_version()}, "
        f"{platform.machine()}, threads {threads}"
    )
    for name in names:
        began = time.perf_counter()
        importlib.import_module(f"benchmarks.{name}").run()
        print(f"\n({name}: {time.perf_counter() - began:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
