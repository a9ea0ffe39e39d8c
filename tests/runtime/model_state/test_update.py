"""Updates are PyTorch's own, to the last bit, and can be undone half-way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from situate.data.update_rule import OPTIMIZERS, WHOLE  # noqa: E402
from situate.runtime.model_state import update as updates  # noqa: E402
from situate.runtime.model_state.optimizers import (  # noqa: E402
    default_optimizer,
    hyperparameters,
    kind_of,
)
from situate.runtime.model_state.update import PIECE_ELEMENTS, Update  # noqa: E402
from situate.torch_capture.updates.optimizer_state import BLOCK  # noqa: E402
from tests.runtime.model_state.entries import contents, entry, same  # noqa: E402

SGD, Adam, AdamW = torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW
Adafactor = torch.optim.Adafactor

CASES: list[tuple[Any, dict[str, Any]]] = [
    (SGD, {"lr": 0.1}),
    (SGD, {"lr": 0.1, "weight_decay": 0.1, "maximize": True}),
    (SGD, {"lr": 0.1, "momentum": 0.9}),
    (SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    (Adam, {"lr": 0.01, "betas": (0.8, 0.9), "eps": 1e-4}),
    (Adam, {"lr": 0.01, "weight_decay": 0.1, "maximize": True}),
    (AdamW, {"lr": 0.01, "weight_decay": 0.1}),
    (SGD, {"lr": torch.tensor(0.03), "momentum": torch.tensor(0.9), "weight_decay": 0.1}),
    (Adam, {"lr": torch.tensor(0.01), "betas": (torch.tensor(0.8), torch.tensor(0.9))}),
    (Adam, {"lr": 0.01, "eps": torch.tensor(1e-6), "weight_decay": np.float32(0.1)}),
    (AdamW, {"lr": torch.tensor([0.01]), "weight_decay": torch.tensor(0.1)}),
    (AdamW, {"lr": np.float32(0.01), "weight_decay": 0.1}),
]
ADAFACTOR: list[dict[str, Any]] = [
    {"lr": 0.1, "weight_decay": 0.1},
    {"eps": (1e-6, 1e-2), "beta2_decay": -0.5, "maximize": True},
]
EMPTY = (0, 3)
SHAPES = [(3, 5), (), EMPTY, (PIECE_ELEMENTS // 100, 250)]


# Against PyTorch's optimisers.
@pytest.mark.parametrize(
    ("make", "options", "shape"),
    [
        *((make, options, shape) for make, options in CASES for shape in SHAPES),
        # PyTorch's Adafactor divides by the number of elements.
        *((Adafactor, o, shape) for o in ADAFACTOR for shape in SHAPES if shape != EMPTY),
    ],
)
def test_an_update_equals_pytorchs(make: Any, options: dict[str, Any], shape: Any) -> None:
    torch.manual_seed(0)
    parameter = torch.nn.Parameter(torch.randn(shape))
    optimizer = make([parameter], foreach=False, **options)
    updated = entry(parameter.detach(), kind_of(optimizer))
    update = Update(kind_of(optimizer), updated, hyperparameters(optimizer)[0])
    for step in range(1, 4):
        if step == 3:
            group = optimizer.param_groups[0]
            group["lr"] = group["lr"] * 3
            update.set_hyperparameters(hyperparameters(optimizer)[0])
        parameter.grad = torch.randn(shape)
        update(parameter.grad, step)
        optimizer.step()
    assert torch.equal(updated.value, parameter)
    for name, moment in updated.moments.items():
        assert torch.equal(moment, optimizer.state[parameter][name])


def test_a_gradient_may_lie_in_memory_as_it_likes() -> None:
    ones = [entry(torch.ones(3, 4).t()) for _ in range(2)]
    gradient = torch.randn(4, 3)
    error = hyperparameters(Adam([torch.zeros(1)]))[0]
    for updated, layout in zip(ones, (gradient, gradient.t().contiguous().t()), strict=True):
        Update("adam", updated, error)(layout, 1)
    assert same(contents(ones[0]), contents(ones[1]))
    assert not torch.equal(ones[0].value, torch.ones(4, 3))


# Interrupted updates and pieces.
@pytest.mark.parametrize(
    ("kind", "pieces"),
    [(kind, k) for kind in OPTIMIZERS for k in range(1 if kind in WHOLE else 3)],
)
def test_an_update_that_breaks_off_can_be_undone(
    monkeypatch: pytest.MonkeyPatch, kind: str, pieces: int
) -> None:
    count = 3 * PIECE_ELEMENTS - BLOCK
    updated = entry(torch.randn(count), kind)
    settings = hyperparameters(default_optimizer(kind, [torch.zeros(1)]))[0]
    before = contents(updated)
    apply = updates.APPLY[kind]
    calls = []

    def breaking(*arguments: Any) -> None:
        apply(*arguments)
        calls.append(arguments)
        if len(calls) > pieces:
            raise MemoryError

    monkeypatch.setitem(updates.APPLY, kind, breaking)
    with pytest.raises(MemoryError):
        Update(kind, updated, settings)(torch.ones(count), 1)
    assert not torch.equal(updated.value, before[0])
    updated.undo(1)
    assert same(contents(updated), before)


def test_without_copies_it_is_the_same_update() -> None:
    updated = [entry(torch.ones(5), keep=keep) for keep in (True, False)]
    error = hyperparameters(Adam([torch.zeros(1)]))[0]
    for part in updated:
        Update("adam", part, error)(torch.arange(5.0), 1)
    assert same(contents(updated[0]), contents(updated[1]))


def test_pieces_are_for_the_caches_of_cpus() -> None:
    assert updates._size(torch.empty(2 * PIECE_ELEMENTS), whole=False) == PIECE_ELEMENTS
    assert (
        updates._size(torch.empty(2 * PIECE_ELEMENTS, device="meta"), whole=False)
        == 2 * PIECE_ELEMENTS
    )
    assert updates._size(torch.empty(0, device="meta"), whole=False) == 1
