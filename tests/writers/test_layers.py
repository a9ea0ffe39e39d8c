"""Layers are found by their module paths."""

from __future__ import annotations

import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.errors import PlanError
from situate.writers.layers import dependence, layer_of, layers, runs_forward
from tests.report.handmade import schedule
from tests.writers.layered import layered_plan, network


# Layers and the modules before and after them.
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("layers", "layers"),
        ("model.layers", "model.layers"),
        ("transformer.h", "transformer.h"),
        ("encoder.layer", "encoder.layer"),
        ("encoder.block", "encoder.block"),
        ("blocks", "blocks"),
        ("a\nb.layers", "a\nb.layers"),
        ("model/layers", "model.layers"),
    ],
)
def test_lists_of_layers_are_recognised(path: str, expected: str):
    separator = "/" if "/" in path else "."
    problem = network([f"{path}{separator}{i}{separator}mlp" for i in range(3)])
    network_layers = layers(problem, schedule(problem, [0, 1, 1]))
    assert network_layers.path == expected
    assert [part.path for part in network_layers.parts] == [f"{expected}.{i}" for i in range(3)]
    assert [part.device for part in network_layers.parts] == [0, 1, 1]


def test_modules_beside_the_layers_come_before_or_after_them():
    result = layers(*layered_plan([0, 0, 0, 0, 1, 1, 1, 2, 2]))
    assert [(part.path, part.device) for part in result.before] == [("model.embed_tokens", 0)]
    assert [(part.path, part.device) for part in result.after] == [
        ("model.norm", 2),
        ("lm_head", 2),
    ]
    assert result.split == []


def test_ops_without_inputs_do_not_move_a_module():
    """An attention mask's constant runs before the embedding, a head's before the layers."""
    paths = ("layers.1#mask", "head#scale", "embed", "rotary", "layers.0", "layers.1", "head")
    ops = tuple(Op(path, seconds={"*": 1.0}, module=path.partition("#")[0]) for path in paths)
    reads = ((0, 5), (1, 6), (2, 4), (3, 4), (4, 5), (5, 6))
    tensors = tuple(Tensor(f"t{a}-{b}", a, 8, (b,)) for a, b in reads)
    problem = Problem(Graph("net", ops, tensors), Cluster.identical(2))
    result = layers(problem, schedule(problem, [0] * len(ops)))
    assert [part.path for part in result.before] == ["embed", "rotary"]
    assert [part.path for part in result.after] == ["head"]


def test_a_module_used_on_both_sides_belongs_to_its_first_use():
    problem = network(("shared", "layers.0", "norm", "shared#output"))
    result = layers(problem, schedule(problem, [0] * 4))
    assert [part.path for part in result.before] == ["shared"]
    assert [part.path for part in result.after] == ["norm"]


# The device of a layer: most bytes, where memory allows it.
def test_a_layer_goes_where_most_of_its_bytes_are():
    paths = ("layers.0.attention", "layers.0.mlp", "layers.1")
    problem = network(paths, persistent=(4, 8, 8))
    result = layers(problem, schedule(problem, [0, 1, 1]))
    assert [part.device for part in result.parts] == [1, 1]
    assert result.split == ["layers.0"]


@pytest.mark.parametrize(("memory", "device"), [(121, 0), (119, 1)])
def test_what_only_lies_elsewhere_moves_no_layer_if_there_is_room_for_it(memory: int, device: int):
    """Parameters and state are on a CPU; a GPU runs the layer."""
    ops = (
        Op("weight", kind="parameter", persistent=40, module="layers.0", phase="forward"),
        Op("state", kind="parameter", persistent=80, module="layers.0", phase="update"),
        Op("matmul", seconds={"*": 1.0}, module="layers.0", phase="forward"),
        Op("bias", seconds={"*": 9.0}, module="layers.0", phase="forward"),
    )
    tensors = (Tensor("w", 0, 40, (2,)), Tensor("y", 2, 8, (3,)))
    devices = (Device("gpu", kind="gpu", memory=memory), Device("cpu", kind="cpu"))
    cluster = Cluster("c", devices, (Link("*", "*", 8.0),))
    problem = Problem(Graph("net", ops, tensors), cluster)
    result = layers(problem, schedule(problem, [1, 1, 0, 1]))
    assert [part.device for part in result.parts] == [device]
    assert result.split == ["layers.0"]


