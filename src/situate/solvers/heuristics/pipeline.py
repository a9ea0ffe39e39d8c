"""`pipeline`: the network in contiguous stages, one an accelerator, each with its backward pass."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Ints
from situate.data.problem import Problem
from situate.data.topology import accelerators, folded_order
from situate.solvers.line_cut import cut, live_bytes, segment_of_places
from situate.solvers.search import Candidate, Search

Lengths = Ints
"""(stages,) units of every stage, along the line."""


def run(search: Search) -> None:
    """Cut by seconds and by bytes, of the accelerators in both orders, and move what lies between
    two stages as long as that is better."""
    problem = search.problem
    line, devices = folded_order(problem), accelerators(problem)
    for turn in (devices, devices[::-1])[: len(devices)]:
        # One array (units,) of stages a cut, and the lengths (stages,) that it stands for.
        cuts = [segment_of_places(line, *by) for by in _cuts(problem, turn)]
        starts = [np.bincount(stage, minlength=len(turn)) for stage in cuts]
        offered = [(_offer(search, line, turn, lengths), lengths) for lengths in starts]
        best, lengths = min(offered, key=lambda offer: offer[0].score)
        _move(search, line, turn, best, lengths)


def _cuts(problem: Problem, turn: list[int]) -> list[tuple[NDArray[np.float64], ...]]:
    """Weights of units and the devices' shares of them: work and speed, bytes and memory."""
    # (units, stages) seconds on the device of each stage; none where a unit cannot run.
    seconds = np.where(np.isfinite(problem.unit_seconds), problem.unit_seconds, 0)[:, turn]
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
    """Lengthen a stage by what another beside it gives up, by ever fewer units."""
    step = search.problem.units // 4
    while step:
        better = False
        for stage in range(len(lengths) - 1):
            for change in (step, -step):
                changed = lengths.copy()
                # What one stage gives up its neighbour takes, so that stages stay contiguous.
                changed[stage : stage + 2] += (change, -change)
                if changed.min() < 0 or search.finished():
                    continue
                new = _offer(search, line, turn, changed)
                if new.score < best.score:
                    best, lengths, better = new, changed, True
        if not better:
            step //= 2
