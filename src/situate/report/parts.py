"""The parallelism of a plan of parts, in a line."""

from __future__ import annotations

from collections import defaultdict

from situate.data.problem import Problem
from situate.report.slices.parallelism import list_text
from situate.report.text import plural, printable
from situate.schedule.schedule import Schedule

LEAST = 0.6
"""Least share of a part's seconds on one device that counts as running there."""

MAX_NAMED = 8
"""Most devices in a list of names."""


def parts_text(problem: Problem, schedule: Schedule) -> str:
    """A plan of parts in a line, such as `tensor parallel by 4: ...`; empty where parts share
    devices, or where there are none."""
    teams = _teams(problem, schedule)
    if not teams:
        return ""
    cuts, sizes = problem.graph.cuts, {len(team) for team in teams}
    by = "".join(f" by {size}" for size in sizes) if len(sizes) == 1 else ""
    names = [problem.cluster.names[d] for d in teams[0]]
    where = list_text(printable(name, 40) for name in names)
    if len(names) > MAX_NAMED:
        where = plural(len(names), "device")
    if len(teams) == 1:
        return f"tensor parallel{by}: the parts of {cuts} run on {where}"
    return (
        f"tensor parallel{by} in {plural(len(teams), 'team')} of devices, the first of {where}: "
        f"{cuts}"
    )


def _teams(problem: Problem, schedule: Schedule) -> list[tuple[int, ...]]:
    """The devices of all parts, in their order, for each group of slices that share them; empty
    where parts of one slice share a device."""
    seconds: dict[tuple[int, int], dict[int, float]] = defaultdict(lambda: defaultdict(float))
    placement = schedule.placement.tolist()
    for j, op in enumerate(problem.graph.ops):
        if op.part is not None and op.phase != "update":
            team = -1 if op.slice is None else op.slice
            seconds[team, op.part][placement[j]] += float(problem.seconds[j, placement[j]])
    main: dict[int, dict[int, int]] = defaultdict(dict)
    sliced = any(team >= 0 for team, _ in seconds)
    for (team, part), busy in seconds.items():
        # Parts of parameters that slices share belong to no team.
        if sliced and team < 0:
            continue
        device = max(busy, key=busy.__getitem__)
        if busy[device] < LEAST * sum(busy.values()):
            return []
        main[team][part] = device
    teams = [tuple(parts[k] for k in sorted(parts)) for parts in main.values()]
    apart = all(len(set(team)) == len(team) > 1 for team in teams)
    return list(dict.fromkeys(teams)) if apart else []