def test_a_layer_without_bytes_goes_where_it_runs():
    problem = network(("layers.0#a", "layers.0#b", "layers.0#c"), persistent=(0, 0, 0))
    assert layers(problem, schedule(problem, [0, 1, 1])).parts[0].device == 1


def test_inner_lists_belong_to_their_layer():
    paths = [f"layers.{i}.mlp.experts.{j}" for i in range(2) for j in range(2)]
    problem = network((*paths, "layers.0.attention", "layers.1.attention"))
    result = layers(problem, schedule(problem, [1, 1, 1, 1, 0, 0]))
    assert len(result.parts) == 2
    assert result.experts == {0: 1, 1: 1}


def test_a_shared_expert_is_no_expert():
    problem = network(("layers.0.mlp.shared_experts.up", "layers.0.mlp.gate"))
    assert layers(problem, schedule(problem, [0, 0])).experts == {}


# Networks without one complete list of layers.
def test_a_network_without_layers_is_refused():
    problem = network(("layer1.0.conv", "fc"))
    with pytest.raises(PlanError, match=r"names no layers.*layers\.N"):
        layers(problem, schedule(problem, [0, 0]))


def test_two_lists_of_layers_are_refused():
    problem = network(("encoder.block.0", "decoder.block.0"))
    with pytest.raises(PlanError, match=r"2 lists of layers \(decoder\.block, encoder\.block\)"):
        layers(problem, schedule(problem, [0, 0]))


def test_a_missing_layer_is_refused():
    problem = network(("layers.0", "layers.999999999"))
    with pytest.raises(PlanError, match="a layer 999999999, but no op of layer 1"):
        layers(problem, schedule(problem, [0, 0]))


def test_the_backward_pass_decides_nothing():
    problem = network(("layers.0", "layers.1"))
    backward = [
        type(op)(f"{op.name}/back{k}", seconds={"*": 1.0}, module=op.module, phase="backward")
        for op in problem.graph.ops
        for k in range(5)
    ]
    graph = Graph("net", (*problem.graph.ops, *backward))
    problem = Problem(graph, problem.cluster)
    result = layers(problem, schedule(problem, [0, 1, *[2] * 10]))
    assert [part.device for part in result.parts] == [0, 1]


def test_a_layer_of_equal_halves_goes_to_the_first_device():
    paths = ("embed", "layers.0#a", "layers.0#b", "layers.1", "head")
    for devices in ([0, 0, 1, 1, 1], [0, 1, 0, 1, 1]):
        assert layers(*layered_plan(devices, paths=paths)).parts[0].device == 0


def test_a_module_between_two_layers_comes_after_them():
    result = layers(
        *layered_plan([0] * 5, paths=("embed", "layers.0", "between", "layers.1", "head"))
    )
    assert [part.path for part in result.before] == ["embed"]
    assert [part.path for part in result.after] == ["between", "head"]


@pytest.mark.parametrize(
    ("module", "number"),
    [("model/layers/3/mlp", 3), ("model.layers.3", 3), ("layers.3", None), ("model.norm", None)],
)
def test_an_op_is_of_a_layer_of_the_list(module: str, number: int | None):
    assert layer_of(Op("a", module=module), "model.layers") == number


# Dependences in a forward pass.
def test_ops_behind_and_ahead_of_the_chosen_are_told():
    tensors = (Tensor("t0", 0, 8, (1,)), Tensor("t1", 1, 8, (2,)))
    graph = Graph("chain", tuple(Op(name) for name in "abcd"), tensors, control=((2, 3),))
    behind, ahead = dependence(graph, [False, True, False, False])
    assert behind == [False, False, True, True]
    assert ahead == [True, False, False, False]


def test_the_backward_pass_depends_on_nothing_chosen():
    ops = (Op("a"), Op("a/back", phase="backward"))
    graph = Graph("step", ops, (Tensor("t", 0, 8, (1,)),))
    assert dependence(graph, [True, False]) == ([False, False], [False, False])
    assert dependence(graph, [False, True]) == ([False, False], [False, False])


def test_parameters_do_not_run():
    assert runs_forward(Op("a", phase="forward"))
    assert not runs_forward(Op("w", "parameter"))
    assert not runs_forward(Op("g", phase="backward"))
