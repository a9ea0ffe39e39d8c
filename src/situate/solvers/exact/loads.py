"""Loads of devices and channels, which bound the period of consecutive steps."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from situate.solvers.exact.clock import Clock
from situate.solvers.exact.placing import Placing


def loads(placing: Placing, clock: Clock) -> dict[tuple[str, int], Any]:
    """An expression for the ticks of work of each device and each limiting channel."""
    problem = placing.problem
    ticks = clock.ticks(np.where(np.isfinite(problem.seconds), problem.seconds, 0.0))
    ticks_of_moves = clock.ticks(np.array([move.seconds for move in placing.moves])).tolist()
    work: defaultdict[tuple[str, int], list[Any]] = defaultdict(list)
    for (unit, device), here in placing.on.items():
        work["device", device].append(int(ticks[problem.unit == unit, device].sum()) * here)
    for move, occurs, seconds in zip(placing.moves, placing.occurs, ticks_of_moves, strict=True):
        if problem.transfers == "blocking":
            work["device", move.source].append(seconds * occurs)
        if problem.transfers == "blocking" or _pays(placing, move.target):
            work["device", move.target].append(seconds * occurs)
        if problem.rules.contention and problem.transfers != "atomic":
            channel = int(problem.channel[move.source, move.target])
            work["channel", channel].append(seconds * occurs)
    for source, leaves in _departures(placing, ticks_of_moves):
        work["device", source].append(leaves)
    return {key: sum(terms) for key, terms in work.items()}


def _pays(placing: Placing, device: int) -> bool:
    """True for an accelerator under atomic rules, because its call sends and receives."""
    problem = placing.problem
    return problem.transfers == "atomic" and bool(problem.accelerators[device])


def _departures(placing: Placing, ticks_of_moves: list[int]) -> list[tuple[int, Any]]:
    """(device, variable) for every tensor that may leave an accelerator under atomic rules.

    The variable is the duration of the tensor's slowest transfer.
    """
    departures: dict[tuple[int, int], Any] = {}
    longest = max(ticks_of_moves, default=0)
    for move, occurs, ticks in zip(placing.moves, placing.occurs, ticks_of_moves, strict=True):
        if _pays(placing, move.source):
            key = move.tensor, move.source
            if key not in departures:
                departures[key] = placing.model.new_int_var(0, longest, "")
            placing.model.add(departures[key] >= ticks * occurs)
    return [(source, leaves) for (_, source), leaves in departures.items()]
