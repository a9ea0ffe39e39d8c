"""Operators that PyTorch does not have itself: what is not known of them is said, by their
names."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402
from torch.utils import flop_counter  # noqa: E402

from situate.data.graph import Graph  # noqa: E402
from situate.torch_capture import capture  # noqa: E402

X = torch.ones(4, 8)


@torch.library.custom_op("situate_brought::gate", mutates_args=())
def gate(x: Tensor, weight: Tensor) -> Tensor:
    """A product."""
    return x @ weight


@gate.register_fake
def _gate(x: Tensor, weight: Tensor) -> Tensor:
    return x.new_empty(len(x), weight.shape[1])


@torch.library.custom_op("situate_brought::double_", mutates_args={"x"})
def double_(x: Tensor) -> None:
    """Writes over its input."""
    x.mul_(2)


class Gated(nn.Module):
    """Calls both operators, the first of them twice."""

    def __init__(self, overwrites: bool = False) -> None:
        super().__init__()
        self.weight, self.overwrites = nn.Parameter(torch.ones(8, 8)), overwrites

    def forward(self, x: Tensor) -> Tensor:
        y = gate(gate(x, self.weight), self.weight)
        if self.overwrites:
            double_(y)
        return y


def captured(model: nn.Module) -> Graph:
    return capture(lambda: (model, X, None), training=False)


def test_operators_whose_flops_are_not_known_are_named_once() -> None:
    assert captured(Gated()).warnings == (
        "counted as memory traffic only: situate_brought::gate; register FLOPs by "
        "torch.utils.flop_counter.register_flop_formula, or measure (situate profile)",
    )


def test_flops_that_were_registered_count(monkeypatch: pytest.MonkeyPatch) -> None:
    packet = torch.ops.situate_brought.gate

    def flops(x: Any, weight: Any, *_: Any, **__: Any) -> int:
        return int(2 * x[0] * x[1] * weight[1])

    assert captured(Gated()).warnings
    monkeypatch.setattr(flop_counter, "flop_registry", {**flop_counter.flop_registry})
    flop_counter.register_flop_formula(packet)(flops)
    graph = captured(Gated())
    assert graph.warnings == ()
    assert [op.flops for op in graph.ops if op.flops] == [2 * 4 * 8 * 8] * 2


def test_operators_that_write_over_their_inputs_are_named_too() -> None:
    assert captured(Gated(overwrites=True)).warnings[1] == (
        "counted as memory traffic only, and run by no plan, because inputs are written over: "
        "situate_brought::double_; return new tensors instead"
    )


def test_pytorchs_own_operators_are_known() -> None:
    assert captured(nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Softmax(-1))).warnings == ()
