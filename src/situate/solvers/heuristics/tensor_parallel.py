"""`tensor_parallel`: the parts of every op on the devices of a team, one part a device."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from situate import _core
from situate.data.arrays import Floats, Ints, Order, Placement
from situate.data.problem import Problem
from situate.data.weight_gradients import weight_gradients
from situate.solvers.search import Search
from situate.solvers.slice_pipelines.sites import Sites, part_of_units
from situate.solvers.slice_pipelines.stages import Line, cut, line_of, weights_of
from situate.solvers.slice_placement import NOWHERE, shared_out, side_by_side

SLACK = 0.1
"""Share by which the slowest stage may exceed its optimum, to reduce bytes between teams."""

URGENCIES = ((1.0, 2.0, 0.0), (0.0, 1.0, 0.25))
"""Weights of an op's place in the step and of its longest path to the end, and the patience of a
device: for slices, one of which should end before all have begun, and for a whole batch."""

LEAST_LATE, MOST_LATE = 0.1, 10.0
"""Limits of the ratio of late seconds to early ones, for steps that have few of either."""


def run(search: Search) -> None:
    """Offer plans in which part k of an op is on device k of a team, and parameters that no cut
    divides are spread over the team.

    Neighbouring devices form teams of as many devices as there are parts. Slices are shared out
    among the teams, or go through stages on them. All teams are stages of a pipeline, or half of
    them, a quarter, ... down to a single one, to which nothing crosses.

    Raises:
        SituateError: the step has no parts.
    """
    problem = search.problem
    part_of_units(problem)
    sites = Sites.of(problem)
    for site in _sites_of_units(sites):
        placement = sites.placement(site)
        for order in _orders(problem):
            search.offer(placement, order)
        _list(search, placement)


def _orders(problem: Problem) -> Iterator[Order]:
    yield np.array(problem.graph.program_order, np.int32)
    if _is_sliced(problem):
        yield side_by_side(problem)


def _list(search: Search, placement: Placement) -> None:
    """Offer a placement in orders of list scheduling.

    Gradients of weights, for which no other op waits, then run while a team waits for another one.
    """
    problem = search.problem
    if problem.objective != "time" or problem.transfers != "overlapped":
        return
    line = np.array(problem.depth_first, np.int32)
    orders = _core.search.make_placed_orders(search.simulator.core, placement, line)
    for turn, path, patience in URGENCIES:
        order = orders.order(turn, path, np.zeros(problem.d, np.int64), patience)
        search.consider(placement, order, "serial")


def _is_sliced(problem: Problem) -> bool:
    return any(op.slice is not None for op in problem.graph.ops)


def _sites_of_units(sites: Sites) -> Iterator[Ints]:
    """(units,) the team of each unit: all on one team, with slices by slice, and by stage on all
    teams, half of them, and so on."""
    problem, count = sites.problem, sites.count
    # A large step has this plan before the others are prepared.
    yield np.zeros(problem.units, np.int64)
    if count == 1:
        return
    is_sliced = _is_sliced(problem)
    if is_sliced:
        yield _by_slice(problem, count)
    slices = _slices(problem)
    line, late = line_of(problem, sites, slices), _late(problem, slices)
    yield from by_replica(sites, line)
    while count > 1:
        yield _by_stage(sites, line, np.full(count, 1 / count))
        growing = _by_stage(sites, line, growing_shares(count, late))
        # A short step has fewer places than stages.
        if not is_sliced and len(np.unique(growing)) == count:
            yield growing
        count //= 2


def _slices(problem: Problem) -> Ints:
    """(n,) the slice of each op; -1 for parameters and updates. A whole batch is one slice."""
    if _is_sliced(problem):
        return np.array([NOWHERE if op.slice is None else op.slice for op in problem.graph.ops])
    is_update = np.array([op.phase == "update" for op in problem.graph.ops])
    return np.where((problem.persistent > 0) | is_update, NOWHERE, 0)


def _by_slice(problem: Problem, teams: int) -> Ints:
    """(units,) teams by slice; parameters by their replica, or spread by their bytes."""
    cut, ops = problem.graph.slices, problem.graph.ops
    assert cut is not None
    of_slice = shared_out(np.array(cut.shares, np.float64)[:, None].repeat(teams, axis=1))
    # A replica is with the team that has most of its slices.
    of_replica = [
        int(np.bincount(of_slice[np.array(cut.replica) == r]).argmax())
        for r in range(max(1, len(cut.replicas)))
    ]
    team, load = np.full(problem.units, NOWHERE), np.zeros(teams)
    for unit, op in zip(problem.unit.tolist(), ops, strict=True):
        if op.slice is not None:
            team[unit] = of_slice[op.slice]
        elif op.replica is not None:
            team[unit] = of_replica[op.replica]
    # The other parameters: the largest first, each to the emptiest team.
    for unit in np.argsort(-problem.unit_persistent, kind="stable").tolist():
        if team[unit] < 0 and problem.unit_persistent[unit]:
            team[unit] = int(load.argmin())
            load[team[unit]] += problem.unit_persistent[unit]
    return team


def by_replica(sites: Sites, line: Line) -> Iterator[Ints]:
    """(units,) teams where each replica has a pipeline of its own, if there are teams for that."""
    problem, slices = sites.problem, sites.problem.graph.slices
    replicas = 0 if slices is None else len(slices.replicas)
    stages = sites.count // max(1, replicas)
    if slices is None or replicas < 2 or stages < 2:
        return
    pipeline = np.full(problem.units, NOWHERE)
    for unit, op in zip(problem.unit.tolist(), problem.graph.ops, strict=True):
        own = op.replica if op.slice is None else slices.replica[op.slice]
        pipeline[unit] = NOWHERE if own is None else own
    stage = _by_stage(sites, line, np.full(stages, 1 / stages))
    # Teams are numbered pipeline after pipeline.
    yield np.where(pipeline >= 0, pipeline * stages + stage, NOWHERE)


def _by_stage(sites: Sites, line: Line, shares: Floats) -> Ints:
    """(units,) teams by stage, each with its share (stages,) of the seconds and of few bytes that
    cross."""
    stages = np.arange(len(shares))
    held = np.full(len(shares), line.count)
    if sites.problem.rules.memory == "persistent":
        held[:] = 0
    weights = weights_of(line, stages, held, sites.capacity[stages], shares)
    return np.searchsorted(cut(line, weights, SLACK), line.of_unit, "right")


def growing_shares(stages: int, late: float) -> Floats:
    """(stages,) shares of the work of a single slice by which all stages end at once.

    A slice goes back from the last stage to the first one, and each stage then still has `late`
    seconds of work for which no other stage waits, per second of those for which others do.
    """
    shares = [1.0]
    for _ in range(stages - 1):
        shares.append((sum(shares) + late * shares[0]) / late)
    return np.array(shares) / sum(shares)


def _late(problem: Problem, slices: Ints) -> float:
    """Seconds of the gradients of weights and of updates per second of other backward ops."""
    phase = np.array([op.phase for op in problem.graph.ops])
    weights = weight_gradients(problem, slices)
    seconds = np.where(np.isfinite(problem.seconds), problem.seconds, np.inf).min(axis=1)
    late = seconds[weights | (phase == "update")].sum()
    early = seconds[(phase == "backward") & ~weights].sum()
    return float(np.clip(late / max(early, 1e-300), LEAST_LATE, MOST_LATE))
