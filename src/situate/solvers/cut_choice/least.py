"""A lower bound over all cuts that counts the ops between parts; docs/bounds.md derives it.

A mean of the load of the devices and of a path's length is a sum over ops and over the tensors
between them. The labels of its least value are a sharding problem, whose bound holds in any cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from situate.bounds.any_cut import Edge, launch_seconds, longest_path, without_copies
from situate.bounds.load import least_load
from situate.data.arrays import Floats
from situate.data.letter_graph import SUM, WHOLE, LetterGraph, LetterOp
from situate.data.problem import Problem
from situate.sharding.problem import FORBIDDEN, ShardingProblem
from situate.sharding.solve import solve_sharding
from situate.solvers.cut_choice.kernels import Kernels
from situate.solvers.cut_choice.label_pairs import (
    Pair,
    is_loose,
    labels_of,
    pair_of,
    pair_seconds,
    ranges,
)

ROUNDS = 8
"""Rounds of the bound of a sharding problem."""

RESOLUTION = 10**10
"""Whole numbers in the seconds of the larger of the load and the path."""

MAX_COST = 10**14
"""Largest cost of labels that ops may have together."""

ROUNDING = 1e-9
"""Relative error of the sums."""


class Mean(NamedTuple):
    """The weights of a bound.

    Attributes:
        load: weight of the load of the devices; the rest is that of the path.
        launch: share of the weights of devices that is in proportion to 1 / launch. The rest are
            the weights of the load bound.
    """

    load: float
    launch: float


MEANS = (Mean(0.1, 1.0), Mean(0.3, 1.0), Mean(0.5, 1.0), Mean(0.7, 1.0), Mean(0.8, 0.5))
"""The means that are tried; the load and the path alone are bounds of their own."""


class _Exchange(NamedTuple):
    """A tensor between two ops.

    Attributes:
        edge: the numbers of the ops in the letter graph, the smaller one first.
        is_reversed: True if the producer has the larger number.
        pair: the number of the labels of both.
        readers: number of readers of the tensor.
        on_path: True if the path passes here.
    """

    edge: Edge
    is_reversed: bool
    pair: int
    readers: int
    on_path: bool


class LeastOverCuts:
    """Bounds of a step over all cuts.

    Args:
        whole: the step of whole ops.
        letters: of the same step.
        most_parts: largest number of parts of an op.
    """

    def __init__(self, whole: Problem, letters: LetterGraph, most_parts: int) -> None:
        problem = self._problem = without_copies(whole)
        self._most_parts = most_parts
        self._letters, self._ranges = letters, tuple(ranges(most_parts))
        self._labels = [
            labels_of(op, letters.units, self._ranges, self._is_sum(op)) for op in letters.ops
        ]
        self._columns = [self._columns_of(op) for op in range(len(letters.ops))]
        self._load, self._launch = least_load(problem), launch_seconds(problem)
        length, path = longest_path(problem, most_parts, set(_loose_edges(letters)))
        self._unit = max(self._load.seconds, length, 1e-300) / RESOLUTION
        self._on_path = np.zeros(problem.n, bool)
        self._on_path[path] = True
        # (n,) the number of each op in the letter graph; other ops have the number after its last.
        self._number = np.full(problem.n, len(letters.ops))
        for i, op in enumerate(letters.ops):
            self._number[[*op.ops]] = i
        # By pair of labels, its number: most exchanges of repeated blocks have the same one.
        self._pairs: dict[Pair, int] = {}
        self._exchanges = [*self._exchanges_along(path[::-1])]

    def simple_seconds(self) -> float:
        """The bound that counts no exchanges, as `least_in_any_cut` has it."""
        return max(self._load.seconds, longest_path(self._problem, self._most_parts)[0])

    def seconds(self, mean: Mean) -> float:
        """The bound by a mean."""
        # With weights in proportion to 1 / launch, a launch costs the same on all devices.
        inverse = 1 / np.maximum([d.launch for d in self._problem.cluster.devices], 1e-12)
        weight = mean.launch * inverse / inverse.sum() + (1 - mean.launch) * self._load.weight
        costs, others = self._costs(mean, weight)
        tables = self._tables(mean, Kernels(self._problem, weight))
        problem = ShardingProblem(
            self._problem.graph.name,
            [self._integers(cost) for cost in costs],
            [np.zeros(len(cost), np.int64) for cost in costs],
            np.array([(0, 1)] * len(costs), np.int64),
            tuple(tables),
            [self._integers(table) for table in tables.values()],
            1,
        )
        plan = solve_sharding(problem, time_limit=None, rounds=ROUNDS, threads=1)
        price = self._load.price
        # The price of all memory is subtracted, as in a Lagrangian; both terms err to the low side.
        room = mean.load * float((price * self._problem.capacity)[price > 0].sum())
        return (plan.bound * self._unit + others) * (1 - ROUNDING) - room * (1 + ROUNDING)

    def _is_sum(self, op: LetterOp) -> bool:
        kinds = {self._problem.graph.ops[j].kind for j in op.ops}
        return kinds == {"aten.add"} and len(op.reads) == 2

    def _columns_of(self, op: int) -> list[int]:
        """By label of an op, its column in the costs of ops."""
        place = {parts: k for k, parts in enumerate(self._ranges, 1)}
        sums = len(self._ranges)
        return [
            0 if label.cut == WHOLE else place[label.parts] + (sums if label.cut == SUM else 0)
            for label in self._labels[op]
        ]

    def _exchanges_along(self, path: list[int]) -> Iterator[_Exchange]:
        numbers = self._number[path].tolist()
        path_edges = {(a, b) for a, b in pairwise(numbers) if a != b}
        readers = Counter(value for op in self._letters.ops for value in op.reads)
        for reader, op in enumerate(self._letters.ops):
            for position, value in enumerate(op.reads):
                producer = value[0]
                if producer == reader:
                    continue
                pair = pair_of(self._letters, self._labels, reader, position)
                number = self._pairs.setdefault(pair, len(self._pairs))
                # The path takes one of several tensors between two ops.
                on_path = (producer, reader) in path_edges
                path_edges.discard((producer, reader))
                edge = (min(producer, reader), max(producer, reader))
                yield _Exchange(edge, producer > reader, number, readers[value], on_path)

    def _costs(self, mean: Mean, weight: Floats) -> tuple[list[Floats], float]:
        """By op of the letter graph, the cost of each label; and the cost of all other ops."""
        problem, launch = self._problem, self._launch
        seconds = problem.seconds
        priced = self._load.price * problem.persistent[:, None]
        whole = mean.load * (weight * seconds + priced).min(axis=1)
        # Each further part costs a launch at least.
        further = mean.load * np.where(np.isfinite(seconds), weight * launch, np.inf).min(axis=1)
        on_path = (1 - mean.load) * self._on_path
        alone = on_path * seconds.min(axis=1)
        parts = [
            whole
            + (least - 1) * further
            + on_path * (launch + (seconds - launch) / most).min(axis=1)
            for least, most in self._ranges
        ]
        # An addition that stays partial has its whole size in each part.
        sums = [least * whole + alone for least, _ in self._ranges]
        columns = np.column_stack([whole + alone, *parts, *sums])
        # The last row is of all ops outside the letter graph.
        total = np.zeros((len(self._letters.ops) + 1, columns.shape[1]))
        np.add.at(total, self._number, columns)
        costs = [total[i, own] for i, own in enumerate(self._columns)]
        # Ops that clip gradients work on parts of any number; they launch one op at least.
        most = max((most for _, most in self._ranges), default=1)
        largest = (launch + (seconds - launch) / most).min(axis=1)
        others = self._number == len(self._letters.ops)
        return costs, float((whole + on_path * largest)[others].sum())

    def _tables(self, mean: Mean, kernels: Kernels) -> dict[Edge, Floats]:
        """By pair of ops, the cost of each pair of labels."""
        tables: dict[Edge, Floats] = {}
        seconds = [pair_seconds(pair, kernels) for pair in self._pairs]
        alike: dict[tuple[int, int, bool], Floats] = {}
        for exchange in self._exchanges:
            key = exchange.pair, exchange.readers, exchange.on_path
            if key not in alike:
                alike[key] = _weighted(exchange, mean, *seconds[exchange.pair])
            table = alike[key].T if exchange.is_reversed else alike[key]
            other = tables.get(exchange.edge)
            tables[exchange.edge] = table if other is None else other + table
        return tables

    def _integers(self, costs: Floats) -> np.ndarray:
        """Costs in whole numbers, rounded down."""
        whole = np.minimum(np.floor(costs / self._unit), MAX_COST)
        return np.ascontiguousarray(np.where(np.isinf(costs), FORBIDDEN, whole)).astype(np.int64)


def _weighted(exchange: _Exchange, mean: Mean, load: Floats, path: Floats) -> Floats:
    """(sources, targets) the cost of the better way between labels. Readers share the load, because
    those that want the same form use the same ops."""
    cost = mean.load / exchange.readers * load
    if exchange.on_path:
        cost = cost + (1 - mean.load) * path
    return np.asarray(cost.min(axis=2))


def _loose_edges(letters: LetterGraph) -> Iterator[Edge]:
    """Edges of whole ops along which the largest part of an op may not wait for the largest part of
    another."""
    for op in letters.ops:
        for producer, k in op.reads:
            if is_loose(letters, letters.ops[producer], k, op):
                yield from ((i, j) for i in letters.ops[producer].ops for j in op.ops)
