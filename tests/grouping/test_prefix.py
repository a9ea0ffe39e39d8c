from __future__ import annotations

import pytest

from situate import zoo
from situate.data.cluster import Cluster
from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from situate.grouping import group
from situate.grouping.prefix import levels, prefixes
from tests.solvers import families


def graph(*names: str, modules: tuple[str, ...] = ()) -> Graph:
    paths = modules or ("",) * len(names)
    ops = (
        Op(name, seconds={"*": 1.0}, module=path) for name, path in zip(names, paths, strict=True)
    )
    return Graph("named", tuple(ops))


# Levels of names and modules.
@pytest.mark.parametrize(
    ("name", "module", "expected"),
    [
        ("layer1.0.conv2/convolution", "layer1.0.conv2", ("layer1.0", "conv2")),
        ("gelu", "transformer.h.9.mlp.act", ("transformer", "h.9", "mlp", "act")),
        ("gradients/conv1/Conv2D_grad/Filter", "", ("gradients", "conv1", "Conv2D_grad")),
        ("/layer1/layer1.0/conv1/Conv", "", ("layer1", "layer1.0", "conv1")),
        ("encoder.cell.add", "", ("encoder", "cell")),
        ("relu#2", "", ()),
        ("0.1.2", "0.1", ("0.1",)),
    ],
)
def test_levels_are_modules_or_scopes_and_a_number_belongs_to_the_one_before(
    name, module, expected
):
    assert levels(Op(name, module=module)) == expected


def test_ops_of_the_same_first_two_levels_are_one_group():
    """The names of TensorFlow's CIFAR-10 network: gradients have a scope of their own."""
    names = (
        "conv1/weights/read", "conv1/weights/Initializer/random", "conv1/biases/read",
        "loss/cross_entropy/mul", "loss/cross_entropy/mean/sum",
        "gradients/conv1/Conv2D_grad/Filter", "gradients/conv1/BiasAdd_grad/sum",
    )  # fmt: skip
    result = group(Problem(graph(*names), families.devices(1, 1)), "prefix")
    assert result.of_op.tolist() == [0, 0, 1, 2, 2, 3, 3]


def test_an_op_whose_name_is_the_scope_of_others_is_with_them():
    """TensorFlow's variables, the reads of which are in a scope of the variable's name."""
    names = (
        "conv1/weights", "conv1/weights/read", "conv1/weights/Momentum", "conv1/biases/read",
        "conv1/biases", "conv1/Conv2D", "conv10/weights/read",
    )  # fmt: skip
    result = group(Problem(graph(*names), families.devices(1, 1)), "prefix")
    assert result.of_op.tolist() == [0, 0, 0, 1, 1, 2, 3]


def test_a_name_without_scopes_may_be_the_scope_of_others():
    names = ("loss", "loss/mul", "cell.add", "cell.add.1", "cell.sub")
    assert prefixes(graph(*names)) == [
        ("loss",), ("loss",), ("cell", "add"), ("cell", "add"), ("cell",)
    ]  # fmt: skip


@pytest.mark.parametrize("separator", ["/", "."])
def test_of_two_names_one_of_which_is_the_scope_of_the_other_the_prefixes_agree(separator):
    """The shorter name has all its parts, the longer one begins with them."""
    long = separator.join(("net", "block", "conv", "weights", "read"))
    parts = long.split(separator)
    for length in range(1, len(parts)):
        shorter, longer = prefixes(graph(separator.join(parts[:length]), long, *"abc"))[:2]
        assert longer[: len(shorter)] == shorter


def test_ops_outside_of_any_scope_are_alone():
    result = group(Problem(graph("a", "b", "c"), families.devices(1, 1)), "prefix")
    assert result.of_op.tolist() == [0, 1, 2]


# Large prefixes gain a level, and captured networks group by layer.
def test_a_prefix_of_more_than_half_of_the_ops_has_one_level_more():
    modules = (*(f"bert.encoder.layer.{j // 2}.self" for j in range(6)), "bert.embeddings")
    result = prefixes(graph(*"abcdefg", modules=modules))
    blocks = [("bert", "encoder", f"layer.{j // 2}") for j in range(6)]
    assert result == [*blocks, ("bert", "embeddings")]


def test_one_module_without_modules_inside_stays_one_group():
    assert set(prefixes(graph(*"abc", modules=("net.body",) * 3))) == {("net", "body")}


def test_forward_and_backward_of_a_captured_module_are_one_group():
    problem = Problem(zoo.load("resnet50"), Cluster.preset("h100-8"))
    result = group(problem, "prefix").of_op
    ops = {op.name: int(result[j]) for j, op in enumerate(problem.graph.ops)}
    assert ops["layer3.3.conv3/convolution"] == ops["layer3.3.conv3/convolution_backward"]
    assert ops["layer3.3.conv3/convolution"] == ops["layer3.3.conv3.weight/momentum"]
    assert ops["layer3.3.conv3/convolution"] != ops["layer3.3.bn3/native_batch_norm_backward"]


def test_all_steps_of_an_unrolled_layer_are_one_group():
    problem = Problem(zoo.load("rnnlm"), Cluster.preset("h100-8"))
    result = group(problem, "prefix").of_op
    cells = {int(result[j]) for j, op in enumerate(problem.graph.ops) if op.module == "layers.1"}
    assert len(cells) == 1
