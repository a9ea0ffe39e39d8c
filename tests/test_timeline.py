"""Which items occupy what, and in which order they are taken."""

from __future__ import annotations

import numpy as np
import pytest

from situate.problem import Problem
from situate.schedule import Schedule
from situate.timeline import channel_items, device_items, item_order, signals
from tests.oracle.problems import random_decision, random_problem
from tests.oracle.simulator import simulate


def _drawn(seed: int) -> tuple[Problem, Schedule]:
    problem = random_problem(seed)
    drawn = random_decision(problem, seed)
    return problem, simulate(problem, drawn.placement, drawn.priority)


@pytest.mark.parametrize("seed", range(100))
def test_items_follow_what_they_depend_on(seed: int) -> None:
    problem, schedule = _drawn(seed)
    position = np.argsort(item_order(schedule, problem))
    moves = problem.n + np.arange(len(schedule.tensor))
    assert (position[problem.producer[schedule.tensor]] < position[moves]).all()
    for producer, consumer in problem.graph.edges():
        assert position[producer] < position[consumer]
    for move in moves:
        t = schedule.tensor[move - problem.n]
        consumers = problem.consumers[problem.consumer_start[t] : problem.consumer_start[t + 1]]
        there = consumers[schedule.placement[consumers] == schedule.target[move - problem.n]]
        assert (position[move] < position[there]).all()


@pytest.mark.parametrize("seed", range(100))
def test_signals_occupy_nothing(seed: int) -> None:
    problem, schedule = _drawn(seed)
    for items, _ in (device_items(schedule, problem), channel_items(schedule, problem)):
        moves = items[items >= problem.n] - problem.n
        assert not signals(problem)[schedule.tensor[moves]].any()


def test_a_blocking_transfer_occupies_both_its_devices() -> None:
    blocking = (s for s in range(1000) if random_problem(s).transfers == "blocking")
    problem, schedule = next(
        (p, s) for p, s in map(_drawn, blocking) if not signals(p)[s.tensor].all()
    )
    items, places = device_items(schedule, problem)
    k = int(np.flatnonzero(~signals(problem)[schedule.tensor])[0])
    expected = {schedule.source[k], schedule.target[k]}
    assert set(places[items == problem.n + k]) == expected
