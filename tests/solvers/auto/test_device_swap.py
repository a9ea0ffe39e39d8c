"""Devices trade all they have where links or speeds make another order of pieces better."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from itertools import combinations

import numpy as np
import pytest
from msgspec import structs

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from situate.solvers import solve
from situate.solvers.auto.device_swap import swap_devices, swapped, unlike_pairs
from situate.solvers.budget import Budget
from situate.solvers.evaluate import evaluate
from situate.solvers.search import Search
from tests.oracle.problems import random_problem
from tests.solvers.families import chain, devices, graph

PIECES, LAYERS = 8, 32


def interleaved() -> Cluster:
    """Even devices are one node, odd ones another; each holds one piece of eight."""
    slow = Link("*", "*", 0.1)
    return Cluster(
        "nodes",
        tuple(Device(f"d{i}", kind="x1", memory=46) for i in range(PIECES)),
        (slow, *(Link(f"d{i}", f"d{j}", 100.0) for i in range(8) for j in range(i % 2, i, 2))),
    )


def pipeline(objective: str) -> Problem:
    """Forwards through layers of weights, and back through what each layer has kept."""
    n = 2 * LAYERS
    kept = [(layer, n - 1 - layer) for layer in range(LAYERS - 1)]
    passes = graph(n, [(op, op + 1) for op in range(n - 1)] + kept)
    ops = [
        structs.replace(op, persistent=9 if j < LAYERS else 0) for j, op in enumerate(passes.ops)
    ]
    return Problem(replace(passes, ops=tuple(ops)), interleaved(), objective)  # type: ignore[arg-type]


def in_turn(turn: list[int]) -> np.ndarray:
    """Equal pieces of the layers on the devices in this order."""
    there = np.repeat(np.array(turn, np.int32), LAYERS // PIECES)
    return np.concatenate((there, there[::-1]))


_ANYWHERE = Graph("g", tuple(Op(name, seconds={"*": 1.0}) for name in "ab"))
NODE_BY_NODE = in_turn([0, 2, 4, 6, 1, 3, 5, 7])


@pytest.mark.parametrize("objective", ["time", "throughput"])
def test_auto_fills_one_node_before_the_other(objective):
    problem = pipeline(objective)
    by_hand = evaluate(problem, NODE_BY_NODE)
    assert by_hand.feasible
    result = solve(problem, time_limit=None, evaluations=4000)
    assert result.feasible
    assert result.value <= 1.01 * by_hand.value


def test_pieces_in_the_order_of_the_file_end_up_node_by_node():
    problem = pipeline("time")
    search = Search(problem, budget=Budget(evaluation_limit=100_000), threads=1)
    search.offer(in_turn(list(range(8))), np.array(problem.graph.order, np.int32))
    before = search.best.value
    swap_devices(search)
    assert before > 7 * 10
    assert search.best.value == pytest.approx(evaluate(problem, NODE_BY_NODE).value)


def test_it_takes_a_small_share_of_the_budget():
    problem = pipeline("time")
    search = Search(problem, budget=Budget(evaluation_limit=1000), threads=1)
    search.offer(in_turn(list(range(8))), np.array(problem.graph.order, np.int32))
    swap_devices(search)
    assert search.budget.evaluations <= 25


def test_units_trade_as_far_as_they_may():
    small = chain(4)
    pinned = structs.replace(small.ops[1], device="d0")
    graph = type(small)("small", (small.ops[0], pinned, *small.ops[2:]), small.tensors)
    problem = Problem(graph, devices(1, 1, 1))
    assert swapped(problem, np.array([0, 0, 1, 2], np.int32), 0, 1).tolist() == [1, 0, 0, 2]


def test_equal_devices_have_nothing_to_trade():
    assert not list(unlike_pairs(Problem(chain(4), devices(1, 1, 1))))
    assert list(unlike_pairs(Problem(chain(4), devices(1, 2, 1)))) == [(0, 1), (1, 2)]


def test_what_links_and_channels_join_is_not_equal():
    apart, joined = Link("*", "*", 1.0), Link("d0", "d1", 1.0, channel="bus")
    cluster = devices(1, 1, 1, 1)
    shared = Problem(chain(4), Cluster("c", cluster.devices, (apart, joined)))
    faster = Problem(chain(4), Cluster("c", cluster.devices, (apart, Link("d0", "d1", 2.0))))
    across = [(0, 2), (0, 3), (1, 2), (1, 3)]
    assert list(unlike_pairs(shared)) == list(unlike_pairs(faster)) == across


def test_devices_are_compared_with_one_of_every_kind(monkeypatch):
    compared: list[tuple[int, int]] = []

    def linked_alike(problem: Problem, a: int, b: int) -> bool:
        compared.append((a, b))
        return True

    module = import_module("situate.solvers.auto.device_swap")
    monkeypatch.setattr(module, "_linked_alike", linked_alike)
    assert not list(unlike_pairs(Problem(chain(4), devices(*[1] * 64))))
    assert len(compared) == 63


def test_unlike_pairs_are_those_whose_trade_changes_the_problem():
    """On equal devices, but for one in some, with all kinds of links and channels."""
    alike = 0
    for seed in range(300):
        drawn = random_problem(seed).cluster
        equal = tuple(Device(name, memory=9) for name in drawn.names)
        mixed = (structs.replace(equal[0], memory=8 + seed % 2), *equal[1:])
        problem = Problem(_ANYWHERE, replace(drawn, devices=mixed))
        pairs = list(combinations(range(problem.d), 2))
        changes = [pair for pair in pairs if _changes(problem, *pair)]
        assert list(unlike_pairs(problem)) == changes, seed
        alike += len(changes) < len(pairs)
    assert alike > 100


def _changes(problem: Problem, a: int, b: int) -> bool:
    """True if any array of the problem differs once the two devices have changed places, but for
    the numbers of channels."""
    turn = np.arange(problem.d)
    turn[[a, b]] = b, a
    lines = (problem.capacity, problem.accelerators, *problem.allowed, *problem.seconds)
    squares = [table[turn][:, turn] for table in (problem.latency, problem.bandwidth)]
    became = dict[int, set[int]]()
    for old, new in zip(problem.channel.flat, problem.channel[turn][:, turn].flat, strict=True):
        became.setdefault(int(old), set()).add(int(new))
    return not (
        all(np.array_equal(line, line[turn]) for line in lines)
        and np.array_equal(squares[0], problem.latency)
        and np.array_equal(squares[1], problem.bandwidth)
        and all(len(channels) == 1 for channels in became.values())
    )
