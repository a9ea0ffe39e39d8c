"""A model's measured costs are enough to plan with, and change a cluster."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from situate.data.cluster import Cluster, Device, Link
from situate.data.cost_lookup import coverage
from situate.data.costs import Costs, MeasuredDevice, MeasuredLink
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.profiling import in_situ
from situate.profiling.profile import Profile, cluster_from_costs, profile
from situate.solvers import solve

ANY = (Link("*", "*", 1e9),)
PAIR = Cluster("here", tuple(Device(f"cpu:{i}", "cpu", "Xeon", threads=1) for i in range(2)), ANY)


@pytest.fixture(scope="module")
def cluster_measured() -> Profile:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_situ, "SECONDS_PER_KIND", 0.05)
        return profile("tests.profiling.models:tied", PAIR, "momentum")


# Whole profiles, and devices or models that cannot be profiled.
def test_a_plan_is_made_with_what_was_measured_alone(cluster_measured: Profile) -> None:
    graph, costs = cluster_measured.graph, cluster_measured.costs
    for device in PAIR.devices:
        names, working = coverage(graph, device, costs)
        assert names == working > 0
    problem = Problem(graph, cluster_from_costs(PAIR, costs), costs=costs)
    seconds = sum(costs.devices[0].seconds[op.signature].median for op in graph.ops if op.signature)
    assert problem.seconds[:, 0].sum() == pytest.approx(seconds)
    assert solve(problem, "single").makespan == pytest.approx(seconds)


def test_the_file_says_where_when_and_by_what(cluster_measured: Profile, tmp_path) -> None:
    cluster_measured.costs.write(tmp_path / "costs.json")
    costs = Costs.read(tmp_path / "costs.json")
    assert costs == cluster_measured.costs
    assert costs.machine
    assert costs.versions.keys() == {"situate", "torch", "python"}
    assert len(costs.links) == 2


def test_a_device_that_this_machine_has_not_is_named() -> None:
    gpus = Cluster("gpus", tuple(Device(f"gpu{i}") for i in range(99)), ANY)
    with pytest.raises(SituateError, match="device 'gpu"):
        profile("tests.profiling.models:mlp", gpus)


def test_too_many_devices_are_refused_before_anything_starts() -> None:
    many = Cluster("many", tuple(Device(f"cpu:{i}", "cpu") for i in range(33)), ANY)
    with pytest.raises(SituateError, match="has 33 CPU devices; at most 32"):
        profile("no.such:model", many)


def test_a_model_that_cannot_be_built_ends_the_processes() -> None:
    with pytest.raises(SituateError, match="no weights here"):
        profile("tests.profiling.models:broken", PAIR)


CLUSTER = Cluster(
    "here", (Device("a", "cpu"), Device("b", "cpu"), Device("c", "gpu")), (Link("*", "*", 1e9),)
)
LINKS = [MeasuredLink("a", "b", 1.23456e-5, 2e9), MeasuredLink("b", "a", 2e-5, 3e9)]
COSTS = Costs("vm", "2026-11-21T10", {}, [MeasuredDevice("a", "cpu", launch=4e-6)], LINKS, 5e-6)


# A cluster with measured launches and links.
def test_measured_pairs_hold_and_the_others_stay() -> None:
    profile_found = cluster_from_costs(CLUSTER, COSTS)
    assert (profile_found.latency[0, 1], profile_found.bandwidth[0, 1]) == (1.23e-5, 2e9)
    assert (profile_found.latency[1, 0], profile_found.bandwidth[1, 0]) == (2e-5, 3e9)
    assert (profile_found.latency[0, 2], profile_found.bandwidth[0, 2]) == (0.0, 1e9)
    assert profile_found.synchronisation == 5e-6


def test_launches_are_those_of_the_device_that_stands_for_it() -> None:
    profile_found = cluster_from_costs(CLUSTER, COSTS)
    assert [device.launch for device in profile_found.devices] == [4e-6, 4e-6, 0.0]


def test_where_all_pairs_were_measured_no_other_link_is_left() -> None:
    both = Cluster("here", CLUSTER.devices[:2], CLUSTER.links)
    assert len(cluster_from_costs(both, COSTS).links) == 2


def test_it_says_where_and_when() -> None:
    assert cluster_from_costs(CLUSTER, COSTS).description == "measured on vm, 2026-11-21"
