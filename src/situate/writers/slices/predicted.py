"""Predicted step and memory of a pipeline whose ranks follow an order of passes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from situate.data.arrays import Order, Placement
from situate.data.problem import Problem
from situate.data.topology import places
from situate.errors import SituateError
from situate.report.slices.stages import Stage
from situate.schedule.schedule import Schedule
from situate.simulation.decoding import decode
from situate.writers.exported import differences, placement_by_module
from situate.writers.slices.passes import ONCE, Pass, neighbours


def warn_of_figures(
    problem: Problem,
    schedule: Schedule,
    stages: Sequence[Stage],
    stage: Sequence[int],
    of_op: Sequence[Pass | None],
    order: Sequence[Pass],
) -> None:
    """Warn with the predicted figures of stages in an order of passes, if they differ from the
    plan.

    Args:
        schedule: of the plan.
        stage, of_op: (n,) of each op.
    """
    devices = _placement(problem, schedule, stages, stage)
    predicted = None
    if np.isfinite(problem.seconds[np.arange(problem.n), devices]).all():
        predicted = _decoded(problem, devices, _op_order(problem, of_op, order))
    for line in differences(problem, schedule, predicted, "pipeline"):
        warnings.warn(line, stacklevel=2)


def _placement(
    problem: Problem, schedule: Schedule, stages: Sequence[Stage], stage: Sequence[int]
) -> Placement:
    """(n,) parameters and updates on the devices of their parts; other ops as in the plan."""
    device_of = {path: part_stage.device for part_stage in stages for path in part_stage.parts}
    devices = placement_by_module(problem, schedule, device_of)
    stages_and_devices = zip(stage, devices, strict=True)
    return np.array([d if s == ONCE else stages[s].device for s, d in stages_and_devices], np.int32)


def _op_order(problem: Problem, of_op: Sequence[Pass | None], order: Sequence[Pass]) -> Order:
    """(n,) ops pass after pass, in the program's order within a pass; ops that run once a step
    follow their inputs."""
    place = {step: i for i, step in enumerate(order)}
    key = np.array([-1 if step is None else place[step] for step in of_op])
    inputs, _ = neighbours(problem.graph)
    for j in problem.graph.order:
        if of_op[j] is None:
            key[j] = max((key[k] for k in inputs[j]), default=-1)
    program = places(problem.graph.program_order)
    return np.lexsort((program, key)).astype(np.int32)


def _decoded(problem: Problem, devices: Placement, order: Order) -> Schedule | None:
    try:
        return decode(problem, devices, order, "serial")
    except SituateError:
        return None
