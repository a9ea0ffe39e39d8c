from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs

from situate import zoo
from situate.data.cluster import Cluster
from situate.data.graph import Graph
from situate.data.problem import Problem
from situate.grouping import group
from situate.grouping.units import op_bytes
from tests.grouping.cases import problems
from tests.grouping.test_structure import told_otherwise
from tests.solvers.families import chain, devices

PROBLEM = Problem(zoo.load("cifar_cnn"), Cluster.preset("k80-4"))


def with_other_work(problem: Problem) -> Problem:
    """The problem whose ops have other FLOPs and memory traffic, drawn for each op."""
    draws, old = np.random.default_rng(0), problem.graph
    ops = tuple(
        structs.replace(op, flops=int(flops), traffic=int(traffic))
        for op, (flops, traffic) in zip(
            old.ops, draws.integers(1, 10**9, (problem.n, 2)), strict=True
        )
    )
    return Problem(Graph(old.name, ops, old.tensors, old.control), problem.cluster)


# Groups come from bytes and edges alone.


@pytest.mark.parametrize("count", [4, 16, 64])
@pytest.mark.parametrize("change", [told_otherwise, with_other_work])
def test_groups_do_not_depend_on_seconds_or_flops(change, count):
    results = [group(item, "bytes", count).of_op for item in (PROBLEM, change(PROBLEM))]
    np.testing.assert_array_equal(*results)


def test_groups_by_structure_do_depend_on_flops():
    other = with_other_work(PROBLEM)
    results = [group(item, "structure", 16).of_op for item in (PROBLEM, other)]
    assert (results[0] != results[1]).any()


@pytest.mark.parametrize("count", [1, 2, 5, 7])
@pytest.mark.parametrize("case", ["layered", "apart", "fork", "wide", "weightless", "controlled"])
def test_there_are_as_many_groups_as_asked_for(case, count):
    problem = problems()[case]
    assert len(group(problem, "bytes", count)) == min(count, problem.units)


def test_groups_balance_bytes():
    problem = Problem(chain(64), devices(1, 1))
    result = group(problem, "bytes", 16)
    size = np.bincount(result.of_op, op_bytes(problem))
    assert size.max() <= 2 * size.mean()


def test_groups_name_their_weights():
    weights = {rule: group(PROBLEM, rule).weights for rule in ("bytes", "structure", "heavy-edge")}
    assert weights == {"bytes": "bytes", "structure": "work", "heavy-edge": "seconds"}
    assert group(PROBLEM, "prefix").weights is None
    assert not group(PROBLEM, "bytes").reads_flops
