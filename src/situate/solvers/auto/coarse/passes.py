"""Runs of a step in slices: ops of one segment of the model, one slice and one kind of pass."""

from __future__ import annotations

import numpy as np

from situate.data.arrays import Ints, Order
from situate.data.problem import Problem
from situate.data.topology import inputs_of_ops, topological_by
from situate.data.weight_gradients import weight_gradients
from situate.solvers.auto.coarse.runs import contiguous_runs, device_sets
from situate.solvers.slice_pipelines.stages import Line, line_of

SLACK = 0.1
"""Largest distance of a border from its even place, as a share of a segment."""

SOURCE, FORWARD, INPUTS, WEIGHTS, SUM, UPDATE = range(6)
"""Kinds of ops: parameters and other ops that depend on no slice; forward passes; gradients of
inputs, then of weights; their sums over slices; updates."""


def pass_runs(problem: Problem, segments: int) -> tuple[Order, Ints]:
    """(line (n,), run of each op (n,)) of a step in slices, with so many segments of the model.

    The line is topological, slice after slice, and a run is contiguous on it. The weights' half of
    a backward pass follows the other half of its segment, so the two are runs of their own.

    Raises:
        SituateError: the step does not slice its batch.
    """
    model = line_of(problem)
    last = _last_slices(problem, model.slices)
    kind = _kinds(problem, model, last)
    segment = _segments(problem, model, segments)
    backward = kind >= INPUTS
    # A backward pass goes through the segments from the last one.
    along = np.where(backward, -segment, segment)
    # Sources come before all slices, and updates behind them.
    turn = np.select([kind == SOURCE, kind == UPDATE], [-1, model.count], last)
    rank = np.empty(problem.n, np.int64)
    rank[np.lexsort((kind, along, backward, turn))] = np.arange(problem.n)
    line = topological_by(problem, rank)
    return line, contiguous_runs(line, np.stack((turn, kind, segment, *_kept_apart(problem))))


def _last_slices(problem: Problem, slices: Ints) -> Ints:
    """(n,) the slice of each op; of an op that runs once, the last that it waits for, or -1."""
    last, inputs = slices.tolist(), inputs_of_ops(problem)
    producer = problem.producer.tolist()
    for op in problem.graph.order:
        if last[op] < 0:
            last[op] = max((last[producer[tensor]] for tensor in inputs[op]), default=-1)
    return np.array(last)


def _kinds(problem: Problem, model: Line, last: Ints) -> Ints:
    """(n,) the kind of each op."""
    update = np.array([op.phase == "update" for op in problem.graph.ops])
    return np.select(
        [last < 0, update, model.slices < 0, weight_gradients(problem), model.backward],
        [SOURCE, UPDATE, SUM, WEIGHTS, INPUTS],
        FORWARD,
    )


def _segments(problem: Problem, model: Line, count: int) -> Ints:
    """(n,) the segment of each op; segments take about equal seconds, and few bytes cross them."""
    seconds = np.append(0, np.cumsum(model.seconds.min(axis=1)))
    size = seconds[-1] / count
    borders = []
    # Near each even border, the place that fewest bytes cross, then the one nearest to it.
    for even in size * np.arange(1, count):
        first, last = np.searchsorted(seconds, (even - SLACK * size, even + SLACK * size))
        window = np.arange(first, max(first + 1, last))
        uneven = np.abs(seconds[window] - even)
        borders.append(window[np.lexsort((uneven, model.crossing[window]))[0]])
    # An op without a place, such as an update, is where its unit is.
    place = np.where(model.place >= 0, model.place, model.of_unit[problem.unit])
    return np.searchsorted(np.array(borders), place, "right")


def _kept_apart(problem: Problem) -> list[Ints]:
    """Numbers (n,) that differ between ops which never share a run."""
    ops = problem.graph.ops
    fields = ([op.replica for op in ops], [op.part for op in ops])
    numbers = [np.array([-1 if n is None else n for n in field]) for field in fields]
    phases = {phase: number for number, phase in enumerate(sorted({op.phase for op in ops}))}
    return [*numbers, np.array([phases[op.phase] for op in ops]), device_sets(problem)]
