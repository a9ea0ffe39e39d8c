"""Work and copies of devices under a placement: seconds by phase, by module and by kind of
copy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.lib.record import Row
from situate.data.problem import Problem
from situate.data.topology import accelerators
from situate.grouping.module_calls import SHARED, calls
from situate.schedule.schedule import Schedule

PHASES = ("forward", "backward", "update")
COPIES = ("between GPUs", "between a GPU and the CPU")


def summary(problem: Problem, schedule: Schedule) -> Row:
    """Figures of the whole placement; seconds are None where it does not fit."""
    fits = bool((schedule.peak <= problem.capacity).all())
    gpus = accelerators(problem)
    busy = schedule.busy(problem)[gpus]
    return {
        "seconds": schedule.makespan if fits else None,
        "fullest_gpu_bytes": int(schedule.peak[gpus].max()),
        "gpus": int((busy > 0).sum()),
        "least_busy_gpu": float(busy.min()),
        "busiest_gpu": float(busy.max()),
        "transfers": len(schedule.tensor),
        "moved_bytes": int(problem.size[schedule.tensor].sum()),
        "calls_apart": calls_apart(problem, schedule),
    }


def calls_apart(problem: Problem, schedule: Schedule) -> float | None:
    """The fraction of calls of a module whose ops are on several devices; None without calls, and
    where each slice of the batch is one."""
    if problem.graph.slices is not None:
        return None
    where: dict[tuple[str, int], set[int]] = {}
    for call, device in zip(calls(problem.graph), schedule.placement.tolist(), strict=True):
        if call is not None and call[1] != SHARED:
            where.setdefault(call, set()).add(device)
    return sum(len(devices) > 1 for devices in where.values()) / len(where) if where else None


def load(problem: Problem, schedule: Schedule) -> Iterator[Row]:
    """A row for each device: seconds of its ops, by phase."""
    seconds = schedule.end - schedule.start
    phases = np.array([op.phase for op in problem.graph.ops])
    for device, name in enumerate(problem.cluster.names):
        here = schedule.placement == device
        yield {"device": name} | {
            phase: float(seconds[here & (phases == phase)].sum()) for phase in PHASES
        }


def copies(problem: Problem, schedule: Schedule) -> Iterator[Row]:
    """A row for each kind of copy: how many, their bytes, and seconds on their links."""
    gpus = set(accelerators(problem))
    ends = zip(schedule.source.tolist(), schedule.target.tolist(), strict=True)
    kinds = np.array([COPIES[not {source, target} <= gpus] for source, target in ends])
    seconds = schedule.transfer_end - schedule.transfer_start
    for kind in COPIES:
        of = kinds == kind if len(kinds) else np.zeros(0, bool)
        yield {
            "kind": kind,
            "transfers": int(of.sum()),
            "bytes": int(problem.size[schedule.tensor[of]].sum()),
            "seconds": float(seconds[of].sum()),
        }


def modules(problem: Problem, schedule: Schedule) -> Iterator[Row]:
    """Seconds of each outermost module, and the fraction of them on each device."""
    names = np.array([op.module.partition(".")[0] for op in problem.graph.ops])
    for name in dict.fromkeys(names[list(problem.graph.order)].tolist()):
        if name:
            yield {"module": name, **_of_ops(problem, schedule, names == name)}


def _of_ops(problem: Problem, schedule: Schedule, ops: np.ndarray) -> Row:
    seconds = (schedule.end - schedule.start)[ops]
    on = np.bincount(schedule.placement[ops], seconds, problem.d)
    fractions = (on / max(float(on.sum()), 1e-300)).round(4).tolist()
    return {"seconds": float(on.sum()), **dict(zip(problem.cluster.names, fractions, strict=True))}
