"""A sharding for every op, with lower bounds."""

from typing import Annotated

import numpy
from numpy.typing import NDArray


class ShardingArrays:
    """
    A problem of n ops with s strategies and e edges.

    first: (n + 1,) strategies before each op.
    cost: (s,) cost of a strategy.
    part: (n + 1,) parts of memory before each op.
    begin, end: (p,) times between which a part is in memory.
    usage: bytes of each part, for each strategy of its op.
    source, target: (e,) ops of an edge, source before target; each pair once.
    table: (e + 1,) numbers in pair_cost before each edge's table, which has a row for each strategy of
        the source.
    limit: bytes in memory at any time.
    """

    def __init__(self, *, first: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], cost: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], part: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], end: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], usage: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], source: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], target: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], table: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], pair_cost: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], limit: int) -> None: ...

def undominated(arrays: ShardingArrays) -> NDArray[numpy.uint8]:
    """
    (s,) 1 for strategies to keep, 0 for the others.

    Another strategy of the same op costs no more than a 0, whatever the neighbours choose, and uses
    no more memory at any time.
    """

class ShardingSolver:
    """Rounds of lower bounds and search, side by side."""

    def __init__(self, arrays: ShardingArrays, *, seed: int) -> None: ...

    def round(self, *, two_threads: bool) -> None:
        """One round. Its result does not depend on the number of threads."""

    def strategies(self) -> NDArray[numpy.int32]:
        """(n,) best strategies so far, each counted from its op's first."""

    @property
    def value(self) -> float:
        """Their cost; forbidden ones count as 1e15."""

    @property
    def excess(self) -> int:
        """Bytes that they need beyond the limit at their peak."""

    @property
    def bound(self) -> float:
        """No strategies within the limit cost less, but for rounding."""
