"""Tables for the terminal: a result, methods side by side, memory, the contents of a graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Literal

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from situate.bounds.memory import Need, needs
from situate.data.graph import Graph
from situate.data.problem import Problem
from situate.data.problem_arrays import UNLIMITED
from situate.data.slices import shares_text
from situate.report.computing_time import computing_time
from situate.report.text import plural, printable
from situate.report.units import (
    count_text,
    gap_text,
    share_text,
    size_text,
    time_text,
    value_text,
)
from situate.schedule.schedule import Schedule

if TYPE_CHECKING:
    from situate.results.result import Result

NAME_WIDTH = 48
FOLDED_NAME_WIDTH = 12
"""Characters of a name on each of its lines where there is little room."""
MAX_KINDS = 15
"""Most op kinds that `info` lists."""
OBJECTIVES = {"time": "makespan", "memory": "largest peak", "throughput": "time between steps"}

ONE_STEP = "that of one step; steps in flight at once need more"
"""The limit of a throughput plan's memory figures."""


def name_cell(name: str, style: str = "") -> Text:
    """A user's name as a cell: neither markup nor control characters in it have any effect."""
    return Text(printable(name, NAME_WIDTH), style=style)


def table(title: str, columns: str, numbers: Iterable[int] = ()) -> Table:
    """An empty table; `columns` are separated by `|`, those in `numbers` align right."""
    grid = Table(title=title or None, title_justify="left", title_style="bold", box=None)
    right = set(numbers)
    for i, column in enumerate(columns.split("|")):
        side: Literal["left", "right"] = "right" if i in right else "left"
        grid.add_column(
            column, justify=side, header_style="dim", no_wrap=i in right, overflow="fold"
        )
    return grid


def least_width(part: RenderableType) -> int:
    """Width in characters that shows every number of a table whole; 0 for other renderables."""
    if not isinstance(part, Table):
        return 0
    return sum(2 + _least_width(column) for column in part.columns)


def _least_width(column: Column) -> int:
    widest = max(cell_len(str(cell)) for cell in (column.header, *column.cells))
    return widest if column.no_wrap else min(widest, FOLDED_NAME_WIDTH)


def summary(result: Result) -> RenderableType:
    """A result: its value, bound and gap, the search, and the memory of each device."""
    problem = result.problem
    grid = Table.grid(padding=(0, 2))
    for label, value in figures(result):
        bad = label == "fits in memory" and not result.feasible
        grid.add_row(Text(label, "dim"), Text(printable(value), "bold red" if bad else ""))
    heading = f"{problem.graph.name} on {problem.cluster.name}"
    return Group(Text(printable(heading), "bold"), grid, Text(), memory(problem, result.schedule))


def figures(result: Result) -> list[tuple[str, str]]:
    """The figures of a result, a line each: a label and a text."""
    problem, unit = result.problem, result.problem.graph.unit
    return [
        (OBJECTIVES[problem.objective], value_text(result.value, problem.objective, unit)),
        *[("expected here", _expected_text(result))] * (result.expected != result.makespan),
        *[("measured", _measured_text(result))] * (result.measured is not None),
        *_bound(result),
        *[("makespan", time_text(result.makespan, unit))] * (problem.objective != "time"),
        ("fits in memory", "yes" if result.feasible else over_text(problem, result.schedule)),
        *[("memory counted", ONE_STEP)] * (problem.objective == "throughput"),
        ("devices used", f"{len(result.devices_used)} of {problem.d}"),
        *[("slices", _slices_text(problem.graph))] * (problem.graph.slices is not None),
        ("method", f"{result.method}, decoder {result.decoder}"),
        *[("knows", result.knows or "")] * (len(result.samples) > 0),
        ("rules", problem.rules.name),
        ("search", f"{plural(result.evaluations, 'evaluation')} in {result.seconds:.2f} s"),
    ]


def _slices_text(graph: Graph) -> str:
    """`4, of 8 samples each`, or `44:16 samples`; `whole` without slices."""
    if graph.slices is None:
        return shares_text(())
    shares = graph.slices.shares
    suffix = f", of {plural(shares[0], 'sample')} each" if len(set(shares)) == 1 else " samples"
    return f"{shares_text(shares)}{suffix}"


def _bound(result: Result) -> list[tuple[str, str]]:
    if result.lower_bound is None:
        return []
    problem = result.problem
    bound = value_text(result.lower_bound, problem.objective, problem.graph.unit)
    text = f"{bound}, by {result.bounded_by}" if result.bounded_by else bound
    return [("lower bound", text), ("gap", gap_text(result.gap))]


def _expected_text(result: Result) -> str:
    """`58.7 ms, with interference between devices`."""
    text = time_text(result.expected, result.problem.graph.unit)
    return f"{text}, with interference between devices"


