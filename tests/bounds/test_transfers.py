"""The least that transfers take."""

from __future__ import annotations

from situate.bounds.transfers import least_transfers
from situate.data.cluster import Cluster, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from tests.solvers.families import devices


def test_a_tensor_goes_over_the_fastest_link_unless_it_says_what_it_takes() -> None:
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}) for j in range(3))
    tensors = (Tensor("t", 0, 10, (1,)), Tensor("own", 0, 10, (1,), seconds=7.0))
    machine = devices(1, 1, 1).devices
    links = (Link("*", "*", 1.0), Link("d0", "d1", 5.0, latency=0.5))
    problem = Problem(Graph("g", ops, tensors, control=((1, 2),)), Cluster("c", machine, links))
    assert least_transfers(problem).tolist() == [2.5, 7.0, 0.0]
