"""The resources that items occupy, and the order in which they are taken."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from situate.data.problem import Problem
from situate.schedule.items import channel_items, device_items, item_order, turns
from situate.schedule.schedule import Schedule
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
        assert not problem.signal[schedule.tensor[moves]].any()


def test_a_transfer_occupies_its_channel_and_where_it_blocks_both_its_devices() -> None:
    for seed in range(100):
        problem, schedule = _drawn(seed)
        on_devices = list(enumerate(schedule.placement.tolist()))
        on_channels = []
        for k in np.flatnonzero(~problem.signal[schedule.tensor]).tolist():
            ends = int(schedule.source[k]), int(schedule.target[k])
            if problem.transfers == "blocking":
                on_devices += [(problem.n + k, end) for end in ends]
            if problem.rules.contention:
                on_channels.append((problem.n + k, int(problem.channel[ends])))
        assert _pairs(device_items(schedule, problem)) == sorted(on_devices)
        assert _pairs(channel_items(schedule, problem)) == on_channels


def _pairs(items: tuple[NDArray[np.int64], NDArray[np.int64]]) -> list[tuple[int, int]]:
    return sorted(zip(*map(np.ndarray.tolist, items), strict=True))


def test_in_a_call_nothing_has_a_device_or_a_channel_to_itself() -> None:
    problem, schedule = _drawn(0)
    call = replace(schedule, decoder="calls")
    for items, places in (device_items(call, problem), channel_items(call, problem)):
        assert items.tolist() == places.tolist() == []


def test_turns_are_those_of_each_device_by_itself() -> None:
    items, devices = np.array([0, 1, 2, 3]), np.array([1, 0, 1, 1])
    order = np.array([3, 1, 0, 2])
    assert turns(items, devices, order).T.tolist() == [[3, 0], [0, 2]]
