"""Lower bounds on memory, for any placement; docs/bounds.md derives them."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from situate import _core
from situate.bounds.alike import DeviceSets
from situate.bounds.live import WORK, Live, all_take_time, takes_time
from situate.data.arrays import Bools, Ints
from situate.data.core_problem import core_problem
from situate.data.problem import Problem
from situate.data.tree_order import SECONDS_AN_OP, is_tree, tree_order

SETS, GROUPS = 64, 16
"""Most sets of devices, and most colocation groups, with a bound of their own."""


@dataclass(frozen=True)
class Need:
    """Bytes that one device or several together must hold at one moment.

    Attributes:
        name: of the bound, as docs/bounds.md calls it.
        bytes: of all of them together.
        room: the devices' capacities; the largest capacity if it may be any device.
        devices: indices of the devices; empty if it may be any device.
    """

    name: str
    bytes: int
    room: tuple[int, ...]
    devices: tuple[int, ...] = ()

    @property
    def fits(self) -> bool:
        """True if the devices can hold these bytes."""
        return self.bytes <= sum(self.room)

    @property
    def peak(self) -> int:
        """Lower bound on the bytes of the fullest device."""
        return level_share(self.bytes, self.room)


def level_share(total: int, room: Sequence[int]) -> int:
    """Bytes of an equal share of `total`; devices too small for a share are full."""
    remaining, rising = total, sorted(room)
    for full, capacity in enumerate(rising):
        # Rounded up, in integers: bytes beyond 2^53 are no exact floats.
        share = -(-remaining // (len(rising) - full))
        if share <= capacity:
            return share
        remaining -= capacity
    return -(-total // len(rising))


def least_peak(problem: Problem) -> int:
    """Lower bound on the bytes of the fullest device of a feasible plan."""
    return max(need.peak for need in needs(problem))


def needs(problem: Problem, until: float = math.inf) -> list[Need]:
    """All needs of one device or several at once, for any placement.

    Needs are smaller if `time.perf_counter` reaches `until` before their search ends.
    """
    sets = [(on, ops, _persistent_bytes(problem, ops)) for on, ops in _device_sets(problem)]
    result = [_largest_unit(problem)]
    result += [_share(problem, "persistent bytes", on, persistent) for on, _, persistent in sets]
    if problem.rules.memory == "persistent":
        return result
    result.append(_largest_op(problem))
    live = Live(problem)
    for on, ops, persistent in sets:
        size = persistent + live.least(ops, WORK // len(sets), until)
        result.append(_share(problem, "live tensors", on, size))
    everywhere, _, held_there = sets[0]
    for name, least in (("tree", bytes_of_tree), ("best order", bytes_of_best_order)):
        result.append(_share(problem, name, everywhere, held_there + least(problem, until)))
    above = max(need.peak for need in result)
    return result + [_group(problem, live, unit, until) for unit in _heavy_groups(problem, above)]


def _device_sets(problem: Problem) -> list[tuple[Bools, Bools]]:
    """Sets of devices (d,), each with the ops (n,) confined to it.

    The first set has all devices that any op may run on; the others are the units' allowed sets.
    """
    distinct = DeviceSets.of(problem)
    rows = distinct.sets
    sets = {row.tobytes(): row for row in [rows.any(axis=0), *rows[:SETS]]}
    # A set of devices is confined to `on` if it has none outside.
    inside = [(on, ~(rows & ~on).any(axis=1)) for on in sets.values()]
    return [(on, confined[distinct.of_unit][problem.unit]) for on, confined in inside]


def _persistent_bytes(problem: Problem, ops: Bools) -> int:
    """Persistent bytes of the ops of a mask (n,)."""
    return int(problem.persistent[ops].sum())


def _share(problem: Problem, name: str, on: Bools, size: int) -> Need:
    """A need of the devices of a mask (d,) together."""
    return Need(
        name, size, tuple(problem.capacity[on].tolist()), tuple(np.flatnonzero(on).tolist())
    )


def _one(problem: Problem, name: str, size: int) -> Need:
    """A need of some device, which may be any."""
    return Need(name, size, (int(problem.capacity.max()),))


def _largest_unit(problem: Problem) -> Need:
    return _one(problem, "persistent bytes", int(problem.unit_persistent.max()))


def _largest_op(problem: Problem) -> Need:
    """The need of one op: its inputs, outputs and workspace beside its unit's persistent bytes.

    Only ops that take time count: an op far shorter than the schedule may start and end at the same
    instant.
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
    """Units of several ops that may need more than `above` bytes, the largest first."""
    most = _most_of_unit(problem)
    several = np.bincount(problem.unit, minlength=problem.units) > 1
    candidates = np.flatnonzero(several & (most > above))
    falling = candidates[np.argsort(-most[candidates], kind="stable")]
    # On a single device the sets of devices already cover all ops.
    return falling[:GROUPS].tolist() if problem.d > 1 else []


def _most_of_unit(problem: Problem) -> Ints:
    """(units,) upper bound on the bytes that a unit's ops hold, produce, read and work with."""
    most = problem.unit_persistent.copy()
    np.add.at(most, problem.unit, problem.workspace)
    np.add.at(most, problem.unit[problem.producer], problem.size)
    repeat = np.diff(problem.consumer_start)
    np.add.at(most, problem.unit[problem.consumers], np.repeat(problem.size, repeat))
    return most


# The bytes that a tree of ops needs at once; docs/bounds.md derives them.
def bytes_of_tree(problem: Problem, until: float = math.inf) -> int:
    """Bytes of tensors and workspaces that are live at once in every schedule of a tree of ops.

    They are 0 if some op has several readers, if an op without duration needs bytes, or if
    `time.perf_counter` reaches `until` first.
    """
    if time.perf_counter() + SECONDS_AN_OP * problem.n > until or not is_tree(problem):
        return 0
    return tree_order(problem).bytes if all_take_time(problem) else 0


# The bytes that few ops need at once in their best order; docs/bounds.md derives them.
ORDER_SETS, ORDER_SECONDS = 20_000, 0.1
"""Sets of ops to look at, and seconds that they take at most."""


def bytes_of_best_order(problem: Problem, until: float = math.inf) -> int:
    """Bytes of tensors and workspaces that are live at once in every schedule.

    They are 0 for more than 64 ops, if `ORDER_SETS` are not enough, if an op without duration needs
    bytes, or if `time.perf_counter` reaches `until` first.
    """
    if time.perf_counter() + ORDER_SECONDS > until or not all_take_time(problem):
        return 0
    return _core.search.least_order_peak(core_problem(problem), ORDER_SETS) or 0
