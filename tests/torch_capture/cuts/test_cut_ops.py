"""Steps whose ops are cut by name, and names and shares that do not fit."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import situate  # noqa: E402
from situate.data.cuts import parse_cuts  # noqa: E402
from situate.data.graph import Graph  # noqa: E402
from situate.data.slices import Slices  # noqa: E402
from situate.errors import SituateError  # noqa: E402
from situate.torch_capture import Captures  # noqa: E402
from tests.torch_capture.cuts.cut_steps import transformer  # noqa: E402
from tests.torch_capture.cuts.networks import decoder, perceptron  # noqa: E402

CAPTURES = Captures()
"""Traces each network once."""


def captured(*texts: str, build=decoder, **options) -> Graph:
    return CAPTURES.capture(build, name=build.__name__, cuts=parse_cuts(texts), **options)


# Parameters, their state and their updates are cut with the ops that read them.
def test_each_part_of_a_parameter_is_held_once() -> None:
    whole, cut = (
        situate.capture(decoder, optimizer="adam"),
        captured("layers.*=2", optimizer="adam"),
    )

    def persistent(graph: Graph) -> int:
        return sum(op.persistent for op in graph.ops)

    assert persistent(cut) == persistent(whole)
    parts = {op.part for op in cut.ops if "layers.0.up.weight" in op.name}
    assert parts == {0, 1}


def test_a_module_is_cut_alone() -> None:
    modules = {
        op.module.split(".")[1]
        for op in captured("layers.1=2").ops
        if op.part is not None and "." in op.module
    }
    assert modules == {"1"}


# Queries, keys and values are products of one tensor: each part gathers it once for all of them.
# The backward pass reads the same copy for the gradients of their weights.
def test_products_of_one_tensor_share_its_gathered_copy() -> None:
    gathers = Counter(
        (op.part, op.phase)
        for op in captured("heads=2", "sequence=2", build=transformer).ops
        if op.kind == "aten.cat" and op.module in ("0.q", "0.k", "0.v")
    )
    assert gathers == {(0, "forward"): 1, (1, "forward"): 1}


def test_a_parameter_is_gathered_anew_in_the_backward_pass() -> None:
    gathers = {
        op.phase
        for op in captured("sequence=2", "features=2", build=transformer).ops
        if op.kind == "aten.cat" and op.module == "1.down" and op.part == 0
    }
    assert gathers == {"forward", "backward"}


# A path may begin inside the model, as long as none begins like it at the outermost module.
def inside() -> Any:
    model, inputs, loss = decoder()
    outer = torch.nn.ModuleDict({"model": model})
    return outer, inputs, lambda m, x, y: loss(m["model"], x, y)


def test_a_path_may_begin_inside_the_model() -> None:
    texts = [p.name for p in captured("layers.*.up=2", build=inside).cut_parameters]
    assert "model.layers.0.up.weight" in texts
    with pytest.raises(SituateError, match=r"nothing called 'ayers\.0\.up' to cut"):
        captured("ayers.0.up=2", build=inside)


@pytest.mark.parametrize(
    ("texts", "count"), [(("sequence=4", "features=2"), 4), (("features=2", "sequence=4"), 2)]
)
def test_an_op_of_several_classes_follows_the_first(texts, count) -> None:
    graph = captured(*texts)
    parts = {op.part for op in graph.ops if op.module == "layers.0.up" and op.flops}
    assert parts == set(range(count))
    # A parameter follows the first cut that it has: a sequence cuts none.
    held = {op.part for op in graph.ops if op.name.endswith("/layers.0.up.weight")}
    assert held == {0, 1}


def test_unequal_shares_give_unequal_parts() -> None:
    sizes = [
        op.persistent
        for op in captured("features=3:1").ops
        if op.name.endswith("layers.0.up.weight")
    ]
    assert sizes == [18 * 16 * 4, 6 * 16 * 4]


def test_classes_that_shares_do_not_divide_stay_whole_and_are_said() -> None:
    graph = captured("vocabulary=8", "layers.*=3", build=decoder)
    assert graph.cuts == parse_cuts(["vocabulary=8", "layers.*=3"])
    (first, *_) = (warning for warning in graph.warnings if "stay whole" in warning)
    assert first == ("cuts: heads of layers.0 stay whole, because the shares do not divide 4 units")


# Bad input: one line that names the place and the remedy.
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("heats=2", "nothing called 'heats' to cut; did you mean 'heads'. It has batch"),
        ("channels=2", "nothing called 'channels' to cut: it has batch"),
        ("layers.7=2", "nothing called 'layers.7' to cut"),
        (
            "heads=3",
            "heads of layers.0 are 4 units, .* give 2 or 4 parts, or shares .* 4, such as 1:1:2",
        ),
        ("heads=8", "give at most 4 parts"),
        ("auto", "auto is chosen for a cluster"),
    ],
)
def test_a_cut_that_does_not_fit_is_refused(text, message) -> None:
    with pytest.raises(SituateError, match=message.replace("'", ".")):
        captured(text)


# Weights of one-dimensional convolutions have three dimensions, as those of experts do.
def sounds() -> Any:
    layers = torch.nn.Conv1d(4, 8, 3), torch.nn.GELU(), torch.nn.Conv1d(8, 4, 3)
    loss = lambda m, x: m(x).square().mean()  # noqa: E731
    return torch.nn.Sequential(*layers), (torch.randn(2, 4, 12),), loss


def test_channels_of_one_dimension_are_no_experts() -> None:
    assert {p.kind for p in captured("channels=2", build=sounds).cut_parameters} == {"channels"}
    with pytest.raises(SituateError, match="nothing called 'experts' to cut"):
        captured("experts=2", build=sounds)


def median_loss() -> Any:
    """A loss by the medians of rows, which no rule cuts."""
    model, inputs, _ = perceptron()
    return model, inputs, lambda m, x, y: (m[:4](x).kthvalue(3, 1).values.sum() - y.sum()).square()


def test_an_op_without_a_rule_stays_whole_and_is_said() -> None:
    graph = captured("features=2", build=median_loss)
    (warning,) = (text for text in graph.warnings if text.startswith("cuts:"))
    assert warning == "cuts: whole ops that read parts, because no rule cuts them: 1, by kthvalue"


# Frozen weights are cut as well, though nothing updates them.
def frozen() -> Any:
    model, inputs, loss = decoder()
    model.layers[0].up.weight.requires_grad_(False)
    return model, inputs, loss


def test_parts_of_frozen_parameters_are_held_once_too() -> None:
    graph = captured("features=2", build=frozen)
    held = [op for op in graph.ops if op.name.endswith("/layers.0.up.weight")]
    assert [(op.part, op.persistent) for op in held] == [(0, 12 * 16 * 4), (1, 12 * 16 * 4)]
    assert not any("layers.0.up.weight/" in op.name for op in graph.ops)


# The graph says how its parameters are cut, and which modules read them.
def test_cut_parameters_have_the_ranges_of_their_parts_and_their_readers() -> None:
    cut = {p.name: p for p in captured("heads=2", "vocabulary=3").cut_parameters}
    fused, table = cut["layers.0.qkv.weight"], cut["embedding.weight"]
    assert (fused.kind, fused.dim, fused.bounds, fused.ranges) == ("heads", 0, (0, 8, 16), 3)
    assert cut["layers.0.out.weight"].dim == 1
    assert (table.kind, table.bounds) == ("vocabulary", (0, 8, 16, 24))
    assert [path for path, _ in table.readers] == ["embedding", "head"]
    assert table.readers[1][1] == "torch.nn.modules.linear.Linear"
    assert "layers.0.up.weight" not in cut


def test_a_step_of_whole_ops_has_no_cut_parameters() -> None:
    assert situate.capture(decoder).cut_parameters == ()


def test_copies_of_a_parameter_are_cut_once() -> None:
    graph = captured("features=2", slices=Slices((1, 1), replicas=(1, 1)))
    names = [parameter.name for parameter in graph.cut_parameters]
    own = ("up.weight", "up.bias", "down.weight")
    assert sorted(names) == sorted(f"layers.{i}.{name}" for i in range(2) for name in own)
