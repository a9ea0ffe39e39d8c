"""Plans of pipelines of slices: the devices of their stages, and the cuts between them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from situate.data.arrays import Ints, Order, Placement
from situate.data.problem import Problem
from situate.data.topology import accelerators
from situate.simulation.decoding import priority_of
from situate.solvers.line_cut import on_devices
from situate.solvers.search import Search
from situate.solvers.slice_pipelines.passes import OpOrders, PassOrder, in_flight, ranks
from situate.solvers.slice_pipelines.stages import Line, cut, line_of, weights_of

SLACKS = (0.0, 0.1)
"""Shares by which the slowest stage may exceed its optimum, to reduce bytes between stages."""

TRIES = 4
"""Largest number of cuts. Each reduces a device's room by the bytes that earlier cuts
underestimated there."""


def offer_slice_pipelines(search: Search, orders: Sequence[PassOrder]) -> list[Placement]:
    """Offer pipelines in which every device keeps to its order of passes, and return their distinct
    placements.

    Stages go along the accelerators as listed and, if the cluster is not symmetric, in reverse.
    Each direction is cut with each of `SLACKS`. Every order is offered once; further offers need
    time.

    Raises:
        SituateError: the step does not slice its batch.
    """
    problem = search.problem
    line = line_of(problem)
    of_ops = OpOrders(problem, line)
    pipelines = [_Pipeline(problem, line, of_ops, order) for order in orders]
    placements: dict[bytes, Placement] = {}
    for number, (along, slack) in enumerate(product(_directions(problem), SLACKS)):
        for pipeline in pipelines:
            if search.budget.out_of_evaluations() or (number and search.finished()):
                return list(placements.values())
            placement = pipeline.offer(search, along, slack)
            placements[placement.tobytes()] = placement
    return list(placements.values())


def _directions(problem: Problem) -> list[Ints]:
    """The accelerators as listed, and in reverse unless that is equivalent."""
    ahead = np.array(accelerators(problem))
    back = ahead[::-1]
    of_devices = (problem.capacity, problem.unit_seconds.T, problem.allowed.T)
    of_pairs = (problem.latency, problem.bandwidth)
    same = all(np.array_equal(table[ahead], table[back]) for table in of_devices) and all(
        np.array_equal(table[np.ix_(ahead, ahead)], table[np.ix_(back, back)]) for table in of_pairs
    )
    return [ahead] if same else [ahead, back]


class _Pipeline:
    """A step with an order of passes, whose stages may be cut anywhere on its line."""

    def __init__(self, problem: Problem, line: Line, of_ops: OpOrders, order: PassOrder) -> None:
        self._problem, self._line, self._of_ops = problem, line, of_ops
        self._chunks = order.chunks
        devices = len(accelerators(problem))
        stages = devices * order.chunks
        turns = [order.passes(devices, line.count, device) for device in range(devices)]
        self._ranks = ranks(turns, line.count, stages)
        self._in_flight = in_flight(turns, stages)
        if problem.rules.memory == "persistent":
            self._in_flight[:] = 0

    def offer(self, search: Search, along: Ints, slack: float) -> Placement:
        """Offer the pipeline along these devices, cut again while one of them lacks memory; return
        the last placement."""
        devices = np.tile(along, self._chunks)
        decoder = "serial" if "serial" in search.decoders else search.decoders[0]
        beyond = np.zeros(self._problem.d)
        for _ in range(TRIES):
            # The chunks of a device share its memory equally, because the cut sees each stage
            # alone.
            room = np.maximum(0, self._problem.capacity - beyond)[devices] / self._chunks
            weights = weights_of(self._line, devices, self._in_flight, room)
            borders = cut(self._line, weights, slack)
            placement = self._placement(devices, borders)
            order = self._of_ops.order(self._ranks, borders)
            excess = search.consider(placement, order, decoder)
            if not excess or decoder == "calls" or search.finished():
                break
            expected = np.bincount(devices, weights.stage_bytes(borders), self._problem.d)
            # The cut expects parameters and activations alone; decoding also counts, for one,
            # workspaces.
            beyond = np.maximum(beyond, _peaks(search, placement, order) - expected)
        return placement

    def _placement(self, devices: Ints, borders: Ints) -> Placement:
        stage = np.searchsorted(borders, self._line.of_unit, "right")
        return on_devices(self._problem, devices[stage])


def _peaks(search: Search, placement: Placement, order: Order) -> Ints:
    """(devices,) peak bytes of each."""
    _, [peak] = search.simulator.evaluate(
        placement[None], priority_of(order)[None], decoder="serial", threads=1
    )
    search.budget.evaluations += 1
    return np.asarray(peak)
