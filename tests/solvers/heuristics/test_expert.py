"""`expert` puts the stages of a known network on the accelerators."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from situate.data.topology import accelerators
from situate.errors import SituateError
from situate.solvers import solve
from situate.solvers.heuristics.expert import expert_placement
from situate.zoo import expert
from tests.solvers.families import chain, devices


def _network(**changes: dict[str, str]) -> Graph:
    """Four layers of the recurrent language model."""
    ops = tuple(
        Op(f"op{j}", seconds={"*": 1.0}, module=f"layers.{j}", **changes.get(f"op{j}", {}))  # type: ignore[arg-type]
        for j in range(4)
    )
    return Graph("rnnlm", ops, source="pytorch")


def test_a_graph_that_is_no_known_network_is_refused() -> None:
    with pytest.raises(SituateError, match="no expert placement is known for graph 'small'"):
        solve(Problem(chain(3), devices(1, 1)), "expert")


def test_stages_go_to_the_accelerators_in_order() -> None:
    names = (("c0", "cpu"), ("a0", "acc"), ("a1", "acc"))
    cluster = Cluster("c", tuple(Device(n, k) for n, k in names), (Link("*", "*", 1.0),))
    problem = Problem(_network(), cluster)
    stages = np.array(expert(problem.graph, 2))
    assert len(set(stages)) == 2
    assert expert_placement(problem).tolist() == (stages + 1).tolist()


def test_pins_and_what_cannot_run_go_first() -> None:
    network = _network(op0={"device": "d1"})
    problem = Problem(network, devices(1, 1))
    assert expert_placement(problem)[0] == 1
    solve(problem, "expert").schedule.verify(problem)


def test_without_accelerators_every_device_counts() -> None:
    cluster = Cluster("c", (Device("c0", "cpu"), Device("c1", "cpu")), (Link("*", "*", 1.0),))
    assert accelerators(Problem(_network(), cluster)) == [0, 1]
