"""A problem in the form that the C++ core computes on."""

from __future__ import annotations

import numpy as np

from situate import _core
from situate.data.problem import Problem


def core_problem(problem: Problem) -> _core.problem.Problem:
    """The problem as the core holds it."""
    ops = _core.problem.Ops(
        seconds=np.ascontiguousarray(problem.seconds),
        persistent=problem.persistent,
        workspace=problem.workspace,
        order=np.array(problem.graph.order, np.int32),
        unit=problem.unit,
        allowed=problem.allowed.astype(np.uint8),
    )
    tensors = _core.problem.Tensors(
        size=problem.size,
        producer=problem.producer,
        consumer_start=problem.consumer_start,
        consumers=problem.consumers,
        own_seconds=problem.transfer_seconds,
        resident=problem.resident,
        output=problem.output,
    )
    devices = _core.problem.Devices(
        capacity=problem.capacity,
        pays=problem.accelerators.astype(np.uint8),
        latency=problem.latency,
        bandwidth=problem.bandwidth,
        channel=problem.channel,
    )
    rules = _core.problem.Rules(
        blocking=problem.transfers == "blocking",
        contention=problem.rules.contention,
        signals=problem.rules.signals,
        atomic=problem.transfers == "atomic",
        memory=problem.rules.memory,
        synchronisation=problem.cluster.synchronisation,
    )
    return _core.problem.Problem(ops=ops, tensors=tensors, devices=devices, rules=rules)
