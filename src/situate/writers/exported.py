"""Predicted step and memory of a plan after its export, where the file does not hold all of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import numpy as np

from situate.data.problem import Problem
from situate.errors import SituateError
from situate.report.one_device import objective_value
from situate.report.tables import over_text
from situate.report.text import printable
from situate.report.units import size_text, time_text
from situate.schedule.schedule import Schedule
from situate.simulation.decoding import decode, rescheduled

MAX_DEVICES_LISTED = 8
"""Most devices that a line lists."""


def exported(problem: Problem, plan: Schedule, placement: Sequence[int]) -> Schedule | None:
    """The schedule of a placement (n,) in the plan's order of ops and transfers, or in the
    program's if that exceeds memory by less; None if an op cannot run where it is, or calls wait
    for one another."""
    devices = np.array(placement, np.int32)
    if not np.isfinite(problem.seconds[np.arange(problem.n), devices]).all():
        return None
    program = np.array(problem.graph.program_order, np.int32)
    try:
        found = rescheduled(problem, plan, devices)
        if found.decoder == "calls" or found.feasible(problem):
            return found
        other = decode(problem, devices, program, "serial")
    except SituateError:
        return None
    return min(found, other, key=lambda made: made.excess(problem))


def said(problem: Problem, plan: Schedule, found: Schedule | None, what: str) -> Iterator[str]:
    """Lines that tell how a file, called `what`, differs from its plan in figures, if it does."""
    if found is None:
        yield f"the {what} has no schedule: an op cannot run where it is, or calls wait for others"
        return
    if _figures(problem, found, found) != (line := _figures(problem, plan, found)):
        yield f"of the {what}: {line}"
    if found.placement.tolist() != plan.placement.tolist() and not found.feasible(problem):
        yield f"the {what} does not fit: {over_text(problem, found).removeprefix('no: ')}"


def placed(problem: Problem, plan: Schedule, devices: Mapping[str, int]) -> list[int]:
    """The device index of every op, by the innermost path of its module that `devices` has; the
    plan's for those without."""

    @cache
    def device(module: str) -> int | None:
        return next((devices[path] for path in _upwards(module) if path in devices), None)

    found = (device(op.module.replace("/", ".")) for op in problem.graph.ops)
    own = plan.placement.tolist()
    return [theirs if here is None else here for here, theirs in zip(found, own, strict=True)]


def _upwards(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[:i]) for i in range(len(parts), 0, -1)]


def _figures(problem: Problem, plan: Schedule, found: Schedule) -> str:
    """Predicted seconds of a step and bytes on each device, beside those of the plan."""
    unit = problem.graph.unit
    if problem.objective == "throughput":
        what, value = "time between steps", [s.period(problem) for s in (found, plan)]
    else:
        what, value = "predicted step", [float(s.makespan) for s in (found, plan)]
    seconds = [time_text(v, unit) for v in value]
    memory = [
        f"{printable(name, 40)} {size_text(int(own))} ({size_text(int(theirs))})"
        for name, own, theirs in zip(problem.cluster.names, found.peak, plan.peak, strict=True)
        if own or theirs
    ]
    listed = ", ".join(memory[:MAX_DEVICES_LISTED])
    more = ", ..." if len(memory) > MAX_DEVICES_LISTED else ""
    return f"{what} {seconds[0]} (the plan's {seconds[1]}); memory {listed}{more}"


def distance(problem: Problem, plan: Schedule, found: Schedule) -> float:
    """The distance of a schedule from the plan: the share of bytes held for the step, and that of
    seconds, that are on other devices, and the share by which its value is worse."""
    moved = found.placement != plan.placement
    seconds = problem.seconds[np.arange(problem.n), plan.placement]
    shares = [
        float(part[moved].sum()) / whole
        for part in (problem.persistent, seconds)
        if (whole := float(part.sum()))
    ]
    before = objective_value(problem, plan)
    worse = objective_value(problem, found) / before - 1 if before else 0.0
    return sum(shares) + max(0.0, worse)
