"""`tensor_parallel`: parts on the devices of a team."""

from __future__ import annotations

import numpy as np
import pytest

from situate import Cluster, Graph, Problem, solve
from situate.data.cluster import Device, Link
from situate.data.graph import Op
from situate.errors import SituateError
from situate.solvers.heuristics.tensor_parallel import by_replica, growing_shares
from situate.solvers.slice_pipelines.sites import Sites
from situate.solvers.slice_pipelines.stages import line_of
from tests.solvers.families import devices
from tests.solvers.parts import step, training


def placed(graph: Graph, cluster: str) -> np.ndarray:
    problem = Problem(graph, Cluster.find(cluster))
    return solve(problem, "tensor_parallel").schedule.placement


# Each part has a device of its own, on every layer.
def test_a_team_has_a_device_for_each_part() -> None:
    assert placed(step(2, 3), "identical:2").tolist() == [0, 1] * 3


def test_slices_are_shared_out_among_teams() -> None:
    assert placed(step(2, 1, slices=2), "identical:4").tolist() == [0, 1, 2, 3]


def test_teams_without_slices_are_stages() -> None:
    placement = placed(step(2, 2), "identical:4").tolist()
    assert placement in ([0, 1, 2, 3], [0, 1, 0, 1])


def test_one_team_is_enough_where_crossing_to_the_next_takes_longer_than_it_saves() -> None:
    links = (Link("*", "*", bandwidth=1.0), Link("a*", "a*", 1e12), Link("b*", "b*", 1e12))
    devices = tuple(Device(name, memory=2**40) for name in ("a0", "a1", "b0", "b1"))
    problem = Problem(step(2, 3), Cluster("slow between teams", devices, links))
    assert solve(problem, "tensor_parallel").devices_used == ["a0", "a1"]


# Gradients of weights run while a team waits for the gradients of inputs from the next one.
@pytest.mark.parametrize("late", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_stages_of_growing_shares_end_at_once(stages: int, late: float) -> None:
    shares = growing_shares(stages, late)
    assert shares.sum() == pytest.approx(1)
    # A stage ends its late work after those before it have gone back, and the first after its own.
    ends = [late * shares[s] - shares[:s].sum() for s in range(stages)]
    assert ends == pytest.approx([late * shares[0]] * stages)


def test_a_whole_batch_goes_through_stages_of_growing_shares() -> None:
    layers = 12
    problem = Problem(training(2, layers), devices(1, 1, 1, 1, bandwidth=1e9))
    # Of all borders the one behind the fourth layer is best: the second stage then has eight late
    # seconds, of which four remain when the first stage begins with its own.
    assert solve(problem, "tensor_parallel").value == pytest.approx(2 * layers + 4, abs=1e-6)


def test_slices_go_through_stages_where_sums_of_gradients_would_take_longer() -> None:
    links = (Link("*", "*", 100.0), Link("a*", "a*", 1e12), Link("b*", "b*", 1e12))
    gpus = tuple(Device(name, memory=2**40) for name in ("a0", "a1", "b0", "b1"))
    cluster = Cluster("two nodes", gpus, links)

    def nodes(gradient: int) -> list[set[int]]:
        """The nodes of each layer."""
        problem = Problem(training(2, 2, slices=8, gradient=gradient), cluster)
        placement = solve(problem, "tensor_parallel").placement
        modules = np.array([op.module for op in problem.graph.ops])
        return [set((placement[modules == f"layer{k}"] // 2).tolist()) for k in range(2)]

    assert sorted(nodes(10_000)) == [{0}, {1}]
    assert nodes(1) == [{0, 1}, {0, 1}]


def test_each_replica_has_a_pipeline_of_its_own() -> None:
    graph = training(2, 2, slices=4, replicas=2)
    problem = Problem(graph, Cluster.find("identical:8"))
    placements = [
        sites.placement(site).tolist()
        for sites in [Sites.of(problem)]
        for site in by_replica(sites, line_of(problem, sites))
    ]
    (placement,) = placements
    for op, device in zip(graph.ops, placement, strict=True):
        replica = op.replica if op.slice is None else graph.slices.replica[op.slice]
        assert device == 4 * replica + 2 * int(op.module == "layer1") + op.part


def test_replicas_share_out_teams_that_are_too_few_for_pipelines() -> None:
    problem = Problem(training(2, 2, slices=4, replicas=2), Cluster.find("identical:4"))
    sites = Sites.of(problem)
    assert not [*by_replica(sites, line_of(problem, sites))]


def test_more_parts_than_devices_share_them() -> None:
    assert placed(step(4), "identical:2").tolist() == [0, 1, 0, 1]


def test_a_step_of_whole_ops_is_refused() -> None:
    graph = Graph("whole", (Op("a", seconds={"*": 1.0}),))
    with pytest.raises(SituateError, match="has whole ops: give --cuts"):
        solve(Problem(graph, Cluster.find("identical:2")), "tensor_parallel")


def test_auto_is_no_worse_than_the_rule_that_it_begins_with() -> None:
    problem = Problem(step(4, 4), Cluster.find("identical:4"))
    rule = solve(problem, "tensor_parallel")
    assert solve(problem, "auto", evaluations=200).value <= rule.value
