"""Stages by bytes: units with persistent bytes form segments of a line, and all other units follow
them."""

from __future__ import annotations

import numpy as np

from situate.data.arrays import Placement
from situate.data.problem import Problem
from situate.data.topology import op_devices, places, unit_devices


def follow(problem: Problem, placement: Placement) -> Placement:
    """The placement (n,) in which units without persistent bytes follow their inputs.

    In the graph's order, each such unit goes to a parameter that it reads, or else to the last of
    its inputs, if it may run there. A cut by bytes ignores these units and would put them all into
    the last segment.
    """
    of_unit = unit_devices(problem, placement)
    settled = problem.unit_persistent > 0
    for op, (parameters, others) in zip(problem.graph.order, _inputs(problem), strict=True):
        unit = problem.unit[op]
        leaders = [u for u in (*others, *parameters) if settled[u]]
        if not settled[unit] and leaders and problem.allowed[unit, of_unit[leaders[-1]]]:
            of_unit[unit] = of_unit[leaders[-1]]
        settled[unit] = True
    return op_devices(problem, of_unit)


def _inputs(problem: Problem) -> list[tuple[list[int], list[int]]]:
    """(parameter units, other input units) of each op, in the graph's order."""
    place = places(problem.graph.order)
    units: list[tuple[list[int], list[int]]] = [([], []) for _ in range(problem.n)]
    # (tensors,) in the order of their producers, so that the last input of an op comes last.
    by_place = np.argsort(place[problem.producer], kind="stable")
    for tensor in by_place.tolist():
        unit = int(problem.unit[problem.producer[tensor]])
        kind = 0 if problem.resident[tensor] else 1
        start, end = problem.consumer_start[tensor : tensor + 2]
        for reader in problem.consumers[start:end]:
            units[place[reader]][kind].append(unit)
    return units
