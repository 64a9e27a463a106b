"""Large arrays beside a pickle, so that they travel without a copy."""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from typing import Any

from kpod._kernels.panel import Panel


class Packer(pickle.Pickler):
    """Pickles all but panels, which travel by themselves."""

    def __init__(self, file: io.BytesIO, panels: list[Panel]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._panels = panels

    def persistent_id(self, obj: Any) -> int | None:
        if not isinstance(obj, Panel):
            return None
        self._panels.append(obj)
        return len(self._panels) - 1


class Unpacker(pickle.Unpickler):
    """Puts panels back in their places."""

    def __init__(self, file: io.BytesIO, panels: Sequence[bytes]) -> None:
        super().__init__(file)
        self._panels = panels

    def persistent_load(self, pid: Any) -> Panel:
        return pickle.loads(self._panels[pid])


def pack(what: Any) -> tuple[bytes, list[Panel]]:
    file, panels = io.BytesIO(), list[Panel]()
    Packer(file, panels).dump(what)
    return file.getvalue(), panels


def unpack(job: bytes, panels: Sequence[bytes]) -> Any:
    return Unpacker(io.BytesIO(job), panels).load()
