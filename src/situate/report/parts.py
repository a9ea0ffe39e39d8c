"""The parallelism of a plan of parts, and its step in collectives, a line each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from situate.data.problem import Problem
from situate.report.slices.parallelism import list_text
from situate.report.text import plural, printable
from situate.report.units import time_text
from situate.schedule.schedule import Schedule
from situate.simulation.collectives import in_collectives

LEAST = 0.6
"""Least share of a part's seconds on one device that counts as running there."""

MAX_NAMED = 8
"""Most devices in a list of names."""


def parts_text(problem: Problem, schedule: Schedule) -> str:
    """A plan of parts in a line, such as `tensor parallel by 4: ...`; empty where parts share
    devices, or where there are none."""
    teams = _teams(problem, schedule)
    stages = [] if teams else _stages(problem, schedule)
    if not teams and len(stages) < 2:
        return ""
    teams = teams or stages
    cuts, sizes = problem.graph.cuts, {len(team) for team in teams}
    by = "".join(f" by {size}" for size in sizes) if len(sizes) == 1 else ""
    names = [problem.cluster.names[d] for d in teams[0]]
    where = list_text(printable(name, 40) for name in names)
    if len(names) > MAX_NAMED:
        where = plural(len(names), "device")
    if len(teams) == 1:
        return f"tensor parallel{by}: the parts of {cuts} run on {where}"
    group = "a pipeline of " if stages else ""
    return (
        f"tensor parallel{by} in {group}{plural(len(teams), 'team')} of devices, the first of "
        f"{where}: {cuts}"
    )


def collectives_text(problem: Problem, schedule: Schedule) -> str:
    """The step of a plan of parts with collectives in place of its exchanges, in a line; empty if
    there are none."""
    step = in_collectives(problem, schedule)
    if step is None:
        return ""
    makespan = time_text(float(step.schedule.makespan), problem.graph.unit)
    count = len(step.seconds)
    collectives = "a collective" if count == 1 else "collectives"
    return f"with {collectives} in place of {plural(count, 'exchange')}, the step takes {makespan}"


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
    return _distinct(main.values())


def _stages(problem: Problem, schedule: Schedule) -> list[tuple[int, ...]]:
    """The devices of all parts, in their order, for each group of modules that share them; empty
    where two groups have a device in common, or parts of one module share a device."""
    seconds: dict[str, dict[int, dict[int, float]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(float))
    )
    placement = schedule.placement.tolist()
    for j, op in enumerate(problem.graph.ops):
        if op.part is not None and op.phase in ("", "forward"):
            busy = seconds[op.module][op.part]
            busy[placement[j]] += float(problem.seconds[j, placement[j]])
    teams = _distinct(
        {part: max(busy, key=busy.__getitem__) for part, busy in of_part.items()}
        for module, of_part in seconds.items()
        if module
    )
    devices = [device for team in teams for device in team]
    return teams if len(set(devices)) == len(devices) else []


def _distinct(homes: Iterable[Mapping[int, int]]) -> list[tuple[int, ...]]:
    """The teams of these homes by part; empty where two parts share a device."""
    teams = [tuple(own[part] for part in sorted(own)) for own in homes]
    separate = all(len(set(team)) == len(team) > 1 for team in teams)
    return list(dict.fromkeys(teams)) if separate else []
