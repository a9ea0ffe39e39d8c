"""The best value there is, by looking at every placement and every topological order."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray

from situate import _core
from situate.decoding import priority_of
from situate.evaluators.simulator import Simulator, core_problem
from situate.problem import Problem

MANY = 20_000
"""Decisions above which there are too many to look at."""


def best_values(problem: Problem) -> dict[str, float] | None:
    """The smallest value of each objective over all feasible decisions and both decoders, infinite
    where nothing fits; None where there are too many decisions."""
    placements, orders = _placements(problem), _orders(problem)
    if orders is None or len(placements) * len(orders) > MANY:
        return None
    if problem.transfers == "atomic":
        return _of_calls(problem, placements)
    every = np.repeat(placements, len(orders), axis=0)
    priorities = np.tile([priority_of(np.array(order)) for order in orders], (len(placements), 1))
    simulator = Simulator(problem)
    best = dict.fromkeys(("time", "memory", "throughput"), math.inf)
    for decoder in ("eager", "serial"):
        makespan, peak = simulator.evaluate(every, priorities, decoder=decoder, threads=1)
        fits = (peak <= problem.capacity).all(axis=1)
        best["time"] = min(best["time"], float(makespan[fits].min(initial=math.inf)))
        largest = peak[fits].max(axis=1, initial=0).astype(float)
        best["memory"] = min(best["memory"], float(largest.min(initial=math.inf)))
        for placement in placements[fits.reshape(len(placements), -1).any(axis=1)]:
            schedule = simulator.schedule(placement, priorities[0])
            best["throughput"] = min(best["throughput"], schedule.period(problem))
    return best


def _of_calls(problem: Problem, placements: NDArray[np.int32]) -> dict[str, float]:
    best = dict.fromkeys(("time", "memory", "throughput"), math.inf)
    core = core_problem(problem)
    for placement in placements:
        makespan, _, load, _ = _core.calls(core, placement)
        held = np.bincount(placement, problem.persistent, minlength=problem.d)
        if (held <= problem.capacity).all():
            values = {"time": makespan, "memory": held.max(), "throughput": load.max()}
            best = {name: min(best[name], float(value)) for name, value in values.items()}
    return best


def _placements(problem: Problem) -> NDArray[np.int32]:
    choices = [np.flatnonzero(may) for may in problem.allowed]
    if math.prod(map(len, choices)) > MANY:
        return np.empty((MANY + 1, problem.n), np.int32)
    return np.array(list(product(*choices)), np.int32)[:, problem.unit]


def _orders(problem: Problem) -> list[list[int]] | None:
    """All topological orders, or None where there are very many."""
    before: list[set[int]] = [set() for _ in range(problem.n)]
    for producer, consumer in problem.graph.edges():
        before[consumer].add(producer)
    orders = []
    for order in _extend([], before):
        orders.append(order)
        if len(orders) > 720:
            return None
    return orders


def _extend(order: list[int], before: list[set[int]]) -> Iterator[list[int]]:
    if len(order) == len(before):
        yield order
    for op, needs in enumerate(before):
        if op not in order and needs <= set(order):
            yield from _extend([*order, op], before)
