"""Whether workers have the package of their client: the same version, and the same compiled kernels.

Two builds of one version, made by other compilers or between two releases, may differ in the last
digits, and a result must not depend on which worker a block happened to be on.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
from collections.abc import Mapping
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

from kpod import _kernels
from kpod._common.sentences.formatting import some

DISTRIBUTION = "scikit-kpod"


@cache
def build() -> dict[str, str]:
    """A hash of each compiled kernel, by the name of its file, which tells platform and Python."""
    (folder,) = _kernels.__path__
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(Path(folder).iterdir())
        if path.name.endswith(tuple(EXTENSION_SUFFIXES))
    }


def check_versions(found: Mapping[str, Any]) -> None:
    """Refuse workers without the package, or with another version of it.

    Those that did not answer are on their way out, or asked again.
    """
    ours = importlib.metadata.version(DISTRIBUTION)
    lacking = [name for name, version in found.items() if isinstance(version, ImportError)]
    others = [
        f"{name} ({version})"
        for name, version in found.items()
        if isinstance(version, str) and version != ours
    ]
    if lacking:
        raise RuntimeError(
            f"{DISTRIBUTION} is not installed on worker {some(lacking)}. Install version {ours} on every "
            "worker."
        )
    if others:
        raise RuntimeError(
            f"Workers with another version of {DISTRIBUTION} than this one ({ours}): {some(others)}. "
            "Install the same version everywhere."
        )


def check_builds(found: Mapping[str, Any]) -> None:
    """Refuse workers with other kernels in files of the same names.

    On another platform, or another Python, files have other names: there, the version has to do.
    """
    ours = build()
    others = [
        name
        for name, kernels in found.items()
        if isinstance(kernels, AttributeError | ImportError)  # of a time before kernels were compared
        or (isinstance(kernels, dict) and any(kernels.get(file, own) != own for file, own in ours.items()))
    ]
    if others:
        raise RuntimeError(
            f"The compiled kernels of {DISTRIBUTION} on worker {some(others)} are not those on this machine, "
            f"though both are version {importlib.metadata.version(DISTRIBUTION)}. Install the same wheel "
            "everywhere."
        )
