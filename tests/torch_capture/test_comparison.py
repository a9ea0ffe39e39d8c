"""Steps without randomness, in precise numbers, and the differences between their gradients."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

from torch import nn, tensor  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from situate.torch_capture.comparison import (  # noqa: E402  # noqa: E402
    TOLERANCES,
    Draws,
    converted,
    gradients_of,
    in_precision,
    model_in,
    tolerance,
    worst_gradient,
)

ONES = torch.ones(2, 3)

# Every draw gives the same number for every sample.
DRAWS = {
    "rand": (lambda: torch.rand(2, 3), 0.5),
    "rand_like": (lambda: torch.rand_like(ONES), 0.5),
    "randn": (lambda: torch.randn(2, 3), 0),
    "randint": (lambda: torch.randint(5, (2, 3)), 0),
    "bernoulli": (lambda: torch.bernoulli(ONES / 3), 1),
    "uniform_": (lambda: ONES.clone().uniform_(2, 3), 2.5),
    "normal_": (lambda: ONES.clone().normal_(7, 2), 7),
}


@pytest.mark.parametrize("name", DRAWS)
def test_what_is_drawn_is_the_same_for_every_sample(name):
    draw, number = DRAWS[name]
    with Draws().fixed():
        numbers = draw()
    assert torch.equal(numbers, torch.full_like(numbers, number))


@pytest.mark.parametrize(
    "dropout",
    [lambda x: F.dropout(x, 0.75), lambda x: torch.native_dropout(x, 0.75, True)[0]],
    ids=["dropout", "native_dropout"],
)
def test_dropout_keeps_all_numbers_and_scales_them_as_those_that_it_keeps(dropout):
    x = ONES.clone().requires_grad_()
    with Draws().fixed():
        out = dropout(x)
        out.sum().backward()
    assert torch.equal(out, 4 * ONES)
    assert torch.equal(x.grad, 4 * ONES)


@pytest.mark.parametrize(("p", "train", "number"), [(0.75, False, 1), (1.0, True, 0)])
def test_dropout_that_keeps_all_or_none_does_so(p, train, number):
    with Draws().fixed():
        assert torch.equal(torch.native_dropout(ONES, p, train)[0], number * ONES)


def test_an_order_that_is_drawn_is_that_of_the_samples():
    with Draws().fixed():
        assert torch.randperm(4).tolist() == [0, 1, 2, 3]


def test_the_generator_draws_as_before_afterwards():
    with Draws().fixed():
        torch.rand(2)
    assert not torch.equal(torch.rand(8), torch.rand(8))


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [(torch.float64, 64), (torch.float32, 32), (torch.bfloat16, 16), (torch.int8, 64)],
)
def test_numbers_of_few_bits_are_noted(dtype, bits):
    draws = Draws()
    with draws.fixed():
        ONES.to(dtype).add(1)
    assert draws.bits == bits


# Differences are relative to the gradient's largest number.
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


# Steps run in precise numbers unless they name types themselves.
def test_a_step_runs_in_doubles_and_what_it_makes_has_as_many_bits():
    types = in_precision(torch.float64, lambda dtype: (dtype, torch.ones(1).dtype))
    assert types == (torch.float64, torch.float64)
    assert torch.get_default_dtype() is torch.float32


def test_a_step_that_takes_no_doubles_runs_as_it_is():
    def run(dtype):
        if dtype:
            raise RuntimeError("expected Float and got Double")
        return torch.ones(1).dtype

    assert in_precision(torch.float64, run) is torch.float32


def test_a_step_that_fails_either_way_fails():
    def run(_):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        in_precision(torch.float64, run)
    assert torch.get_default_dtype() is torch.float32


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_numbers_are_converted_and_take_gradients_as_before(dtype):
    assert converted(torch.ones(2, requires_grad=True), dtype).requires_grad
    assert converted(torch.ones(2, dtype=torch.bfloat16), dtype).dtype is dtype
    assert converted(torch.ones(2, dtype=torch.complex64), dtype).dtype is dtype.to_complex()
    integers = torch.arange(3)
    assert converted(integers, dtype) is integers


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_model_is_converted_but_for_integers_and_complex_numbers(dtype):
    model = torch.nn.BatchNorm1d(2, dtype=torch.bfloat16)
    model.register_buffer("phase", torch.ones(2, dtype=torch.complex64))
    assert model_in(dtype, model).weight.dtype is dtype
    assert model.num_batches_tracked.dtype is torch.int64
    assert model.phase.dtype is torch.complex64
    assert model_in(None, model).weight.dtype is dtype
