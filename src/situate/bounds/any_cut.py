"""A lower bound on a step in any cut of its ops; docs/bounds.md derives it."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

import msgspec
import numpy as np

from situate.bounds.load import least_load
from situate.bounds.rounding import rounding
from situate.data.arrays import Floats
from situate.data.graph import Op
from situate.data.problem import Problem
from situate.data.topology import inputs_of_ops

Edge = tuple[int, int]
"""The numbers of two ops, of which the second reads from the first."""


def least_in_any_cut(whole: Problem, most_parts: int) -> float:
    """Seconds that a step takes in any cut; 0 where no bound is known.

    By the roofline, a part of an op takes at least its share of the op's time without launches, and
    a launch. So the least load of the devices stays, as its linear program divides ops in any
    shares. Along a path of data, the largest parts of ops follow one another.

    Args:
        whole: the step of whole ops.
        most_parts: largest number of parts of an op.
    """
    if not is_bounded(whole):
        return 0.0
    problem = without_copies(whole)
    return max(least_load(problem).seconds, longest_path(problem, most_parts)[0])


def is_bounded(whole: Problem) -> bool:
    """True for a problem with a bound over all cuts."""
    return whole.objective == "time" and whole.transfers != "atomic" and whole.costs is None


def without_copies(whole: Problem) -> Problem:
    """The problem in which copies take no time, because a part that lies in memory as its readers
    want it needs none."""
    return _with_ops(whole, [_without_copy(op) for op in whole.graph.ops])


def longest_path(
    problem: Problem, most_parts: int, left_out: Set[Edge] = frozenset()
) -> tuple[float, list[int]]:
    """Seconds of the longest path of data, with the largest part of each op on its fastest device,
    and its ops, the last one first.

    Args:
        left_out: edges that the path does not take.
    """
    launch = launch_seconds(problem)
    # The largest of at most so many parts is no smaller than an equal one.
    seconds = (launch + (problem.seconds - launch) / most_parts).min(axis=1)
    end, before = np.zeros(problem.n), [-1] * problem.n
    producer = problem.producer.tolist()
    inputs = inputs_of_ops(problem)
    # In the cut step, an op that writes over a parameter may not wait for its readers, so control
    # edges do not count.
    is_data = ~problem.signal
    for op in problem.graph.program_order:
        for other in (producer[t] for t in inputs[op] if is_data[t]):
            if (other, op) not in left_out and (before[op] < 0 or end[other] > end[before[op]]):
                before[op] = other
        end[op] = seconds[op] + (end[before[op]] if before[op] >= 0 else 0.0)
    path = [int(end.argmax())]
    while before[path[-1]] >= 0:
        path.append(before[path[-1]])
    return float(end.max() * (1 - rounding(problem))), path


def launch_seconds(problem: Problem) -> Floats:
    """(n, d) seconds of the launches of each op, from below; 0 for ops with times of their own."""
    one, two = (_with_traffic(problem, nbytes).seconds for nbytes in (1, 2))
    own = np.array(
        [op.seconds is not None or not (op.flops or op.traffic) for op in problem.graph.ops]
    )
    # Seconds are linear in bytes: those of one and of two give those of none.
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
