"""The least that transfers take."""

from __future__ import annotations

from situate.bounds.transfers import least_transfers
from situate.data.cluster import Cluster, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from tests.solvers.families import devices


def test_of_links_with_early_starts_and_fast_ones_the_better_is_taken_for_each_tensor() -> None:
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}) for j in range(3))
    tensors = (Tensor("small", 0, 1, (1,)), Tensor("large", 0, 100, (1,)))
    links = (
        Link("*", "*", 1.0, latency=9.0),
        Link("d0", "d1", 10.0, latency=5.0),
        Link("d1", "d2", 2.0, latency=1.0),
    )
    problem = Problem(Graph("g", ops, tensors), Cluster("c", devices(1, 1, 1).devices, links))
    assert least_transfers(problem).tolist() == [1.5, 15.0]


def test_a_tensor_goes_over_the_fastest_link_unless_it_says_what_it_takes() -> None:
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}) for j in range(3))
    tensors = (Tensor("t", 0, 10, (1,)), Tensor("own", 0, 10, (1,), seconds=7.0))
    machine = devices(1, 1, 1).devices
    links = (Link("*", "*", 1.0), Link("d0", "d1", 5.0, latency=0.5))
    problem = Problem(Graph("g", ops, tensors, control=((1, 2),)), Cluster("c", machine, links))
    assert least_transfers(problem).tolist() == [2.5, 7.0, 0.0]
