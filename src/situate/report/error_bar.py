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
"""First and ninth decile of an op's seconds over the roofline's: measured, docs/costs.md."""

ROOFLINE_STEP = 1.64
"""Largest ratio of a step's seconds to the roofline's, of four steps: docs/costs.md."""

QUARTILES_TO_DECILES = 1.2816 / 0.6745
"""Ratio of the log range of eight tenths of all values to that of one half, on a normal curve.

Measured and fitted costs state the range of one half.
"""

MIN_FACTOR = 1e-3
"""Smallest ratio of a measured range; clocks return zero for short ops."""

SOURCES = ("graph", "measured", "fitted", "roofline")
"""Sources of an op's seconds, the most certain first."""


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

    Equal ops have the same error; errors of different ops are independent. The log of each op's
    range is weighted by the op's share of the computing, and the weighted logs add up in
    quadrature. All ops with roofline times also share one common error. Transfers and the graph's
    own times have no error.
    """
    path = critical_path(problem, schedule)
    ranges = _Ranges(problem)
    index = {op.name: j for j, op in enumerate(problem.graph.ops)}
    share: dict[Hashable, float] = defaultdict(float)
    range_of: dict[Hashable, _Range] = {}
    for element in path.elements:
        if element.kind == "compute" and element.seconds > 0:
            j = index[element.name]
            op, device = problem.graph.ops[j], int(schedule.placement[j])
            # Equal ops err together, so their shares add up before they are squared.
            key = (device, op.kind, op.dtype, op.flops, op.traffic, op.signature)
            share[key] += element.seconds / path.compute
            range_of.setdefault(key, ranges.of(op, device))
    shares = {
        source: sum(share[key] for key in share if range_of[key].source == source)
        for source in SOURCES
    }
    # Ranges are ratios: their logs add up, and a path half of the roofline errs by half the log.
    common = shares["roofline"] * math.log(ROOFLINE_STEP)
    down = math.hypot(common, *(share[key] * math.log(range_of[key].low) for key in share))
    up = math.hypot(common, *(share[key] * math.log(range_of[key].high) for key in share))
    # Waiting is for the computing of other ops, so it has the same range.
    computing = float(schedule.makespan) - path.transfer
    return ErrorBar(
        path.transfer + computing * math.exp(-down),
        path.transfer + computing * math.exp(up),
        {source: part for source, part in shares.items() if part},
    )


class _Range(NamedTuple):
    """The range of an op's time as factors of the prediction."""

    source: str
    low: float
    high: float


class _Ranges:
    """The range of every op on every device."""

    def __init__(self, problem: Problem) -> None:
        devices, costs = problem.cluster.devices, problem.costs
        self.records = [measured_as(device, costs) if costs else None for device in devices]
        self.fitted = [_fitted(device, costs) for device in devices]

    def of(self, op: Op, device: int) -> _Range:
        if op.seconds is not None:
            return _Range("graph", 1.0, 1.0)
        costs = self.records[device]
        timing = costs.seconds.get(op.signature) if costs and op.signature else None
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
    """The fit of a device's roofline by op class, by the same rule as `cost_lookup.rates`."""
    if costs is None:
        return {}
    record = measured_as(device, costs)
    if record is not None and record.efficiency:
        return record.efficiency
    kin = (d.efficiency for d in costs.devices if d.kind == device.kind and d.efficiency)
    fits = next(kin, {})
    return {name: fit for name, fit in fits.items() if name not in device.efficiency}
