"""Gradient ascent makes PyTorch's steps, and its state is a few arrays."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from situate.policies.gradient_ascent import Ascent  # noqa: E402

TARGET = torch.tensor([[1.0, -2.0, 3.0]])


def layer():
    ascent_made = torch.nn.Linear(3, 1)
    with torch.no_grad():
        for parameter in ascent_made.parameters():
            parameter.fill_(0.5)
    return ascent_made


def gain(module):
    return -(module.weight - TARGET).pow(4).sum() - 0.1 * module.bias.pow(2).sum()


# Steps against PyTorch's optimisers.
@pytest.mark.parametrize("rule", ["plain", "adam"])
def test_steps_are_those_of_pytorchs_optimisers(rule):
    ours, theirs = layer(), layer()
    ascent = Ascent(ours, rule, 0.01)
    kinds = {"plain": torch.optim.SGD, "adam": torch.optim.Adam}
    optimiser = kinds[rule](theirs.parameters(), lr=0.01, maximize=True)
    for _ in range(20):
        ascent.step(gain(ours))
        optimiser.zero_grad()
        gain(theirs).backward()
        optimiser.step()
    torch.testing.assert_close(ours.weight, theirs.weight)
    torch.testing.assert_close(ours.bias, theirs.bias)


@pytest.mark.parametrize(("clip", "length"), [(2.0, 2.0), (1e6, None)])
def test_only_a_gradient_longer_than_the_limit_is_shortened(clip, length):
    module = layer()
    before = module.weight.detach().clone()
    gradient = torch.autograd.grad(gain(module), module.weight)[0]
    Ascent(module, "plain", 1.0, clip).step(gain(module) - 0 * module.bias.sum())
    moved = module.weight.detach() - before
    expected = gradient.norm() if length is None else torch.tensor(length)
    torch.testing.assert_close(moved.norm(), expected, rtol=1e-2, atol=0)
    torch.testing.assert_close(moved / moved.norm(), gradient / gradient.norm())


def test_a_parameter_that_the_objective_does_not_know_stays():
    module = layer()
    Ascent(module, "adam", 0.1).step(module.weight.sum())
    assert module.bias.item() == 0.5
    assert (module.weight > 0.5).all()


# State: saved, restored, independent of later steps.
@pytest.mark.parametrize("rule", ["plain", "adam"])
def test_restored_it_goes_on_where_the_other_is(rule):
    one, other = layer(), layer()
    first, second = Ascent(one, rule, 0.01), Ascent(other, rule, 0.01)
    for _ in range(3):
        first.step(gain(one))
    second.restore({name: array.copy() for name, array in first.state().items()})
    for _ in range(3):
        first.step(gain(one))
        second.step(gain(other))
    for name, array in first.state().items():
        np.testing.assert_array_equal(second.state()[name], array)


def test_a_state_does_not_change_with_later_steps():
    module = layer()
    ascent = Ascent(module, "adam", 0.01)
    state = ascent.state()
    saved = {name: array.copy() for name, array in state.items()}
    ascent.step(gain(module))
    for name, array in saved.items():
        np.testing.assert_array_equal(state[name], array)
