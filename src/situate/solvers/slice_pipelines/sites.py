"""Sites of the stages of a pipeline: devices, or teams whose devices hold one part of each op."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from situate.data.arrays import Floats, Ints, Placement
from situate.data.problem import Problem
from situate.data.topology import accelerators
from situate.errors import SituateError
from situate.solvers.slice_placement import NOWHERE, completed


@dataclass(frozen=True, eq=False)
class Sites:
    """Teams of as many devices as there are parts of an op; a device alone is a team of one.

    Attributes:
        problem: of ops that are whole or in parts.
        part: (units,) the part of each unit; -1 for units that are whole beside units in parts.
        teams: (sites, parts) the device of each part in each team.
    """

    problem: Problem
    part: Ints
    teams: Ints

    @classmethod
    def devices(cls, problem: Problem) -> Sites:
        """The devices of a problem, each a site."""
        return cls(problem, np.zeros(problem.units, np.int64), np.arange(problem.d)[:, None])

    @classmethod
    def of(cls, problem: Problem) -> Sites:
        """The accelerators of a step, or the teams of a step in parts."""
        if all(op.part is None for op in problem.graph.ops):
            devices = np.array(accelerators(problem))[:, None]
            return cls(problem, np.zeros(problem.units, np.int64), devices)
        part = part_of_units(problem)
        return cls(problem, part, _teams_of(problem, part))

    @property
    def count(self) -> int:
        """The number of sites."""
        return len(self.teams)

    @property
    def parts(self) -> int:
        """The number of devices of a site."""
        return int(self.teams.shape[1])

    @property
    def capacity(self) -> Floats:
        """(sites,) bytes of memory."""
        return np.asarray(self.problem.capacity[self.teams].astype(np.float64).sum(axis=1))

    def of_fullest(self, of_device: Ints) -> Floats:
        """(sites,) bytes of a site as if all its devices had those of the fullest one."""
        return np.asarray(self.parts * of_device[self.teams].max(axis=1).astype(np.float64))

    def seconds(self) -> Floats:
        """(units, sites) seconds by which each unit delays a site: those of a part on its device
        over the number of parts, as all devices work at once."""
        finite = np.where(np.isfinite(self.problem.unit_seconds), self.problem.unit_seconds, 0)
        # (units, sites, parts)
        of_parts = finite[:, self.teams]
        # Whole units (-1) take an index that `spread` overrules.
        own = np.take_along_axis(of_parts, np.maximum(self.part, 0)[:, None, None], axis=2)
        spread = self.part[:, None] < 0
        return np.where(spread, of_parts.mean(axis=2), own[:, :, 0]) / self.parts

    def placement(self, site: Ints) -> Placement:
        """Placement (n,) of units at these sites (units,); -1 for units that follow others.

        Parameters that no cut divides are spread over their team by their bytes, so that all its
        devices share their sums and updates. Other whole units are beside their largest tensor.
        """
        is_placed = (self.part >= 0) & (site >= 0)
        # Index 0 stands in where there is none; `is_placed` leaves it out.
        device = self.teams[np.maximum(site, 0), np.maximum(self.part, 0)]
        of_unit = np.where(is_placed, device, NOWHERE)
        self._spread_parameters(of_unit, site)
        return completed(self.problem, of_unit)

    def _spread_parameters(self, of_unit: Ints, site: Ints) -> None:
        """Place units with persistent bytes that are whole: the largest first, each on the device
        of its team with the fewest of these bytes."""
        problem, load = self.problem, np.zeros(self.problem.d)
        for unit in np.argsort(-problem.unit_persistent, kind="stable").tolist():
            nbytes = int(problem.unit_persistent[unit])
            if nbytes and of_unit[unit] < 0 <= site[unit]:
                members = self.teams[site[unit]]
                after = np.where(problem.allowed[unit, members], load[members], np.inf)
                if np.isfinite(after.min()):
                    of_unit[unit] = members[after.argmin()]
                    load[of_unit[unit]] += nbytes


def part_of_units(problem: Problem) -> Ints:
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


def _teams_of(problem: Problem, part: Ints) -> Ints:
    """(teams, parts) the device of each part in each team. Neighbouring accelerators are a team;
    the longest part of a team is on its fastest device."""
    devices, count = np.array(accelerators(problem)), int(part.max()) + 1
    # (units, devices): a unit that cannot run on a device takes no time there; it goes elsewhere.
    seconds = np.where(np.isfinite(problem.unit_seconds), problem.unit_seconds, 0)
    if len(devices) < count:
        # Fewer devices than parts have several parts in turn.
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
