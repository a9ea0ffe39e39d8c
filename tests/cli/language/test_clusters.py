"""Clusters by what users type."""

from __future__ import annotations

import pytest

from situate.cli.language.clusters import find_cluster
from situate.data.cluster import Cluster
from situate.errors import ClusterError


# Names and files come first.
def test_presets_and_equal_devices():
    assert find_cluster("k80-4").hash == Cluster.preset("k80-4").hash
    assert len(find_cluster("identical:3").devices) == 3


# GPUs of the table: nodes with their rates, links and networks.
def test_gpus_are_a_cluster():
    cluster = find_cluster("2x4xH100")
    assert len(cluster.devices) == 8
    assert cluster.devices[0].flops["bfloat16"] > 5e14
    assert cluster.bandwidth[0, 1] > cluster.bandwidth[0, 4] / 4


def test_a_graph_is_planned_on_gpus(situate):
    options = ("--cluster", "2xA100-80GB", "--method", "heft", "--json")
    assert situate("plan", "cifar_cnn", *options).json["feasible"]
    assert "node0-gpu1" in situate("cluster", "show", "2xA100-80GB").out


@pytest.mark.parametrize("text", ["nowhere.toml", "k80-5", "identical:x", "", "a+b"])
def test_other_texts_are_refused_as_clusters(text):
    with pytest.raises(ClusterError) as error:
        find_cluster(text)
    with pytest.raises(ClusterError) as expected:
        Cluster.find(text)
    assert str(error.value) == str(expected.value)


def test_an_unknown_gpu_has_the_nearest():
    with pytest.raises(ClusterError, match="no GPU 'H1000'"):
        find_cluster("8xH1000")
