from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from situate import zoo
from situate.data.cluster import Cluster
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.grouping import group
from tests.solvers import families


def groups_of(graph: Graph) -> list[int]:
    return group(Problem(graph, families.devices(1, 1)), "colocation").of_op.tolist()


def of_traffic(graph: Graph, *traffic: int) -> Graph:
    """The graph whose ops read and write so many bytes."""
    ops = [structs.replace(op, traffic=t) for op, t in zip(graph.ops, traffic, strict=True)]
    return replace(graph, ops=tuple(ops))


def line(*kinds: str, seconds: float = 1.0) -> Graph:
    """Each op feeds the next."""
    ops = tuple(Op(f"op{j}", kind, seconds={"*": seconds}) for j, kind in enumerate(kinds))
    tensors = (Tensor(f"t{j}", j, 1, (j + 1,)) for j in range(len(kinds) - 1))
    return Graph("line", ops, tuple(tensors))


@pytest.fixture(scope="module")
def captured():
    def load(network: str) -> tuple[dict[str, int], Graph]:
        graph = zoo.load(network)
        found = group(Problem(graph, Cluster.preset("h100-8")), "colocation").of_op
        return {op.name: int(found[j]) for j, op in enumerate(graph.ops)}, graph

    return load


def test_an_op_joins_the_only_op_that_consumes_its_output():
    """Op 0 feeds 1 and 2; 1 feeds 3, which 2 feeds too."""
    graph = families.graph(4, [(0, 1), (0, 2), (1, 3), (2, 3)], kind="mul")
    assert groups_of(of_traffic(graph, 1, 1, 1, 10**9)) == [0, 0, 0, 0]


def test_an_op_that_two_groups_consume_stays_apart():
    graph = families.graph(3, [(0, 1), (0, 2)])
    assert groups_of(of_traffic(graph, 1, 10**9, 10**9)) == [0, 1, 2]


def test_a_chain_of_layers_is_a_group_a_layer():
    layers = ("conv", "relu", "pool", "conv", "relu", "matmul", "softmax")
    assert groups_of(line(*layers)) == [0, 0, 0, 1, 1, 2, 2]


def test_a_chain_of_unknown_ops_does_not_become_one_group():
    assert groups_of(line(*["op"] * 5)) == [0, 1, 2, 3, 4]
    assert groups_of(line(*["op"] * 5, seconds=0.0)) == [0, 1, 2, 3, 4]


def test_control_edges_do_not_merge():
    ops = tuple(Op(f"op{j}", seconds={"*": s}) for j, s in enumerate((1.0, 9.0)))
    assert groups_of(Graph("g", ops, control=((0, 1),))) == [0, 1]


def test_convolution_normalisation_activation_and_their_gradients_are_one_group(captured):
    of, _ = captured("resnet50")
    together = (
        "layer3.3.conv2.weight", "layer3.3.conv2/convolution", "layer3.3.bn2.bias",
        "layer3.3.bn2/native_batch_norm_legit_functional", "layer3.3/relu#2",
        "layer3.3/threshold_backward#2", "layer3.3.bn2/native_batch_norm_backward",
        "layer3.3.conv2/convolution_backward", "layer3.3.conv2.weight/momentum",
    )  # fmt: skip
    assert len({of[name] for name in together}) == 1
    assert of["layer3.3.conv2/convolution"] != of["layer3.3.conv3/convolution"]


def test_every_step_of_a_cell_is_one_group_with_its_gradients(captured):
    of, graph = captured("rnnlm")
    cells: dict[int, set[str]] = {}
    for op in graph.ops:
        if op.module.startswith("layers.2") and op.kind == "aten.addmm":
            cells.setdefault(of[op.name], set()).add(op.name)
    assert sorted(map(len, cells.values())) == [1] * 35
    assert of["layers.2.gates/addmm#35"] == of["layers.2/sigmoid_backward"] == of["layers.2/cat#35"]


def test_what_all_steps_share_is_a_group_of_its_own(captured):
    of, graph = captured("rnnlm")
    shared = of["layers.2.gates.weight"]
    names = {op.name for op in graph.ops if of[op.name] == shared}
    assert names == {f"layers.2.gates.{p}{s}" for p in ("weight", "bias") for s in ("", "/sgd")}


def test_no_two_convolutions_of_a_network_are_one_group(captured):
    of, graph = captured("inception_v3")
    convolutions = [of[op.name] for op in graph.ops if op.kind == "aten.convolution"]
    assert len(set(convolutions)) == len(convolutions)
