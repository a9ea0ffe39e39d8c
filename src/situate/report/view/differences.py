"""Differences between two plans of one model, op by op and module by module."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from situate.report.view.plan_report import PlanReport

MAX_ROWS = 200
"""Most modules in a table of differences."""


def differences(first: PlanReport, other: PlanReport) -> dict[str, Any]:
    """Ops that the `other` plan places elsewhere, and ops of only one of them.

    Returns:
        `moved`: number of ops on another device; `common`: ops of both plans; `only_first`,
        `only_other`: ops of one plan; `same`: True if nothing differs, not even the times;
        `modules`: rows of module, ops, seconds in the other plan, device before, device after.
    """
    places = _devices(first)
    rows: dict[tuple[str, str, str], list[float]] = defaultdict(lambda: [0, 0.0])
    common = 0
    seconds = (other.schedule.end - other.schedule.start).tolist()
    now = _devices(other)
    for j, op in enumerate(other.problem.graph.ops):
        before = places.get(op.name)
        if before is None:
            continue
        common += 1
        if before != now[op.name]:
            row = rows[op.module, before, now[op.name]]
            row[0] += 1
            row[1] += seconds[j]
    ranked = sorted(rows.items(), key=lambda entry: (-entry[1][1], entry[0]))
    return {
        "moved": int(sum(count for count, _ in rows.values())),
        "common": common,
        "only_first": len(places) - common,
        "only_other": len(now) - common,
        "same": _is_same(first, other),
        "modules": [[*key[:1], int(count), time, *key[1:]] for key, (count, time) in ranked][
            :MAX_ROWS
        ],
    }


def _devices(report: PlanReport) -> dict[str, str]:
    """The device's name of each op."""
    names = report.problem.cluster.names
    places = report.schedule.placement.tolist()
    ops = report.problem.graph.ops
    return {op.name: names[device] for op, device in zip(ops, places, strict=True)}


def _is_same(first: PlanReport, other: PlanReport) -> bool:
    a, b = first.schedule, other.schedule
    return len(a.start) == len(b.start) and bool(
        np.array_equal(a.start, b.start) and np.array_equal(a.placement, b.placement)
    )
