"""The measured device that stands for a device, and its costs of an op."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from situate.data.cluster import Device
from situate.data.costs import Costs, MeasuredDevice
from situate.data.graph import Graph, Op
from situate.data.op_classes import EFFICIENCY, op_class


@dataclass(frozen=True)
class Rates:
    """The rates from which the roofline derives the seconds of an op on one device.

    Attributes:
        flops: peak FLOP/s by dtype.
        bandwidth: peak bytes/s.
        launch: seconds of a launch.
        reached: by op class, the fractions of both peaks, and the number of launches.
    """

    flops: dict[str, float]
    bandwidth: float
    launch: float
    reached: dict[str, tuple[float, float, float]]


def measured_as(device: Device, costs: Costs) -> MeasuredDevice | None:
    """The measured device of the same name, else model, else kind; none that is known to be
    another model or to have another number of threads."""
    like = [entry for entry in costs.devices if entry.is_like(device)]
    same_name = [entry for entry in like if entry.name == device.name]
    modelled = [entry for entry in like if entry.model and entry.model == device.model]
    return next(iter((*same_name, *modelled, *like)), None)


def seconds_of(ops: Sequence[Op], device: Device, costs: Costs | None) -> NDArray[np.float64]:
    """(ops,) measured seconds on a device; NaN if not measured."""
    record = measured_as(device, costs) if costs else None
    seconds = record.seconds if record else {}
    timings = (seconds.get(op.signature) if op.signature else None for op in ops)
    return np.array([timing.median if timing else np.nan for timing in timings], np.float64)


def contention_of(ops: Sequence[Op], device: Device, costs: Costs | None) -> NDArray[np.float64]:
    """(ops,) slowdown of ops on a device while all other measured devices work; 1 if unknown."""
    record = measured_as(device, costs) if costs else None
    factors = record.contention if record else {}
    return np.array([factors.get(op_class(op.kind), 1.0) for op in ops], np.float64)


def workspace_of(ops: Sequence[Op], costs: Costs | None) -> NDArray[np.int64]:
    """(ops,) bytes: the most that any measured device needs, and at least the graph's own."""
    tables = [entry.workspace for entry in costs.devices] if costs else []
    if not tables:
        return np.array([op.workspace for op in ops], np.int64)
    sizes = (max((op.workspace, *(t.get(op.signature, 0) for t in tables))) for op in ops)
    return np.fromiter(sizes, np.int64, len(ops))


def coverage(graph: Graph, device: Device, costs: Costs) -> tuple[int, int]:
    """(measured, working): the ops that work and have no seconds of their own, and how many of them
    were measured on a device."""
    working = [op for op in graph.ops if op.seconds is None and (op.flops or op.traffic)]
    return int(np.isfinite(seconds_of(working, device, costs)).sum()), len(working)


def estimated(graph: Graph, devices: Sequence[Device], costs: Costs) -> list[str]:
    """Warnings for ops missing from the cost file; devices that miss the same ops share one
    line."""
    missing: dict[str, list[str]] = {}
    of_sort: dict[str, tuple[int, int]] = {}
    for device in devices:
        known_as = measured_as(device, costs)
        sort = known_as.name if known_as else ""
        if sort not in of_sort:
            of_sort[sort] = coverage(graph, device, costs)
        count, working = of_sort[sort]
        if count < working:
            subject = f"{working - count} of {working} ops were not" if count else "no op was"
            missing.setdefault(f"costs: {subject} measured on", []).append(device.name)
    return [
        f"{subject} "
        f"{', '.join(names[:3])}{f' and {len(names) - 3} more' if len(names) > 3 else ''}: "
        "their times are estimates"
        for subject, names in missing.items()
    ]


def rates(device: Device, costs: Costs | None) -> Rates:
    """The rates of a device.

    A measured device's rates come first. Otherwise they are the device's own, at its stated
    efficiencies, else those fitted on a device of its kind (at most its peaks), else the defaults.
    """
    reached = {name: (fraction, fraction, 1.0) for name, fraction in EFFICIENCY.items()}
    record = measured_as(device, costs) if costs else None
    if record is not None and record.efficiency:
        bandwidth = device.bandwidth if record.bandwidth is None else record.bandwidth
        flops = record.flops or device.flops
        return Rates(flops, bandwidth, record.launch, reached | _fitted(record))
    kin = (d for d in (costs.devices if costs else ()) if d.kind == device.kind and d.efficiency)
    reached |= {
        name: (min(1.0, arithmetic), min(1.0, memory), launches)
        for name, (arithmetic, memory, launches) in _fitted(next(kin, None)).items()
    }
    reached |= {name: (fraction, fraction, 1.0) for name, fraction in device.efficiency.items()}
    return Rates(device.flops, device.bandwidth, device.launch, reached)


def _fitted(record: MeasuredDevice | None) -> dict[str, tuple[float, float, float]]:
    fitted = record.efficiency if record else {}
    return {name: (fit.arithmetic, fit.memory, fit.launches) for name, fit in fitted.items()}
