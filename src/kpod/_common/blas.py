"""BLAS on one thread for as long as it multiplies small matrices.

Waking threads costs more than such products do, and whoever multiplies here has threads of its own.
The limit holds for the whole process: the first to ask sets it and the last to leave takes it back, so
fits that overlap in threads leave BLAS as they found it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import threadpool_limits

_lock = threading.Lock()
_users: list[object] = []
_limits: list[Any] = []


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep BLAS to one thread."""
    user = object()
    with _lock:
        if not _users:
            _limits.append(threadpool_limits(1, user_api="blas"))
        _users.append(user)
    try:
        yield
    finally:
        with _lock:
            _users.remove(user)
            if not _users:
                _limits.pop().restore_original_limits()
