"""A lower bound on a step in any cut of its ops; docs/bounds.md derives it."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np

from situate.bounds.load import least_load
from situate.bounds.rounding import rounding
from situate.data.arrays import Floats
from situate.data.graph import Op
from situate.data.problem import Problem
from situate.data.topology import inputs_of_ops


def least_in_any_cut(whole: Problem, most_parts: int) -> float:
    """Seconds that a step takes in any cut; 0 where no bound is known.

    By the roofline, a part of an op takes at least its share of the op's time without launches, and
    a launch. So the least load of the devices stays, as its linear program divides ops in any
    shares. Along a path of data, the largest parts of ops follow one another. Copies do not count,
    because a part that lies in memory as its readers want it needs none.

    Args:
        whole: the step of whole ops.
        most_parts: largest number of parts of an op.
    """
    if whole.objective != "time" or whole.transfers == "atomic" or whole.costs is not None:
        return 0.0
    problem = _with_ops(whole, [_without_copy(op) for op in whole.graph.ops])
    return max(float(least_load(problem).seconds), longest_path(problem, most_parts))


def longest_path(problem: Problem, most_parts: int) -> float:
    """Seconds of the longest path of data, with the largest part of each op on its fastest
    device."""
    launch = _launch_seconds(problem)
    # The largest of at most so many parts is no smaller than an equal one.
    seconds = (launch + (problem.seconds - launch) / most_parts).min(axis=1)
    end = np.zeros(problem.n)
    producer = problem.producer.tolist()
    inputs = inputs_of_ops(problem)
    # In the cut step, an op that writes over a parameter may not wait for its readers, so control
    # edges do not count.
    is_data = ~problem.signal
    for op in problem.graph.program_order:
        begin = max((end[producer[t]] for t in inputs[op] if is_data[t]), default=0.0)
        end[op] = begin + seconds[op]
    return float(end.max() * (1 - rounding(problem)))


def _launch_seconds(problem: Problem) -> Floats:
    """(n, d) seconds of the launches of each op, from below; 0 for ops with times of their own."""
    one, two = (_with_traffic(problem, nbytes).seconds for nbytes in (1, 2))
    own = np.array(
        [op.seconds is not None or not (op.flops or op.traffic) for op in problem.graph.ops]
    )
    launch = np.where(np.isfinite(problem.seconds), np.maximum(0, 2 * one - two), 0)
    launch = np.minimum(
        launch * (1 - 1e-9), np.where(np.isfinite(problem.seconds), problem.seconds, 0)
    )
    return np.asarray(np.where(own[:, None], 0.0, launch))


def _with_traffic(problem: Problem, nbytes: int) -> Problem:
    """The problem of ops that do nothing but move so many bytes."""
    ops = [
        op if op.seconds is not None else msgspec.structs.replace(op, flops=0, traffic=nbytes)
        for op in problem.graph.ops
    ]
    return _with_ops(problem, ops)


def _with_ops(problem: Problem, ops: list[Op]) -> Problem:
    return replace(problem, graph=replace(problem.graph, ops=tuple(ops)))


def _without_copy(op: Op) -> Op:
    if op.kind != "aten.clone":
        return op
    return msgspec.structs.replace(op, flops=0, traffic=0, seconds={"*": 0.0})
