"""Networks of the zoo as instances."""

from __future__ import annotations

import pytest

from situate.bench.families.zoo import ALONE, on_clusters, on_one_device
from situate.zoo.loading import packaged


def test_only_networks_that_come_with_situate_are_used():
    networks = {instance.name.split(" on ")[0] for instance in on_clusters()} | {*ALONE}
    assert [name for name in networks if not packaged(name).is_file()] == []


@pytest.mark.parametrize("name", ["cifar_cnn on k80-4", "vit on unequal-24-12"])
def test_a_network_is_trained_on_a_cluster(name: str):
    [instance] = [instance for instance in on_clusters() if instance.name == name]
    problem = instance.make()
    assert f"{problem.graph.name} on {problem.cluster.name}" == name
    assert problem.objective == "time"


def test_memory_is_that_of_one_device_without_a_limit():
    [instance] = [instance for instance in on_one_device() if instance.name == "cifar_cnn"]
    problem = instance.make()
    assert (problem.d, problem.objective) == (1, "memory")
    assert problem.cluster.devices[0].memory is None
