"""accelerate's device map as a placement."""

from __future__ import annotations

import pytest

from situate import zoo
from situate.bench.peers.accelerate import device_map, placement
from situate.data.cluster import Cluster
from situate.data.problem import Problem
from situate.errors import SituateError
from tests.bench.small import instance

CIFAR = Problem(zoo.load("cifar_cnn"), Cluster.preset("k80-2"))


def test_ops_run_where_their_module_is():
    modules = sorted({op.module.split(".")[0] for op in CIFAR.graph.ops if op.module})
    devices = {module: i % 2 for i, module in enumerate(modules)}
    placed = placement(CIFAR, devices)
    for op, device in zip(CIFAR.graph.ops, placed, strict=True):
        if op.kind == "parameter":
            assert device == devices[op.module.split(".")[0]]


def test_ops_of_no_module_follow_an_input():
    assert set(placement(CIFAR, {}).tolist()) == {0}


def test_a_graph_without_a_model_is_refused():
    with pytest.raises(SituateError, match="graph 'small' has no model"):
        device_map(instance().make())


def test_a_map_covers_the_network():
    pytest.importorskip("accelerate")
    pytest.importorskip("torch")
    assert placement(CIFAR, device_map(CIFAR)).shape == (CIFAR.n,)
