"""Segments of the network that fit memory, one per accelerator or beside the fastest one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Order, Placement
from situate.data.problem import Problem
from situate.data.topology import (
    accelerators,
    folded_order,
)
from situate.solvers.auto.repair import move_until_it_fits
from situate.solvers.incumbent import Candidate
from situate.solvers.line_cut import cut, live_bytes, on_devices
from situate.solvers.search import Search

CUT_ROUNDS = 12
"""Largest number of cuts, each adjusted by the peaks of the one before."""


CPU_BUSY_SHARE = 0.5
"""A CPU that works for more than this share of the step is a bottleneck."""


PLACES, LONGEST = 20, 8
"""Number of places on the line where a segment may begin or end, and its largest length in places
once a plan fits."""

SEGMENT_SHARE, SEGMENT_SHARE_TO_FIT = 0.1, 0.3
"""Shares of the remaining budget for cuts and segments; the second applies while nothing fits."""


def offer_memory_fits(search: Search) -> None:
    """Offer segments of the folded line, repaired until they fit, if nothing fits yet or the
    incumbent keeps a CPU busy.

    Accelerators come in both orders unless they are alike. Unlike proportional cuts, which count
    persistent bytes, these segments account for activations.
    """
    problem = search.problem
    devices = accelerators(problem)
    if len(devices) < 2 or problem.rules.memory == "persistent" or not _worthwhile(search, devices):
        return
    line = folded_order(problem)
    for turn in (devices, devices[::-1])[: 1 if _alike(problem, devices) else 2]:
        nearest = _fit(search, line, turn)
        if not nearest.feasible:
            move_until_it_fits(search, nearest)
        if search.finished():
            return


def _worthwhile(search: Search, devices: list[int]) -> bool:
    problem, incumbent = search.problem, search.incumbent
    if problem.persistent.sum() > sum(problem.capacity[devices].tolist()):  # beyond 64 bits
        return False
    # (CPUs,) busy seconds: a busy CPU delays the accelerators.
    others = np.delete(incumbent.schedule.busy(problem), devices)
    return not incumbent.feasible or bool(
        (others > CPU_BUSY_SHARE * incumbent.schedule.makespan).any()
    )


def _alike(problem: Problem, devices: list[int]) -> bool:
    """True if the devices have equal speed and memory."""
    seconds, capacity = problem.seconds[:, devices], problem.capacity[devices]
    return bool((seconds == seconds[:, :1]).all() and (capacity == capacity[0]).all())


def _fit(search: Search, line: NDArray[np.int32], turn: list[int]) -> Candidate:
    """Offer cuts until one fits, and return the best one; each segment shrinks by its device's peak
    relative to its capacity."""
    problem = search.problem
    weight, order = live_bytes(problem), np.array(problem.graph.order, np.int32)
    capacity = problem.capacity[turn].astype(np.float64)
    share, candidates = capacity, list[Candidate]()
    while not candidates or (
        len(candidates) < CUT_ROUNDS and not (candidates[-1].feasible or search.finished())
    ):
        candidates.append(search.offer(cut(problem, turn, line, weight, share), order))
        # (devices,) at least a tenth, so that an almost empty device does not take everything.
        share = share / np.maximum(candidates[-1].schedule.peak[turn] / capacity, 0.1)
    return min(candidates, key=lambda candidate: candidate.score)


def outgrown(search: Search) -> bool:
    """True if the objective is time and the fastest of several accelerators cannot hold the network
    alone."""
    problem = search.problem
    by_time = problem.objective == "time" and problem.rules.memory != "persistent"
    if len(accelerators(problem)) < 2 or not by_time or problem.transfers == "atomic":
        return False
    alone = on_devices(problem, np.full(problem.units, _fastest(problem)))
    return search.estimate(alone, np.array(problem.graph.order, np.int32), "eager")[0] > 0


def offer_segments(search: Search) -> None:
    """For a network that has outgrown the fastest accelerator, offer cuts and segments of the
    folded line.

    Cuts give each accelerator a segment. Other plans put everything on the fastest accelerator but
    one segment. Of the infeasible plans that would be faster than the incumbent, the one closest to
    feasible is repaired.

    If the fastest device is full and slower ones have the wrong part, small moves do not improve
    the plan.
    """
    problem = search.problem
    order = np.array(problem.graph.order, np.int32)
    nearest = _nearest(search, order, _placements(search))
    if nearest is not None and not search.finished():
        move_until_it_fits(search, search.offer(nearest, order))


def _seconds(problem: Problem) -> NDArray[np.float64]:
    """(units, d) seconds on every device; zero if a unit cannot run there."""
    return np.where(np.isfinite(problem.unit_seconds), problem.unit_seconds, 0)


def _fastest(problem: Problem) -> int:
    work = _seconds(problem).sum(axis=0)
    return min(accelerators(problem), key=lambda d: float(work[d]))


def _nearest(search: Search, order: Order, placements: Iterator[Placement]) -> Placement | None:
    """Offer placements that beat the incumbent; of the others, return the one closest to feasible
    that would be faster."""
    nearest, least = None, (np.inf, np.inf)
    begin = search.budget.remaining()
    for placement in placements:
        incumbent = search.incumbent
        if search.budget.remaining() <= begin * (
            1 - (SEGMENT_SHARE if incumbent.feasible else SEGMENT_SHARE_TO_FIT)
        ):
            break
        score = search.estimate(placement, order, "eager")
        if score < incumbent.score:
            search.offer(placement, order)
        elif score < least and (score[1] < incumbent.value or not incumbent.feasible):
            nearest, least = placement, score
    return nearest


def _placements(search: Search) -> Iterator[Placement]:
    """Cuts by seconds and by bytes, then segments by both; while nothing fits, also long segments
    on devices with enough memory."""
    problem, line = search.problem, folded_order(search.problem)
    devices, fast, seconds = accelerators(problem), _fastest(problem), _seconds(problem)
    weights, work = (seconds[:, devices].mean(axis=1), live_bytes(problem)), seconds.sum(axis=0)
    speed = 1 / np.maximum(work[devices], 1e-300)
    for weight in weights:
        for way in (slice(None), slice(None, None, -1)):
            for share in (problem.capacity[devices].astype(np.float64), speed):
                yield cut(problem, devices[way], line, weight, share[way])
    # One device of each size and speed, because others of its kind give equivalent plans.
    kinds = {(problem.capacity[d], work[d]): d for d in reversed(devices) if d != fast}
    lines = [(weight, device) for weight in weights for device in kinds.values()]
    for weight, device in lines:
        yield from _segments(problem, line, weight, fast, device, range(1, LONGEST + 1))
    for weight, device in lines:
        both = sum(problem.capacity[[fast, device]].tolist())
        if not search.incumbent.feasible and problem.persistent.sum() <= both:
            yield from _segments(problem, line, weight, fast, device, range(LONGEST + 1, PLACES))


def _segments(
    problem: Problem,
    line: NDArray[np.int32],
    weight: NDArray[np.float64],
    fast: int,
    device: int,
    lengths: range,
) -> Iterator[Placement]:
    """Placements with a segment of the line on `device` and everything else on `fast`."""
    # (units,) the middle of each unit along the line, from 0 to `PLACES`.
    place = (np.cumsum(weight[line]) - weight[line] / 2) / max(weight.sum(), 1e-300) * PLACES
    for begin in range(PLACES):
        for end in range(begin + lengths.start, min(PLACES + 1, begin + lengths.stop)):
            of_unit = np.full(problem.units, fast)
            of_unit[line[(place >= begin) & (place < end)]] = device
            yield on_devices(problem, of_unit)
