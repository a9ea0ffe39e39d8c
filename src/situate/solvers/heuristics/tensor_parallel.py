"""`tensor_parallel`: the parts of every op on the devices of a team, one part a device."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Ints
from situate.data.problem import Problem
from situate.data.topology import accelerators
from situate.errors import SituateError
from situate.solvers.search import Search
from situate.solvers.slice_placement import NOWHERE, completed, shared_out, side_by_side


def run(search: Search) -> None:
    """Offer plans in which part k of an op is on device k of a team, and parameters that no cut
    divides are spread over the team.

    Neighbouring devices form teams of as many devices as there are parts. Slices are shared out
    among the teams; without slices, all teams are stages of a pipeline, or half of them, a quarter,
    ... down to a single one, to which nothing crosses.

    Raises:
        SituateError: the step has no parts.
    """
    problem = search.problem
    part = _part_of_units(problem)
    teams = _teams(problem, part)
    for team in _team_of_units(problem, len(teams)):
        of_unit = _devices(part, team, teams)
        _spread_parameters(problem, of_unit, team, teams)
        placement = completed(problem, of_unit)
        for order in (np.array(problem.graph.program_order, np.int32), side_by_side(problem)):
            search.offer(placement, order)


def _part_of_units(problem: Problem) -> Ints:
    """(units,) the part of each unit; -1 for units that are whole.

    Raises:
        SituateError: the step has no parts.
    """
    parts = np.array([NOWHERE if op.part is None else op.part for op in problem.graph.ops])
    if parts.max() < 0:
        raise SituateError(
            f"graph {problem.graph.name!r} has whole ops: give --cuts, which cuts those of a "
            "network of the zoo or of a package.module:function"
        )
    of_unit = np.full(problem.units, NOWHERE)
    np.maximum.at(of_unit, problem.unit, parts)
    return of_unit


def _teams(problem: Problem, part: Ints) -> NDArray[np.int64]:
    """(teams, parts) the device of each part in each team; the longest part of a team is on its
    fastest device."""
    devices, count = np.array(accelerators(problem)), int(part.max()) + 1
    # (units, devices): a unit that cannot run on a device takes no time there; it goes elsewhere.
    seconds = np.where(np.isfinite(problem.unit_seconds), problem.unit_seconds, 0)
    if len(devices) < count:
        devices = np.resize(devices, count)
    total = np.zeros((count, problem.d))
    np.add.at(total, part[part >= 0], seconds[part >= 0])
    longest, teams = np.argsort(-total.mean(axis=1), kind="stable"), []
    for begin in range(0, len(devices) - count + 1, count):
        members = devices[begin : begin + count]
        fastest = members[np.argsort(total.sum(axis=0)[members], kind="stable")]
        team = np.empty(count, np.int64)
        # Equal devices keep the order of the parts.
        alike = len(np.unique(total[:, members].round(12), axis=1).T) == 1
        team[longest if not alike else np.arange(count)] = members if alike else fastest
        teams.append(team)
    return np.array(teams)


def _team_of_units(problem: Problem, teams: int) -> Iterator[Ints]:
    """(units,) the team of each unit: with slices by slice, and also by stage, on ever fewer
    teams."""
    if any(op.slice is not None for op in problem.graph.ops):
        yield _by_slice(problem, teams)
    while teams:
        yield _by_stage(problem, teams)
        teams //= 2


def _by_slice(problem: Problem, teams: int) -> Ints:
    """(units,) teams by slice; parameters by their replica, or spread by their bytes."""
    cut, ops = problem.graph.slices, problem.graph.ops
    assert cut is not None
    of_slice = shared_out(np.array(cut.shares, np.float64)[:, None].repeat(teams, axis=1))
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
    for unit in np.argsort(-problem.unit_persistent, kind="stable").tolist():
        if team[unit] < 0 and problem.unit_persistent[unit]:
            team[unit] = int(load.argmin())
            load[team[unit]] += problem.unit_persistent[unit]
    return team


def _by_stage(problem: Problem, teams: int) -> Ints:
    """(units,) teams by stage: modules in order of their first op, in stages of equal seconds."""
    seconds: dict[str, float] = {}
    fastest = np.where(np.isfinite(problem.seconds), problem.seconds, np.inf).min(axis=1)
    for op, duration in zip(problem.graph.ops, fastest.tolist(), strict=True):
        seconds[op.module] = seconds.get(op.module, 0.0) + duration
    ends = np.cumsum(list(seconds.values()))
    bounds = ends[-1] * np.arange(teams + 1) / teams
    stage = {
        module: next(t for t, (_, high) in enumerate(pairwise(bounds)) if end <= high * (1 + 1e-9))
        for module, end in zip(seconds, ends, strict=True)
    }
    team = np.full(problem.units, NOWHERE)
    for unit, op in zip(problem.unit.tolist(), problem.graph.ops, strict=True):
        team[unit] = max(team[unit], stage[op.module])
    return team


def _devices(part: Ints, team: Ints, teams: NDArray[np.int64]) -> Ints:
    """(units,) the device of each unit; -1 for units that follow others."""
    is_placed = (part >= 0) & (team >= 0)
    return np.where(is_placed, teams[np.maximum(team, 0), np.maximum(part, 0)], NOWHERE)


def _spread_parameters(
    problem: Problem, of_unit: Ints, team: Ints, teams: NDArray[np.int64]
) -> None:
    """Give each unplaced unit with persistent bytes a device of its team: the largest first, each
    to the one with the fewest of these bytes. So all devices share the sums and the updates."""
    load = np.zeros(problem.d)
    for unit in np.argsort(-problem.unit_persistent, kind="stable").tolist():
        nbytes = int(problem.unit_persistent[unit])
        if nbytes and of_unit[unit] < 0 <= team[unit]:
            members = teams[team[unit]]
            after = np.where(problem.allowed[unit, members], load[members], np.inf)
            if np.isfinite(after.min()):
                of_unit[unit] = members[after.argmin()]
                load[of_unit[unit]] += nbytes
