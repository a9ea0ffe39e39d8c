"""The likely error of a predicted step, by where the times of its ops come from."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from situate.data.cluster import Device
from situate.data.cost_lookup import measured_as
from situate.data.costs import Costs, Efficiency
from situate.data.graph import Op
from situate.data.op_classes import op_class
from situate.data.problem import Problem
from situate.report.critical import critical_path
from situate.schedule.schedule import Schedule

ROOFLINE_OP = (0.11, 6.3)
"""A tenth of all ops take less than so many times the roofline's seconds, a tenth more: measured,
docs/costs.md."""

ROOFLINE_STEP = 1.64
"""Whole steps took up to so many times the roofline's seconds: the worst of four, docs/costs.md."""

QUARTILES_TO_DECILES = 1.2816 / 0.6745
"""From the logarithm that half of all values are within to the one that eight tenths are within, on
a normal curve: measured and fitted costs tell of halves."""

MIN_FACTOR = 1e-3
"""Smallest factor that a measurement may tell of: clocks return zero for what is short."""

SOURCES = ("graph", "measured", "fitted", "roofline")
"""Where the seconds of an op come from, the most certain first."""


@dataclass(frozen=True)
class ErrorBar:
    """Eight steps of ten are expected between `low` and `high`, in the graph's unit of time.

    Attributes:
        shares: fractions of the critical path's computing by the source of its times: given by
            the `graph`, `measured`, from a roofline `fitted` to measurements, or from the
            `roofline` alone. Empty where nothing is computed on it.
    """

    low: float
    high: float
    shares: dict[str, float]


def error_bar(problem: Problem, schedule: Schedule) -> ErrorBar:
    """The range around the makespan.

    Ops alike err alike, all others on their own: of the logarithms of the ranges of single ops,
    each times its share of the computing, it is the root of the sum of squares. The roofline has an
    error common to all of its ops besides. Transfers, and times that the graph brings, count as
    they are.
    """
    path = critical_path(problem, schedule)
    ranges = _Ranges(problem)
    index = {op.name: j for j, op in enumerate(problem.graph.ops)}
    share: dict[Hashable, float] = defaultdict(float)
    found: dict[Hashable, _Range] = {}
    for element in path.elements:
        if element.kind == "compute" and element.seconds > 0:
            j = index[element.name]
            op, device = problem.graph.ops[j], int(schedule.placement[j])
            alike = (device, op.kind, op.dtype, op.flops, op.traffic, op.signature)
            share[alike] += element.seconds / path.compute
            found.setdefault(alike, ranges.of(op, device))
    shares = {
        source: sum(share[alike] for alike in share if found[alike].source == source)
        for source in SOURCES
    }
    common = shares["roofline"] * math.log(ROOFLINE_STEP)
    down = math.hypot(common, *(share[alike] * math.log(found[alike].low) for alike in share))
    up = math.hypot(common, *(share[alike] * math.log(found[alike].high) for alike in share))
    computed = float(schedule.makespan) - path.transfer
    return ErrorBar(
        path.transfer + computed * math.exp(-down),
        path.transfer + computed * math.exp(up),
        {source: part for source, part in shares.items() if part},
    )


class _Range(NamedTuple):
    """The range of an op's time as factors on what is predicted."""

    source: str
    low: float
    high: float


class _Ranges:
    """The range of every op on every device."""

    def __init__(self, problem: Problem) -> None:
        devices, costs = problem.cluster.devices, problem.costs
        self.measured = [measured_as(device, costs) if costs else None for device in devices]
        self.fitted = [_fitted(device, costs) for device in devices]

    def of(self, op: Op, device: int) -> _Range:
        if op.seconds is not None:
            return _Range("graph", 1.0, 1.0)
        known = self.measured[device]
        timing = known.seconds.get(op.signature) if known and op.signature else None
        if timing is not None and timing.median > 0:
            low = max(timing.low / timing.median, MIN_FACTOR) ** QUARTILES_TO_DECILES
            return _Range("measured", low, (timing.high / timing.median) ** QUARTILES_TO_DECILES)
        fit = self.fitted[device].get(op_class(op.kind))
        if fit is not None:
            return _Range(
                "fitted", fit.error**-QUARTILES_TO_DECILES, fit.error**QUARTILES_TO_DECILES
            )
        return _Range("roofline", *ROOFLINE_OP)


def _fitted(device: Device, costs: Costs | None) -> Mapping[str, Efficiency]:
    """By op class, what the roofline of a device is fitted to, as `cost_lookup.rates` has it."""
    if costs is None:
        return {}
    known = measured_as(device, costs)
    if known is not None and known.efficiency:
        return known.efficiency
    kin = (d.efficiency for d in costs.devices if d.kind == device.kind and d.efficiency)
    fits = next(kin, {})
    return {name: fit for name, fit in fits.items() if name not in device.efficiency}
