"""Kernels that write their result where they are told."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import fx  # noqa: E402

from situate.runtime.direct import Into, into  # noqa: E402
from tests.runtime.steps import program  # noqa: E402

aten = torch.ops.aten


def node(target: Any, value: object = None) -> fx.Node:
    made = fx.Graph().call_function(target)
    made.meta["val"] = torch.empty(2) if value is None else value
    return made


@pytest.mark.parametrize(
    ("target", "found"),
    [
        (aten.mm.default, Into("aten::mm.out", "out")),
        (aten.add.Tensor, Into("aten::add.out", "out")),
        (aten.sum.dim_IntList, Into("aten::sum.IntList_out", "out")),
        (aten.tanh_backward.default, Into("aten::tanh_backward.grad_input", "grad_input")),
    ],
)
def test_a_kernel_takes_the_same_arguments_and_one_more(target: Any, found: Into) -> None:
    assert into(node(target)) == found


@pytest.mark.parametrize(
    "target", [aten.convolution.default, aten.clone.default, aten.rand.default]
)
def test_one_that_would_copy_or_draws_is_none(target: Any) -> None:
    assert into(node(target)) is None


def test_several_results_have_none() -> None:
    assert into(node(aten.mm.default, (torch.empty(2), torch.empty(2)))) is None


def test_what_is_held_has_none() -> None:
    found = program("towers")
    assert {into(n) for n in found.nodes if n.op == "placeholder"} == {None}


def test_it_computes_the_same_where_it_is_told() -> None:
    first, second, place = torch.randn(3, 4), torch.randn(4, 5), torch.empty(3, 5)
    kernel = into(node(aten.mm.default))
    assert kernel is not None
    made = aten.mm.out(first, second, **{kernel.argument: place})
    assert made is place
    assert torch.equal(place, first @ second)
