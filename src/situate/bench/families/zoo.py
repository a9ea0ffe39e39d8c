"""Networks of the zoo on the papers' clusters and on current ones, for time and for memory."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from msgspec import structs

from situate import zoo
from situate.bench.instances import Instance
from situate.data.cluster import Cluster
from situate.data.problem import Problem

PAPERS = ("inception_v3", "resnet50", "rnnlm", "nmt2", "nmt4", "cifar_cnn")
PAPER_CLUSTERS = ("k40-4", "k80-4")
CURRENT = ("inception_v3", "resnet50", "rnnlm", "nmt2", "gpt2", "bert", "vit", "llama_7b")
CURRENT_CLUSTERS = ("unequal-24-12", "rtx4090-2", "a100-pcie-4", "h100-2x8")
ALONE = (
    "inception_v3", "inception_v3:inference", "resnet50", "resnet50:inference", "resnet101",
    "resnet200", "rnnlm", "nmt2", "nmt4", "nmt8", "cifar_cnn", "gpt2", "bert", "vit", "llama_7b",
)  # fmt: skip
"""Networks whose graphs come with situate."""


def on_clusters() -> list[Instance]:
    """The time of a training step; a network that a cluster cannot hold is left out."""
    papers = product(PAPERS, PAPER_CLUSTERS)
    current = product(CURRENT, CURRENT_CLUSTERS)
    fitting = [pair for pair in current if pair != ("llama_7b", "unequal-24-12")]
    return [_on_cluster(network, cluster) for network, cluster in (*papers, *fitting)]


def on_one_device() -> list[Instance]:
    """The memory of a step on one device, which the order alone decides."""
    return [_on_one_device(network) for network in ALONE]


def _on_cluster(network: str, preset: str) -> Instance:
    return Instance(
        "zoo",
        f"{network} on {preset}",
        lambda: Problem(zoo.load(network), Cluster.preset(preset)),
    )


def _on_one_device(network: str) -> Instance:
    return Instance(
        "zoo_memory",
        network,
        lambda: Problem(zoo.load(network), _one_device(), "memory"),
    )


def _one_device() -> Cluster:
    """A GPU without a limit."""
    preset = Cluster.preset("a100-pcie-4")
    device = structs.replace(preset.devices[0], memory=None)
    return replace(preset, name="one A100 without a limit", devices=(device,), links=())
