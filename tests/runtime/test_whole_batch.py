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


def compare_batch(model, loss=F.mse_loss, shares=(3, 1), reduction="mean", **options):
    torch.manual_seed(0)
    inputs = torch.randn(8, 6), torch.randn(8, 3)

    def step(model, x, y):
        return loss(model(x), y)

    return compare_with_batch(model, inputs, step, Slices(shares, loss=reduction), **options)


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


# Steps after the first, and buffers.
def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


def test_further_steps_update_the_parameters():
    losses = []

    def noted(out, y):
        loss = F.mse_loss(out, y)
        losses.append(float(loss.detach()))
        return loss

    difference = compare_batch(nn.Linear(6, 3), noted, optimizer=sgd, steps=3)
    assert difference.steps == 3
    assert difference.is_rounding
    # The batch and its two slices run once per step, so the batch has every third loss.
    assert losses[0] > losses[3] > losses[6]


def test_a_difference_of_the_third_step_is_a_difference():
    calls = []

    def later(out, y):
        calls.append(1)
        return F.mse_loss(out, y) * (1 + (len(calls) == 8))

    assert not compare_batch(nn.Linear(6, 3), later, optimizer=sgd, steps=3).is_rounding
    calls.clear()
    assert compare_batch(nn.Linear(6, 3), later, optimizer=sgd, steps=2).is_rounding


def test_without_an_optimizer_one_step_is_compared():
    assert compare_batch(nn.Linear(6, 3), steps=3).steps == 1


class Averaging(nn.Linear):
    """Keeps an average of its results, which trains nothing, and counts its calls."""

    def __init__(self):
        super().__init__(6, 3)
        self.register_buffer("average", torch.zeros(3))
        self.register_buffer("calls", torch.tensor(0))

    def forward(self, x):
        out = super().forward(x)
        self.average.mul_(0.9).add_(out.detach().mean(0))
        self.calls += 1
        return out


def test_a_buffer_that_slices_leave_otherwise_is_named():
    difference = compare_batch(Averaging())
    assert difference.gradient <= difference.tolerance < difference.buffer
    assert not difference.is_rounding
    assert difference.buffer_name == "average"


def test_a_counter_of_calls_is_no_difference():
    class Counting(Averaging):
        def forward(self, x):
            self.calls += 1
            return nn.Linear.forward(self, x)

    assert compare_batch(Counting()).buffer_name == ""


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
