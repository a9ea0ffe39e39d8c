"""The roofline: an op takes as long as its arithmetic or its memory traffic, whichever is longer,
at the fraction of the device's peak that its class reaches (Williams et al., CACM 52(4), 2009)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from situate.cluster import Cluster, Device
from situate.costs.rates import EFFICIENCY, op_class
from situate.errors import SituateError
from situate.graph import Graph, Op

Floats = NDArray[np.float64]


def op_seconds(graph: Graph, cluster: Cluster) -> Floats:
    """Seconds of every op on every device, shape (ops, devices); infinite where it cannot run.

    An op's own `seconds` hold where it has them, just as they are. Any other op that does work
    (has `flops` or `traffic`) takes

        launch + max(flops / (peak[dtype] * efficiency), traffic / (bandwidth * efficiency))

    and one that does none (a parameter, an input, a view) takes no time.

    Raises:
        SituateError: an op without seconds of its own meets a device without the rates it needs.
    """
    measured = [j for j, op in enumerate(graph.ops) if op.seconds is not None]
    estimated = [j for j, op in enumerate(graph.ops) if op.seconds is None]
    seconds = np.empty((len(graph.ops), len(cluster.devices)))
    seconds[measured] = _own_seconds([graph.ops[j] for j in measured], cluster.devices)
    seconds[estimated] = _roofline([graph.ops[j] for j in estimated], cluster.devices)
    return seconds


def _own_seconds(ops: Sequence[Op], devices: Sequence[Device]) -> Floats:
    """Columns of devices that look their seconds up under the same keys are computed once."""
    tables = [op.seconds or {} for op in ops]
    used = set[str]().union(*tables)
    columns: dict[tuple[str, ...], Floats] = {}
    result = np.empty((len(ops), len(devices)))
    for d, device in enumerate(devices):
        keys = tuple(key for key in _keys(device) if key in used)
        if keys not in columns:
            columns[keys] = np.array([_first(table, keys) for table in tables], np.float64)
        result[:, d] = columns[keys]
    return result


def _keys(device: Device) -> tuple[str, ...]:
    """Where an op's seconds are looked up, in this order."""
    model = (device.model,) if device.model else ()
    accelerator = () if device.kind == "cpu" else ("accelerator",)
    return device.name, *model, device.kind, *accelerator, "*"


def _first(table: dict[str, float], keys: Sequence[str]) -> float:
    return next((table[key] for key in keys if key in table), np.inf)


def _roofline(ops: Sequence[Op], devices: Sequence[Device]) -> Floats:
    """Devices of equal rates share a column; ops of equal kind and dtype share a rate."""
    flops = np.array([op.flops for op in ops], np.float64)
    traffic = np.array([op.traffic for op in ops], np.float64)
    index: dict[tuple[str, str], int] = {}
    sort = np.array([index.setdefault((op.kind, op.dtype), len(index)) for op in ops], np.intp)
    columns: dict[str, Floats] = {}
    result = np.empty((len(ops), len(devices)))
    for d, device in enumerate(devices):
        rates = repr((device.flops, device.bandwidth, device.launch, device.efficiency))
        if rates not in columns:
            _check_rates(ops, flops, traffic, device)
            columns[rates] = _column(flops, traffic, sort, list(index), device)
        result[:, d] = columns[rates]
    return result


def _column(
    flops: Floats,
    traffic: Floats,
    sort: NDArray[np.intp],
    sorts: Sequence[tuple[str, str]],
    device: Device,
) -> Floats:
    """Seconds of the ops, op j of (kind, dtype) `sorts[sort[j]]`, on one device."""
    efficiency = EFFICIENCY | device.efficiency
    reached = np.array([efficiency[op_class(kind)] for kind, _ in sorts])[sort]
    peak = np.array([_peak(device, dtype) for _, dtype in sorts])[sort]
    busy = np.maximum(flops / peak, traffic / device.bandwidth) / reached
    return np.where((flops > 0) | (traffic > 0), device.launch + busy, 0.0)


def _peak(device: Device, dtype: str) -> float:
    """FLOP/s in `dtype`, else in float32; a device without either runs no arithmetic."""
    return device.flops.get(dtype, device.flops.get("float32", np.inf))


def _check_rates(ops: Sequence[Op], flops: Floats, traffic: Floats, device: Device) -> None:
    for j in np.flatnonzero((flops > 0) | (traffic > 0)):
        op = ops[int(j)]
        arithmetic = not flops[j] or op.dtype in device.flops or "float32" in device.flops
        if not arithmetic or not (device.flops or np.isfinite(device.bandwidth)):
            raise SituateError(
                f"op {op.name!r} on device {device.name!r}: no seconds and no rate to derive them "
                "from: plan on a preset or a TOML file that gives the device flops and bandwidth, "
                "or give the op seconds"
            )
