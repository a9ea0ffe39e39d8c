"""The arrays of a schedule, the input of its analyses and its verification."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class ScheduleArrays:
    """Times and places of n ops on d devices, and of k transfers.

    Signals that take time are among the transfers, but occupy nothing.

    Attributes:
        placement: (n,) device index of each op.
        start, end: (n,) seconds.
        tensor, source, target: (k,) index of the tensor, and its sending and receiving device.
        transfer_start, transfer_end: (k,) seconds.
        sequence: (i,) all items but signals, in the decoder's order: op j is item j, transfer k is
            n + k. It orders items without duration, which times alone cannot.
        makespan: seconds from 0 to the last end.
        peak: (d,) largest bytes in use on each device.
        decoder: name of the decoder.
    """

    placement: NDArray[np.int32]
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    tensor: NDArray[np.int32]
    source: NDArray[np.int32]
    target: NDArray[np.int32]
    transfer_start: NDArray[np.float64]
    transfer_end: NDArray[np.float64]
    sequence: NDArray[np.int32]
    makespan: float
    peak: NDArray[np.int64]
    decoder: str
