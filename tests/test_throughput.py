"""Transfer seconds are those of the problem; loads are Tarnawski et al.'s."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from situate.cluster import Cluster, Device, Link
from situate.graph import Graph, Op, Tensor
from situate.problem import RULES, Problem
from situate.throughput import crossings, loads, transfer_seconds
from tests.oracle.case import Case
from tests.oracle.problems import random_decision, random_problem


def _loads(problem: Problem, placement: list[int]) -> list[float]:
    """The formula, tensor by tensor."""
    case = Case(problem, placement, np.zeros(problem.n))
    load = [0.0] * problem.d
    for op in case.ops:
        load[placement[op]] += case.seconds[op]
    for t in case.tensors:
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
