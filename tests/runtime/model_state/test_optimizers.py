"""The optimisers that a placed step can run."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from situate.data.update_rule import OPTIMIZERS  # noqa: E402
from situate.errors import SituateError  # noqa: E402
from situate.runtime.model_state.optimizers import (  # noqa: E402
    default_optimizer,
    hyperparameters,
    kind_of,
    owner_types,
)
from situate.torch_capture.updates.optimizer_state import state_tensors  # noqa: E402

optim = torch.optim


def weights(count: int = 1) -> list[torch.nn.Parameter]:
    return [torch.nn.Parameter(torch.zeros(2)) for _ in range(count)]


# Kinds and their state.
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_the_default_of_a_kind_is_of_that_kind(kind: str) -> None:
    assert kind_of(default_optimizer(kind, weights())) == kind


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_the_moments_are_pytorchs(kind: str) -> None:
    [weight] = weights()
    optimizer = default_optimizer(kind, [weight])
    weight.grad = torch.ones(2)
    optimizer.step()
    settings = {k for k, v in optimizer.state[weight].items() if v is not None}
    assert settings - {"step"} == {tensor.name for tensor in state_tensors(kind, (2,))}


class Mine(optim.SGD):
    """An optimiser of a user's own."""


def coupled() -> Any:
    """AdamW that was told to decay its weights as Adam does."""
    default_adam = optim.AdamW(weights())
    default_adam.param_groups[0]["decoupled_weight_decay"] = False
    return default_adam


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: optim.Adagrad(weights()), "optimizer Adagrad: .* --optimizer sgd, momentum, adam"),
        (lambda: optim.RMSprop(weights()), "optimizer RMSprop: "),
        (lambda: Mine(weights(), lr=0.1), "optimizer Mine: "),
        (lambda: optim.Adam(weights(), amsgrad=True), "optimizer Adam: leave amsgrad out"),
        (lambda: optim.AdamW(weights(), capturable=True), "AdamW: leave capturable out"),
        (lambda: optim.SGD(weights(), momentum=0.9, dampening=0.1), "leave dampening out"),
        (lambda: optim.Adam(weights(), differentiable=True), "leave differentiable out"),
        (
            lambda: optim.Adam(weights(), decoupled_weight_decay=True),
            "optimizer Adam: leave decoupled_weight_decay out, or plan for AdamW, which has it",
        ),
        (coupled, "optimizer AdamW: leave decoupled_weight_decay on, or plan for Adam"),
        (
            lambda: optim.SGD(
                [{"params": weights(), "momentum": 0.9}, {"params": weights()}], lr=0.1
            ),
            "optimizer SGD: give all groups momentum, or none",
        ),
    ],
)
def test_others_are_refused_with_a_remedy(make: Any, message: str) -> None:
    with pytest.raises(SituateError, match=message) as error:
        kind_of(make())
    assert "\n" not in str(error.value)


# Hyperparameters and their types.
def test_hyperparameters_are_numbers_of_every_group() -> None:
    one, other = weights(2)
    groups = [{"params": [one]}, {"params": [other], "lr": torch.tensor(0.5)}]
    first, second = hyperparameters(optim.AdamW(groups, lr=0.25, betas=(0.5, 0.75)))
    assert (first["lr"], owner_types(second)["lr"]) == (0.25, torch.tensor(0.5))
    assert first["betas"] == (0.5, 0.75)
    assert "params" not in first


@pytest.mark.parametrize(
    "number",
    [
        torch.tensor(0.1),
        torch.tensor([0.1]),
        torch.tensor(0.1, dtype=torch.float64),
        torch.tensor(0.1, dtype=torch.bfloat16),
        np.float32(0.1),
        np.float64(0.1),
    ],
)
def test_numbers_keep_the_type_that_they_were_given_in(number: Any) -> None:
    group = {"params": weights(), "lr": number, "betas": (torch.tensor(0.5), torch.tensor(0.75))}
    [numbers] = hyperparameters(optim.Adam([group]))
    [again] = hyperparameters(optim.Adam([group]))
    [plain] = hyperparameters(optim.Adam(weights(), lr=0.1))
    settings = owner_types(numbers)
    assert (type(settings["lr"]), settings["lr"].dtype) == (type(number), number.dtype)
    assert (settings["lr"].shape, settings["lr"]) == (number.shape, number)
    assert settings["betas"] == (torch.tensor(0.5), torch.tensor(0.75))
    assert numbers == again
    assert numbers["lr"] != plain["lr"]
    assert pickle.loads(pickle.dumps(numbers)) == numbers  # noqa: S301


def test_a_tensor_that_is_changed_in_place_is_another_number() -> None:
    optimizer = optim.AdamW(weights(), lr=torch.tensor(0.1))
    before = hyperparameters(optimizer)
    optimizer.param_groups[0]["lr"].fill_(0.2)
    assert hyperparameters(optimizer) != before


def test_a_tensor_of_several_numbers_is_refused() -> None:
    optimizer = optim.SGD(weights(), lr=0.1)
    optimizer.param_groups[0]["weight_decay"] = torch.zeros(2)
    with pytest.raises(SituateError, match=r"weight_decay has shape \(2,\): give one number"):
        hyperparameters(optimizer)
