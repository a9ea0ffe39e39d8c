"""Transfer seconds are those of the problem; loads are Tarnawski et al.'s."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.data.rules import RULES, Rules
from situate.schedule.load import (
    channel_seconds,
    crossings,
    device_seconds,
    loads,
    period,
    transfer_seconds,
)
from situate.schedule.schedule import Schedule
from tests.oracle.case import Case
from tests.oracle.problems import random_decision, random_problem
from tests.oracle.simulator import simulate


def _loads(problem: Problem, placement: list[int]) -> list[float]:
    """The formula, tensor by tensor."""
    case = Case(problem, placement, np.zeros(problem.n))
    load = [0.0] * problem.d
    for op in case.ops:
        load[placement[op]] += case.seconds[op]
    for t in (t for t in case.tensors if not case.is_signal(t)):
        costs = {e: problem.transfer_time(t, case.home(t), e) for e in case.targets(t)}
        for target, cost in costs.items():
            load[target] += cost * (problem.cluster.devices[target].kind != "cpu")
        if problem.cluster.devices[case.home(t)].kind != "cpu":
            load[case.home(t)] += max(costs.values(), default=0.0)
    return load


def test_transfer_seconds_equal_the_problems() -> None:
    for seed in range(200):
        problem = random_problem(seed)
        tensor, source, target, _ = crossings(problem, random_decision(problem, seed).placement)
        expected = [
            problem.transfer_time(*row)
            for row in zip(tensor.tolist(), source.tolist(), target.tolist(), strict=True)
        ]
        assert transfer_seconds(problem, tensor, source, target).tolist() == expected


def test_a_tensor_with_its_own_seconds_asks_nothing_of_the_link() -> None:
    ops = tuple(Op(name, seconds={"*": 1.0}) for name in "ab")
    graph = Graph("g", ops, (Tensor("t", 0, 2**53, (1,), seconds=0.5),))
    pair = Cluster("c", (Device("x"), Device("y")), (Link("*", "*", 1e-300),))
    tensor, source, target = (np.array([i], np.int32) for i in (0, 0, 1))
    assert transfer_seconds(Problem(graph, pair), tensor, source, target).tolist() == [0.5]


def test_every_crossing_tensor_is_sent_once_on_its_slowest_way() -> None:
    for seed in range(200):
        problem = random_problem(seed)
        tensor, source, target, sent = crossings(problem, random_decision(problem, seed).placement)
        assert not problem.signal[tensor].any()
        taken = transfer_seconds(problem, tensor, source, target)
        assert tensor[sent].tolist() == np.unique(tensor).tolist()
        assert all(taken[sent] == [taken[tensor == t].max() for t in tensor[sent]])


def test_loads_equal_the_formula() -> None:
    for seed in range(300):
        problem = replace(random_problem(seed), rules=RULES["dnn-partitioning"])
        placement = random_decision(problem, seed).placement
        np.testing.assert_allclose(
            loads(problem, placement), _loads(problem, placement.tolist()), rtol=1e-12
        )


def test_a_device_works_at_its_ops_and_where_they_block_it_at_both_ends_of_transfers() -> None:
    for seed in range(100):
        problem, schedule = _drawn(seed)
        busy = [0.0] * problem.d
        for op, device in enumerate(schedule.placement.tolist()):
            busy[device] += problem.seconds[op, device]
        for _, source, target, seconds in _moves(problem, schedule):
            for device in (source, target):
                busy[device] += seconds * (problem.transfers == "blocking")
        np.testing.assert_allclose(device_seconds(schedule, problem), busy, rtol=1e-12)


def test_a_channel_works_at_its_transfers_and_signals_take_none() -> None:
    for seed in range(100):
        problem, schedule = _drawn(seed)
        busy = [0.0] * len(problem.cluster.channels)
        for _, source, target, seconds in _moves(problem, schedule):
            busy[problem.channel[source, target]] += seconds
        np.testing.assert_allclose(channel_seconds(schedule, problem), busy, rtol=1e-12)


def test_the_period_is_that_of_the_busiest_device_or_contended_channel() -> None:
    limits = set()
    for seed in range(100):
        problem, schedule = _drawn(seed)
        device = max(device_seconds(schedule, problem).tolist())
        channel = max(channel_seconds(schedule, problem).tolist(), default=0.0)
        channel *= problem.rules.contention
        limits.add(channel > device)
        assert period(schedule, problem) == max(device, channel)
    assert limits == {True, False}


def test_under_atomic_rules_the_period_is_the_largest_load() -> None:
    for seed in range(50):
        problem, schedule = _drawn(seed)
        atomic = replace(problem, rules=Rules("atomic", "atomic", memory="persistent"))
        load = loads(atomic, schedule.placement)
        assert device_seconds(schedule, atomic).tolist() == load.tolist()
        assert period(schedule, atomic) == load.max()


def _drawn(seed: int) -> tuple[Problem, Schedule]:
    problem = random_problem(seed)
    drawn = random_decision(problem, seed)
    return problem, simulate(problem, drawn.placement, drawn.priority)


def _moves(problem: Problem, schedule: Schedule) -> Iterator[tuple[int, int, int, float]]:
    """Tensor, source, target and seconds of the transfers that are no signals."""
    moved = zip(schedule.tensor.tolist(), schedule.source, schedule.target, strict=True)
    for tensor, source, target in moved:
        if not problem.signal[tensor]:
            yield tensor, source, target, problem.transfer_time(tensor, source, target)
