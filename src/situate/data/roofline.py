"""The roofline (Williams et al., CACM 52(4), 2009).

An op takes the longer of its arithmetic and its memory traffic, each at the fraction of the
device's peak that its class reaches.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Floats
from situate.data.cluster import Cluster, Device
from situate.data.cost_lookup import Rates, measured_as, rates, seconds_of
from situate.data.costs import Costs
from situate.data.graph import Graph, Op
from situate.data.op_classes import DTYPES, op_class
from situate.errors import SituateError


def op_seconds(graph: Graph, cluster: Cluster, costs: Costs | None = None) -> Floats:
    """Seconds of every op on every device, shape (ops, devices); infinite where it cannot run.

    An op's own `seconds` hold where it has them, just as they are; else the seconds that `costs`
    has for ops of its signature. Any other op that does work (has `flops` or `traffic`) takes

        launch + max(flops / (peak[dtype] * efficiency), traffic / (bandwidth * efficiency))

    and one that does none (a parameter, an input, a view) takes no time. `costs` holds fitted
    efficiencies too; docs/costs.md says which hold where.

    Raises:
        SituateError: an op without seconds meets a device without the rates it needs.
    """
    owned = [j for j, op in enumerate(graph.ops) if op.seconds is not None]
    others = [j for j, op in enumerate(graph.ops) if op.seconds is None]
    seconds = np.empty((len(graph.ops), len(cluster.devices)))
    seconds[owned] = _own_seconds([graph.ops[j] for j in owned], cluster.devices)
    seconds[others] = estimated_seconds([graph.ops[j] for j in others], cluster.devices, costs)
    return seconds


def _own_seconds(ops: Sequence[Op], devices: Sequence[Device]) -> Floats:
    """Columns of devices that look their seconds up under the same keys are computed once."""
    tables = [op.seconds or {} for op in ops]
    table_keys = set[str]().union(*tables)
    columns: dict[tuple[str, ...], Floats] = {}
    result = np.empty((len(ops), len(devices)))
    for d, device in enumerate(devices):
        keys = tuple(key for key in _keys(device) if key in table_keys)
        if keys not in columns:
            columns[keys] = np.array([_first(table, keys) for table in tables], np.float64)
        result[:, d] = columns[keys]
    return result


def _keys(device: Device) -> tuple[str, ...]:
    """Keys of an op's seconds on a device, in order of precedence."""
    model = (device.model,) if device.model else ()
    accelerator = () if device.kind == "cpu" else ("accelerator",)
    return device.name, *model, device.kind, *accelerator, "*"


def _first(table: dict[str, float], keys: Sequence[str]) -> float:
    return next((table[key] for key in keys if key in table), np.inf)


def estimated_seconds(
    ops: Sequence[Op], devices: Sequence[Device], costs: Costs | None = None
) -> Floats:
    """Measured seconds, else the roofline's, shape (ops, devices); an op's own do not count.

    Raises:
        SituateError: an op meets a device without the rates it needs.
    """
    # Devices of equal rates and seconds share a column.
    work = _work(ops)
    columns: dict[str, Floats] = {}
    result = np.empty((len(ops), len(devices)))
    for d, device in enumerate(devices):
        measured_device = measured_as(device, costs) if costs else None
        own = rates(device, costs)
        # As text, because rates hold dictionaries, which have no hash.
        key = repr((own, measured_device and measured_device.name))
        if key not in columns:
            columns[key] = _column(ops, work, seconds_of(ops, device, costs), device, own)
        result[:, d] = columns[key]
    return result


class _Work(NamedTuple):
    """(ops,) arrays; op j is of the kind and dtype `sorts[sort[j]]`."""

    flops: Floats
    traffic: Floats
    sort: NDArray[np.intp]
    sorts: list[tuple[str, str]]


