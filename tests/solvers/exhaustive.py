"""The best value there is, by looking at every placement and every order."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

from situate import _core
from situate.data.core_problem import core_problem
from situate.data.problem import Problem
from situate.simulation.atomic import schedule_calls
from situate.simulation.decoding import priority_of
from situate.simulation.simulator import Simulator

MANY = 20_000
"""Decisions above which there are too many to look at."""


def optimum(problem: Problem) -> float:
    """The smallest value of the objective over all feasible placements, orders and decoders, also
    orders in which an op stands before its inputs; infinite where nothing fits.

    Placements that are no better than the best in any order are passed over.
    """
    best, simulator, placements = math.inf, Simulator(problem), _placements(problem)
    least = [_least(problem, simulator, placement) for placement in placements]
    for i in np.argsort(least, kind="stable").tolist():
        if least[i] < best:
            best = min(best, _best_of(problem, simulator, placements[i], least[i]))
    return best


def _least(problem: Problem, simulator: Simulator, placement: NDArray[np.int32]) -> float:
    """No order gives the placement a smaller value; infinite where it fits in none."""
    held = np.bincount(placement, problem.persistent, minlength=problem.d)
    need = np.maximum.reduce(
        [held, *(_beside(problem, placement, op, held) for op in range(problem.n))]
    )
    if (need > problem.capacity).any():
        return math.inf
    if problem.objective == "memory":
        return float(need.max())
    if problem.objective == "throughput":
        in_any_order = np.zeros(problem.n, np.float32)
        return simulator.schedule(placement, in_any_order).period(problem)
    if problem.transfers == "atomic":
        return schedule_calls(problem, placement).makespan
    seconds = problem.seconds[np.arange(problem.n), placement]
    load = np.bincount(placement, seconds, minlength=problem.d).max()
    return max(float(load), _longest_path(problem, placement)) * (1 - 1e-9)


def _beside(
    problem: Problem, placement: NDArray[np.int32], op: int, held: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(d,) held, and where an op that takes time runs also its inputs, outputs and workspace."""
    if problem.rules.memory == "persistent" or problem.seconds[op].min() < 1e-9:
        return held
    touched = [t for t in range(len(problem.size)) if _touches(problem, op, t)]
    own = [problem.size[t] for t in touched if not problem.resident[t]]
    on_its_device = np.arange(problem.d) == placement[op]
    return held + on_its_device * (problem.workspace[op] + sum(own))


def _touches(problem: Problem, op: int, tensor: int) -> bool:
    """True if the op makes or reads the tensor."""
    first, last = problem.consumer_start[tensor : tensor + 2]
    return problem.producer[tensor] == op or op in problem.consumers[first:last]


def _longest_path(problem: Problem, placement: NDArray[np.int32]) -> float:
    """Seconds until the last op ends where devices and channels are always free."""
    start = np.zeros(problem.n)
    for op in problem.graph.order:
        end = start[op] + problem.seconds[op, placement[op]]
        for tensor in np.flatnonzero(problem.producer == op).tolist():
            first, last = problem.consumer_start[tensor : tensor + 2]
            for reader in problem.consumers[first:last].tolist():
                moved = problem.transfer_time(tensor, placement[op], placement[reader])
                start[reader] = max(start[reader], end + moved)
    return float((start + problem.seconds[np.arange(problem.n), placement]).max())


def _best_of(
    problem: Problem, simulator: Simulator, placement: NDArray[np.int32], least: float
) -> float:
    """The smallest value of a placement over the orders in which it fits."""
    if problem.transfers == "atomic":
        return least
    orders, best = _priorities(problem.n), math.inf
    everywhere = np.tile(placement, (len(orders), 1))
    for decoder in ("eager", "serial"):
        makespan, peak = simulator.evaluate(everywhere, orders, decoder=decoder, threads=1)
        largest, same = peak.max(axis=1).astype(float), np.full(len(orders), least)
        value = {"time": makespan, "memory": largest, "throughput": same}[problem.objective]
        fits = (peak <= problem.capacity).all(axis=1)
        best = min(best, float(value[fits].min(initial=math.inf)))
    return best


@cache
def _priorities(n: int) -> NDArray[np.float32]:
    """(n!, n) of all orders."""
    return np.array(list(permutations(range(n))), np.float32)


def best_values(problem: Problem) -> dict[str, float] | None:
    """The smallest value of each objective over all feasible placements, topological orders and
    both decoders, infinite where nothing fits; None where there are too many decisions."""
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
        makespan, _, load, _ = _core.simulation.atomic_calls(core, placement)
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
