"""A sharding for every op, with lower bounds."""

import enum
from typing import Annotated

import numpy
from numpy.typing import NDArray


class LayerArrays:
    """
    n layers with o options and s downsets.

    devices: number of them.
    most_replicas: of all stages together.
    memory: bytes of a device.
    sync_seconds: for each byte of weights, in endlessly many replicas.
    tensor_degrees, data_degrees: degrees of parallelism, ascending.
    first: (degrees * n + 1,) options before each tensor degree and layer.
    seconds, weight, batch_bytes, fixed_bytes: (o,) of each option.
    incident: (n + 1,) neighbours before each layer.
    neighbour: their layers.
    exchange: (o + 1,) numbers in exchange_seconds before each option.
    exchange_seconds: of each option, with each neighbour of its layer.
    downsets: (s, n) 1 for the layers of each, by size, from none to all.
    """

    def __init__(self, *, devices: int, most_replicas: int, memory: float, sync_seconds: float, tensor_degrees: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], data_degrees: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], first: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], seconds: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], batch_bytes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], fixed_bytes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], incident: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], neighbour: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], exchange: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], exchange_seconds: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], downsets: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

class DivisionOutcome(enum.Enum):
    """The outcome of a division."""

    divided = 0

    impossible = 1

    unknown = 2

    stopped = 3

class Stage:
    """A stage: a downset without the rest."""

    @property
    def downset(self) -> int: ...

    @property
    def rest(self) -> int: ...

    @property
    def tensor(self) -> int: ...

    @property
    def data(self) -> int: ...

    @property
    def options(self) -> list[int]: ...

class StageDivision:
    """Divides layers into stages."""

    def __init__(self, arrays: LayerArrays) -> None: ...

    def divide(self, seconds: float, *, time_limit: float) -> DivisionOutcome:
        """
        Looks for stages of which none takes longer than `seconds`.

        `unknown` if none are known, but some may exist; `stopped` at the time limit.
        """

    def stages(self) -> list[Stage]:
        """The stages of the last division, the first one first."""

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

def needed(arrays: ShardingArrays) -> NDArray[numpy.uint8]:
    """
    (s,) 1 for strategies to keep, 0 for the others.

    A 0 stands in no plan within the limit, or another strategy of the same op costs no more, whatever
    the neighbours choose, and uses no more memory at any time.
    """

class ShardingSolver:
    """Rounds of lower bounds and search, side by side."""

    def __init__(self, arrays: ShardingArrays, *, seed: int) -> None: ...

    def round(self, *, two_threads: bool, seconds: float) -> None:
        """
        One round, which ends early after so many seconds.

        Its result does not depend on the number of threads.
        """

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
