"""Features of ops and edges that the policy reads (REGAL, A.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from situate import _core
from situate.bounds.paths import Paths
from situate.data.arrays import Floats, Ints
from situate.data.problem import Objective, Problem
from situate.data.topology import edge_producers, edge_tensors, places

Features = NDArray[np.float32]

EDGE_FEATURES = 3


def node_features(objective: Objective, devices: int, places: bool) -> int:
    """The number of features of an op; 11 for time on two devices, as in the paper."""
    return (8 if objective == "time" else 4) + devices + 1 + (3 if places else 0)


@dataclass(frozen=True, eq=False)
class Encoding:
    """Features of a problem of n ops for the policy.

    Each triple of a producer, a tensor and a consumer is an edge, including control edges.

    Attributes:
        nodes: (n, f) features.
        edges: (e, 3) features.
        source, target: (e,) ops.
        place: (n,) places of the ops in the graph's topological order.
    """

    nodes: Features
    edges: Features
    source: Ints
    target: Ints
    place: Ints


def encoding(problem: Problem, expected: Features, with_places: bool) -> Encoding:
    """The features of a problem, including those from plain BRKGA.

    Args:
        problem: of n ops and d devices.
        expected: (n, d + 1) see `expected`.
        with_places: True to add three features that the paper does not have, see `_places`.
    """
    tensor, target = edge_tensors(problem), problem.consumers.astype(np.int64)
    of_ops = op_bytes(problem)
    # Graphs differ in size by orders of magnitude, so bytes become shares of the graph's own
    # largest.
    largest = max(float(of_ops.max()), float(problem.size.max(initial=0)), 1.0)
    columns = [of_ops / largest, _greatest(of_ops.sum(axis=1))]
    if problem.objective == "time":
        columns += [_times(problem), _greatest(problem.fastest)]
    columns += [_places(problem)] if with_places else []
    nodes = np.hstack([*columns, expected], dtype=np.float32)
    source = edge_producers(problem).astype(np.int64)
    # The recurrent network of `gas` reads the ops in this order.
    place = places(problem.graph.order)
    return Encoding(nodes, _edges(problem, tensor, largest), source, target, place)


def op_bytes(problem: Problem) -> Floats:
    """(n, 3) bytes of inputs, of outputs, and of persistent data and workspace."""
    # One entry per edge: every op that reads a tensor counts all of its bytes.
    sizes = problem.size[edge_tensors(problem)]
    inputs = np.bincount(problem.consumers, sizes, minlength=problem.n)
    outputs = np.bincount(problem.producer, problem.size, minlength=problem.n)
    inside = problem.persistent + problem.workspace
    return np.column_stack([inputs, outputs, inside]).astype(np.float64)


def _times(problem: Problem) -> Floats:
    """(n, 3) summed times of direct predecessors, of direct successors, and the op's own time,
    relative to the longest op."""
    # Two ops with several tensors between them are neighbours once.
    pairs = np.unique(np.stack([edge_producers(problem), problem.consumers]), axis=1)
    before, after = pairs.astype(np.int64)
    # If no op takes time, the smallest number avoids 0 / 0.
    own = problem.fastest / max(float(problem.fastest.max()), np.finfo(np.float64).tiny)
    of_before = np.bincount(after, own[before], minlength=problem.n)
    of_after = np.bincount(before, own[after], minlength=problem.n)
    return np.column_stack([of_before, of_after, own])


def _places(problem: Problem) -> Floats:
    """(n, 3) longest paths before and after each op, relative to the longest of all, and its place
    in a depth-first order from 0 to 1."""
    paths = Paths.of(problem)
    longest = max(paths.longest, np.finfo(np.float64).tiny)
    place = places(problem.depth_first) / max(1, problem.n - 1)
    return np.column_stack([paths.head / longest, paths.tail / longest, place])


def _greatest(of_ops: Floats) -> Floats:
    """(n, 1) one for the op with the largest value, the first of equal ones; else zero."""
    indicator = np.zeros((len(of_ops), 1))
    indicator[of_ops.argmax()] = 1
    return indicator


def _edges(problem: Problem, tensor: Ints, largest: float) -> Features:
    """(e, 3) size of the tensor, 1 for control edges, and the tensor's number from 0 to 1."""
    own = len(problem.graph.tensors)
    number = tensor / max(1, len(problem.size) - 1)
    return np.column_stack([problem.size[tensor] / largest, tensor >= own, number]).astype(
        np.float32
    )


def expected(population: _core.search.Brkga) -> Features:
    """(n, d + 1) means over a population: the share of chromosomes with each op on each device, and
    its place in the order from 0 to 1."""
    shares, place = population.expectation()
    return np.column_stack([shares, place])