def _measured_text(result: Result) -> str:
    """`580 ms, 4.9 % less than predicted`; empty where nothing was measured."""
    if result.measured is None:
        return ""
    text = time_text(result.measured, result.problem.graph.unit)
    if not (isfinite(result.measured) and result.expected > 0):
        return text
    off = result.measured / result.expected - 1
    return f"{text}, {share_text(abs(off))} {'more' if off > 0 else 'less'} than predicted"


def over_text(problem: Problem, schedule: Schedule) -> str:
    """`no: gpu0 by 1.20 GiB, gpu1 by 300 MiB`."""
    over = schedule.peak - problem.capacity
    parts = [
        f"{problem.cluster.names[device]} by {size_text(int(over[device]))}"
        for device in range(problem.d)
        if over[device] > 0
    ]
    return f"no: {', '.join(parts)}" if parts else "yes"


def never_text(problem: Problem) -> str:
    """The reason that no plan fits in memory; empty where one may."""
    persistent, room = int(problem.persistent.sum()), sum(problem.capacity.tolist())
    if persistent > room:
        together = f"all devices together have {size_text(room)}"
        return f"{size_text(persistent)} are held for the whole step, {together}"
    unmet = (_unmet_text(problem, need) for need in needs(problem) if not need.fits)
    return next(unmet, "")


def _unmet_text(problem: Problem, need: Need) -> str:
    least, room = size_text(need.bytes), size_text(sum(need.room))
    if not need.devices:
        return f"some device holds at least {least}, the largest has {room}"
    if len(need.devices) == problem.d > 1:
        return f"at least {least} must be held at once, all devices together have {room}"
    names = ", ".join(printable(problem.cluster.names[device]) for device in need.devices)
    return f"at least {least} must be held at once on {names}, with room for {room}"


def memory(problem: Problem, schedule: Schedule) -> Table:
    """Each device's ops, busy share of the step, and peak memory under its limit."""
    grid = table("", "device|ops|busy|peak memory|limit|used", (1, 2, 3, 4, 5))
    busy = computing_time(problem, schedule) / (schedule.makespan or 1.0)
    for device, name in enumerate(problem.cluster.names):
        peak, capacity = int(schedule.peak[device]), int(problem.capacity[device])
        limited = capacity < UNLIMITED
        grid.add_row(
            name_cell(name),
            f"{int((schedule.placement == device).sum()):,}",
            share_text(float(busy[device])),
            size_text(peak),
            size_text(capacity) if limited else "none",
            share_text(peak / capacity) if limited else "",
            style="red" if peak > capacity else "",
        )
    return grid


def comparison(results: Sequence[Result]) -> RenderableType:
    """One row a method, the best first, and a line that says when a single device is best.

    Raises:
        ValueError: there are no results.
    """
    ranked = sorted(results, key=lambda result: result.rank)
    problem = ranked[0].problem
    columns = f"method|{OBJECTIVES[problem.objective]}|gap|peak memory|devices|fits|search"
    has_measured = any(result.measured is not None for result in ranked)
    differ_in_slices = any(result.problem.graph is not problem.graph for result in ranked)
    has_samples = any(len(result.samples) for result in ranked)
    more = "|slices" * differ_in_slices + "|measured" * has_measured + "|knows" * has_samples
    grid = table("", columns + more, (1, 2, 3, 4, 6))
    for result in ranked:
        extra = [_shares_text(result)] * differ_in_slices + [_measured_text(result)] * has_measured
        extra += [result.knows or ""] * has_samples
        _method_row(grid, result, extra, best=result is ranked[0] and result.feasible)
    heading = Text(printable(f"{problem.graph.name} on {problem.cluster.name}"), "bold")
    bounded = [result for result in ranked if result.feasible][:1]
    lines = [Text(_bound_line(result, differ_in_slices), "dim") for result in bounded]
    return Group(heading, grid, *lines, Text(_verdict(ranked)))


def _bound_line(result: Result, differ_in_slices: bool) -> str:
    """The lower bound of the best result; with its slices, where results differ in them."""
    text = f"lower bound {dict(_bound(result))['lower bound']}"
    return f"{text}, of slices: {_slices_text(result.problem.graph)}" if differ_in_slices else text


def _shares_text(result: Result) -> str:
    slices = result.problem.graph.slices
    return shares_text(slices.shares if slices else ())


def _method_row(grid: Table, result: Result, extra: Sequence[str], best: bool) -> None:
    problem = result.problem
    fits = "yes" if result.feasible else over_text(problem, result.schedule)
    grid.add_row(
        name_cell(result.method),
        value_text(result.value, problem.objective, problem.graph.unit),
        gap_text(result.gap),
        size_text(int(result.schedule.peak.max())),
        str(len(result.devices_used)),
        Text(printable(fits), "" if result.feasible else "red"),
        f"{result.seconds:.2f} s",
        *extra,
        style="bold green" if best else "",
    )


WORTH_ANOTHER_DEVICE = 1.01
"""Ratio of values below which a gain is within the error of predictions."""


