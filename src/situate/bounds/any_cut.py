"""A lower bound on a step in any cut of its ops; docs/bounds.md derives it."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np

from situate.bounds.load import Load, least_load
from situate.bounds.rounding import rounding
from situate.data.arrays import Floats
from situate.data.graph import Op
from situate.data.problem import Problem
from situate.data.topology import inputs_of_ops

LOAD_WEIGHTS = (0.5, 0.7, 0.8, 0.85, 0.9, 0.95)
"""Weights of the load in its means with the longest path."""


def least_in_any_cut(whole: Problem, most_parts: int) -> float:
    """Seconds that a step takes in any cut; 0 where no bound is known.

    By the roofline, a part of an op takes at least its share of the op's time without launches, and
    a launch. So the least load of the devices stays, as its linear program divides ops in any
    shares. Along a path of data, the largest parts of ops follow one another. More parts shorten a
    path, but launches add to the load, so a weighted mean of both is a bound too. Copies do not
    count, because a part that lies in memory as its readers want it needs none.

    Args:
        whole: the step of whole ops.
        most_parts: largest number of parts of an op.
    """
    if whole.objective != "time" or whole.transfers == "atomic" or whole.costs is not None:
        return 0.0
    problem = _with_ops(whole, [_without_copy(op) for op in whole.graph.ops])
    load, (path, ops) = least_load(problem), longest_path(problem, most_parts)
    means = (_mean(problem, load, ops, weight, most_parts) for weight in LOAD_WEIGHTS)
    return max(float(load.seconds), path, *means)


def longest_path(problem: Problem, most_parts: int) -> tuple[float, list[int]]:
    """Seconds of the longest path of data, with the largest part of each op on its fastest device,
    and its ops."""
    launch = _launch_seconds(problem)
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
            if before[op] < 0 or end[other] > end[before[op]]:
                before[op] = other
        end[op] = seconds[op] + (end[before[op]] if before[op] >= 0 else 0.0)
    path = [int(end.argmax())]
    while before[path[-1]] >= 0:
        path.append(before[path[-1]])
    return float(end.max() * (1 - rounding(problem))), path


def _mean(
    problem: Problem, load: Load, path: list[int], load_weight: float, most_parts: int
) -> float:
    """A weighted mean of the load and a path, each op with the best number of parts for it.

    For weights w and prices l of the load's dual, an op in m parts adds at least m - 1 launches and
    itself to the load, each at the cheapest device; docs/bounds.md has the sum. A number of parts
    from a to b counts the launches of a and the path of b.
    """
    launch, is_finite = _launch_seconds(problem), np.isfinite(problem.seconds)
    seconds = np.where(is_finite, problem.seconds, np.inf)
    whole = (load.weight * seconds + load.price * problem.persistent[:, None]).min(axis=1)
    further = np.where(is_finite, load.weight * launch, np.inf).min(axis=1)
    on_path = np.zeros(problem.n)
    on_path[path] = 1 - load_weight
    least, fewest = np.full(problem.n, np.inf), 1
    while fewest <= most_parts:
        largest = (launch + (seconds - launch) / min(2 * fewest - 1, most_parts)).min(axis=1)
        cost = load_weight * (whole + (fewest - 1) * further) + on_path * largest
        least, fewest = np.minimum(least, cost), 2 * fewest
    room = load_weight * float((load.price * problem.capacity)[load.price > 0].sum())
    slack = rounding(problem)
    return float(least.sum() * (1 - slack) - room * (1 + slack))


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
