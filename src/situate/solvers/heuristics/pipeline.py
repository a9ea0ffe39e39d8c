"""`pipeline`: the network in contiguous stages, one an accelerator, each with its backward pass."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Ints
from situate.data.problem import Problem
from situate.data.topology import accelerators, folded_order
from situate.solvers.incumbent import Candidate
from situate.solvers.line_cut import cut, live_bytes, segment_of_places
from situate.solvers.search import Search

Lengths = Ints
"""(stages,) number of units in each stage, along the line."""


def run(search: Search) -> None:
    """Cut by seconds and by bytes, with the accelerators in both orders, and shift the borders
    between stages as long as the plan gets better."""
    problem = search.problem
    line, devices = folded_order(problem), accelerators(problem)
    # One accelerator has one order only.
    for turn in (devices, devices[::-1])[: len(devices)]:
        # Per cut, the stage of each unit (units,) and the lengths of the stages (stages,).
        cuts = [segment_of_places(line, *by) for by in _cuts(problem, turn)]
        starts = [np.bincount(stage, minlength=len(turn)) for stage in cuts]
        offered = [(_offer(search, line, turn, lengths), lengths) for lengths in starts]
        best, lengths = min(offered, key=lambda offer: offer[0].score)
        _move(search, line, turn, best, lengths)


def _cuts(problem: Problem, turn: list[int]) -> list[tuple[NDArray[np.float64], ...]]:
    """(weights of units, shares of devices) by work and speed, then by bytes and memory."""
    # (units, stages) seconds on the device of each stage; zero if a unit cannot run there.
    seconds = np.where(np.isfinite(problem.unit_seconds), problem.unit_seconds, 0)[:, turn]
    # A device that can run nothing has a finite speed, so shares stay numbers.
    speed = 1 / np.maximum(seconds.sum(axis=0), 1e-300)
    return [
        (seconds.mean(axis=1), speed),
        (live_bytes(problem), problem.capacity[turn].astype(np.float64)),
    ]


def _offer(search: Search, line: NDArray[np.int32], turn: list[int], lengths: Lengths) -> Candidate:
    problem = search.problem
    placement = cut(problem, turn, line, np.ones(problem.units), lengths.astype(np.float64))
    return search.offer(placement, np.array(problem.graph.order, np.int32))


def _move(
    search: Search, line: NDArray[np.int32], turn: list[int], best: Candidate, lengths: Lengths
) -> None:
    """Shift borders between neighbouring stages, by ever fewer units."""
    step = search.problem.units // 4
    while step:
        better = False
        for stage in range(len(lengths) - 1):
            for change in (step, -step):
                changed = lengths.copy()
                # A neighbour takes the units that a stage gives up, so stages stay contiguous.
                changed[stage : stage + 2] += (change, -change)
                if changed.min() < 0 or search.finished():
                    continue
                new = _offer(search, line, turn, changed)
                if new.score < best.score:
                    best, lengths, better = new, changed, True
        if not better:
            step //= 2
