"""Flags in shared memory, for processes that wait."""

from typing import Annotated

import numpy
from numpy.typing import NDArray


class Flags:
    """Counters in an array (f,) that several processes map."""

    def post(self, index: int, value: int) -> None:
        """Sets a counter and wakes all processes that wait for it."""

    def wait(self, index: int, value: int, seconds: float) -> bool:
        """
        Waits until a counter has reached a value; False if it has not after so many seconds.
        """

def make_flags(array: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], spin: float = 0.0) -> Flags:
    """Counters of an array (f,); a wait spins for the first `spin` seconds."""
