"""The ops of a step on the device, one by one as `situate profile` measures them, by op class."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import torch

from benchmarks.gpu.hardware import Call, wall_seconds
from benchmarks.gpu.process import Context
from situate.data.cluster import Device
from situate.data.costs import MeasuredDevice
from situate.data.graph import Graph, Op
from situate.data.op_classes import op_class
from situate.profiling import cuda
from situate.profiling.op_costs import efficiencies
from situate.profiling.replay import replay
from situate.runtime.hardware import RealDevice
from situate.runtime.programs.program import Program

MOST_EXAMPLES, LONGEST_SIGNATURE = 8, 160
"""Signatures of ops that are named, and characters of each."""


def measure_ops(
    context: Context, program: Program, device: Device, real: RealDevice
) -> MeasuredDevice:
    """The measured device; of the stand-in by the clock on the wall, where a GPU has events."""
    if context.on_gpu:
        return cuda.measure_device(program, device, real)

    def stopwatch(call: Call, count: int) -> list[float]:
        return [wall_seconds(context, call) for _ in range(count)]

    seconds = replay(program, torch.device(real.torch), stopwatch)
    costs = MeasuredDevice(
        device.name,
        device.kind,
        device.model,
        flops=device.flops,
        bandwidth=device.bandwidth,
        launch=device.launch,
        seconds=seconds,
    )
    return msgspec.structs.replace(costs, efficiency=efficiencies(program.graph.ops, costs))


def figures(graph: Graph, costs: MeasuredDevice) -> dict[str, Any]:
    """The launch, the fit of each op class, signatures without a measurement, the longest ops, and
    a sample of every distinct op: kind, dtype, FLOPs, bytes, seconds, and times in the step."""
    missing = {op.signature for op in graph.ops if op.signature} - costs.seconds.keys()
    return {
        "launch": costs.launch,
        "peaks": {"flops": costs.flops, "bandwidth": costs.bandwidth},
        "classes": [_class(name, graph.ops, costs) for name in _classes(graph.ops)],
        "distinct": len(costs.seconds),
        "missing": sorted(s[:LONGEST_SIGNATURE] for s in missing)[:MOST_EXAMPLES],
        "missing_count": len(missing),
        "longest": _longest(graph.ops, costs),
        "samples": _samples(graph.ops, costs),
    }


def _classes(ops: Iterable[Op]) -> list[str]:
    return sorted({op_class(op.kind) for op in ops if op.signature})


def _class(name: str, ops: Iterable[Op], costs: MeasuredDevice) -> dict[str, Any]:
    """The ops of a class in a step: how many, their seconds in sum, and the fit."""
    mine = [op for op in ops if op.signature in costs.seconds and op_class(op.kind) == name]
    fit = costs.efficiency.get(name)
    return {
        "class": name,
        "ops": len(mine),
        "seconds": sum(costs.seconds[op.signature].median for op in mine),
        "fit": None if fit is None else msgspec.to_builtins(fit),
    }


def _longest(ops: Iterable[Op], costs: MeasuredDevice) -> list[dict[str, Any]]:
    """The distinct ops whose seconds make up most of the step."""
    totals: dict[str, float] = {}
    for op in ops:
        if op.signature in costs.seconds:
            seconds = costs.seconds[op.signature].median
            totals[op.signature] = totals.get(op.signature, 0.0) + seconds
    first = sorted(totals, key=lambda signature: -totals[signature])[:MOST_EXAMPLES]
    return [{"op": name[:LONGEST_SIGNATURE], "seconds": totals[name]} for name in first]


def _samples(ops: Iterable[Op], costs: MeasuredDevice) -> list[list[Any]]:
    """A row for each distinct op that computes or moves anything."""
    rows: dict[str, list[Any]] = {}
    for op in ops:
        if op.signature in costs.seconds and (op.flops or op.traffic):
            seconds = costs.seconds[op.signature].median
            row = [op.kind, op.dtype, op.flops, op.traffic, seconds, 0]
            rows.setdefault(op.signature, row)[-1] += 1
    return list(rows.values())
