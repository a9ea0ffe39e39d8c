"""The coarse problem of runs of ops."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.cluster import Cluster
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.data.slices import Slices
from situate.data.topology import places
from situate.solvers.auto.coarse.contraction import contracted
from situate.solvers.auto.coarse.runs import op_line, run_labels
from tests.oracle.problems import random_problem
from tests.solvers.auto.coarse.unrolled import unrolled
from tests.solvers.families import devices


def problem_of(ops: list[Op], *tensors: Tensor, cluster: Cluster | None = None) -> Problem:
    return Problem(Graph("small", tuple(ops), tensors), cluster or devices(1.0, 2.0))


def joined(problem: Problem, label: list[int]) -> Problem:
    """The contraction of runs in the order of the ops."""
    return contracted(problem, np.arange(problem.n, dtype=np.int32), np.array(label))


def op(name: str, **fields: object) -> Op:
    return Op(name, **({"seconds": {"x1": 1.0, "x2": 2.0}} | fields))  # type: ignore[arg-type]


def test_a_run_takes_the_seconds_and_holds_the_bytes_of_its_ops() -> None:
    ops = [op("a", persistent=3, workspace=5), op("b", persistent=4, workspace=2), op("c")]
    coarse = joined(problem_of(ops), [0, 0, 1])
    assert coarse.seconds.tolist() == [[2, 4], [1, 2]]
    assert coarse.persistent.tolist() == [7, 0]
    assert coarse.workspace.tolist() == [5, 0]


def test_tensors_with_the_same_ends_are_one() -> None:
    ops = [op(name) for name in "abcd"]
    tensors = [Tensor("s", 0, 3, (2, 3)), Tensor("t", 1, 4, (2,)), Tensor("u", 0, 9, (1,))]
    coarse = joined(problem_of(ops, *tensors), [0, 0, 1, 1])
    assert coarse.size.tolist() == [7]
    assert coarse.consumers.tolist() == [1]


def test_own_seconds_add_up_apart_from_bytes_on_links() -> None:
    ops = [op(name) for name in "abcd"]
    tensors = [
        Tensor("s", 0, 3, (3,), seconds=2.0),
        Tensor("t", 1, 4, (3,), seconds=0.5),
        Tensor("u", 2, 9, (3,)),
    ]
    coarse = joined(problem_of(ops, *tensors), [0, 0, 0, 1])
    assert sorted(coarse.size.tolist()) == [7, 9]
    assert coarse.transfer_seconds[coarse.size == 7].tolist() == [2.5]
    assert np.isnan(coarse.transfer_seconds[coarse.size == 9]).all()


def test_outputs_within_a_run_stay_in_memory() -> None:
    coarse = joined(problem_of([op("a")], Tensor("t", 0, 6, output=True)), [0])
    assert (coarse.size.tolist(), coarse.output.tolist()) == ([6], [1])


def test_tensors_within_a_run_of_a_slice_are_workspace() -> None:
    ops = [op("a"), op("b", workspace=5), op("c"), op("d")]
    tensors = [Tensor("s", 0, 3, (1,)), Tensor("t", 1, 4, (2,)), Tensor("u", 2, 9, (3,))]
    assert joined(problem_of(ops, *tensors), [0, 0, 0, 1]).workspace.tolist() == [5, 0]
    graph = Graph("small", tuple(ops), tuple(tensors), slices=Slices((1, 1)))
    coarse = joined(Problem(graph, devices(1.0, 2.0)), [0, 0, 0, 1])
    assert coarse.workspace.tolist() == [3 + 5 + 4, 0]
    assert coarse.size.tolist() == [9]


def test_runs_that_share_ops_of_a_group_share_a_device() -> None:
    ops = [op("a", group="x"), op("b", group="y"), op("c"), op("d", group="x"), op("e", group="y")]
    coarse = joined(problem_of(ops), [0, 0, 1, 2, 3])
    assert coarse.unit.tolist() == [0, 1, 0, 0]


def test_a_run_keeps_slice_and_phase_and_the_innermost_common_module() -> None:
    fields = {"slice": 1, "phase": "forward"}
    ops = [op("a", module="net.a.b", **fields), op("b", module="net.a.c", **fields), op("c")]
    graph = Graph("small", tuple(ops), slices=Slices((1, 1)))
    run, other = joined(Problem(graph, devices(1.0, 2.0)), [0, 0, 1]).graph.ops
    assert (run.module, run.slice, run.phase) == ("net.a", 1, "forward")
    assert (other.module, other.slice) == ("", None)


def test_control_edges_between_runs_remain() -> None:
    graph = Graph("small", tuple(op(name) for name in "abc"), control=((0, 1), (0, 2), (1, 2)))
    coarse = joined(Problem(graph, devices(1.0)), [0, 0, 1])
    assert coarse.graph.control == ((0, 1),)


def test_a_run_goes_where_all_its_ops_may_run() -> None:
    ops = [op("a", device="d1"), op("b", seconds={"x1": 1.0})]
    coarse = joined(problem_of(ops), [0, 1])
    assert coarse.allowed.tolist() == [[False, True], [True, False]]


def test_units_share_a_device_on_the_coarse_level() -> None:
    problem = unrolled()
    line = op_line(problem)
    label = run_labels(problem, line, 10, np.zeros(problem.n, np.int64))
    coarse = contracted(problem, line, label)
    first, second = label[0], label[-4]  # a parameter and its update
    assert coarse.unit[first] == coarse.unit[second]


@pytest.mark.parametrize("seed", range(10))
def test_every_op_as_a_run_of_its_own_leaves_the_seconds_and_bytes(seed: int) -> None:
    problem = random_problem(seed)
    line = np.array(problem.graph.order, np.int32)
    same, of_line = contracted(problem, line, places(line)), problem.runnable[problem.unit][line]
    assert np.array_equal(same.seconds[of_line], problem.seconds[line][of_line])
    assert np.array_equal(same.persistent, problem.persistent[line])
    assert np.array_equal(same.workspace, problem.workspace[line])
