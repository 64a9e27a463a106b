"""Names for the arrays that are passed around; nothing compiled is imported for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Labels = NDArray[np.int32]
Counts = NDArray[np.unsignedinteger[Any]]
Positions = NDArray[np.intp]
AnyFloats = NDArray[Any]
