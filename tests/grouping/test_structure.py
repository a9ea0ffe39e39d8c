from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs

from situate import zoo
from situate.data.cluster import Cluster
from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from situate.grouping import TOLD_COSTS, group
from situate.grouping.units import op_work
from tests.grouping.cases import problems
from tests.solvers import families


def told_otherwise(problem: Problem) -> Problem:
    """The problem whose ops take other seconds, drawn for each op and device."""
    names, draws = problem.cluster.names, np.random.default_rng(0)
    ops = tuple(
        structs.replace(op, seconds=dict(zip(names, draws.random(len(names)) + 0.01, strict=True)))
        for op in problem.graph.ops
    )
    inputs = problem.graph
    return Problem(Graph(inputs.name, ops, inputs.tensors, inputs.control), problem.cluster)


@pytest.mark.parametrize("count", [4, 16, 64])
def test_groups_do_not_depend_on_what_ops_take(count):
    problem = Problem(zoo.load("cifar_cnn"), Cluster.preset("k80-4"))
    other = told_otherwise(problem)
    results = [group(item, "structure", count).of_op for item in (problem, other)]
    np.testing.assert_array_equal(*results)
    messages = [group(item, "heavy-edge", count).of_op for item in (problem, other)]
    assert (messages[0] != messages[1]).any()


@pytest.mark.parametrize("count", [1, 2, 5, 7])
@pytest.mark.parametrize("case", ["layered", "apart", "fork", "wide", "weightless", "controlled"])
def test_there_are_as_many_groups_as_asked_for(case, count):
    problem = problems()[case]
    assert len(group(problem, "structure", count)) == min(count, problem.units)


def test_groups_balance_work():
    ops = tuple(
        Op(f"op{j}", traffic=10**9 * (1 + 2 * (j % 2)), seconds={"*": 1.0}) for j in range(64)
    )
    problem = Problem(Graph("apart", ops), families.devices(1, 1))
    result = group(problem, "structure", 16)
    work = np.bincount(result.of_op, op_work(problem))
    assert work.max() <= 2 * work.mean()


def test_only_rules_that_are_told_costs_say_so():
    problem = problems()["layered"]
    messages = {rule: group(problem, rule).told_costs for rule in ("none", "prefix", "colocation")}
    assert not any(messages.values())
    assert not group(problem, "structure", 4).told_costs
    assert group(problem, "heavy-edge", 4).told_costs
    assert "structure" not in TOLD_COSTS
