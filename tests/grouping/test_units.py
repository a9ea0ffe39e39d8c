from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs

from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.grouping.units import (
    REFERENCE,
    op_bytes,
    op_work,
    unit_bytes,
    unit_graph,
    unit_labels,
    unit_work,
)
from tests.grouping.cases import TWO_KINDS, flows, problems
from tests.solvers import families


def test_a_unit_has_the_label_of_its_first_op():
    """Ops j and j + 6 are a unit."""
    keys = ["a", "b", "a", "c", "b", "d", *"xyzxyz"]
    assert unit_labels(problems()["colocated"], keys).tolist() == [0, 1, 0, 2, 1, 3]


def test_bytes_of_an_op_are_those_of_the_tensors_that_it_reads_and_writes():
    ops = tuple(Op(name, seconds={"*": 1.0}, group=group) for name, group in ("ax", "by", "cy"))
    tensors = Tensor("t", 0, 5, (1, 2)), Tensor("u", 1, 3, (2,))
    pairs = Problem(Graph("g", ops, tensors), families.devices(1, 2))
    assert op_bytes(pairs).tolist() == [5, 8, 8]
    assert unit_bytes(pairs).tolist() == [5, 16]


def test_ops_with_empty_tensors_alone_count_alike():
    assert op_bytes(problems()["weightless"]).tolist() == [1] * problems()["weightless"].n


FLOPS = REFERENCE.flops["float32"]


def problem(*ops: Op) -> Problem:
    seconds = {"*": 1.0}
    inputs = tuple(structs.replace(op, seconds=op.seconds or seconds) for op in ops)
    return Problem(Graph("g", inputs), families.devices(1, 2))


def test_work_is_seconds_on_the_reference_by_the_roofline():
    result = op_work(problem(Op("a", "matmul", flops=int(7 * FLOPS)), Op("b", traffic=1), Op("c")))
    assert result == pytest.approx([REFERENCE.launch + 10, REFERENCE.launch, 0.0], rel=1e-6)


def test_work_does_not_depend_on_an_ops_own_seconds():
    slow = Op("a", traffic=10**9, seconds={"x1": 100.0, "x2": 3.0})
    fast = structs.replace(slow, seconds={"*": 1e-3})
    assert op_work(problem(slow)).tolist() == op_work(problem(fast)).tolist()


@pytest.mark.parametrize("case", problems())
def test_without_flops_and_traffic_all_ops_are_alike(case):
    assert (op_work(problems()[case]) == 1).all()


def test_the_work_of_a_unit_is_that_of_its_ops():
    together = problem(Op("a", traffic=10**9, group="g"), Op("b", traffic=10**9, group="g"))
    np.testing.assert_allclose(unit_work(together), [op_work(together).sum()])


CASES = problems()


@pytest.mark.parametrize("case", CASES)
def test_edges_are_what_flows_between_two_units_both_ways(case):
    graph = unit_graph(CASES[case])
    rows = np.repeat(np.arange(len(graph)), np.diff(graph.start))
    edges = dict(
        zip(
            zip(rows.tolist(), graph.neighbour.tolist(), strict=True),
            graph.bytes.tolist(),
            strict=True,
        )
    )
    assert len(edges) == len(graph.neighbour)
    assert edges == flows(CASES[case])


@pytest.mark.parametrize("case", CASES)
def test_rows_are_sorted_symmetric_and_without_loops(case):
    graph = unit_graph(CASES[case])
    rows = np.repeat(np.arange(len(graph)), np.diff(graph.start))
    there, back = np.lexsort((graph.neighbour, rows)), np.lexsort((rows, graph.neighbour))
    assert there.tolist() == list(range(len(rows)))
    assert np.array_equal(graph.neighbour[back], rows)
    assert np.array_equal(graph.bytes[back], graph.bytes)
    assert not (rows == graph.neighbour).any()


def test_a_tensor_counts_once_for_every_unit_that_consumes_it():
    """Op 0 feeds ops 1 and 2, which share a device, and op 3."""
    ops = tuple(
        Op(f"op{j}", seconds={"*": 1.0}, group="g" if j in (1, 2) else None) for j in range(4)
    )
    problem = Problem(Graph("g", ops, (Tensor("t", 0, 7, (1, 2, 3)),)), families.devices(1, 1))
    graph = unit_graph(problem)
    assert graph.neighbour.tolist() == [1, 2, 0, 0]
    assert graph.bytes.tolist() == [7, 7, 7, 7]


def test_seconds_are_those_of_the_fastest_device_that_is_allowed():
    ops = (
        Op("free", seconds={"cpu": 9.0, "x1": 2.0}),
        Op("pinned", seconds={"cpu": 9.0, "x1": 2.0}, device="cpu"),
    )
    assert unit_graph(Problem(Graph("g", ops), TWO_KINDS)).seconds.tolist() == [2.0, 9.0]


def test_seconds_and_bytes_of_a_unit_are_those_of_all_its_ops():
    ops = tuple(Op(f"op{j}", seconds={"*": 1.5}, persistent=4, group="g") for j in range(3))
    graph = unit_graph(Problem(Graph("g", ops), families.devices(1, 1)))
    assert (graph.seconds.tolist(), graph.persistent.tolist()) == ([4.5], [12])


def test_sums_of_the_largest_sizes_are_exact():
    assert set(unit_graph(CASES["huge"]).bytes.tolist()) == {2**57}
