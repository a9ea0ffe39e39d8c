"""Pipelines: contiguous segments of the network, one per device."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate import _core
from situate.data.arrays import Placement
from situate.data.problem import Problem
from situate.data.topology import accelerators, op_devices, pipeline_order
from situate.solvers.line_cut import live_bytes
from situate.solvers.search import Search

SPLIT_MOVES = 4_000_000
"""Approximate limit on the moves of a unit to weigh all segments; longer lines have fewer places
where a segment may begin."""

OFFERS_TO_SPLIT = 400
"""These moves take less time than so many offers."""

SPLIT_SHARES = (1, 1 / 2, 1 / 4, 1 / 8, 1 / 16)
"""Shares of these moves; the largest that fits in the time is used."""


def offer_pipelines(search: Search) -> None:
    """Offer the pipeline that fills device after device; if loads count or nothing fits yet, also
    the pipeline with the shortest period."""
    problem = search.problem
    order = np.array(problem.graph.order, np.int32)
    search.offer(fill(problem), order)
    best = search.best
    if best is None or search.finished():
        return
    by_load = problem.objective == "throughput" or problem.transfers == "atomic"
    if not by_load and best.feasible:
        return
    step = _step(search)
    if step is None:
        return
    line = pipeline_order(problem)
    core = search.simulator.core
    balancers = _core.search.make_load_annealers(core, search.seed, 1, best.placement, line)
    for turn in turns(problem):
        balancers.split(turn, step)
        search.budget.evaluations += 1
        if search.finished():
            break
    search.offer(balancers.best(0)[2], order)


def _step(search: Search) -> int | None:
    """Distance in units between two places where a segment may begin; None without enough time.

    It is 1 up to about a thousand units, and more if time is short.
    """
    problem = search.problem
    share = next((s for s in SPLIT_SHARES if search.budget.affords(OFFERS_TO_SPLIT * s)), None)
    if share is None:
        return None
    begins = share * SPLIT_MOVES * problem.d / (2 * problem.units)
    return max(1, round(problem.units / min(1000, max(50, begins))))


def turns(problem: Problem) -> list[NDArray[np.int32]]:
    """Orders of the devices along a pipeline: accelerators in file order with the CPUs behind them,
    or with one CPU at each place before or between them."""
    fast = accelerators(problem)
    slow = [d for d in range(problem.d) if d not in fast]
    lines = [fast + slow]
    if slow:
        lines += [fast[:i] + slow[:1] + fast[i:] for i in range(len(fast))]
    return [np.array(line, np.int32) for line in lines]


def fill(problem: Problem) -> Placement:
    """Placement (n,) that fills every device before the next, along the pipeline's order.

    A unit counts with its persistent bytes and, unless the rules ignore them, its output bytes.
    """
    weight = problem.unit_persistent.astype(np.float64)
    if problem.rules.memory != "persistent":
        weight = live_bytes(problem)
    fast = accelerators(problem)
    # CPUs take the remaining units.
    turn = fast + [d for d in range(problem.d) if d not in fast]
    room, needed = problem.capacity.astype(np.float64).tolist(), weight.tolist()
    allowed, of_unit = problem.allowed, problem.allowed.argmax(axis=1)
    for unit in pipeline_order(problem).tolist():
        fits = (d for d in turn if room[d] >= needed[unit] and allowed[unit, d])
        of_unit[unit] = device = next(fits, int(of_unit[unit]))
        room[device] -= needed[unit]
    return op_devices(problem, of_unit)
