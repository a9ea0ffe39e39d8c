"""The coarse problem: one op for each run of ops, with the tensors between runs."""

from __future__ import annotations

import numpy as np
from msgspec import structs

from situate.data.arrays import Ints, Order
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.data.topology import edge_producers, edge_tensors, places
from situate.solvers.auto.coarse.runs import in_shared_units


def contracted(problem: Problem, line: Order, label: Ints) -> Problem:
    """The problem in which each run of ops is one op.

    An op takes the seconds and holds the bytes of its run. Tensors that go from one run to the same
    others are one tensor. Tensors within a run take no memory. In a step of slices they are
    workspace, and runs also have the module, the phase and the slice of their ops.

    Args:
        line: (n,) a topological order.
        label: (n,) the run of each op, contiguous on the line and numbered along it.
    """
    fine = problem.graph
    ops, tensors = _ops(problem, label), _tensors(problem, label)
    if fine.slices is not None:
        ops = _in_slices(problem, line, label, ops)
    graph = Graph(
        f"{fine.name} in {len(ops)} runs",
        ops,
        tensors,
        control=_control(problem, label),
        unit=fine.unit,
        rules=fine.rules,
        slices=fine.slices,
    )
    return Problem(graph, problem.cluster, problem.objective, problem.rules)


def _ops(problem: Problem, label: Ints) -> tuple[Op, ...]:
    runs = int(label.max()) + 1
    seconds, persistent = np.zeros((runs, problem.d)), np.zeros(runs, np.int64)
    workspace = np.zeros(runs, np.int64)
    # An op that may not run on a device has no seconds there.
    allowed = problem.runnable[problem.unit]
    np.add.at(seconds, label, np.where(allowed, problem.seconds, np.inf))
    np.add.at(persistent, label, problem.persistent)
    np.maximum.at(workspace, label, problem.workspace)
    unit, names = _units(problem, label), problem.cluster.names
    rows = zip(
        seconds.tolist(), persistent.tolist(), workspace.tolist(), unit.tolist(), strict=True
    )
    return tuple(
        Op(
            str(run),
            seconds={name: s for name, s in zip(names, row, strict=True) if s != np.inf},
            persistent=held,
            workspace=needed,
            group=str(group) if group >= 0 else None,
        )
        for run, (row, held, needed, group) in enumerate(rows)
    )


def _in_slices(problem: Problem, line: Order, label: Ints, runs: tuple[Op, ...]) -> tuple[Op, ...]:
    """The runs with the fields of their first op, their module and their workspace."""
    begins = np.flatnonzero(np.diff(label[line], prepend=-1))
    first = [problem.graph.ops[op] for op in line[begins].tolist()]
    workspace, modules = _workspace(problem, line, label).tolist(), _modules(problem, line, label)
    return tuple(
        structs.replace(
            run,
            workspace=needed,
            module=module,
            phase=op.phase,
            slice=op.slice,
            replica=op.replica,
        )
        for run, op, needed, module in zip(runs, first, workspace, modules, strict=True)
    )


def _workspace(problem: Problem, line: Order, label: Ints) -> Ints:
    """(runs,) bytes that a run needs beside its inputs and outputs, if its ops follow the line."""
    place, tensor = places(line), edge_tensors(problem)
    begin = place[problem.producer]
    end = begin.copy()
    np.maximum.at(end, tensor, place[problem.consumers])
    # Tensors that leave their run are outputs, not workspace.
    across = problem.output.astype(bool) | problem.resident.astype(bool)
    across[tensor[label[problem.consumers] != label[edge_producers(problem)]]] = True
    size, change = np.where(across, 0, problem.size), np.zeros(problem.n + 1, np.int64)
    np.add.at(change, begin, size)
    np.subtract.at(change, end + 1, size)
    # Changes at the begin and behind the last reader add up to the bytes at each place.
    in_use = np.cumsum(change)[:-1] + problem.workspace[line]
    # Runs are contiguous on the line, so each has its largest bytes from its begin.
    return np.maximum.reduceat(in_use, np.flatnonzero(np.diff(label[line], prepend=-1)))


