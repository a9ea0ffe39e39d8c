"""Coarsening and bisection of graphs of units."""

from typing import Annotated

import numpy
from numpy.typing import NDArray


class UnitGraph:
    """
    The u units of a problem and what flows between them.

    start, neighbour, bytes: (u + 1,), (e,), (e,) compressed rows, symmetric and without loops: unit i
        exchanges bytes[k] with neighbour[k] for k in start[i] to start[i + 1].
    seconds, persistent: (u,) work and bytes of a unit.
    capacity: (d,) bytes.
    allowed: (u, d), 1 where a unit may run.
    """

    def __init__(self, *, start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], neighbour: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], bytes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], seconds: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], persistent: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], capacity: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], allowed: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

def coarsen(graph: UnitGraph, *, counts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], fine: int, most: float) -> NDArray[numpy.int64]:
    """
    Labels (c, u) of c partitions into counts (c,) groups, the same label for units of one
    group.

    fine: groups of the partition that all others are made of.
    most: seconds of a group, in averages over groups, that none exceeds where that can be.
    """

def bisect(graph: UnitGraph, *, side: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], share: float) -> NDArray[numpy.int8]:
    """
    Sides (u,), 0 or 1, of units between which few bytes flow, by Kernighan and Lin.

    side: (u,) -1 for units that are free to move, 0 or 1 for those that are not, 2 for those left out.
    order: (u,) in which free units are put on side 0 at first.
    share: of the units' seconds, what side 0 is to have.
    """
