"""What a user would pick instead of kpod, each as a function of a table with NaN in its gaps.

A peer that cannot be had here raises `UnavailableError`, and becomes a row that says so.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.impute import KNNImputer, SimpleImputer

ENVIRONMENT = Path(tempfile.gettempdir()) / "kpod-bench-peer"


class UnavailableError(Exception):
    """The peer cannot be installed or imported here."""


def load(module: str, name: str) -> Any:
    try:
        return getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise UnavailableError(f"not installed: {error}") from error


def intelex_kmeans() -> Any:
    """scikit-learn-intelex's KMeans, the fastest on CPUs that we know."""
    return load("sklearnex.cluster", "KMeans")


def impute_then_kmeans(imputer: Any, X: np.ndarray, k: int, seed: int) -> np.ndarray:
    filled = imputer.fit_transform(X)
    return KMeans(k, n_init=10, random_state=seed).fit_predict(filled)


def mean_imputer() -> Any:
    return SimpleImputer()


def neighbour_imputer() -> Any:
    return KNNImputer()


def iterative_imputer() -> Any:
    importlib.import_module("sklearn.experimental.enable_iterative_imputer")
    return load("sklearn.impute", "IterativeImputer")(max_iter=1, random_state=0)


def stepmix(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    """A Gaussian mixture with diagonal covariances, fitted to the observed entries by EM."""
    model = load("stepmix.stepmix", "StepMix")
    return (
        model(n_components=k, measurement="continuous_nan", random_state=seed, progress_bar=0, verbose=0)
        .fit(X)
        .predict(X)
    )


def pypi_kpod(X: np.ndarray, k: int) -> tuple[np.ndarray, float]:
    """Labels and seconds of PyPI's kPOD, in an environment of its own."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        venv.create(ENVIRONMENT, with_pip=True)
    if subprocess.run([python, "-c", "import kPOD"], capture_output=True, check=False).returncode:
        done = subprocess.run(
            [python, "-m", "pip", "install", "--quiet", "kPOD"], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise UnavailableError(f"cannot be installed: {done.stderr.strip().splitlines()[-1]}")
    code = (
        "import json, sys, time, warnings; warnings.simplefilter('ignore'); import numpy as np\n"
        "from kPOD import k_pod; X = np.load(sys.argv[1]); k = int(sys.argv[2])\n"
        "began = time.perf_counter(); labels, _ = k_pod(X, k); seconds = time.perf_counter() - began\n"
        "print(json.dumps([[int(label) for label in labels], seconds]))"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.npy"
        np.save(path, X)
        done = subprocess.run(
            [python, "-c", code, str(path), str(k)], capture_output=True, text=True, check=False, timeout=600
        )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    labels, seconds = json.loads(done.stdout)
    return np.array(labels), seconds


def peak_memory(code: str) -> float:
    """What a piece of Python prints last, run in a process of its own."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])
