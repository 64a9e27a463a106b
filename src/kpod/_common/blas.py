"""BLAS on one thread for as long as it multiplies small matrices.

Waking threads costs more than such products do, and whoever multiplies here has threads of its own.
The limit holds for the whole process: the first to ask sets it and the last to leave takes it back, so
fits that overlap in threads leave BLAS as they found it.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_users: list[object] = []
_limits: list[Any] = []


@cache
def blas() -> Any:
    """The libraries that multiply for NumPy and SciPy; to look for them takes milliseconds."""
    importlib.import_module("scipy.linalg")  # which brings its own
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep BLAS to one thread."""
    user = object()
    with _lock:
        if not _users:
            _limits.append(blas().limit(limits=1, user_api="blas"))
        _users.append(user)
    try:
        yield
    finally:
        with _lock:
            _users.remove(user)
            if not _users:
                _limits.pop().restore_original_limits()
