"""The coarse problem: one op for each run of ops, with the tensors between runs."""

from __future__ import annotations

import numpy as np

from situate.data.arrays import Ints
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.data.topology import edge_producers, edge_tensors
from situate.solvers.auto.coarse.runs import in_shared_units


def contracted(problem: Problem, label: Ints) -> Problem:
    """The problem in which each run of ops (n,) is one op.

    An op takes the seconds and holds the bytes of its run. Tensors that go from one run to the same
    others are one tensor. Tensors within a run take no memory.
    """
    ops, tensors = _ops(problem, label), _tensors(problem, label)
    graph = Graph(
        f"{problem.graph.name} in {len(ops)} runs",
        ops,
        tensors,
        control=_control(problem, label),
        unit=problem.graph.unit,
        rules=problem.graph.rules,
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
    unit = np.full(runs, -1)
    shared = in_shared_units(problem)
    unit[label[shared]] = problem.unit[shared]
    names = problem.cluster.names
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
