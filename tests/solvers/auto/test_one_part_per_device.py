"""A part of the network on each accelerator: a layer, where it is unrolled."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs

from situate.data.cluster import Cluster
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.grouping import heavy_edge
from situate.solvers import solve
from situate.solvers.auto.one_part_per_device import offer_one_part_per_device, one_part_each
from situate.solvers.budget import Budget
from situate.solvers.evaluate import evaluate
from situate.solvers.heuristics.baselines import single
from situate.solvers.search import Search
from tests.solvers.families import devices

LAYERS, STEPS = 4, 40


def unrolled(cluster: Cluster) -> Problem:
    """Steps of layers, forwards and then backwards; each op reads its layer's weights."""
    ops = [Op(f"weights{layer}", seconds={"*": 0.0}, persistent=50) for layer in range(LAYERS)]
    reads: list[list[int]] = [[] for _ in range(LAYERS)]
    place = {}
    for direction, turn in ("forward", 1), ("backward", -1):
        for step in range(STEPS)[::turn]:
            for layer in range(LAYERS)[::turn]:
                near = [(direction, step - turn, layer), (direction, step, layer - turn)]
                inputs = [place[key] for key in (*near, ("forward", step, layer)) if key in place]
                for op in (layer, *inputs):
                    reads[op].append(len(ops))
                place[direction, step, layer] = len(ops)
                ops.append(Op(f"{direction}{step}.{layer}", seconds={"*": float(2 - turn)}))
                reads.append([])
    tensors = [
        Tensor(f"t{op}", op, 1 if op >= LAYERS else 50, tuple(users), resident=op < LAYERS)
        for op, users in enumerate(reads)
    ]
    return Problem(Graph("unrolled", tuple(ops), tuple(tensors)), cluster)


def by_layer(problem: Problem) -> np.ndarray:
    return np.array([int(op.name[-1]) for op in problem.graph.ops], np.int32)


@pytest.fixture
def recurrent() -> Problem:
    return unrolled(devices(1, 1, 1, 1, bandwidth=10))


def test_parts_of_an_unrolled_network_are_its_layers(recurrent):
    labels = heavy_edge.labels(recurrent, LAYERS)
    assert one_part_each(recurrent, labels).tolist() == by_layer(recurrent).tolist()


def test_auto_takes_no_longer_than_a_layer_a_device(recurrent):
    by_hand = evaluate(recurrent, by_layer(recurrent))
    result = solve(recurrent, time_limit=None, evaluations=3000)
    assert result.value <= by_hand.value


def test_a_unit_that_may_not_go_there_goes_where_it_may(recurrent):
    first, *others = recurrent.graph.ops
    ops = (structs.replace(first, device="d2"), *others)
    graph = Graph("pinned", ops, recurrent.graph.tensors)
    pinned = Problem(graph, recurrent.cluster)
    assert one_part_each(pinned, by_layer(recurrent)).tolist() == [2, *by_layer(recurrent)[1:]]


@pytest.mark.parametrize(("memory", "is_offered"), [(None, True), (10, False)])
def test_they_are_offered_if_they_are_better(memory, is_offered):
    """All on the first, which alone has memory for more than one layer's weights."""
    problem = unrolled(devices(1, 1, 1, 1, bandwidth=10))
    first, *others = problem.cluster.devices
    small = [structs.replace(device, memory=memory) for device in others]
    cluster = Cluster("small", (first, *small), problem.cluster.links)
    search = Search(
        Problem(problem.graph, cluster), budget=Budget(evaluation_limit=1000), threads=1
    )
    single(search)
    before = search.best
    offer_one_part_per_device(search, by_layer(problem))
    assert (search.best is not before) == is_offered


def test_by_rank_a_part_need_not_wait_for_the_whole_of_the_one_before():
    """Each device has a layer, and every other op of it is one that nothing waits for."""
    ops = [Op(f"op{i}", seconds={"*": 1.0}) for i in range(8)]
    tensors = tuple(Tensor(f"t{i}", i, 0, (i + 2,)) for i in (1, 3, 5))
    chain = Problem(Graph("layers", tuple(ops), tensors), devices(1, 1, 1, 1, bandwidth=10))
    search = Search(chain, budget=Budget(evaluation_limit=1000), threads=1)
    single(search)
    offer_one_part_per_device(search, np.repeat(np.arange(4), 2))
    assert search.best.value == 4.0
