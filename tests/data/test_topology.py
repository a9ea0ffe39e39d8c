"""Edges, places, devices of units, and lines of units along the network."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.data.topology import (
    accelerators,
    edge_producers,
    edge_tensors,
    folded_order,
    inputs_of_ops,
    may_run,
    op_devices,
    pipeline_order,
    places,
    topological_by,
    unit_devices,
)
from tests.oracle.problems import random_problem
from tests.solvers.families import apart, devices, fork, layered
from tests.solvers.training import LAYERS, gpus, training


@pytest.mark.parametrize("seed", range(5))
def test_an_edge_leads_from_the_op_that_makes_a_tensor_to_one_that_reads_it(seed: int) -> None:
    problem = random_problem(seed)
    tensors = zip(edge_tensors(problem), edge_producers(problem), problem.consumers, strict=True)
    edges = [tuple(map(int, edge)) for edge in tensors]
    start = problem.consumer_start
    expected = [
        (tensor, int(problem.producer[tensor]), int(reader))
        for tensor in range(len(problem.size))
        for reader in problem.consumers[start[tensor] : start[tensor + 1]]
    ]
    assert edges == expected
    inputs = inputs_of_ops(problem)
    assert sorted((t, op) for op, read in enumerate(inputs) for t in read) == sorted(
        (tensor, reader) for tensor, _, reader in expected
    )


def test_the_place_of_an_op_is_where_the_order_has_it() -> None:
    assert places((2, 0, 1)).tolist() == [1, 2, 0]
    assert places(np.array([1, 0], np.int32)).tolist() == [1, 0]


def test_devices_of_units_and_of_ops_turn_into_one_another() -> None:
    ops = tuple(Op(f"op{j}", group="g" if j < 2 else None, seconds={"*": 1.0}) for j in range(3))
    problem = Problem(Graph("g", ops), devices(1, 1))
    placement = np.array([1, 1, 0], np.int32)
    of_unit = unit_devices(problem, placement)
    assert sorted(of_unit.tolist()) == [0, 1]
    np.testing.assert_array_equal(op_devices(problem, of_unit), placement)
    assert op_devices(problem, of_unit.astype(np.int64)).dtype == np.int32


def test_a_unit_may_run_where_it_is_not_pinned_away() -> None:
    ops = (Op("a", device="d1", seconds={"*": 1.0}), Op("b", seconds={"*": 1.0}))
    problem = Problem(Graph("g", ops), devices(1, 1))
    assert may_run(problem, unit_devices(problem, np.array([0, 0], np.int32))).tolist() == [
        False,
        True,
    ]


def test_without_an_accelerator_all_devices_are_in_its_place() -> None:
    problem = training(gpus(9, cpu=True))
    assert accelerators(problem) == [0]
    assert accelerators(training(gpus(cpu=True))) == [0]
    assert accelerators(Problem(layered(2, 2, 1), devices(1, 1))) == [0, 1]


def test_the_backward_pass_is_folded_onto_the_forward_pass() -> None:
    phases = ["forward"] * 3 + ["backward"] * 3
    ops = tuple(Op(f"op{j}", phase=phase, seconds={"*": 1.0}) for j, phase in enumerate(phases))
    tensors = tuple(Tensor(f"t{j}", j, 1, (j + 1,)) for j in range(5))
    line = pipeline_order(Problem(Graph("folded", ops, tensors), devices(1, 1)))
    place = np.argsort(line)
    assert abs(place[0] - place[5]) == 1
    assert abs(place[2] - place[3]) == 1


def test_a_backward_op_stands_with_what_is_kept_for_it() -> None:
    line = folded_order(training(gpus(1000, 1000))).tolist()
    place = {op: line.index(op) for op in range(2 * LAYERS)}
    for layer in range(LAYERS):
        assert abs(place[layer] - place[2 * LAYERS - 1 - layer]) <= 2


def test_what_a_backward_op_reads_last_in_the_forward_pass_it_stands_beside() -> None:
    ops = [Op(f"f{j}", phase="forward", seconds={"*": 1.0}) for j in range(4)]
    ops.append(Op("b", phase="backward", seconds={"*": 1.0}))
    tensors = [Tensor(f"t{j}", j, 1, (j + 1,)) for j in range(2)]
    tensors += [Tensor("t2", 2, 1, (3, 4)), Tensor("seed", 3, 1, ())]
    graph = Graph("g", tuple(ops), (Tensor("t", 0, 1, (1, 4)), *tensors[1:]))
    assert folded_order(Problem(graph, gpus(9, 9))).tolist() in ([0, 1, 2, 4, 3], [0, 1, 4, 2, 3])


def test_of_the_ops_that_are_ready_the_one_of_the_least_key_is_next() -> None:
    problem = Problem(fork(5), devices(1))
    assert topological_by(problem, np.array([9, 3, 1, 2, 0])).tolist() == [0, 2, 3, 1, 4]
    order = topological_by(Problem(apart(4), devices(1)), np.array([0.5, 0.25, 0.5, 0.0]))
    assert order.tolist() == [3, 1, 0, 2]
