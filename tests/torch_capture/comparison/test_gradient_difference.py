"""The gradient that differs most, in parts of its largest number."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

from torch import nn, tensor  # noqa: E402

from situate.torch_capture.comparison.gradient_difference import (  # noqa: E402
    TOLERANCES,
    gradients_of,
    tolerance,
    worst_gradient,
)


def test_the_parameter_that_differs_most_in_its_own_size_is_named():
    ours = {"large": tensor([100.0, 1.0]), "small": tensor([0.5, -2.0])}
    theirs = {"large": tensor([101.0, 1.0]), "small": tensor([0.5, -1.0])}
    assert worst_gradient(ours, theirs) == (0.5, "small")


def test_equal_gradients_name_none():
    ours = {"weight": tensor([1.0, 2.0])}
    assert worst_gradient(ours, ours) == (0.0, "")
    assert worst_gradient({}, {}) == (0.0, "")
    assert worst_gradient({"empty": torch.ones(0)}, {"empty": torch.ones(0)}) == (0.0, "")


def test_gradients_that_are_rounding_themselves_are_compared_with_the_largest():
    ours = {"weight": tensor([1.0]), "bias": tensor([1e-7])}
    small, _ = worst_gradient(ours, {"weight": tensor([1.0]), "bias": tensor([3e-7])})
    assert small < TOLERANCES[64] * 10
    large = worst_gradient(ours, {"weight": tensor([1.0]), "bias": tensor([0.5])})
    assert large == (pytest.approx(0.5), "bias")


def test_a_gradient_that_one_step_lacks_is_zero():
    weight, both = {"weight": tensor([3.0])}, {"weight": tensor([3.0]), "bias": tensor([1.5])}
    assert worst_gradient(weight, {}) == (1.0, "weight")
    assert worst_gradient(both, weight) == (1.0, "bias")
    assert worst_gradient(weight, both) == (0.5, "bias")
    assert worst_gradient({"weight": tensor([0.0])}, weight) == (math.inf, "weight")


@pytest.mark.parametrize("name", ["first", "second"])
def test_a_gradient_that_is_no_number_differs_without_bound(name):
    ours = {"first": tensor([1.0]), "second": tensor([1.0])}
    assert worst_gradient(ours, {**ours, name: tensor([math.nan])}) == (math.inf, name)


def test_gradients_are_those_of_parameters_that_have_one():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[1](torch.ones(1, 2)).sum().backward()
    assert gradients_of(model).keys() == {"1.weight", "1.bias"}


@pytest.mark.parametrize(("bits", "least"), [(64, 1e-6), (32, 1e-2), (16, 0.2), (8, 0.2)])
def test_shorter_numbers_explain_more(bits, least):
    assert tolerance(bits) == least
