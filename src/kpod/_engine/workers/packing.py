"""Large arrays beside a pickle, so that they travel without a copy."""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from typing import Any, NamedTuple

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


class Job(NamedTuple):
    """A pickle without its panels, and these."""

    data: bytes
    panels: list[Panel]


def pack(what: Any) -> Job:
    file, panels = io.BytesIO(), list[Panel]()
    Packer(file, panels).dump(what)
    return Job(file.getvalue(), panels)


def pack_panel(panel: Panel) -> bytes:
    return pickle.dumps(panel, pickle.HIGHEST_PROTOCOL)


def unpack(job: bytes, panels: Sequence[bytes]) -> Any:
    return Unpacker(io.BytesIO(job), panels).load()
