"""Schedules, makespans and peaks of decisions."""

from typing import Annotated

import numpy
from numpy.typing import NDArray

import situate._core.problem


def makespans(problem: situate._core.problem.Problem, placement: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], priority: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], transfer_priority: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)] | None, decoder: str, threads: int) -> NDArray[numpy.float64]:
    """
    Makespans (k,) of k decisions, as by evaluate, without the time that peaks take.
    """

def evaluate(problem: situate._core.problem.Problem, placement: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], priority: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], transfer_priority: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)] | None, decoder: str, threads: int) -> tuple[NDArray[numpy.float64], NDArray[numpy.int64]]:
    """
    Makespans (k,) and peaks (k, d) in bytes of k decisions.

    placement, priority: (k, n).
    transfer_priority: (k, m, d), or None for the best consumer's priority.
    decoder: eager or serial.
    """

def schedule(problem: situate._core.problem.Problem, placement: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], priority: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], transfer_priority: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)] | None, decoder: str) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.int32], NDArray[numpy.int32], NDArray[numpy.int32], NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.int32], float, NDArray[numpy.int64]]:
    """
    The schedule of one decision: start and end (n,) of the ops; tensor, source, target,
    start and end (t,) of the transfers; all items but signals (i,) in the order in which they were
    taken, transfers counted from n on; makespan; peaks (d,) in bytes.

    placement, priority: (n,).
    transfer_priority: (1, m, d), or None.
    """

def blocking_transfers(problem: situate._core.problem.Problem, placement: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[NDArray[numpy.int32], NDArray[numpy.int32], NDArray[numpy.int32]]:
    """
    The transfers of a placement (n,) whose ops go in a topological order (n,), blocking and no
    signals, in their own order: tensor, target device and the place (k,) in the order of the op that
    each is just before. One that takes no time goes with any that its devices stop for.
    """

def atomic_calls(problem: situate._core.problem.Problem, placement: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[float, NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64]]:
    """
    The schedule of a placement (n,) under atomic rules: makespan, begin and load (d,) of the
    devices' calls, and when the ops' results are there (n,).
    """
