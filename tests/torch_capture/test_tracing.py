"""Traced steps: the modes of modules, and ops of every kind."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402

from situate.runtime.equality import compare  # noqa: E402
from situate.torch_capture import capture  # noqa: E402
from tests.readers.calling import Calls, X, mean, of  # noqa: E402
from tests.runtime.placing import placed_step, sgd  # noqa: E402


# Modes of modules, losses and custom ops are traced as they are.
def test_a_module_that_was_set_to_infer_infers_in_a_model_that_trains() -> None:
    def build() -> Any:
        model = Calls(lambda model, x: model.norm(model.layer(x)))
        model.norm.eval()
        return model, X, mean

    frozen = {op.kind for op in capture(build, name="m").ops}
    trained = {op.kind for op in of(lambda model, x: model.norm(model.layer(x))).ops}
    assert frozen != trained


def test_a_model_that_infers_is_set_to_train_for_a_training_step() -> None:
    def build() -> Any:
        return Calls(lambda model, x: model.norm(model.layer(x))).eval(), X, mean

    trained = of(lambda model, x: model.norm(model.layer(x)))
    assert [op.kind for op in capture(build, name="m").ops] == [op.kind for op in trained.ops]


@pytest.mark.parametrize("which", [0, slice(0, 1)])
def test_a_loss_may_be_a_tensor_of_one_number(which: int | slice) -> None:
    def loss(model: nn.Module, x: Tensor) -> Tensor:
        out: Tensor = model(x[which])
        return out

    step = partial(placed_step, given=(X, loss))
    assert compare(nn.Linear(3, 1), X, loss, sgd, step, threads=1).within(0.0)


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
