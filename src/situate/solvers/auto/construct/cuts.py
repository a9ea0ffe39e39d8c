"""Cuts of a line of units into a segment per device: by seconds, by bytes, or with equal peaks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate.bounds.memory import level_share
from situate.data.arrays import Floats, Ints, Order, Placement
from situate.data.problem import Problem
from situate.data.topology import (
    accelerators,
    folded_order,
    op_devices,
    pipeline_order,
    places,
    unit_devices,
)
from situate.solvers.auto.repair import offer_until_it_fits
from situate.solvers.heuristics import pipeline
from situate.solvers.line_cut import cut, live_bytes
from situate.solvers.search import Search

LEVEL_ROUNDS = 12
"""Largest number of cuts of a line, each adjusted by the peaks of the one before."""

LEVEL_SHARE = 0.5
"""Share of the budget after which cuts end."""

ROOM_FILLED = 0.98
"""Target share of a device's memory; the rest allows for segments of whole units."""

LEAST_CHANGE = 0.1
"""Least ratio of a device's peak to its level, so that an almost empty device does not take
everything."""


def offer_proportional_cuts(search: Search) -> None:
    """Offer a cut by seconds and one by persistent bytes, with spilling until they fit.

    If a device cannot hold everything, also offer stages by bytes. While nothing fits, also spill
    the best plan.
    """
    problem = search.problem
    order = np.array(problem.graph.order, np.int32)
    for placement in (by_seconds(problem), by_bytes(problem)):
        offer_until_it_fits(search, placement, order)
        if search.finished():
            return
    if problem.persistent.sum() > problem.capacity.min():
        search.offer(follow(problem, _along_the_pipeline(problem)), order)
    incumbent = search.incumbent
    if not incumbent.feasible:
        offer_until_it_fits(search, incumbent.placement, incumbent.order)


def by_seconds(problem: Problem) -> Placement:
    """Placement (n,) along the pipeline; segments are proportional to the accelerators' speeds."""
    devices = accelerators(problem)
    seconds = np.where(np.isfinite(problem.seconds), problem.seconds, 0)[:, devices]
    weight = np.zeros(problem.units)
    # A cut needs one weight per unit, so devices of different speeds share their mean.
    np.add.at(weight, problem.unit, seconds.mean(axis=1))
    # A tiny number avoids an infinite speed where no op takes time.
    speed = 1 / np.maximum(seconds.sum(axis=0), 1e-300)
    return cut(problem, devices, pipeline_order(problem), weight, speed)


def by_bytes(problem: Problem) -> Placement:
    """Placement (n,) in topological order; segments are proportional to accelerators' memory."""
    units = problem.unit[list(problem.graph.order)]
    # (n,) units of the ops in order -> (units,) units by their first op.
    _, first = np.unique(units, return_index=True)
    line = units[np.sort(first)]
    return _cut_by_bytes(problem, line)


def _along_the_pipeline(problem: Problem) -> Placement:
    return _cut_by_bytes(problem, pipeline_order(problem))


def _cut_by_bytes(problem: Problem, line: NDArray[np.int32]) -> Placement:
    devices = accelerators(problem)
    capacity = problem.capacity[devices].astype(np.float64)
    return cut(problem, devices, line, problem.unit_persistent.astype(np.float64), capacity)


def follow(problem: Problem, placement: Placement) -> Placement:
    """The placement (n,) in which units without persistent bytes follow their inputs.

    In the graph's order, each such unit goes to a parameter that it reads, or else to the last of
    its inputs, if it may run there. A cut by bytes ignores these units and would put them all into
    the last segment.
    """
    of_unit = unit_devices(problem, placement)
    settled = problem.unit_persistent > 0
    for op, (parameters, others) in zip(problem.graph.order, _inputs(problem), strict=True):
        unit = problem.unit[op]
        leaders = [u for u in (*others, *parameters) if settled[u]]
        if not settled[unit] and leaders and problem.allowed[unit, of_unit[leaders[-1]]]:
            of_unit[unit] = of_unit[leaders[-1]]
        settled[unit] = True
    return op_devices(problem, of_unit)


def _inputs(problem: Problem) -> list[tuple[list[int], list[int]]]:
    """(parameter units, other input units) of each op, in the graph's order."""
    place = places(problem.graph.order)
    units: list[tuple[list[int], list[int]]] = [([], []) for _ in range(problem.n)]
    # (tensors,) in the order of their producers, so that the last input of an op comes last.
    by_place = np.argsort(place[problem.producer], kind="stable")
    for tensor in by_place.tolist():
        unit = int(problem.unit[problem.producer[tensor]])
        kind = 0 if problem.resident[tensor] else 1
        start, end = problem.consumer_start[tensor : tensor + 2]
        for reader in problem.consumers[start:end]:
            units[place[reader]][kind].append(unit)
    return units


def offer_level_cuts(search: Search) -> None:
    """Offer cuts of lines of units by their live bytes, then pipelines with shifted borders.

    Devices come in both orders unless their memory is equal.
    """
    problem = search.problem
    if problem.objective != "memory" or problem.d < 2:
        return
    devices = _in_turn(problem)
    alike = len(set(problem.capacity.tolist())) == 1
    with search.budget.reserving(1 - LEVEL_SHARE):
        for line in (folded_order(problem), pipeline_order(problem)):
            for turn in (devices, devices[::-1])[: 1 if alike else 2]:
                _level(search, line, turn)
        if not search.finished():
            pipeline.run(search)


def _in_turn(problem: Problem) -> list[int]:
    """Devices along a line: accelerators in file order, and the CPUs behind them."""
    fast = accelerators(problem)
    return fast + [device for device in range(problem.d) if device not in fast]


def _level(search: Search, line: Order, turn: list[int]) -> None:
    """Offer cuts of a line; a segment shrinks by the ratio of its device's peak to its target."""
    problem = search.problem
    weight, order = live_bytes(problem), np.array(problem.graph.order, np.int32)
    room = ROOM_FILLED * problem.capacity[turn].astype(np.float64)
    # An unlimited capacity would leave nothing to the other devices.
    share = np.minimum(room, weight.sum())
    for _ in range(LEVEL_ROUNDS):
        if search.finished():
            return
        peak = search.offer(cut(problem, turn, line, weight, share), order).schedule.peak[turn]
        share = share / np.maximum(peak / _level_peaks(peak, room), LEAST_CHANGE)


def _level_peaks(peak: Ints, room: Floats) -> Floats:
    """(devices,) equal peaks with the same sum; devices without room for that are full."""
    equal = level_share(int(peak.sum()), room.astype(np.int64).tolist())
    return np.asarray(np.minimum(np.maximum(room, 1.0), max(1, equal)))
