"""A problem as the core holds it."""

from typing import Annotated

import numpy
from numpy.typing import NDArray


class Ops:
    """
    The n ops of a problem, in u colocation units, on d devices.

    seconds: (n, d), infinite where an op cannot run.
    persistent, workspace: (n,) bytes for the whole step, and while the op runs.
    order: (n,) a topological order.
    unit: (n,) the colocation unit of every op.
    allowed: (u, d), 1 where a unit may run.
    """

    def __init__(self, *, seconds: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], persistent: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], workspace: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], unit: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], allowed: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

class Tensors:
    """
    The m tensors of a problem, and who reads them.

    size: (m,) bytes.
    producer: (m,) the op that produces a tensor.
    consumer_start, consumers: (m + 1,), (e,) the ops that read tensor t are
        consumers[consumer_start[t]:consumer_start[t + 1]].
    own_seconds: (m,) seconds of a transfer, NaN where size and link decide.
    resident: (m,) 1 where the bytes are among its producer's persistent ones.
    output: (m,) 1 where the tensor is kept to the end of the step.
    """

    def __init__(self, *, size: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], producer: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], consumer_start: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], consumers: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], own_seconds: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], resident: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], output: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

class Devices:
    """
    The d devices of a problem and the links between them.

    capacity: (d,) bytes.
    pays: (d,) 1 where a device pays for its transfers, under atomic rules.
    latency, bandwidth: (d, d) seconds, bytes a second.
    channel: (d, d) the channel that a pair of devices uses, -1 on the diagonal.
    """

    def __init__(self, *, capacity: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], pays: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], latency: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], bandwidth: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], channel: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

class Rules:
    """
    The rules of the execution model.

    blocking: whether a transfer occupies its sender and its receiver.
    contention: whether transfers of one channel wait for one another.
    signals: whether tensors of size zero without own seconds occupy nothing.
    atomic: whether a device runs all its ops as one call (dnn-partitioning).
    memory: the measure of memory: time, step or persistent.
    synchronisation: seconds added to every transfer.
    """

    def __init__(self, *, blocking: bool, contention: bool, signals: bool, atomic: bool, memory: str, synchronisation: float) -> None: ...

class Problem:
    """A placement problem, of which the core keeps a copy."""

    def __init__(self, *, ops: Ops, tensors: Tensors, devices: Devices, rules: Rules) -> None: ...

def depth_first_order(order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], before: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> NDArray[numpy.int32]:
    """
    Ops (n,) in post-order: each follows its predecessors, and comes just before its first successor.

    order: (n,) all ops; those without successors are reached in this order.
    start, before: (n + 1,), (e,) the predecessors of op i are before[start[i]:start[i + 1]], without
        cycles; the last one comes first.
    """
