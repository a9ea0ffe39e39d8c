"""Kernels that write their result into a channel or over an argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from torch import Tensor, fx, nn
from torch.nn import functional

from situate.runtime.programs.placed import place
from situate.runtime.programs.program import capture_program
from situate.runtime.programs.write_targets import (
    OutKernel,
    in_place_calls,
    out_kernel,
)
from situate.runtime.step import PlacedStep
from tests.runtime.steps import DEVICES, program, scattered

torch = pytest.importorskip("torch")


aten = torch.ops.aten


def node(target: Any, value: object = None) -> fx.Node:
    out_variant = fx.Graph().call_function(target)
    out_variant.meta["val"] = torch.empty(2) if value is None else value
    return out_variant


# Kernels with an output argument.
@pytest.mark.parametrize(
    ("target", "calls"),
    [
        (aten.mm.default, OutKernel("aten::mm.out", "out")),
        (aten.add.Tensor, OutKernel("aten::add.out", "out")),
        (aten.sum.dim_IntList, OutKernel("aten::sum.IntList_out", "out")),
        (aten.tanh_backward.default, OutKernel("aten::tanh_backward.grad_input", "grad_input")),
    ],
)
def test_a_kernel_takes_the_same_arguments_and_one_more(target: Any, calls: OutKernel) -> None:
    assert out_kernel(node(target)) == calls


@pytest.mark.parametrize(
    "target", [aten.convolution.default, aten.clone.default, aten.rand.default]
)
def test_one_that_would_copy_or_draws_is_none(target: Any) -> None:
    assert out_kernel(node(target)) is None


def test_several_results_have_none() -> None:
    assert out_kernel(node(aten.mm.default, (torch.empty(2), torch.empty(2)))) is None


def test_state_has_no_output_kernel() -> None:
    calls = program("towers")
    assert {out_kernel(n) for n in calls.nodes if n.op == "placeholder"} == {None}


def test_it_computes_the_same_where_it_is_told() -> None:
    first, second, place = torch.randn(3, 4), torch.randn(4, 5), torch.empty(3, 5)
    kernel = out_kernel(node(aten.mm.default))
    assert kernel is not None
    out_variant = aten.mm.out(first, second, **{kernel.argument: place})
    assert out_variant is place
    assert torch.equal(place, first @ second)


def weighted(loss: Any) -> Callable[[], tuple[nn.Module, tuple[Tensor, ...], Any]]:
    """A step whose reduced loss is multiplied."""

    def build() -> tuple[nn.Module, tuple[Tensor, ...], Any]:
        torch.manual_seed(0)
        inputs = torch.rand(6, 4), torch.rand(6, 3)
        model = nn.Sequential(nn.Linear(4, 3), nn.Sigmoid())
        return model, inputs, lambda m, x, y: loss(m(x), y) * 3.0 + (m(x) ** 2).mean()

    return build


@pytest.mark.parametrize(
    "loss",
    [
        functional.mse_loss,
        functional.huber_loss,
        functional.smooth_l1_loss,
        functional.binary_cross_entropy,
        functional.l1_loss,
    ],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_crossing_tensors_equal_eager_results(loss: Any, seed: int) -> None:
    model, inputs, step = weighted(loss)()
    calls = capture_program(model, inputs, step)
    random = np.random.default_rng(seed)
    placement = scattered(calls.graph, 2, seed)
    of_loss = [i for i, op in enumerate(calls.graph.ops) if "loss" in op.kind or "cross" in op.kind]
    placement[of_loss] = int(random.integers(2))
    after = [b for a, b in calls.graph.edges() if a in of_loss]
    for op in after:
        placement[op] = 1 - placement[of_loss[0]]
    placed_step = place(calls, placement, calls.graph.order, 2)
    eager = float(step(model, *inputs).detach())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with PlacedStep(placed_step, model, optimizer, DEVICES[:2]) as run:
        assert float(run(*inputs)) == eager


torch = pytest.importorskip("torch")


aten = torch.ops.aten


SQUARE = torch.ones(2, 2)


# In-place forms.
@pytest.mark.parametrize(
    ("target", "call_arguments", "expected"),
    [
        (aten.add.Tensor, (SQUARE, SQUARE), ["a b", "b a"]),
        (aten.mul.Tensor, (SQUARE, SQUARE), ["a b", "b a"]),
        (aten.mul.Tensor, (SQUARE * 1j, SQUARE * 1j), ["a b"]),
        (aten.mul.Tensor, ((SQUARE * 1j).conj(), SQUARE * 1j), []),
        (aten.add.Tensor, (SQUARE * 1j, SQUARE * 1j), ["a b", "b a"]),
        (aten.sub.Tensor, (SQUARE, SQUARE), ["a b"]),
        (aten.div.Tensor, (SQUARE, SQUARE), ["a b"]),
        (aten.add.Tensor, (SQUARE, torch.ones(2)), ["a b"]),
        (aten.add.Tensor, (torch.ones(2), SQUARE), ["b a"]),
        (aten.add.Tensor, (SQUARE, SQUARE.t()), ["a b"]),
        (aten.add.Tensor, (SQUARE.int(), SQUARE), ["b a"]),
        (aten.mul.Tensor, (SQUARE, 2.0), ["a 2.0"]),
        (aten.div.Tensor, (SQUARE.int(), 2), []),
        (aten.tanh.default, (SQUARE,), ["a"]),
        (aten.eq.Tensor, (SQUARE, SQUARE), []),
        (aten.mm.default, (SQUARE, SQUARE), []),
        (aten.sum.default, (SQUARE,), []),
    ],
)
def test_ways_to_write_over_an_argument(
    target: object, call_arguments: tuple[Tensor | float, ...], expected: list[str]
) -> None:
    graph = fx.Graph()
    arguments: list[fx.Node | float] = []
    for name, value in zip("ab", call_arguments, strict=False):
        if isinstance(value, Tensor):
            arguments.append(graph.placeholder(name))
            graph.find_nodes(op="placeholder")[-1].meta["val"] = value
        else:
            arguments.append(value)
    node = graph.call_function(target, tuple(arguments))
    node.meta["val"] = target(*call_arguments)
    assert [" ".join(map(str, (a, *b))) for a, b in in_place_calls(node)] == expected


def test_an_op_with_named_arguments_is_left_alone() -> None:
    graph = fx.Graph()
    one = graph.placeholder("a")
    node = graph.call_function(aten.add.Tensor, (one, one), {"alpha": 2})
    one.meta["val"] = node.meta["val"] = SQUARE
    assert list(in_place_calls(node)) == []
