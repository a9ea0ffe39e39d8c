"""Longest paths, joins and least live bytes."""

from typing import Annotated

import numpy
from numpy.typing import NDArray

import situate._core.problem


class Dependencies:
    """
    Which of n ops wait for which.

    before, after: (e,), (e,) an op and one that waits for it.
    orders: (k, n) some topological orders, at least one.
    """

    def __init__(self, *, before: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], after: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], orders: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

class HeldTensors:
    """
    The m tensors that count, and who reads them.

    size, producer: (m,) bytes, and the op that makes it.
    edge_tensor, edge_consumer: (e,), (e,) a tensor and an op that reads it.
    output: (m,) 1 where the tensor is kept to the end of the step.
    """

    def __init__(self, *, size: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], producer: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], edge_tensor: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], edge_consumer: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], output: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

def least_live(dependencies: Dependencies, tensors: HeldTensors, *, workspace: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], runs: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], work: int, seconds: float) -> int:
    """
    Bytes that are live at once in every schedule, while some op runs.

    workspace: (n,) bytes of an op while it runs.
    runs: (n,) 1 for the ops that count as running.
    work, seconds: edges of networks to look at, and when to end; fewer give fewer bytes.
    """

def longest_paths(problem: situate._core.problem.Problem, *, free: bool) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64]]:
    """
    Seconds (n, d), (n, d) before an op begins and after it ends on a device.

    Every op on the way runs where the path is shortest; infinite where an op may not run.

    free: whether transfers take no time.
    """

def with_joins(problem: situate._core.problem.Problem, head: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], tail: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], *, work: int, seconds: float) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64]]:
    """
    Such seconds that are no less where the results of several ops meet.

    head, tail: (n, d), (n, d) of `longest_paths`.
    work, seconds: edges to look at, and when to end; fewer raise fewer of them.
    """

def parted_paths(problem: situate._core.problem.Problem, head: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], tail: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float64]:
    """
    Seconds (e,) of the longest path over each of the edges to consumers.

    Their ops are on the two devices where that is shortest; infinite where they have to share one.

    head, tail: (n, d), (n, d) seconds before an op begins and after it ends on a device.
    """
