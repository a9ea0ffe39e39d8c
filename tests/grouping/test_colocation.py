from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from situate import zoo
from situate.data.cluster import Cluster
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.grouping import group
from situate.grouping.colocation import MAX_SHARED_OPS, UnionFind, forward_ops
from situate.grouping.module_calls import calls
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
        result = group(Problem(graph, Cluster.preset("h100-8")), "colocation").of_op
        return {op.name: int(result[j]) for j, op in enumerate(graph.ops)}, graph

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


def graph(*ops: tuple[str, str], reads: dict[int, tuple[int, ...]], module: str = "net") -> Graph:
    """Ops of one module, by kind and phase, and the inputs of each."""
    consumers: dict[int, list[int]] = {}
    for op, producers in reads.items():
        for producer in producers:
            consumers.setdefault(producer, []).append(op)
    return Graph(
        "g",
        tuple(
            Op(f"op{j}", kind, module=module, phase=phase) for j, (kind, phase) in enumerate(ops)
        ),
        tuple(Tensor(f"t{j}", j, 1, tuple(users)) for j, users in consumers.items()),
    )


def gradients_of(expected: Graph) -> dict[int, int]:
    return forward_ops(expected, calls(expected))


LAYER = (
    ("parameter", "forward"), ("relu", "forward"), ("mm", "forward"),
    ("loss", "forward"), ("loss_backward", "backward"),
    ("mm", "backward"), ("mm", "backward"), ("threshold_backward", "backward"),
)  # fmt: skip
READS = {2: (0, 1), 3: (2,), 4: (2,), 5: (4, 0), 6: (4, 1), 7: (5, 1)}
"""relu, product with a weight, loss; and back: by the weight, by the input, through the relu."""


def test_a_gradient_goes_with_the_op_whose_tensors_it_reads():
    result = gradients_of(graph(*LAYER, reads=READS))
    assert {5: result[5], 6: result[6], 7: result[7]} == {5: 2, 6: 2, 7: 1}


def test_a_gradient_in_another_module_is_of_no_op():
    layer = graph(*LAYER, reads=READS)
    apart = tuple(
        Op(op.name, op.kind, module=f"{op.module}.{op.phase}", phase=op.phase) for op in layer.ops
    )
    assert gradients_of(Graph("apart", apart, layer.tensors)) == {}


def test_a_sum_of_gradients_goes_with_the_gradient_that_it_reads():
    ops = (*LAYER, ("add", "backward"))
    assert gradients_of(graph(*ops, reads={**READS, 8: (5,)}))[8] == 2


def test_what_gradients_begin_with_goes_with_the_gradient_that_reads_it():
    ops = (*LAYER, ("full", "backward"))
    result = gradients_of(graph(*ops, reads={**READS, 4: (2, 8)}))
    assert result[8] == result[4]


def test_without_phases_nothing_is_a_gradient():
    assert gradients_of(graph(*((kind, "") for kind, _ in LAYER), reads=READS)) == {}


@pytest.mark.parametrize(("crowd", "is_known"), [(MAX_SHARED_OPS, 1), (MAX_SHARED_OPS + 1, 0)])
def test_a_tensor_that_a_crowd_reads_says_nothing(crowd, is_known):
    ops = [("input", ""), ("relu", ""), *[("mul", "")] * crowd, ("mul", "backward")]
    result = graph(*ops, reads=dict.fromkeys(range(2, crowd + 3), (0,)))
    assert len(gradients_of(result)) == is_known


def test_nearly_every_gradient_of_a_captured_network_has_its_op():
    result = zoo.load("inception_v3")
    backward = [j for j, op in enumerate(result.ops) if op.phase == "backward"]
    pairs = gradients_of(result)
    assert len(pairs) > 0.98 * len(backward)
    assert all(result.ops[j].module == result.ops[pairs[j]].module for j in pairs)


def test_a_set_is_named_after_its_lowest_unit():
    sets = UnionFind(6)
    assert sets.merge(4, 2) == 2
    assert sets.merge(5, 4) == 2
    assert sets.merge(5, 1) == 1
    assert sets.roots().tolist() == [0, 1, 1, 3, 1, 1]


def test_merging_what_is_together_changes_nothing():
    sets = UnionFind(3)
    sets.merge(0, 2)
    assert sets.merge(2, 0) == 0
    assert sets.roots().tolist() == [0, 1, 0]
