"""Small problems and schedules that need no core: ops and transfers in graph order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.report.residency import residency
from situate.schedule.schedule import Schedule

HOSTILE = (
    'say "hi"',
    "two\nlines",
    "\x1b[31mred\x1b[0m",
    "</script><script>alert(1)</script>",
    "$x_{",
    "[red]not markup[/red] [/]",
    "a & b < c > d -- ]]> 'e' \\N",
    "\u202egnp.exe \u4e2d\u6587 \U0001f600",
)


def chain(
    count: int = 3,
    names: Sequence[str] = (),
    memory: int | None = 1000,
    devices: int = 2,
    device_names: Sequence[str] = (),
    bandwidth: float = 100.0,
    unit: str = "s",
    **problem: object,
) -> Problem:
    """Ops of one second in a row; tensors of 100 bytes, persistent 10, workspace 1."""
    names = names or [f"op{i}" for i in range(count)]
    phases = ("forward", "backward", "update")
    ops = tuple(
        Op(
            name,
            seconds={"*": 1.0},
            persistent=10,
            workspace=1,
            module=f"layer{i}",
            phase=phases[3 * i // len(names)],
        )
        for i, name in enumerate(names)
    )
    tensors = tuple(Tensor(f"t:{names[i]}", i, 100, (i + 1,)) for i in range(len(names) - 1))
    graph = Graph("chain", ops, tensors, unit=unit)  # type: ignore[arg-type]
    device_names = device_names or [f"gpu{i}" for i in range(devices)]
    cluster = Cluster(
        "pair", tuple(Device(n, memory=memory) for n in device_names), (Link("*", "*", bandwidth),)
    )
    return Problem(graph, cluster, **problem)  # type: ignore[arg-type]


def two_branches(bandwidth: float = 100.0) -> Problem:
    """a feeds b and c, of one second each, through two tensors of 100 bytes."""
    ops = tuple(Op(name, seconds={"*": 1.0}) for name in "abc")
    tensors = (Tensor("ab", 0, 100, (1,)), Tensor("ac", 0, 100, (2,)))
    devices = (Device("gpu0"), Device("gpu1"))
    return Problem(Graph("fork", ops, tensors), Cluster("p", devices, (Link("*", "*", bandwidth),)))


def schedule(problem: Problem, placement: Sequence[int]) -> Schedule:
    """A valid schedule of `placement` in overlapped mode; its peaks are those of `residency`."""
    n, d = problem.n, problem.d
    start, end, free = np.zeros(n), np.zeros(n), np.zeros(d)
    channel = np.zeros(len(problem.cluster.channels) + 1)
    arrival: dict[tuple[int, int], float] = {}
    moves: list[tuple[int, int, int, float, float]] = []
    made_by: dict[int, list[int]] = {}
    for tensor, producer in enumerate(problem.producer.tolist()):
        made_by.setdefault(producer, []).append(tensor)
    inputs: list[list[int]] = [[] for _ in range(n)]
    first, last = problem.consumer_start[:-1].tolist(), problem.consumer_start[1:].tolist()
    for tensor in range(len(problem.size)):
        for consumer in problem.consumers[first[tensor] : last[tensor]].tolist():
            inputs[consumer].append(tensor)
    for op in problem.graph.order:
        device = placement[op]
        ready = max((arrival[t, device] for t in inputs[op]), default=0.0)
        start[op] = max(free[device], ready)
        end[op] = free[device] = start[op] + problem.seconds[op, device]
        for tensor in made_by.get(op, ()):
            consumers = problem.consumers[first[tensor] : last[tensor]].tolist()
            for target in sorted({placement[c] for c in consumers} | {device}):
                arrival[tensor, target] = end[op]
                seconds = problem.transfer_time(tensor, device, target)
                if target == device or (problem.size[tensor] == 0 and not seconds):
                    continue
                wire = problem.channel[device, target]
                begin = max(end[op], channel[wire])
                channel[wire] = arrival[tensor, target] = begin + seconds
                moves.append((tensor, device, target, begin, begin + seconds))
    columns = list(zip(*moves, strict=True)) if moves else [()] * 5
    makespan = max([end.max(), *columns[4]])
    draft = Schedule(
        np.array(placement, np.int32),
        start,
        end,
        *(np.array(c, np.int32) for c in columns[:3]),
        *(np.array(c, np.float64) for c in columns[3:]),
        _sequence(problem, start, columns),
        float(makespan),
        np.zeros(d, np.int64),
        "handmade",
    )
    memory = residency(problem, draft)
    draft.peak[:] = [max(memory.use(e)[1], default=0) for e in range(d)]
    return draft


def _sequence(problem: Problem, start: np.ndarray, moves: list[Sequence[float]]) -> np.ndarray:
    """Ops and transfers by start, at one instant producers before their readers."""
    place = np.empty(problem.n)
    place[list(problem.graph.order)] = np.arange(problem.n)
    behind = place[problem.producer[np.array(moves[0], np.int32)]] + 0.5
    turn, times = np.append(place, behind), np.append(start, moves[3])
    return np.lexsort((turn, times)).astype(np.int32)