def _units(problem: Problem, label: Ints) -> Ints:
    """(runs,) a number for all runs that share a device; -1 for runs that share it with none."""
    runs = int(label.max()) + 1
    shared = in_shared_units(problem)
    # The least number spreads from run to unit and back until all that are joined share it.
    unit, before = np.arange(runs), np.full(runs, -1)
    run, of_op = label[shared], problem.unit[shared]
    while not np.array_equal(unit, before):
        before, least = unit.copy(), np.full(problem.units, runs)
        np.minimum.at(least, of_op, unit[run])
        np.minimum.at(unit, run, least[of_op])
    return np.where(np.bincount(unit, minlength=runs)[unit] > 1, unit, -1)


def _modules(problem: Problem, line: Order, label: Ints) -> list[str]:
    """The innermost module of all ops of each run."""
    paths: dict[int, list[str]] = {}
    for op, run in zip(line.tolist(), label[line].tolist(), strict=True):
        parts = problem.graph.ops[op].module.split(".")
        path = paths.setdefault(run, parts)
        if path != parts:
            paths[run] = _common_path(path, parts)
    return [".".join(path) for path in paths.values()]


def _common_path(path: list[str], other: list[str]) -> list[str]:
    pairs = enumerate(zip(path, other, strict=False))
    return path[: next((at for at, (a, b) in pairs if a != b), min(len(path), len(other)))]


def _tensors(problem: Problem, label: Ints) -> tuple[Tensor, ...]:
    readers = _readers(problem, label)
    own = np.nan_to_num(problem.transfer_seconds, nan=-1.0).tolist()
    producer, size = label[problem.producer].tolist(), problem.size.tolist()
    resident, output = problem.resident.tolist(), problem.output.tolist()
    # By producer, readers and kind: bytes, and seconds of the tensors whose times do not depend on
    # links.
    sums: dict[tuple[int, tuple[int, ...], int, int, bool], tuple[int, float]] = {}
    for tensor, runs in readers.items():
        key = (producer[tensor], runs, resident[tensor], output[tensor], own[tensor] >= 0)
        held, seconds = sums.get(key, (0, 0.0))
        sums[key] = held + size[tensor], seconds + own[tensor]
    return tuple(
        Tensor(
            str(number),
            key[0],
            held,
            consumers=key[1],
            resident=bool(key[2]),
            output=bool(key[3]),
            seconds=seconds if key[4] else None,
        )
        for number, (key, (held, seconds)) in enumerate(sums.items())
    )


def _readers(problem: Problem, label: Ints) -> dict[int, tuple[int, ...]]:
    """By tensor, the other runs that read it; of those that stay within a run, the outputs."""
    tensor, runs = edge_tensors(problem), int(label.max()) + 1
    across = (label[problem.consumers] != label[edge_producers(problem)]) & ~problem.signal[tensor]
    # One number a pair, so that `unique` leaves each once.
    pairs = np.unique(tensor[across] * runs + label[problem.consumers[across]])
    readers: dict[int, list[int]] = {t: [] for t in np.flatnonzero(problem.output).tolist()}
    for t, run in zip((pairs // runs).tolist(), (pairs % runs).tolist(), strict=True):
        readers.setdefault(t, []).append(run)
    return {t: tuple(by_run) for t, by_run in readers.items()}


def _control(problem: Problem, label: Ints) -> tuple[tuple[int, int], ...]:
    """Pairs of runs between which there are control edges."""
    signal = problem.signal[edge_tensors(problem)]
    pairs = zip(
        label[edge_producers(problem)[signal]].tolist(),
        label[problem.consumers[signal]].tolist(),
        strict=True,
    )
    return tuple(sorted({(before, after) for before, after in pairs if before != after}))
