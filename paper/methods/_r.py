"""Methods in R: every fit is a process of its own, with a limit on its processor time.

Tables go there and come back as eight-byte floats, without a digit lost. R has been seen to
abort altogether on hard tables; here that is a failure like any other, with its reason.
"""

from __future__ import annotations

import re
import resource
import shutil
import signal
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from paper.datasets import Problem
from paper.methods import Clustering, Method, MethodError, OverTimeError

FOLDER = Path(__file__).parent
PATIENCE = 100  # how many times its processor time a fit may take by the clock: on a busy machine, many


def kmeans_in_r_after(
    name: str, title: str, package: str | None, mechanisms: tuple[str, ...] | None = None
) -> Method:
    """R's k-means, with one start and with ten, after `fill` of the `.R` file of that name."""

    def fit(problem: Problem) -> list[Clustering]:
        filled, found = run(FOLDER / f"{name}.R", problem)
        check_filled(problem.X, filled)
        return found

    rows = {name: title, f"{name}-10": f"{title}, 10 starts"}
    packages = ("R", package) if package else ("R",)
    return Method(name, rows, fit, packages, lambda: not_installed(package), mechanisms, published=True)


def run(script: Path, problem: Problem) -> tuple[np.ndarray, list[Clustering]]:
    """The table as `script` filled it in, and the clusterings of it."""
    (n_rows, n_columns), limit = problem.X.shape, problem.limit
    with tempfile.TemporaryDirectory(prefix="kpod-paper-") as name:
        folder = Path(name)
        problem.X.astype("<f8").tofile(folder / "table")
        arguments = [script, folder, n_columns, problem.n_clusters, problem.seed]
        try:
            done = subprocess.run(
                ["Rscript", "--vanilla", FOLDER / "_r.R", *map(str, arguments)],
                capture_output=True, text=True, errors="replace", check=False,
                timeout=PATIENCE * limit, preexec_fn=lambda: limit_processor_time(limit),
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise OverTimeError(f"over {PATIENCE * limit} s by the clock") from error
        if done.returncode:
            raise failure(done.returncode, done.stderr, limit)
        filled = np.fromfile(folder / "filled", "<f8").reshape(n_rows, -1)
        labels = np.fromfile(folder / "labels", "<i4").reshape(-1, n_rows)
        seconds = np.fromfile(folder / "seconds", "<f8")
    return filled, [Clustering(*pair) for pair in zip(labels, seconds.tolist(), strict=True)]


def limit_processor_time(limit: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def failure(code: int, stderr: str, limit: int) -> MethodError:
    """What to say of an R process that ended badly."""
    if -code == signal.SIGXCPU:
        return OverTimeError(f"over {limit} s")
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [at for at, line in enumerate(lines) if line.startswith("Error")]
    text = " ".join(lines[errors[-1] :] if errors else lines[-3:]).removesuffix("Execution halted")
    text = re.sub(r"^Error( in .*?)? ?: | Calls: .*$", "", text.strip())
    if code < 0:
        text = f"R aborted ({signal.Signals(-code).name}) {text}".strip()
    return MethodError(text[:200] or f"R ended with status {code}")


def check_filled(X: np.ndarray, filled: np.ndarray) -> None:
    """What was observed must have come back as it went, to the bit, and no gap be left."""
    if filled.shape != X.shape:  # columns were deleted
        X = X[:, ~np.isnan(X).any(axis=0)]
    observed = ~np.isnan(X)
    if filled.shape != X.shape or not np.array_equal(filled[observed], X[observed]):
        raise MethodError("the observed entries came back changed")
    if np.isnan(filled).any():
        raise MethodError(f"{int(np.isnan(filled).sum())} gaps were left")


@cache
def r_versions() -> dict[str, str | None]:
    """Versions of R and of the packages; None for what is not installed."""
    names = ["R", "Amelia", "mi", "mice"]
    if shutil.which("Rscript") is None:
        return dict.fromkeys(names)
    code = (
        'cat(as.character(getRversion()), "\\n"); for (p in c("Amelia", "mi", "mice")) '
        'cat(tryCatch(as.character(packageVersion(p)), error = function(e) "-"), "\\n")'
    )
    done = subprocess.run(["Rscript", "--vanilla", "-e", code], capture_output=True, text=True, check=False)
    found = done.stdout.split()
    if done.returncode or len(found) != len(names):
        return dict.fromkeys(names)
    return {name: None if version == "-" else version for name, version in zip(names, found, strict=True)}


def not_installed(package: str | None) -> str | None:
    versions = r_versions()
    if versions["R"] is None:
        return "R not installed"
    if package is not None and versions[package] is None:
        return f"R package {package} not installed"
    return None