def _verdict(ranked: Sequence[Result]) -> str:
    """The conclusion of a comparison, in one line; `ranked` has the best first."""
    best = ranked[0]
    if not best.feasible:
        return "No method found a plan that fits in memory."
    if len(best.devices_used) == 1:
        return f"One device is best: use {printable(best.devices_used[0])} alone."
    alone = [r for r in ranked if r.feasible and len(r.devices_used) == 1]
    if not alone:
        return f"Best: {best.method}. No single device was found to hold it."
    device = printable(alone[0].devices_used[0])
    ratio = alone[0].judged / best.judged if best.judged else 1.0
    if ratio < WORTH_ANOTHER_DEVICE:
        return (
            f"One device is as good: {device} alone is within {share_text(ratio - 1)} of the best."
        )
    word = "smaller" if best.problem.objective == "memory" else "faster"
    return f"Best: {best.method}, {ratio:.2f} times {word} than {device} alone."


def info(graph: Graph) -> RenderableType:
    """A summary of a graph: sizes, ops by phase and by kind, its longest chain of ops."""
    grid = Table.grid(padding=(0, 2))
    for label, value in _facts(graph):
        grid.add_row(Text(label, "dim"), Text(value))
    parts: list[RenderableType] = [Text(printable(graph.name), "bold"), grid]
    if any(op.phase for op in graph.ops):
        parts += [Text(), _counts(graph, "phase")]
    parts += [Text(), _counts(graph, "kind")]
    return Group(*parts)


def _facts(graph: Graph) -> list[tuple[str, str]]:
    groups = Counter(op.group for op in graph.ops if op.group is not None)
    pins = sum(op.device is not None for op in graph.ops)
    size = size_text(sum(tensor.size for tensor in graph.tensors if not tensor.resident))
    facts = [
        ("source", printable(graph.source)),
        ("rules", printable(graph.rules)),
        *[("optimizer", graph.optimizer or "none")] * (graph.optimizer is not None),
        ("ops", f"{len(graph.ops):,}"),
        ("tensors", f"{len(graph.tensors):,}, {size} beside what is held"),
        ("control edges", f"{len(graph.control):,}"),
        ("held for the step", size_text(sum(op.persistent for op in graph.ops))),
        ("colocation groups", f"{len(groups):,} with {plural(sum(groups.values()), 'op')}"),
        ("pinned ops", f"{pins:,}"),
        *_work(graph),
    ]
    if graph.machine:
        names = ", ".join(printable(device.name, 20) for device in graph.machine[:8])
        facts.append(("brings its machine", f"{plural(len(graph.machine), 'device')}: {names}"))
    return facts


def _work(graph: Graph) -> list[tuple[str, str]]:
    """The work of all ops together, and the longest chain of dependent ops."""
    length, chain = longest_path(graph)
    facts = [("longest chain", plural(length, "op"))]
    total = sum(op.flops for op in graph.ops)
    if total:
        share = share_text(chain / total)
        facts.append(("work", f"{count_text(total)} FLOP, {share} of it in one chain"))
    seconds: Counter[str] = Counter()
    for op in graph.ops:
        seconds.update(op.seconds or {})
    for key, value in seconds.most_common():
        where = "any device" if key == "*" else printable(key, 30)
        facts.append((f"time on {where}", time_text(value, graph.unit)))
    return facts


def longest_path(graph: Graph) -> tuple[int, int]:
    """Most ops in a chain of dependent ops, and most FLOP in one."""
    ops = [1] * len(graph.ops)
    work = [op.flops for op in graph.ops]
    after: list[list[int]] = [[] for _ in graph.ops]
    for producer, consumer in graph.edges():
        after[producer].append(consumer)
    for op in graph.order:
        for consumer in after[op]:
            ops[consumer] = max(ops[consumer], ops[op] + 1)
            work[consumer] = max(work[consumer], work[op] + graph.ops[consumer].flops)
    return max(ops), max(work)


def _counts(graph: Graph, field: str) -> Table:
    """Ops, and their FLOP where any are known, by `phase` or `kind`."""
    ops, flops = Counter[str](), Counter[str]()
    for op in graph.ops:
        label = getattr(op, field) or "(none)"
        ops[label] += 1
        flops[label] += op.flops
    has_flops = any(flops.values())
    grid = table("", f"{field}|ops|FLOP" if has_flops else f"{field}|ops", (1, 2))
    rows = [(name_cell(name), count, flops[name]) for name, count in ops.most_common(MAX_KINDS)]
    rest = [name for name, _ in ops.most_common()[MAX_KINDS:]]
    if rest:
        more = Text(f"{len(rest)} more", "dim")
        rows.append((more, sum(ops[name] for name in rest), sum(flops[name] for name in rest)))
    for cell, count, work in rows:
        grid.add_row(cell, f"{count:,}", *[count_text(work)] * has_flops)
    return grid
