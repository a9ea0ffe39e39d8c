"""Clusters for formulas and for the execution model."""

from __future__ import annotations

import pytest

from situate.errors import ClusterError
from situate.language.training.gpus import GPUS
from situate.language.training.steps.site import find_site


# A site's GPUs are devices of its cluster.
def test_a_preset_keeps_its_devices():
    site = find_site("h100-2x8")
    names = [site.cluster.devices[i].name for i in site.devices]
    assert names[0] == "node0-gpu0"
    assert names[8] == "node1-gpu0"
    assert not any("cpu" in name for name in names)
    assert site.key(0) == "H100-SXM5-80GB"


def test_a_text_becomes_a_cluster_of_nodes():
    site = find_site("2x4xH100")
    assert site.cluster.names[4] == "node1-gpu0"
    assert site.cluster.bandwidth[0, 1] == site.machine.link
    assert site.cluster.bandwidth[0, 4] == site.machine.network
    # GPUs of a node share its network, and nothing inside it.
    assert site.cluster.channel[0, 4] == site.cluster.channel[1, 5]
    assert site.cluster.channel[0, 1] != site.cluster.channel[1, 0]


@pytest.mark.parametrize("gpu", GPUS)
def test_every_gpu_of_the_table_has_a_cluster(gpu):
    devices = find_site(f"2x{gpu}").cluster.devices
    assert [device.model for device in devices] == [gpu, gpu]
    assert all(rate > 0 for rate in devices[0].flops.values())


def test_unequal_gpus_have_keys_of_their_own():
    site = find_site("RTX 3080+RTX 4090")
    assert site.key(0) != site.key(1)


def test_an_unknown_cluster_is_named():
    with pytest.raises(ClusterError, match="no-such"):
        find_site("no-such.toml")
