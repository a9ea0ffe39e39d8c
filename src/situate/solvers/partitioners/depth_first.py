"""The order in which XLA's depth-first memory scheduler runs ops (`DFSMemoryScheduler` of
`hlo_memory_scheduler.cc`)."""

from __future__ import annotations

from situate.data.arrays import Order
from situate.data.problem import Problem
from situate.data.problem_arrays import post_order
from situate.solvers.idle_sources import idle_sources


def depth_first_order(problem: Problem) -> Order:
    """Ops (n,) in post-order: each directly follows its inputs, visited by decreasing
    `_weights`."""
    before = _inputs(problem)
    for producer, consumer in problem.graph.control:
        before[consumer].append(producer)
    weight = _weights(problem)
    return post_order(problem.graph.order, before, rank=lambda op: (*weight[op], -op))


def _weights(problem: Problem) -> list[tuple[int, int]]:
    """For each op, (extra readers, output bytes), summed over the op and all paths that lead to it.

    Extra readers are those beyond the first. The number of paths is exponential, so XLA limits the
    sums to the number of ops and to the bytes of all ops so far. Sources without work count zero.
    """
    readers, output_bytes = _readers(problem), _output_bytes(problem)
    before, ignored = _inputs(problem), idle_sources(problem)
    weight, total = [(0, 0)] * problem.n, 0
    for op in problem.graph.order:
        if ignored[op]:
            continue
        total += output_bytes[op]
        inputs = set(before[op])
        extra = max(0, readers[op] - 1) + sum(weight[i][0] for i in inputs)
        size = output_bytes[op] + sum(weight[i][1] for i in inputs)
        weight[op] = min(extra, problem.n), min(size, total)
    return weight


def _inputs(problem: Problem) -> list[list[int]]:
    """For each op, the producers of the tensors that it reads."""
    before: list[list[int]] = [[] for _ in range(problem.n)]
    for tensor in problem.graph.tensors:
        for consumer in tensor.consumers:
            before[consumer].append(tensor.producer)
    return before


def _readers(problem: Problem) -> list[int]:
    """For each op, the number of ops that read its tensors."""
    readers: list[set[int]] = [set() for _ in range(problem.n)]
    for tensor in problem.graph.tensors:
        readers[tensor.producer].update(tensor.consumers)
    return [len(ops) for ops in readers]


def _output_bytes(problem: Problem) -> list[int]:
    """For each op, the bytes of all its tensors."""
    nbytes = [0] * problem.n
    for tensor in problem.graph.tensors:
        nbytes[tensor.producer] += tensor.size
    return nbytes
