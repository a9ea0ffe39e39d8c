"""Clusters with the links that were measured."""

from __future__ import annotations

from situate.data.cluster import Cluster, Device, Link
from situate.data.costs import Costs, MeasuredDevice, MeasuredLink
from situate.profiling.measured_cluster import measured_cluster

CLUSTER = Cluster(
    "here", (Device("a", "cpu"), Device("b", "cpu"), Device("c", "gpu")), (Link("*", "*", 1e9),)
)
LINKS = [MeasuredLink("a", "b", 1.23456e-5, 2e9), MeasuredLink("b", "a", 2e-5, 3e9)]
COSTS = Costs("vm", "2026-11-21T10", {}, [MeasuredDevice("a", "cpu", launch=4e-6)], LINKS, 5e-6)


def test_measured_pairs_hold_and_the_others_stay() -> None:
    found = measured_cluster(CLUSTER, COSTS)
    assert (found.latency[0, 1], found.bandwidth[0, 1]) == (1.23e-5, 2e9)
    assert (found.latency[1, 0], found.bandwidth[1, 0]) == (2e-5, 3e9)
    assert (found.latency[0, 2], found.bandwidth[0, 2]) == (0.0, 1e9)
    assert found.synchronisation == 5e-6


def test_launches_are_those_of_the_device_that_stands_for_it() -> None:
    found = measured_cluster(CLUSTER, COSTS)
    assert [device.launch for device in found.devices] == [4e-6, 4e-6, 0.0]


def test_where_all_pairs_were_measured_no_other_link_is_left() -> None:
    both = Cluster("here", CLUSTER.devices[:2], CLUSTER.links)
    assert len(measured_cluster(both, COSTS).links) == 2


def test_it_says_where_and_when() -> None:
    assert measured_cluster(CLUSTER, COSTS).description == "measured on vm, 2026-11-21"
