"""`mincut` is `scotch` without the CPUs."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from situate.solvers import solve
from situate.zoo import load
from tests.solvers.partitioners.test_metis import busy
from tests.solvers.programs import needs_scotch

pytestmark = needs_scotch


@pytest.mark.parametrize("gpus", [2, 4])
def test_every_gpu_gets_its_part_and_the_cpu_none(gpus: int) -> None:
    problem = Problem(load("resnet50"), Cluster.preset(f"k80-{gpus}"))
    assert busy(problem, "mincut") == pytest.approx([1 / gpus] * gpus + [0], abs=0.05)


def test_an_op_for_the_cpu_alone_goes_there() -> None:
    cluster = Cluster(
        "c", (Device("a0", "acc"), Device("a1", "acc"), Device("c0", "cpu")), (Link("*", "*", 1.0),)
    )
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}) for j in range(6))
    read = Op("read", seconds={"cpu": 1.0})
    placement = solve(Problem(Graph("g", (*ops, read)), cluster), "mincut").placement
    assert placement[6] == 2
    assert np.bincount(placement[:6]).tolist() == [3, 3]


def test_on_cpus_alone_it_is_scotch() -> None:
    cluster = Cluster("c", (Device("c0", "cpu"), Device("c1", "cpu")), (Link("*", "*", 1.0),))
    graph = Graph("g", tuple(Op(f"op{j}", seconds={"*": 1.0 + j % 3}) for j in range(30)))
    both = [solve(Problem(graph, cluster), method).placement for method in ("mincut", "scotch")]
    assert np.array_equal(*both)
