"""`partition_dfs`: a partition by Kernighan and Lin with a depth-first order in each part."""

from __future__ import annotations

import numpy as np

from situate.data.arrays import Ints, Order
from situate.data.problem import Problem
from situate.data.problem_arrays import post_order
from situate.data.topology import accelerators, edge_producers, places
from situate.grouping.units import UnitGraph
from situate.solvers.late import idle_sources
from situate.solvers.partitioners.bisection import Bisection
from situate.solvers.partitioners.mapping import Mapping
from situate.solvers.search import Search

STARTS = 4
"""Number of random partitions to improve; the least cut wins."""


def run(search: Search) -> None:
    """Offer one plan: part i on accelerator i, with ops in depth-first order.

    Devices keep to that order if the rules have a serial decoder.
    """
    mapping = Mapping.onto(search.problem, accelerators(search.problem))
    placement = mapping.placement(_least_cut(search, mapping))
    serial = [decoder for decoder in search.decoders if decoder == "serial"]
    search.offer(placement, depth_first_order(search.problem), serial or None)


def _least_cut(search: Search, mapping: Mapping) -> Ints:
    """(units,) the part of each unit in the best of several partitions."""
    bisection = Bisection(mapping)
    generator = np.random.default_rng(search.seed)
    best, least = np.zeros(search.problem.units, np.int64), np.inf
    for start in range(STARTS):
        # All starts take about as long, and the first one always runs.
        if start and (search.finished() or least == 0):
            break
        begin = search.budget.seconds
        part = bisection.parts(generator)
        search.budget.record_offer(search.budget.seconds - begin)
        cut = _cut(mapping.graph, part)
        if cut < least:
            best, least = part, cut
    return best


def _cut(graph: UnitGraph, part: Ints) -> float:
    """Bytes between units of different parts."""
    row = np.repeat(np.arange(len(graph)), np.diff(graph.start))
    # Each edge is listed at both of its ends.
    return float(graph.bytes[part[row] != part[graph.neighbour]].sum(dtype=np.float64)) / 2


def depth_first_order(problem: Problem) -> Order:
    """Ops (n,) in post-order: each directly follows its inputs, visited by decreasing
    `_weights`."""
    readers, size = np.array(_weights(problem)).T
    # The lower number goes first among equals.
    rank = places(np.lexsort((-np.arange(problem.n), size, readers)))
    order = np.array(problem.graph.order, np.int32)
    return post_order(order, edge_producers(problem), problem.consumers, rank)


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
