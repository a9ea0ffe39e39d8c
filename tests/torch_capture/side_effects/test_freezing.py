"""A step that freezes parameters for a part of itself is refused, with a remedy that helps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from situate.runtime.equality import compare  # noqa: E402
from situate.torch_capture import capture  # noqa: E402
from tests.runtime.placing import placed_step, sgd  # noqa: E402

X = torch.linspace(-1, 1, 12).reshape(4, 3)


def networks() -> nn.ModuleDict:
    torch.manual_seed(0)
    return nn.ModuleDict({"maker": nn.Linear(3, 3), "judge": nn.Linear(3, 1)})


def adversarial(model: Any, x: Tensor, judge: Callable[[Tensor], Tensor]) -> Tensor:
    """The loss of the judge less that of the maker, by a judge that does not learn from it."""
    made = model["maker"](x)
    learned: Tensor = model["judge"](made.detach()).sigmoid() - model["judge"](x).sigmoid()
    return (learned - judge(made).sigmoid()).mean()


def by_method(model: Any, x: Tensor) -> Tensor:
    model["judge"].requires_grad_(False)
    loss = adversarial(model, x, model["judge"])
    model["judge"].requires_grad_(True)
    return loss


def by_attribute(model: Any, x: Tensor) -> Tensor:
    model["judge"].weight.requires_grad = False
    return adversarial(model, x, model["judge"])


def by_call(model: Any, x: Tensor) -> Tensor:
    fixed = {name: p.detach() for name, p in model["judge"].named_parameters()}
    judge = partial(torch.func.functional_call, model["judge"], fixed)
    return adversarial(model, x, lambda made: judge((made,)))


def unchanged(model: Any, x: Tensor) -> Tensor:
    model.requires_grad_(True)
    return adversarial(model, x.clone().requires_grad_(False), model["judge"])


@pytest.mark.parametrize("loss", [by_method, by_attribute])
def test_it_is_refused_with_its_line(loss: Callable[[Any, Tensor], Tensor]) -> None:
    message = r"^net: .*test_freezing\.py:\d+: the step freezes a parameter, .*: freeze it where"
    with pytest.raises(SituateError, match=message):
        capture(lambda: (networks(), X, loss), name="net")


@pytest.mark.parametrize("loss", [by_call, unchanged])
def test_the_remedy_is_equal_to_the_last_bit(loss: Callable[[Any, Tensor], Tensor]) -> None:
    step = partial(placed_step, given=((X,), loss))
    assert compare(networks(), (X,), loss, sgd, step, threads=1).within(0.0)


def test_parameters_are_frozen_as_before_even_after_an_error() -> None:
    with pytest.raises(SituateError):
        capture(lambda: (networks(), X, by_method), name="net")
    assert not nn.Linear(2, 2).requires_grad_(False).weight.requires_grad
    (weight := torch.ones(1, requires_grad=True)).requires_grad = False
    assert not weight.requires_grad
