"""Indices of a problem in other forms: edges, places in an order, devices of units, and lines of
units along the network."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

from situate.data.arrays import Bools, Floats, Ints, Order, Placement, UnitDevices

if TYPE_CHECKING:
    from situate.data.problem import Problem


def edge_tensors(problem: Problem) -> Ints:
    """(edges,) the tensor of every edge, in the order of `Problem.consumers`: a tensor has an edge
    to each op that reads it."""
    return np.repeat(np.arange(len(problem.size)), np.diff(problem.consumer_start))


def edge_producers(problem: Problem) -> Order:
    """(edges,) the op that makes the tensor of every edge, in the order of `Problem.consumers`."""
    return np.repeat(problem.producer, np.diff(problem.consumer_start))


def inputs_of_ops(problem: Problem) -> list[list[int]]:
    """(n,) lists of the tensors that each op reads, rising."""
    inputs: list[list[int]] = [[] for _ in range(problem.n)]
    edges = zip(edge_tensors(problem).tolist(), problem.consumers.tolist(), strict=True)
    for tensor, reader in edges:
        inputs[reader].append(tensor)
    return inputs


def places(order: Order | Ints | Sequence[int]) -> Ints:
    """(n,) the place of each op in an order (n,): its inverse permutation."""
    place = np.empty(len(order), np.int64)
    # Assigned through the permutation: in O(n), where `argsort` would sort.
    place[np.asarray(order)] = np.arange(len(order))
    return place


def topological_by(problem: Problem, key: Floats | Ints) -> Order:
    """(n,) a topological order; of the ops whose inputs are ready, the one with the least key (n,)
    comes next."""
    keys = key.tolist()
    after: list[list[int]] = [[] for _ in range(problem.n)]
    missing = [0] * problem.n
    for producer, consumer in problem.graph.edges():
        after[producer].append(consumer)
        missing[consumer] += 1
    ready = [(keys[op], op) for op in range(problem.n) if not missing[op]]
    heapify(ready)
    order = []
    while ready:
        _, op = heappop(ready)
        order.append(op)
        for consumer in after[op]:
            missing[consumer] -= 1
            if not missing[consumer]:
                heappush(ready, (keys[consumer], consumer))
    return np.array(order, np.int32)


def unit_devices(problem: Problem, placement: Placement) -> UnitDevices:
    """(units,) the device of each unit in a placement (n,); a unit's ops share one device."""
    devices = np.empty(problem.units, np.int32)
    devices[problem.unit] = placement
    return devices


def op_devices(problem: Problem, devices: UnitDevices | Ints) -> Placement:
    """Placement (n,) of the ops, from the devices (units,) of their units."""
    return np.asarray(devices[problem.unit], np.int32)


def may_run(problem: Problem, devices: UnitDevices | Ints) -> Bools:
    """(units,) whether each unit may run on its device (units,)."""
    return np.asarray(problem.allowed[np.arange(problem.units), devices])


def accelerators(problem: Problem) -> list[int]:
    """Indices of the devices other than CPUs; all devices if there are none."""
    return np.flatnonzero(problem.accelerators).tolist() or list(range(problem.d))


def pipeline_order(problem: Problem) -> Order:
    """Units (units,) along a pipeline: depth first, with the backward pass folded back onto the
    forward pass. A unit takes the place of its first op."""
    order = problem.depth_first
    backward = np.array([problem.graph.ops[op].phase == "backward" for op in order])
    turn = int(backward.argmax()) if backward.any() else problem.n
    # The forward ops lie at 0 to turn; the others run back from turn to 0, in steps that make both
    # passes equally long.
    place = np.arange(problem.n, dtype=np.float64)
    place[turn:] = turn * (problem.n - 1 - place[turn:]) / max(1, problem.n - turn)
    return _units_by(problem, order, place)


def folded_order(problem: Problem) -> Order:
    """Units (units,) along the forward pass, depth first.

    A backward op stands beside the last forward op that it reads from, else beside the first
    backward op, so that its saved tensors are near. A unit takes the place of its first op.
    """
    forward = np.array([op.phase != "backward" for op in problem.graph.ops])
    along = [op for op in problem.depth_first if forward[op]]
    place, inputs = np.zeros(problem.n), inputs_of_ops(problem)
    place[along] = np.arange(len(along))
    for op in problem.graph.order:
        sources = problem.producer[inputs[op]].tolist()
        if sources and not forward[op]:
            forward_places = [place[source] for source in sources if forward[source]]
            place[op] = (
                max(forward_places) if forward_places else min(place[source] for source in sources)
            )
    return _units_by(problem, np.arange(problem.n), place)


def _units_by(problem: Problem, ops: Order | Ints, place: Floats) -> Order:
    """Units by the smallest place (n,) of their ops; `order` lists ops in the order of places."""
    # `minimum.at` counts every op of a unit; plain indexing would keep the last.
    first = np.full(problem.units, np.inf)
    np.minimum.at(first, problem.unit[ops], place)
    return np.argsort(first, kind="stable").astype(np.int32)
