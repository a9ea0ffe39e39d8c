"""The device of every whole module: near the plan, and within memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, product

from situate.data.problem import Problem
from situate.schedule.schedule import Schedule
from situate.writers.accelerate_dispatch import placement_of
from situate.writers.exported import device_names, distance, exported
from situate.writers.whole_modules import INPUTS, Groups, Modules, folded, runs

SIZE_DIVISORS = (1, 2, 4, 8, 16, 32)
"""Divisors of all bytes: a module of at most that share goes whole. They are tried in turn."""

MAX_DISTANCE_RATIO = 0.65
"""Largest ratio of distances from the plan at which moving only smaller modules whole is worth
it."""

CLOSE_DISTANCE = 0.02
"""A distance from the plan below which the search ends."""

INPUTS_DISTANCE_ALLOWANCE = 0.2
"""Added to twice the distance that devices without moved inputs may be from the plan."""

MAX_SIMULATIONS = 200
"""Most placements that are simulated to come within memory."""

Assigned = dict[str, int]
"""Device index by the first path of a group."""


@dataclass(frozen=True)
class ModuleDevices:
    """Devices of whole modules.

    Attributes:
        devices: device index by path: of every module with parameters, of every module of the
            forward pass without submodules, and of a split module's own parameters and buffers.
        schedule: the resulting schedule; None if an op cannot run on its device.
        excess: bytes beyond the devices' capacities.
        distance: from the plan, see `distance`.
        loose: true if a split module receives a tensor of unknown origin, such as a mask.
        moves_inputs: true if the model moves inputs, such as labels, to its results.
    """

    devices: dict[str, int]
    schedule: Schedule | None
    excess: float
    distance: float
    loose: bool
    moves_inputs: bool

    @property
    def fits(self) -> bool:
        return not self.excess

    @property
    def close(self) -> bool:
        """True if nothing else need be tried."""
        return self.fits and not self.loose and self.distance <= CLOSE_DISTANCE

    def better(self, other: ModuleDevices, worth: float = 1.0) -> bool:
        """True if memory, then certainty to run, then a distance of at most `worth` times the
        other's is better."""
        own_cost, other_cost = (self.excess, self.loose), (other.excess, other.loose)
        return own_cost < other_cost or (
            own_cost == other_cost and self.distance < worth * other.distance
        )


def module_devices(problem: Problem, schedule: Schedule) -> ModuleDevices:
    """Whole modules on the device that runs most of their forward pass in the plan.

    State that only lies on another device, such as an optimiser's, is no reason to compute there.
    Modules that must share a device do so, in the grouping nearest to the plan. If a device could
    not hold its modules, they go to the device with most of their bytes; then groups move one by
    one.
    """
    search = _Search(problem, schedule)
    met = search.best(with_inputs=True)
    if met.close:
        return met
    free = search.best(with_inputs=False)
    nearer = (
        free.excess == met.excess and 2 * free.distance + INPUTS_DISTANCE_ALLOWANCE < met.distance
    )
    return free if free.moves_inputs and (free.excess < met.excess or nearer) else met


