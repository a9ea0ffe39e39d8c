"""A schedule as columns for the page: bars, transfers, memory and the critical path."""

from __future__ import annotations

from typing import Any

import numpy as np

from situate.data.problem import Problem
from situate.data.problem_arrays import UNLIMITED
from situate.report.computing_time import computing_time
from situate.report.residency import TENSOR, Residency, residency
from situate.report.view.bars import Bars
from situate.report.view.block import Texts, smallest
from situate.report.view.waits import KINDS, last_inputs, path_columns
from situate.schedule.schedule import Schedule

MAX_INTERVALS = 1_200_000
"""Most intervals of memory that a page holds; the smaller ones beyond them are added up."""
SMALL = 3
"""The kind of a sum of small intervals, beside those of `situate.report.residency`."""
BINS = 2000
"""Parts of the step in which small intervals are added up."""


def plan_columns(problem: Problem, schedule: Schedule, bars: Bars) -> dict[str, Any]:
    """The columns of a schedule, and its devices and channels.

    Times are in the graph's unit, sizes in bytes; a limit of None is unlimited.
    """
    start, end = bars.span(schedule)
    return {
        "makespan": float(schedule.makespan),
        "decoder": schedule.decoder,
        "devices": _devices(problem, schedule),
        "channels": _channels(problem, schedule),
        "links": _links(problem, schedule),
        "ops": {
            "device": smallest(schedule.placement[bars.first].astype(np.int64)),
            "start": start,
            "end": end,
            "input": last_inputs(problem, schedule)[bars.first],
            "order": np.lexsort((end, start, schedule.placement[bars.first])).astype(np.uint32),
        },
        "transfers": _transfers(problem, schedule),
        "memory": _memory(problem, schedule, bars),
        "path": _path(problem, schedule, bars),
    }


def _devices(problem: Problem, schedule: Schedule) -> list[dict[str, Any]]:
    busy = computing_time(problem, schedule).tolist()
    counts = np.bincount(schedule.placement, minlength=problem.d).tolist()
    capacity, peak = problem.capacity.tolist(), schedule.peak.tolist()
    held = np.bincount(schedule.placement, problem.persistent, problem.d).tolist()
    return [
        {
            "name": device.name,
            "kind": device.kind,
            "model": device.model,
            "ops": counts[d],
            "busy": busy[d],
            "peak": peak[d],
            "held": held[d],
            "limit": None if capacity[d] >= UNLIMITED else capacity[d],
        }
        for d, device in enumerate(problem.cluster.devices)
    ]


def _channels(problem: Problem, schedule: Schedule) -> dict[str, Any]:
    """Names of the channels, and the share of each in seconds."""
    names = problem.cluster.channels
    return {"name": Texts(names), "busy": schedule.channel_busy(problem)}


def _links(problem: Problem, schedule: Schedule) -> dict[str, Any]:
    """One row for each pair of devices between which a transfer goes."""
    # One number a pair.
    pairs = schedule.source.astype(np.int64) * problem.d + schedule.target
    used, row = np.unique(pairs, return_inverse=True)
    source, target = used // problem.d, used % problem.d
    seconds = schedule.transfer_end - schedule.transfer_start
    return {
        "source": source.astype(np.uint16),
        "target": target.astype(np.uint16),
        "channel": problem.channel[source, target].astype(np.int32),
        "bytes": np.bincount(row, problem.size[schedule.tensor], len(used)),
        "seconds": np.bincount(row, seconds, len(used)),
        "count": np.bincount(row, minlength=len(used)).astype(np.uint32),
        "bandwidth": _finite(problem.bandwidth[source, target]),
        "latency": problem.latency[source, target],
    }


def _finite(values: np.ndarray[Any, np.dtype[np.float64]]) -> Any:
    """Zero in place of infinity."""
    return np.where(np.isfinite(values), values, 0.0)


def _transfers(problem: Problem, schedule: Schedule) -> dict[str, Any]:
    channel = problem.channel[schedule.source, schedule.target]
    return {
        "tensor": schedule.tensor.astype(np.uint32),
        "source": schedule.source.astype(np.uint16),
        "target": schedule.target.astype(np.uint16),
        "channel": channel.astype(np.int32),
        "start": schedule.transfer_start,
        "end": schedule.transfer_end,
        "order": np.lexsort((schedule.transfer_start, channel)).astype(np.uint32),
    }


def _memory(problem: Problem, schedule: Schedule, bars: Bars) -> dict[str, Any]:
    """Intervals of memory by device, as places on a clock of rising seconds."""
    content = residency(problem, schedule)
    clock, start, end = _clock(content)
    large = _largest(content.size)
    is_tensor = content.kind == TENSOR
    # Persistent bytes and workspaces belong to an op, whose bar the page knows.
    index = np.where(is_tensor, content.index, bars.of[np.where(is_tensor, 0, content.index)])
    rows = [
        (content.device[large], start[large], end[large], content.size[large]),
        *_small(problem.d, content, start, end, large, len(clock)),
    ]
    device, begin, stop, size = (np.concatenate(column) for column in zip(*rows, strict=True))
    more = len(size) - len(large)
    return {
        "clock": clock,
        "device": device.astype(np.uint16),
        "start": begin.astype(np.uint32),
        "end": stop.astype(np.uint32),
        "size": size.astype(np.float64),
        "kind": np.append(content.kind[large], np.full(more, SMALL)).astype(np.uint8),
        "index": np.append(index[large], np.zeros(more)).astype(np.uint32),
        "omitted": len(content.size) - len(large),
    }


def _clock(content: Residency) -> tuple[Any, Any, Any]:
    """Rising seconds, and the places of all starts and ends among them."""
    if len(content.seconds):  # rules that count memory per step have a clock of their own
        return content.seconds, content.start.astype(np.int64), content.end.astype(np.int64)
    times = np.concatenate((content.start, content.end))
    clock, place = np.unique(times, return_inverse=True)
    return clock, place[: len(content.start)], place[len(content.start) :]


def _largest(size: Any) -> Any:
    """Indices of the largest intervals, in their order."""
    if len(size) <= MAX_INTERVALS:
        return np.arange(len(size))
    return np.sort(np.argpartition(-size, MAX_INTERVALS)[:MAX_INTERVALS])


def _small(d: int, content: Residency, start: Any, end: Any, large: Any, length: int) -> list[Any]:
    """The other intervals as a curve of their greatest sum in each of `BINS` parts of the step."""
    if len(large) == len(content.size):
        return []
    is_small = np.ones(len(content.size), bool)
    is_small[large] = False
    edges = np.unique(np.linspace(0, length - 1, BINS + 1).astype(np.int64))
    rows = []
    for device in range(d):
        here = np.flatnonzero(is_small & (content.device == device))
        change = np.bincount(start[here], content.size[here], length)
        change -= np.bincount(end[here], content.size[here], length)
        # Changes of bytes add up to those in use at each instant; a part has its largest.
        use = np.maximum.reduceat(np.cumsum(change), edges[:-1])
        rows.append((np.full(len(use), device), edges[:-1], edges[1:], np.rint(use)))
    return rows


def _path(problem: Problem, schedule: Schedule, bars: Bars) -> dict[str, Any]:
    """The critical path; items from the number of bars on are transfers."""
    columns: dict[str, Any] = path_columns(problem, schedule)
    item = columns["item"].astype(np.int64)
    ops = np.where(item < problem.n, item, 0)
    moved = item - problem.n + len(bars.first)
    columns["item"] = np.where(item < problem.n, bars.of[ops], moved).astype(np.uint32)
    return {"kinds": list(KINDS), **columns}
