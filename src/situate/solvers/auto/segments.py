"""Segments of the network on other devices, if the fastest one cannot hold all of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Order, Placement
from situate.data.problem import Problem
from situate.data.topology import accelerators, folded_order
from situate.solvers.auto.memory.memory_fit import repair
from situate.solvers.line_cut import cut, live_bytes, on_devices
from situate.solvers.search import Search

PLACES, LONGEST = 20, 8
"""Number of places on the line where a segment may begin or end, and its largest length in places
once a plan fits."""

SEGMENT_SHARE, SEGMENT_SHARE_TO_FIT = 0.1, 0.3
"""Shares of the remaining budget for cuts and segments; the second applies while nothing fits."""


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
        repair(search, search.offer(nearest, order))


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
