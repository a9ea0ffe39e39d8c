"""Placed steps of slices against PyTorch's loop that accumulates the gradients of the same ones."""

from __future__ import annotations

import copy
import functools

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402

from situate.data.slices import Slices  # noqa: E402
from situate.runtime.programs.program import Program, capture_program  # noqa: E402
from situate.runtime.programs.seeds import kept_generator, seeded  # noqa: E402
from situate.runtime.step import StartDevices  # noqa: E402
from tests.runtime.models import MODELS  # noqa: E402
from tests.runtime.steps import STEPS, assert_same, kept, state, step_of  # noqa: E402

SHARES = {
    "towers": (2, 2, 2, 2),
    "convolutional": (3, 2),
    "tied": (1, 2),
    "gated": (2, 2, 2),
    "odd": (4, 2),
    "strided": (2, 2),
    "wide": (1, 1, 1, 1),
    "relative": (4, 4),
    "following": (4, 1, 3),
    "turned": (1, 1, 1),
    "double": (3, 5),
    "brief": (4, 4),
}
"""The samples of each slice of one of `MODELS`."""


@functools.cache
def program(name: str, shares: tuple[int, ...]) -> Program:
    model, inputs, loss = MODELS[name]()
    return capture_program(
        model, inputs, loss, optimizer="momentum", name=name, slices=Slices(shares, loss="mean")
    )


def accumulate(
    model: nn.Module, inputs: tuple[Tensor, ...], loss, shares: tuple[int, ...], step: int
) -> Tensor:
    """The gradients of a step, slice after slice, with a placed step's draws; returns the loss."""
    total, begin = torch.tensor(0), 0
    with kept_generator(), seeded(0, step):
        for samples in shares:
            part = loss(model, *(tensor[begin : begin + samples] for tensor in inputs))
            part = part / (sum(shares) / samples)
            part.backward()
            total, begin = (part.detach() + total if begin else part.detach()), begin + samples
    return total


@pytest.mark.parametrize("devices", [1, 2, 3])
@pytest.mark.parametrize("name", SHARES)
def test_three_steps_are_equal_to_the_last_bit(
    processes: StartDevices, name: str, devices: int
) -> None:
    model, inputs, loss = MODELS[name]()
    other = copy.deepcopy(model)
    optimizer, plain = (
        torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in (model, other)
    )
    start = processes if devices > 1 else None
    found = program(name, SHARES[name])
    with step_of(found, model, optimizer, devices, start, seed=devices) as step:
        for number in range(1, STEPS + 1):
            expected = accumulate(other, inputs, loss, SHARES[name], number)
            plain.step()
            plain.zero_grad()
            assert torch.equal(step(*inputs), expected)
    assert_same(state(model), state(other))
    assert_same(kept(model, optimizer), kept(other, plain))
