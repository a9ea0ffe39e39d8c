"""What a plan comes to in a file that does not say all of it: predicted step and memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import numpy as np

from situate.decoding import DecoderName, decode, order_of
from situate.errors import SituateError
from situate.problem import Problem
from situate.report.single import objective_value
from situate.report.text import printable
from situate.report.units import size_text, time_text
from situate.schedule import Schedule

SHOWN = 8
"""How many devices a line lists."""


def exported(problem: Problem, plan: Schedule, placement: Sequence[int]) -> Schedule | None:
    """The schedule of a placement (n,) in the plan's order, or in the program's if that exceeds
    memory by less; None where it has none, because an op cannot run where it is."""
    devices = np.array(placement, np.int32)
    if not np.isfinite(problem.seconds[np.arange(problem.n), devices]).all():
        return None
    named = {name: name for name in get_args(DecoderName)}
    decoder: DecoderName = named.get(plan.decoder, "eager")
    program = np.array(problem.graph.program_order, np.int32)
    try:
        found = decode(problem, devices, order_of(problem, plan), decoder)
        if decoder == "calls" or found.feasible(problem):
            return found
        other = decode(problem, devices, program, "serial")
    except SituateError:
        return None
    return min(found, other, key=lambda made: made.excess(problem))


def figures(problem: Problem, plan: Schedule, found: Schedule | None) -> str:
    """Predicted seconds of a step and bytes on each device, beside those of the plan."""
    if found is None:
        return "it cannot be timed, for it puts ops where they cannot run"
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
    more = ", ..." if len(memory) > SHOWN else ""
    return (
        f"{what} {seconds[0]} (the plan's {seconds[1]}); memory {', '.join(memory[:SHOWN])}{more}"
    )


def over_text(problem: Problem, found: Schedule) -> str:
    """`gpu0 by 1,288,490,188 bytes, gpu1 by 300 bytes`; empty where it fits."""
    over = found.overflow(problem).tolist()
    names = zip(problem.cluster.names, over, strict=True)
    return ", ".join(f"{printable(name, 40)} by {size:,} bytes" for name, size in names if size)


def distance(problem: Problem, plan: Schedule, found: Schedule) -> float:
    """How far a schedule is from the plan: the share of bytes held for the step, and that of
    seconds, that are on other devices, and by what share its value is worse."""
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
