"""Types of NumPy arrays by element type; the docstrings of functions state shapes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
"""Seconds, rates, shares and the like."""

Ints = NDArray[np.int64]
"""Bytes, and indices that were computed."""

Bools = NDArray[np.bool_]
"""Masks."""

Placement = NDArray[np.int32]
"""(n,) device index of each op."""

Placements = NDArray[np.int32]
"""(k, n) device indices, a row a placement."""

Order = NDArray[np.int32]
"""(n,) op indices, the most urgent first."""

UnitDevices = NDArray[np.int32]
"""(units,) device index of each unit."""
