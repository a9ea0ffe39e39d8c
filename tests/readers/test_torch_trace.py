"""What is traced: the modes of modules, and ops of every kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402

from situate.graph import Graph  # noqa: E402
from situate.readers.torch import capture  # noqa: E402

X = (torch.ones(4, 3),)


def mean(model: nn.Module, x: Tensor) -> Tensor:
    out: Tensor = model(x)
    return out.mean()


class Calls(nn.Module):
    """A layer, and what a function does with it."""

    def __init__(self, function: Callable[[nn.Module, Tensor], Tensor]) -> None:
        super().__init__()
        self.layer, self.norm = nn.Linear(3, 3), nn.BatchNorm1d(3)
        self._function = function

    def forward(self, x: Tensor) -> Tensor:
        return self._function(self, x)


def of(function: Callable[[Any, Tensor], Tensor], training: bool = True) -> Graph:
    return capture(lambda: (Calls(function), X, mean), training=training, name="m")


def penalised(model: Any, x: Tensor) -> Tensor:
    out: Tensor = model.layer(x)
    out.sum().backward(retain_graph=True)
    return out


def test_a_module_that_was_set_to_infer_infers_in_a_model_that_trains() -> None:
    def build() -> Any:
        model = Calls(lambda model, x: model.norm(model.layer(x)))  # type: ignore[operator]
        model.norm.eval()
        return model, X, mean

    frozen = {op.kind for op in capture(build, name="m").ops}
    trained = {op.kind for op in of(lambda model, x: model.norm(model.layer(x))).ops}
    assert frozen != trained
    assert "update.copy" not in frozen


def test_a_model_that_infers_is_set_to_train_for_a_training_step() -> None:
    def build() -> Any:
        return Calls(lambda model, x: model.norm(model.layer(x))).eval(), X, mean  # type: ignore[operator]

    trained = of(lambda model, x: model.norm(model.layer(x)))
    assert [op.kind for op in capture(build, name="m").ops] == [op.kind for op in trained.ops]


@torch.library.custom_op("situate_tests::halves", mutates_args=())
def halves(x: Tensor) -> tuple[Tensor, Tensor]:
    return x[:2].clone(), x[2:].clone()


@halves.register_fake
def _(x: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x[:2]), torch.empty_like(x[2:])


def test_an_op_of_the_users_own_may_have_several_outputs() -> None:
    graph = of(lambda model, x: torch.mul(*halves(model.layer(x))), training=False)
    (op,) = (op.name for op in graph.ops if op.kind == "situate_tests.halves")
    assert [f"{op}:0", f"{op}:1"] == [t.name for t in graph.tensors if t.name.startswith(op)]
