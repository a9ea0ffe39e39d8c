"""Predicted step and memory of a plan after an export that loses a part of it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import numpy as np

from situate.data.cluster import Cluster
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.report.one_device import objective_value
from situate.report.tables import over_text
from situate.report.text import printable
from situate.report.units import size_text, time_text
from situate.schedule.schedule import Schedule
from situate.simulation.decoding import decode, rescheduled

# Names that other tools give to the devices of a cluster.
DeviceName = int | str
"""The index of an accelerator, `cpu` or `disk`."""


def device_names(cluster: Cluster) -> list[DeviceName]:
    """Accelerators are numbered in the cluster's order; CPUs and disks have names."""
    names: list[DeviceName] = []
    for device in cluster.devices:
        numbered = sum(isinstance(place, int) for place in names)
        names.append(device.kind if device.kind in ("cpu", "disk") else numbered)
    return names


MAX_DEVICES_LISTED = 8
"""Most devices that a line lists."""


def exported(problem: Problem, plan: Schedule, placement: Sequence[int]) -> Schedule | None:
    """The schedule of a placement (n,) in the plan's order of ops and transfers.

    The program's order replaces it if that exceeds memory by less. None if an op cannot run on its
    device, or calls wait for one another.
    """
    devices = np.array(placement, np.int32)
    if not np.isfinite(problem.seconds[np.arange(problem.n), devices]).all():
        return None
    program = np.array(problem.graph.program_order, np.int32)
    try:
        replanned = rescheduled(problem, plan, devices)
        if replanned.decoder == "calls" or replanned.feasible(problem):
            return replanned
        # Serial decoding keeps the given order on each device, as a program without a planner does.
        other = decode(problem, devices, program, "serial")
    except SituateError:
        return None
    return min(replanned, other, key=lambda candidate: candidate.excess(problem))


def differences(
    problem: Problem, plan: Schedule, replanned: Schedule | None, noun: str
) -> Iterator[str]:
    """Lines about figures in which a file, called `noun`, differs from its plan."""
    if replanned is None:
        yield f"the {noun} has no schedule: an op cannot run where it is, or calls wait for others"
        return
    if _figures(problem, replanned, replanned) != (line := _figures(problem, plan, replanned)):
        yield f"of the {noun}: {line}"
    if replanned.placement.tolist() != plan.placement.tolist() and not replanned.feasible(problem):
        yield f"the {noun} does not fit: {over_text(problem, replanned).removeprefix('no: ')}"


def placement_by_module(problem: Problem, plan: Schedule, devices: Mapping[str, int]) -> list[int]:
    """The device index of every op, by the innermost path of its module in `devices`; ops without
    such a path stay on the plan's device."""

    @cache
    def device(module: str) -> int | None:
        return next((devices[path] for path in _upwards(module) if path in devices), None)

    devices_by_op = (device(op.module.replace("/", ".")) for op in problem.graph.ops)
    own = plan.placement.tolist()
    return [home if here is None else here for here, home in zip(devices_by_op, own, strict=True)]


def _upwards(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[:i]) for i in range(len(parts), 0, -1)]


def _figures(problem: Problem, plan: Schedule, replanned: Schedule) -> str:
    """Predicted seconds of a step and bytes on each device, beside the plan's."""
    unit = problem.graph.unit
    if problem.objective == "throughput":
        figure, value = "time between steps", [s.period(problem) for s in (replanned, plan)]
    else:
        figure, value = "predicted step", [float(s.makespan) for s in (replanned, plan)]
    seconds = [time_text(v, unit) for v in value]
    memory = [
        f"{printable(name, 40)} {size_text(int(own))} ({size_text(int(plan_bytes))})"
        for name, own, plan_bytes in zip(
            problem.cluster.names, replanned.peak, plan.peak, strict=True
        )
        if own or plan_bytes
    ]
    peaks_text = ", ".join(memory[:MAX_DEVICES_LISTED])
    more = ", ..." if len(memory) > MAX_DEVICES_LISTED else ""
    return f"{figure} {seconds[0]} (the plan's {seconds[1]}); memory {peaks_text}{more}"


def distance(problem: Problem, plan: Schedule, replanned: Schedule) -> float:
    """The distance of a schedule from the plan.

    It is the sum of three shares: persistent bytes and seconds on other devices, and the relative
    loss in value.
    """
    moved = replanned.placement != plan.placement
    seconds = problem.seconds[np.arange(problem.n), plan.placement]
    shares = [
        float(part[moved].sum()) / whole
        for part in (problem.persistent, seconds)
        if (whole := float(part.sum()))
    ]
    # A schedule that is better than the plan's is no nearer to it, so only losses count.
    before = objective_value(problem, plan)
    worse = objective_value(problem, replanned) / before - 1 if before else 0.0
    return sum(shares) + max(0.0, worse)


# Shell scripts that run any command with a plan's settings behind it.
def script(
    problem: Problem,
    devices: Sequence[str],
    environment: Mapping[str, str],
    arguments: Sequence[str] = (),
    launcher: Sequence[str] = (),
    note: str = "",
) -> bytes:
    """A script for `sh FILE COMMAND...`: the command, in this environment, with these arguments.

    Args:
        devices: names of the stages' devices, for the first comment.
        launcher: the launching command before it.
        note: a further comment.
    """
    title = f"{problem.graph.name} on {problem.cluster.name}: {', '.join(devices)}"
    lines = ["#!/bin/sh", *(f"# {printable(text)}" for text in (title, note) if text)]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
    parts = ("exec", shlex.join(launcher), '"$@"', shlex.join(arguments))
    lines += [" ".join(part for part in parts if part), ""]
    return "\n".join(lines).encode()
