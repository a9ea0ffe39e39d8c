"""The CIFAR-10 CNN of Spotlight's slides: its size, its scopes and its arithmetic."""

from __future__ import annotations

import pytest

from research.papers import rules
from research.papers.cases import Case
from research.papers.cifar_tensorflow import GROUPS, LAYERS, OPS, cifar_tensorflow
from situate import zoo
from situate.data.cluster import Cluster
from situate.data.problem import Problem
from situate.grouping import group
from situate.grouping.prefix import prefixes

GRAPH = cifar_tensorflow()
PROBLEM = Problem(GRAPH, Cluster.preset("k80-4"))


def test_it_has_the_ops_and_the_groups_of_the_slides():
    assert (len(GRAPH.ops), len(group(PROBLEM, "prefix"))) == (OPS, GROUPS) == (926, 86)


def test_it_has_the_prefixes_that_the_slides_name():
    named = {("conv1", "biases"), ("input_ops", "input_ops"), ("loss", "cross_entropy")}
    assert named <= set(prefixes(GRAPH))


def test_its_arithmetic_is_that_of_the_zoos_network():
    flops = sum(op.flops for op in zoo.load("cifar_cnn").ops)
    assert sum(op.flops for op in GRAPH.ops) == pytest.approx(flops, rel=0.02)


def test_every_variable_has_an_update_that_reads_its_gradient():
    updates = [op for op in GRAPH.ops if op.kind == "ApplyGradientDescent"]
    assert len(updates) == 2 * len(LAYERS)


def test_helper_ops_take_no_time_and_depend_on_no_layer():
    helpers = {j for j, op in enumerate(GRAPH.ops) if "helper" in op.name}
    assert not PROBLEM.seconds[sorted(helpers)].any()
    for tensor in GRAPH.tensors:
        inside = {tensor.producer, *tensor.consumers} & helpers
        assert inside in (set(), {tensor.producer, *tensor.consumers})


def test_its_expert_keeps_it_on_one_gpu():
    case = Case("cifar_tensorflow", 4, "k80")
    row = rules.row(case, (rules.GPU, "expert"))
    assert row["single"] == row["expert"]
