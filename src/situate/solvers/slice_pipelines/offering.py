"""Plans of pipelines of slices: the devices of their stages, and the cuts between them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from situate.data.arrays import Ints, Order, Placement
from situate.simulation.decoding import priority_of
from situate.solvers.search import Search
from situate.solvers.slice_pipelines.passes import OpOrders, PassOrder, in_flight, ranks
from situate.solvers.slice_pipelines.sites import Sites
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
    Where ops are in parts, a stage is on a team, with a device for each part. Each direction is cut
    with each of `SLACKS`. Every order is offered once; further offers need time.

    Raises:
        SituateError: the step does not slice its batch.
    """
    problem = search.problem
    sites = Sites.of(problem)
    line = line_of(problem, sites)
    of_ops = OpOrders(problem, line)
    pipelines = [_Pipeline(sites, line, of_ops, order) for order in orders]
    placements: dict[bytes, Placement] = {}
    for number, (along, slack) in enumerate(product(_directions(sites), SLACKS)):
        for pipeline in pipelines:
            if search.budget.out_of_evaluations() or (number and search.finished()):
                return list(placements.values())
            placement = pipeline.offer(search, along, slack)
            placements[placement.tobytes()] = placement
    return list(placements.values())


def _directions(sites: Sites) -> list[Ints]:
    """The sites as listed, and in reverse unless that is equivalent."""
    problem, along = sites.problem, np.arange(sites.count)
    ahead, back = sites.teams.ravel(), sites.teams[::-1].ravel()
    of_devices = (problem.capacity, problem.unit_seconds.T, problem.allowed.T)
    of_pairs = (problem.latency, problem.bandwidth)
    same = all(np.array_equal(table[ahead], table[back]) for table in of_devices) and all(
        np.array_equal(table[np.ix_(ahead, ahead)], table[np.ix_(back, back)]) for table in of_pairs
    )
    return [along] if same else [along, along[::-1]]


class _Pipeline:
    """A step with an order of passes, whose stages may be cut anywhere on its line."""

    def __init__(self, sites: Sites, line: Line, of_ops: OpOrders, order: PassOrder) -> None:
        self._sites, self._line, self._of_ops = sites, line, of_ops
        self._chunks = order.chunks
        stages = sites.count * order.chunks
        turns = [order.passes(sites.count, line.count, site) for site in range(sites.count)]
        self._ranks = ranks(turns, line.count, stages)
        self._in_flight = in_flight(turns, stages)
        if sites.problem.rules.memory == "persistent":
            self._in_flight[:] = 0

    def offer(self, search: Search, along: Ints, slack: float) -> Placement:
        """Offer the pipeline along these sites, cut again while one of them lacks memory; return
        the last placement."""
        of_stages = np.tile(along, self._chunks)
        decoder = "serial" if "serial" in search.decoders else search.decoders[0]
        capacity, beyond = self._sites.capacity, np.zeros(self._sites.count)
        for _ in range(TRIES):
            # The chunks of a site share its memory equally, because the cut sees each stage alone.
            room = np.maximum(0, capacity - beyond)[of_stages] / self._chunks
            weights = weights_of(self._line, of_stages, self._in_flight, room)
            borders = cut(self._line, weights, slack)
            stage = np.searchsorted(borders, self._line.of_unit, "right")
            placement = self._sites.placement(of_stages[stage])
            order = self._of_ops.order(self._ranks, borders)
            excess = search.consider(placement, order, decoder)
            if self._sites.parts > 1 and "eager" in search.decoders:
                # Parts wait for one another within a pass, and a pass for none of the next ones.
                search.consider(placement, order, "eager")
            if not excess or decoder == "calls" or search.finished():
                break
            expected = np.bincount(of_stages, weights.stage_bytes(borders), self._sites.count)
            # The cut expects parameters and activations alone; decoding also counts, for one,
            # workspaces.
            peaks = self._sites.of_fullest(_peaks(search, placement, order))
            beyond = np.maximum(beyond, peaks - expected)
        return placement


def _peaks(search: Search, placement: Placement, order: Order) -> Ints:
    """(devices,) peak bytes of each."""
    _, [peak] = search.simulator.evaluate(
        placement[None], priority_of(order)[None], decoder="serial", threads=1
    )
    search.budget.evaluations += 1
    return np.asarray(peak)
