"""Ops that hold nothing follow what they read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs

from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.solvers import solve
from situate.solvers.auto.stages import follow
from situate.solvers.evaluate import evaluate
from tests.solvers.families import devices

LAYERS = 24


def training(held: list[int], memory: int | None = None) -> Problem:
    """Parameters, which ops read forwards and backwards, and updates of each by its gradient."""
    n = len(held)
    grouped = [{"seconds": {"*": 0.1}, "group": f"layer{j}"} for j in range(n)]
    ops = [Op(f"weights{j}", persistent=b, **grouped[j]) for j, b in enumerate(held)]
    ops += [Op(f"forward{j}", seconds={"*": 1.0}) for j in range(n)]
    ops += [Op(f"backward{j}", seconds={"*": 2.0}) for j in reversed(range(n))]
    ops += [Op(f"update{j}", **grouped[j]) for j in reversed(range(n))]
    last = 3 * n - 1
    tensors = [
        Tensor(f"weights{j}", j, b // 4, (n + j, last - j), resident=True)
        for j, b in enumerate(held)
    ]
    tensors += [Tensor(f"kept{j}", n + j, 3, (n + j + 1, last - j)) for j in range(n - 1)]
    tensors += [Tensor(f"back{j}", j, 3, (j + 1,)) for j in range(2 * n - 1, last)]
    tensors += [Tensor(f"gradient{j}", last - j, held[j] // 4, (last + n - j,)) for j in range(n)]
    cluster = devices(1, 1, 1, 1, memory=memory, bandwidth=30.0)
    return Problem(Graph("training", tuple(ops), tuple(tensors)), cluster)


def by_layer(split: list[int]) -> np.ndarray:
    return np.array(split + split + split[::-1] + split[::-1], np.int32)


def test_ops_follow_their_parameters():
    problem = training([5] * LAYERS)
    split = [0] * 16 + [1] * 8
    unknown = np.array(split + [1] * 2 * LAYERS + split[::-1], np.int32)
    assert follow(problem, unknown).tolist() == by_layer(split).tolist()


def test_without_parameters_ops_follow_the_last_input():
    ops = (Op("a", persistent=1), Op("b", persistent=1), Op("c"), Op("d"))
    ops = tuple(structs.replace(op, seconds={"*": 1.0}) for op in ops)
    tensors = (Tensor("s", 0, 1, (2,)), Tensor("t", 1, 1, (2,)), Tensor("u", 2, 1, (3,)))
    problem = Problem(Graph("g", ops, tensors), devices(1, 1))
    assert follow(problem, np.array([0, 1, 0, 0], np.int32)).tolist() == [0, 1, 1, 1]


def test_ops_stay_where_they_are_if_they_may_not_follow():
    problem = training([5] * LAYERS)
    ops = list(problem.graph.ops)
    ops[LAYERS] = structs.replace(ops[LAYERS], device="d1")
    pinned = Problem(replace(problem.graph, ops=tuple(ops)), problem.cluster)
    placement = by_layer([0] * LAYERS)
    placement[LAYERS : 3 * LAYERS] = 1
    followed = follow(pinned, placement)
    assert followed[LAYERS] == 1
    assert (followed[LAYERS + 1 :] == 0).all()


@pytest.mark.parametrize("seed", [0, 6, 7])
def test_auto_fills_devices_to_the_brim(seed):
    """Layers of any size in four pieces; half a per cent of memory is left."""
    held = np.random.default_rng(seed).integers(30, 200, LAYERS)
    pieces = ((np.cumsum(held) - held / 2) * 4 // held.sum()).astype(int).tolist()
    peak = evaluate(training(held.tolist()), by_layer(pieces)).schedule.peak.max()
    problem = training(held.tolist(), int(1.005 * peak))
    by_hand = evaluate(problem, by_layer(pieces))
    assert by_hand.feasible
    result = solve(problem, time_limit=None, evaluations=2000)
    assert result.feasible
    assert result.value <= by_hand.value