class _Search:
    def __init__(self, problem: Problem, plan: Schedule) -> None:
        self.problem, self.plan, self.trials = problem, plan, MAX_SIMULATIONS
        self.modules = Modules(problem.graph)
        names = enumerate(device_names(problem.cluster))
        self.accelerators = {device for device, place in names if isinstance(place, int)}

    def best(self, with_inputs: bool) -> ModuleDevices:
        """The best devices: by seconds, else by bytes, else after moves, else all on one."""
        drafts: list[tuple[ModuleDevices, Groups, Assigned]] = []
        for by_bytes in (False, True):
            # The second round, by bytes, takes the groups of the first.
            groupings = [groups for _, groups, _ in drafts] or self._groupings(with_inputs)
            for groups in groupings:
                assigned = self._assigned(groups, by_bytes)
                candidate = self._candidate(groups, assigned)
                drafts.append((candidate, groups, assigned))
                if candidate.close:
                    return candidate
            best = drafts[0][0]
            for candidate, *_ in drafts[1:]:
                best = candidate if candidate.better(best, MAX_DISTANCE_RATIO) else best
            if best.fits and not best.loose:
                return best
        for candidate in self._repaired(drafts):
            best = candidate if candidate.better(best) else best
            if best.fits and not best.loose:
                break
        return best

    def _repaired(
        self, drafts: list[tuple[ModuleDevices, Groups, Assigned]]
    ) -> Iterator[ModuleDevices]:
        """Drafts after moves, and all modules on each device."""
        for draft in sorted(drafts, key=lambda draft: (draft[0].loose, draft[0].excess)):
            yield self._after_moves(*draft)
        _, groups, assigned = drafts[0]
        for device in range(self.problem.d):
            yield self._candidate(groups, dict.fromkeys(assigned, device))

    def _groupings(self, with_inputs: bool) -> Iterator[Groups]:
        """The distinct groupings of modules."""
        visited = set()
        for share in SIZE_DIVISORS:
            groups = Groups(self.modules, self.modules.bytes_below[""] // share, with_inputs)
            key = tuple((path, groups.first(path)) for path in groups)
            if key not in visited:
                visited.add(key)
                yield groups

    def _assigned(self, groups: Groups, by_bytes: bool) -> Assigned:
        """Every group on the device with most of it."""
        seconds: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        sizes: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        for j, (op, device) in enumerate(
            zip(self.modules.ops, self.plan.placement.tolist(), strict=True)
        ):
            unit, here = self.modules.unit[j], groups.innermost(op.module)
            if op.persistent and unit is not None:
                sizes[groups.first(unit)][device] += op.persistent
            if here is not None and runs(op):
                seconds[groups.first(here)][device] += float(self.problem.seconds[j, device])
        one, other = (sizes, seconds) if by_bytes else (seconds, sizes)
        return {
            first: max(
                one[first].keys() | other[first].keys(),
                # `-d` prefers the first of equal devices, whatever the order of a set.
                key=lambda d: (one[first].get(d, 0.0), other[first].get(d, 0.0), -d),
            )
            for first in one.keys() | other.keys()
        }

    def _devices(self, groups: Groups, assigned: Assigned) -> dict[str, int]:
        """Device by path.

        The first accelerator of the map holds all modules beside the model's inputs, unless they
        wait elsewhere to be computed there. It also holds a split module's own parameters, which
        accelerate moves for no submodule.
        """
        in_use = self.accelerators.intersection(assigned.values())
        main = min(in_use, default=min(assigned.values(), default=0))
        devices = {path: assigned.get(groups.first(path), main) for path in groups}
        first = groups.first(INPUTS) if INPUTS in devices else None
        for path, device in devices.items():
            own = path in self.modules.own and (in_use and device not in in_use)
            beside = groups.first(path) == first and device in self.accelerators
            if own or beside or path in self.modules.root:
                devices[path] = main
        devices.pop(INPUTS, None)
        return devices

    def _candidate(self, groups: Groups, assigned: Assigned) -> ModuleDevices:
        devices = self._devices(groups, assigned)
        # Folded as in the file, so that modules without an entry go where they would.
        schedule = exported(self.problem, self.plan, placement_of(self.problem, folded(devices)))
        excess, far = float("inf"), float("inf")
        if schedule is not None:
            excess = float(schedule.excess(self.problem))
            far = distance(self.problem, self.plan, schedule)
        return ModuleDevices(devices, schedule, excess, far, groups.loose, groups.moves_inputs)

    def _after_moves(
        self, best: ModuleDevices, groups: Groups, assigned: Assigned
    ) -> ModuleDevices:
        """The best devices after greedy moves of groups."""
        while not best.fits and self.trials > 0:
            moves = list(islice(self._moves(best, assigned), self.trials))
            self.trials -= len(moves)
            before = best
            for move in moves:
                candidate = self._candidate(groups, move)
                if candidate.better(best):
                    best, assigned = candidate, move
            if best is before:
                break
        return best

    def _moves(self, best: ModuleDevices, assigned: Assigned) -> Iterator[Assigned]:
        """Moves for a device above its limit: it swaps with another device, or gives a group to one
        of the emptiest."""
        if best.schedule is None:
            return
        room = (self.problem.capacity - best.schedule.peak).tolist()
        full = [device for device, bytes_left in enumerate(room) if bytes_left < 0]
        roomy = sorted(range(self.problem.d), key=lambda device: -room[device])[:3]
        for device, other in product(full, roomy):
            swap = {device: other, other: device}
            yield {first: swap.get(d, d) for first, d in assigned.items()}
        for first, other in product(assigned, roomy):
            if assigned[first] in full and other != assigned[first]:
                yield {**assigned, first: other}
