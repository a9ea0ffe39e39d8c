"""Steps of slices beside the step of the whole batch, by PyTorch alone."""

from __future__ import annotations

import copy

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from situate.data.slices import Slices  # noqa: E402
from situate.errors import SituateError  # noqa: E402
from situate.runtime.whole_batch import BatchDifference, compare_with_batch  # noqa: E402


def compare_batch(model, loss=F.mse_loss, shares=(3, 1), reduction="mean"):
    torch.manual_seed(0)
    inputs = torch.randn(8, 6), torch.randn(8, 3)

    def step(model, x, y):
        return loss(model(x), y)

    return compare_with_batch(model, inputs, step, Slices(shares, loss=reduction))


# Equal steps, and differences that are found.
def test_slices_of_a_mean_are_equal():
    difference = compare_batch(nn.Linear(6, 3))
    assert difference.is_rounding
    assert max(difference.loss, difference.gradient) < 1e-5


def test_a_sum_that_is_taken_for_a_mean_differs():
    def summed(out, y):
        return F.mse_loss(out, y, reduction="sum")

    assert compare_batch(nn.Linear(6, 3), summed, reduction="sum").is_rounding
    assert not compare_batch(nn.Linear(6, 3), summed).is_rounding


def test_batch_norms_differ_and_the_parameter_is_named():
    difference = compare_batch(nn.Sequential(nn.BatchNorm1d(6), nn.Linear(6, 3)))
    assert not difference.is_rounding
    assert difference.gradient > difference.tolerance
    assert difference.name in {"0.weight", "0.bias", "1.weight", "1.bias"}


def test_dropout_does_not_tell_them_apart():
    dropout = nn.Sequential(nn.Linear(6, 8), nn.Dropout(), nn.ReLU(), nn.Linear(8, 3))
    assert compare_batch(dropout).is_rounding


def test_gradients_that_are_no_numbers_differ():
    def rooted(out, y):
        return (out * (len(out) == 8)).square().sqrt().mean() * 0

    difference = compare_batch(nn.Linear(6, 3), rooted)
    assert difference.loss == 0
    assert not difference.is_rounding


# The model, precision and errors.
def test_the_model_stays_as_it_is():
    model = nn.Sequential(nn.BatchNorm1d(6), nn.Linear(6, 3))
    before = copy.deepcopy(model.state_dict())
    compare_batch(model)
    assert all(torch.equal(before[name], now) for name, now in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_numbers_of_16_bits_may_differ_by_more():
    difference = compare_batch(
        nn.Linear(6, 3), lambda out, y: F.mse_loss(out.bfloat16(), y.bfloat16())
    )
    assert difference.tolerance > compare_batch(nn.Linear(6, 3)).tolerance


@pytest.mark.parametrize(("loss", "gradient"), [(0.2, 0), (0, 0.2)])
def test_a_difference_of_either_is_no_rounding(loss, gradient):
    assert not BatchDifference(loss, gradient, "weight", 0.1).is_rounding
    assert BatchDifference(loss / 4, gradient / 4, "weight", 0.1).is_rounding


def test_a_step_that_fails_names_the_comparison():
    def failing(out, y):
        raise ValueError("no such loss")

    with pytest.raises(SituateError, match=r"comparing slices with the whole batch.*no such loss"):
        compare_batch(nn.Linear(6, 3), failing)
