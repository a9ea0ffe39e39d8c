"""Every op and transfer with its devices, start and end, for other people's programs to check."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from situate.data.problem import Problem
from situate.files.atomic import write_bytes
from situate.files.strict_json import json_bytes
from situate.report.computing_time import check_times
from situate.report.text import tensor_name
from situate.schedule.schedule import Schedule


def write(problem: Problem, schedule: Schedule, path: str | Path) -> None:
    """Write the schedule as JSON; `docs/formats/schedule.md` describes it.

    Raises:
        ScheduleError: the schedule never ends.
        SituateError: `path` cannot be written.
    """
    check_times(schedule)
    write_bytes(path, json_bytes(_content(problem, schedule)))


def _content(problem: Problem, schedule: Schedule) -> dict[str, Any]:
    """The file as plain objects: times in the graph's unit with full precision, sizes in bytes."""
    names = problem.cluster.names
    return {
        "graph": problem.graph.name,
        "cluster": problem.cluster.name,
        "rules": problem.rules.name,
        "transfer_mode": problem.transfers,
        "decoder": schedule.decoder,
        "unit": problem.graph.unit,
        "devices": names,
        "ops": _ops(problem, schedule),
        "transfers": _transfers(problem, schedule),
        "makespan": float(schedule.makespan),
        "peak_memory": dict(zip(names, schedule.peak.tolist(), strict=True)),
    }


def _ops(problem: Problem, schedule: Schedule) -> list[dict[str, Any]]:
    devices = problem.cluster.names
    columns = (schedule.placement, schedule.start, schedule.end)
    return [
        {"name": op.name, "device": devices[device], "start": start, "end": end}
        for op, device, start, end in zip(
            problem.graph.ops, *(column.tolist() for column in columns), strict=True
        )
    ]


def _transfers(problem: Problem, schedule: Schedule) -> list[dict[str, Any]]:
    devices = problem.cluster.names
    columns = (
        schedule.tensor,
        schedule.source,
        schedule.target,
        schedule.transfer_start,
        schedule.transfer_end,
    )
    return [
        {
            "tensor": tensor_name(problem, tensor),
            "from": devices[source],
            "to": devices[target],
            "start": start,
            "end": end,
        }
        for tensor, source, target, start, end in zip(
            *(column.tolist() for column in columns), strict=True
        )
    ]
