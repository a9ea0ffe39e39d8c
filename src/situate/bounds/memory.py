"""The least memory that a plan can do with, whatever it places where."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from situate.bounds.best_order import bytes_of_best_order
from situate.bounds.device_sets import DeviceSets
from situate.bounds.live import WORK, Live, takes_time
from situate.bounds.tree import bytes_of_tree
from situate.data.arrays import Bools, Ints
from situate.data.problem import Problem

SETS, GROUPS = 64, 16
"""At most so many sets of devices, and colocation groups, are looked at for themselves."""


@dataclass(frozen=True)
class Need:
    """Bytes that one device or several together must hold at one moment.

    Attributes:
        name: of the bound, as docs/bounds.md calls it.
        bytes: of all of them together.
        room: the devices' capacities; where it may be any device, the largest capacity.
        devices: indices of the devices; empty where it may be any device.
    """

    name: str
    bytes: int
    room: tuple[int, ...]
    devices: tuple[int, ...] = ()

    @property
    def fits(self) -> bool:
        """True where the devices can hold that."""
        return self.bytes <= sum(self.room)

    @property
    def peak(self) -> int:
        """Bytes that the fullest device holds at least."""
        return level_share(self.bytes, self.room)


def level_share(held: int, room: Sequence[int]) -> int:
    """Bytes of an equal share of what devices hold, where those that cannot hold one are full."""
    left, rising = held, sorted(room)
    for full, capacity in enumerate(rising):
        # Rounded up, in integers: bytes beyond 2^53 are no exact floats.
        share = -(-left // (len(rising) - full))
        if share <= capacity:
            return share
        left -= capacity
    return -(-held // len(rising))


def least_peak(problem: Problem) -> int:
    """Bytes that the fullest device must hold, of a plan that fits."""
    return max(need.peak for need in needs(problem))


def needs(problem: Problem, until: float = math.inf) -> list[Need]:
    """All that one device or several must hold at once, whatever is placed where; fewer bytes where
    `time.perf_counter` says `until` before they are found."""
    sets = [(on, ops, _held(problem, ops)) for on, ops in _device_sets(problem)]
    found = [_largest_unit(problem)]
    found += [_share(problem, "persistent bytes", on, held) for on, _, held in sets]
    if problem.rules.memory == "persistent":
        return found
    found.append(_largest_op(problem))
    live = Live(problem)
    for on, ops, held in sets:
        size = held + live.least(ops, WORK // len(sets), until)
        found.append(_share(problem, "live tensors", on, size))
    everywhere, _, held_there = sets[0]
    for name, least in (("tree", bytes_of_tree), ("best order", bytes_of_best_order)):
        found.append(_share(problem, name, everywhere, held_there + least(problem, until)))
    above = max(need.peak for need in found)
    return found + [_group(problem, live, unit, until) for unit in _heavy_groups(problem, above)]


def _device_sets(problem: Problem) -> list[tuple[Bools, Bools]]:
    """Sets of devices (d,), each with the ops (n,) that can only run on devices of it: all
    devices that anything may run on, and those of every unit's."""
    distinct = DeviceSets.of(problem)
    rows = distinct.sets
    sets = {row.tobytes(): row for row in [rows.any(axis=0), *rows[:SETS]]}
    inside = [(on, ~(rows & ~on).any(axis=1)) for on in sets.values()]
    return [(on, confined[distinct.of_unit][problem.unit]) for on, confined in inside]


def _held(problem: Problem, ops: Bools) -> int:
    """Persistent bytes of the ops of a mask (n,)."""
    return int(problem.persistent[ops].sum())


def _share(problem: Problem, name: str, on: Bools, size: int) -> Need:
    """A need of the devices of a mask (d,) together."""
    return Need(
        name, size, tuple(problem.capacity[on].tolist()), tuple(np.flatnonzero(on).tolist())
    )


def _one(problem: Problem, name: str, size: int) -> Need:
    """A need that some device has, whichever it is."""
    return Need(name, size, (int(problem.capacity.max()),))


def _largest_unit(problem: Problem) -> Need:
    return _one(problem, "persistent bytes", int(problem.unit_persistent.max()))


def _largest_op(problem: Problem) -> Need:
    """Inputs, outputs and workspace of an op that takes time are on its device at once, beside all
    that its unit holds.

    An op far shorter than the schedule may end at the very instant at which it starts.
    """
    need = problem.workspace + problem.unit_persistent[problem.unit]
    # A resident tensor is part of its unit's persistent bytes already.
    size = np.where(problem.resident == 1, 0, problem.size)
    # An op may make or read several tensors: `np.add.at` adds them all to its entry (n,).
    np.add.at(need, problem.producer, size)
    repeat = np.diff(problem.consumer_start)
    np.add.at(need, problem.consumers, np.repeat(size, repeat))
    return _one(problem, "one op", int(need[takes_time(problem)].max(initial=0)))


def _group(problem: Problem, live: Live, unit: int, until: float) -> Need:
    """The need of a colocation group's ops on their device."""
    size = live.least(problem.unit == unit, WORK // GROUPS, until)
    return _one(problem, "live tensors", int(problem.unit_persistent[unit]) + size)


def _heavy_groups(problem: Problem, above: int) -> list[int]:
    """Units of several ops that may need more than the bytes `above`, those of most bytes first."""
    most = _most_of_unit(problem)
    several = np.bincount(problem.unit, minlength=problem.units) > 1
    candidates = np.flatnonzero(several & (most > above))
    falling = candidates[np.argsort(-most[candidates], kind="stable")]
    # On a single device all that there is was looked at together.
    return falling[:GROUPS].tolist() if problem.d > 1 else []


def _most_of_unit(problem: Problem) -> Ints:
    """(units,) no fewer than all bytes that a unit's ops hold, make, read and work with."""
    most = problem.unit_persistent.copy()
    np.add.at(most, problem.unit, problem.workspace)
    np.add.at(most, problem.unit[problem.producer], problem.size)
    repeat = np.diff(problem.consumer_start)
    np.add.at(most, problem.unit[problem.consumers], np.repeat(problem.size, repeat))
    return most