def _work(ops: Sequence[Op]) -> _Work:
    index: dict[tuple[str, str], int] = {}
    sort = [index.setdefault((op.kind, op.dtype), len(index)) for op in ops]
    flops = np.array([op.flops for op in ops], np.float64)
    traffic = np.array([op.traffic for op in ops], np.float64)
    return _Work(flops, traffic, np.array(sort, np.intp), list(index))


def _column(
    ops: Sequence[Op], work: _Work, measurements: Floats, device: Device, rates: Rates
) -> Floats:
    """Seconds of the ops on one device; ops of equal kind and dtype share a rate."""
    busy = (work.flops > 0) | (work.traffic > 0)
    for j in np.flatnonzero(busy & np.isnan(measurements)):
        _check_rates(ops[int(j)], device, rates)
    reached = np.array([rates.reached[op_class(kind)] for kind, _ in work.sorts])
    peaks = np.array([peak(rates.flops, dtype) for _, dtype in work.sorts])[work.sort]
    # (3, ops): each op has the fractions of its sort; without ops there still are three rows.
    arithmetic, memory, launches = reached.reshape(-1, 3).T[:, work.sort]
    with np.errstate(over="ignore"):
        estimate = np.maximum(
            work.flops / peaks / arithmetic, work.traffic / rates.bandwidth / memory
        )
    _check_finite(ops, np.isinf(estimate) & np.isnan(measurements), device)
    estimated = np.where(busy, rates.launch * launches + estimate, 0.0)
    return np.where(np.isnan(measurements), estimated, measurements)


def _check_finite(ops: Sequence[Op], endless: NDArray[np.bool_], device: Device) -> None:
    if endless.any():
        raise SituateError(
            f"op {ops[int(endless.argmax())].name!r} on device {device.name!r}: takes more seconds "
            "than a number can hold: look at the device's flops and bandwidth"
        )


def _check_rates(op: Op, device: Device, rates: Rates) -> None:
    if not (rates.flops or np.isfinite(rates.bandwidth)):
        raise SituateError(
            f"op {op.name!r} on device {device.name!r}: no seconds and no rate to derive them "
            "from: plan on a preset or a TOML file that gives the device flops and bandwidth, "
            "or give the op seconds"
        )
    if op.flops and not np.isfinite(peak(rates.flops, op.dtype)):
        raise SituateError(
            f"op {op.name!r}: device {device.name!r} has no rate for {op.dtype or 'float32'} (it "
            f"has {', '.join(sorted(rates.flops)) or 'none'}): add it to its flops"
        )


# The peak rate of a device in a dtype.
_NARROW = re.compile(r"q?u?(int|float)(\d)(?!\d)")
"""Numbers of at most 8 bits: their sort and how many."""


def peak(flops: Mapping[str, float], dtype: str) -> float:
    """FLOP/s in `dtype`.

    If the device does not state it, numbers of at most 8 bits have the rate of the next wider dtype
    of their sort, else of 16-bit floats. Other dtypes have the rate of float32. If that is not
    stated either, the rate is infinite: such a device runs no arithmetic.
    """
    if dtype in flops:
        return flops[dtype]
    rates = ([flops[word] for word in words if word in flops] for words in _substitutes(dtype))
    return next((max(stated) for stated in rates if stated), inf)


@lru_cache(maxsize=256)
def _substitutes(dtype: str) -> tuple[tuple[str, ...], ...]:
    """Dtypes whose rate stands in for an unstated rate of `dtype`, best first."""
    match = _NARROW.match(dtype)
    if match is None:
        return (("float32",),)
    wider = (_dtypes_of(match[1], bits) for bits in range(int(match[2]), 9))
    return *wider, ("float16", "bfloat16"), ("float32",)


def _dtypes_of(sort: str, bits: int) -> tuple[str, ...]:
    """Dtypes of a sort, `int` or `float`, with this number of bits."""
    matches = {name: _NARROW.match(name) for name in DTYPES}
    return tuple(n for n, match in matches.items() if match and match.groups() == (sort, str(bits)))
