"""Steps that take minutes: their distinct ops one by one, instead of all ops in place."""

from __future__ import annotations

import time

from situate.data.cluster import Cluster, Device
from situate.data.costs import Timing
from situate.data.graph import Graph
from situate.data.roofline import op_seconds
from situate.errors import SituateError
from situate.profiling import texts
from situate.profiling.replay import Call, replayed
from situate.runtime.hardware import RealDevice
from situate.runtime.processes.threads import threads
from situate.runtime.programs.program import Program

LONG_STEP_SECONDS = 60.0
"""Seconds of a step above which ops are run alone, if that is quicker."""

DISTINCT_OPS_SHARE = 0.4
"""Fraction of a step that its distinct ops take at most for that."""


def is_long(graph: Graph, device: Device) -> bool:
    """True if the distinct ops of a step are to run alone, by the roofline's estimates."""
    try:
        seconds = op_seconds(graph, Cluster("here", (device,)))[:, 0].tolist()
    except SituateError:
        return False
    distinct = {op.signature: s for op, s in zip(graph.ops, seconds, strict=True)}
    step = float(sum(seconds))
    return step > LONG_STEP_SECONDS and sum(distinct.values()) < DISTINCT_OPS_SHARE * step


def seconds_alone(program: Program, real: RealDevice) -> dict[str, Timing]:
    """Timings by signature, in this process, on as many threads as the device has."""
    import torch

    clock = texts.clock(real.threads)
    with threads(real.threads):
        return replayed(program, torch.device("cpu"), lambda call, n: _watched(call, n, clock))


def _watched(call: Call, count: int, clock: str) -> list[float]:
    now, seconds = getattr(time, clock), []
    for _ in range(count):
        began = now()
        call()
        seconds.append(now() - began)
    return seconds
