"""Lower bounds on the objective; docs/bounds.md derives them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate.least_memory import least_peak
from situate.problem import Problem
from situate.rounding import rounding

Floats = NDArray[np.float64]

ITERATIONS = 300
"""Steps of the dual ascent; each step's value is a valid bound."""


def lower_bound(problem: Problem) -> float:
    """No feasible plan of the problem has a smaller value. Seconds, or bytes for `memory`."""
    if problem.objective == "memory":
        return float(least_peak(problem))
    if problem.objective == "throughput":
        bounds = [least_load(problem), float(problem.fastest.max())]
    elif problem.transfers == "atomic":
        bounds = [critical_path(problem)]
    else:
        bounds = [critical_path(problem), least_load(problem)]
    bound = max(bounds) * (1 - rounding(problem))
    return float(np.ceil(bound)) if _whole_numbers(problem) else bound


def critical_path(problem: Problem) -> float:
    """Seconds of the longest path, every op at its fastest and every transfer free."""
    fastest = problem.fastest
    end = np.zeros(problem.n)
    start, consumers = problem.consumer_start, problem.consumers
    tensors: list[list[int]] = [[] for _ in range(problem.n)]
    for tensor, producer in enumerate(problem.producer.tolist()):
        tensors[producer].append(tensor)
    for op in problem.graph.order:
        end[op] += fastest[op]
        for tensor in tensors[op]:
            for consumer in consumers[start[tensor] : start[tensor + 1]]:
                end[consumer] = max(end[consumer], end[op])
    return float(end.max())


@np.errstate(over="ignore", invalid="ignore")  # prices of endless times bound nothing
def least_load(problem: Problem) -> float:
    """Seconds that the busiest device must work, whatever the placement.

    The dual of the linear program that spreads every unit over the devices it may run on, within
    the devices' memory: for weights w of sum one and memory prices l,

        sum_u min_d (w_d seconds[u, d] + l_d bytes[u]) - sum_d l_d capacity[d]

    is a bound. Weights rise where the work falls (multiplicative weights), prices where memory
    overflows.
    """
    seconds = np.where(problem.allowed, problem.unit_seconds, np.inf)
    held = problem.unit_persistent
    kinds, kind_of = np.unique(np.vstack([seconds, problem.capacity]), axis=1, return_inverse=True)
    count = np.bincount(kind_of.ravel()).astype(float)
    seconds, capacity = kinds[:-1], kinds[-1]
    tight = held.sum() > problem.capacity.min()
    if len(count) == 1 and not tight:
        return float(seconds.sum() / count[0])
    rows, times = np.unique(np.column_stack([seconds, held]), axis=0, return_counts=True)
    seconds, held = rows[:, :-1], rows[:, -1]
    weight = np.full(len(count), 1 / count.sum())
    price = np.zeros(len(count))
    best, slack = 0.0, rounding(problem)
    for step in range(ITERATIONS):
        cost = weight * seconds + price * held[:, None]
        choice = cost.argmin(axis=1)
        cheapest = (cost.min(axis=1) * times).sum()
        paid = (price * capacity * count).sum()
        best = max(best, float(cheapest - paid - slack * paid))
        work = seconds[np.arange(len(cost)), choice] * times
        load = np.bincount(choice, work, len(count)) / count
        rate = 1 / np.sqrt(step + 1)
        if tight:
            excess = np.bincount(choice, held * times, len(count)) / count - capacity
            price = np.maximum(
                0, price + rate * 0.1 * best * excess / (capacity * (held * times).sum())
            )
        weight = weight * np.exp(rate * load / max(float(load.max()), 1e-300))
        weight = np.maximum(weight, 1e-12)
        weight /= (weight * count).sum()
    return best


def _whole_numbers(problem: Problem) -> bool:
    """Whether every time a schedule can hold is a whole number."""
    own = problem.transfer_seconds
    links_count = bool((np.isnan(own) & (problem.size > 0)).any())
    links_free = not problem.latency.any() and bool(np.isinf(problem.bandwidth).all())
    times = [problem.seconds[np.isfinite(problem.seconds)], own[~np.isnan(own)]]
    times.append(np.array([problem.cluster.synchronisation]))
    whole = all(bool((t == np.floor(t)).all()) for t in times)
    return whole and (links_free or not links_count)
