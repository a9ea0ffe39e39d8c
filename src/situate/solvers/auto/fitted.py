"""Pieces of the network, one an accelerator, as large as what is live in them lets them be."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate.data.problem import Problem
from situate.solvers.auto.pipeline import live_bytes
from situate.solvers.auto.shares import cut
from situate.solvers.auto.slices import best
from situate.solvers.heuristics.expert import accelerators
from situate.solvers.search import Found, Search

ROUNDS = 12
"""Of cuts, each after the peaks of the one before."""

MENDING = 0.1
"""Part of what is left of the budget that goes to moving what lies at a cut, at most."""

HELD_UP = 0.5
"""Part of the step that a CPU works at least where it holds the accelerators up."""


def offer_fitted(search: Search) -> None:
    """Where nothing fits yet, or only what keeps a CPU working, offer pieces of the folded line, of
    the accelerators in both orders unless they are alike, mended until they fit.

    Cuts by what ops hold for the whole step, as shares are, say nothing of activations.
    """
    problem = search.problem
    devices = accelerators(problem)
    if len(devices) < 2 or problem.rules.memory == "persistent" or not _wanted(search, devices):
        return
    line = folded(problem)
    for turn in (devices, devices[::-1])[: 1 if _alike(problem, devices) else 2]:
        nearest = _fit(search, line, turn)
        if not nearest.feasible:
            mend(search, nearest)
        if search.finished():
            return


def _wanted(search: Search, devices: list[int]) -> bool:
    problem, found = search.problem, best(search)
    if problem.persistent.sum() > sum(problem.capacity[devices].tolist()):  # beyond 64 bits
        return False
    others = np.delete(found.schedule.busy(problem), devices)
    return not found.feasible or bool((others > HELD_UP * found.schedule.makespan).any())


def _alike(problem: Problem, devices: list[int]) -> bool:
    """Whether the devices are as fast and as large as one another."""
    seconds, capacity = problem.seconds[:, devices], problem.capacity[devices]
    return bool((seconds == seconds[:, :1]).all() and (capacity == capacity[0]).all())


def _fit(search: Search, line: NDArray[np.int32], turn: list[int]) -> Found:
    """Offer cuts until one fits, and return the one that fits best: a piece shrinks by as much as
    its device is fuller than others."""
    problem = search.problem
    weight, order = live_bytes(problem), np.array(problem.graph.order, np.int32)
    capacity = problem.capacity[turn].astype(np.float64)
    share, found = capacity, list[Found]()
    while not found or (len(found) < ROUNDS and not (found[-1].feasible or search.finished())):
        found.append(search.offer(cut(problem, turn, line, weight, share), order))
        share = share / np.maximum(found[-1].schedule.peak[turn] / capacity, 0.1)
    return min(found, key=lambda each: each.score)


def mend(search: Search, found: Found) -> None:
    """Offer what becomes of a plan when units that exchange tensors with other devices go there,
    those of most bytes first, as long as that fits better."""
    problem, score = search.problem, found.score
    of_unit = np.empty(problem.units, np.int32)
    of_unit[problem.unit] = found.placement
    end, bettered = search.left() * (1 - MENDING), True
    while bettered and score[0]:
        bettered = False
        for unit, device in _across(problem, of_unit):
            if search.left() <= end or not score[0]:
                break
            tried = of_unit.copy()
            tried[unit] = device
            new = search.estimate(tried[problem.unit], found.order, "eager")
            if new < score:
                of_unit, score, bettered = tried, new, True
    search.offer(of_unit[problem.unit], found.order)


def _across(problem: Problem, of_unit: NDArray[np.int32]) -> list[tuple[int, int]]:
    """Units that exchange tensors with units on other devices, with these devices."""
    lengths = np.diff(problem.consumer_start)
    source = np.repeat(problem.unit[problem.producer], lengths)
    reader = problem.unit[problem.consumers]
    apart = np.flatnonzero(of_unit[source] != of_unit[reader])
    apart = apart[np.argsort(-np.repeat(problem.size, lengths)[apart], kind="stable")]
    ends = np.column_stack((source[apart], reader[apart])).ravel()
    there = of_unit[np.column_stack((reader[apart], source[apart])).ravel()]
    pairs = dict.fromkeys(zip(ends.tolist(), there.tolist(), strict=True))
    return [(unit, device) for unit, device in pairs if problem.allowed[unit, device]]


def folded(problem: Problem) -> NDArray[np.int32]:
    """Units (units,) along the forward pass, depth first. A backward op stands with the last of the
    forward ops that it reads from, else with the first of the backward ops, so that what is kept
    for it is beside it; a unit where its first op does.
    """
    forward = np.array([op.phase != "backward" for op in problem.graph.ops])
    along = [op for op in problem.depth_first if forward[op]]
    place = np.zeros(problem.n)
    place[along] = np.arange(len(along))
    for op, sources in zip(problem.graph.order, _sources(problem), strict=True):
        if sources and not forward[op]:
            kept = [place[source] for source in sources if forward[source]]
            place[op] = max(kept) if kept else min(place[source] for source in sources)
    first = np.full(problem.units, np.inf)
    np.minimum.at(first, problem.unit, place)
    return np.argsort(first, kind="stable").astype(np.int32)


def _sources(problem: Problem) -> list[list[int]]:
    """Of every op in the graph's order, the ops that it reads from."""
    place = np.argsort(np.array(problem.graph.order))
    found: list[list[int]] = [[] for _ in range(problem.n)]
    for tensor, producer in enumerate(problem.producer.tolist()):
        start, end = problem.consumer_start[tensor : tensor + 2]
        for reader in problem.consumers[start:end].tolist():
            found[place[reader]].append(producer)
    return found
