"""Placed steps against unplaced ones."""

from __future__ import annotations

from functools import partial

import pytest

torch = pytest.importorskip("torch")

from situate.errors import SituateError  # noqa: E402
from situate.runtime.equality import Equality, compare, decomposed_modules, difference  # noqa: E402
from situate.runtime.measure import NotFinite  # noqa: E402
from situate.runtime.step import PlacedStep  # noqa: E402
from tests import branches  # noqa: E402
from tests.runtime.placing import placed_step, sgd  # noqa: E402


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


# Equal steps, and every kind of difference.
@pytest.mark.parametrize("devices", [1, 2])
def test_a_placed_step_is_equal_to_the_last_bit(devices):
    model, inputs, loss = branches.build()
    equality = compare(
        model, inputs, loss, sgd, partial(placed_step, devices=devices), threads=1, seed=0
    )
    assert equality.within(0.0)
    assert len(equality.losses) == len(equality.returned) == 3
    assert len(set(equality.losses)) == 3
    assert equality.state.keys() == {
        *("left.weight", "left.bias", "right.weight", "right.bias", "calls")
    }
    assert equality.changed == 5
    assert equality.name == ""


def test_a_copy_that_differs_is_found():
    equality = Equality((0.0,), {"a": 0.0}, 1, (0.0,), copies={"replica1/a": 0.5})
    assert (equality.name, equality.parameter_difference) == ("replica1/a", 0.5)
    assert not equality.within(0.1)


def test_another_seed_of_dropout_is_found():
    model, inputs, loss = branches.build()
    equality = compare(model, inputs, loss, sgd, partial(placed_step, seed=1), seed=0, threads=1)
    assert equality.loss_difference > 1e-3
    assert not equality.within(1e-3)


def test_another_optimizer_is_found_in_the_parameters():
    model, inputs, loss = branches.build()

    def slower(model, optimizer):
        optimizer.param_groups[0]["lr"] = 0.05
        return placed_step(model, optimizer)

    equality = compare(model, inputs, loss, sgd, slower, steps=1, threads=1)
    assert equality.loss_difference == 0.0
    assert equality.parameter_difference > 1e-4
    assert equality.state[equality.name] == equality.parameter_difference
    assert equality.state["calls"] == 0.0


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize(
    ("optimizer", "state"),
    [
        (torch.optim.AdamW, {"exp_avg", "exp_avg_sq", "step"}),
        (partial(torch.optim.SGD, lr=0.1, momentum=0.9), {"momentum_buffer"}),
        (sgd, set()),
    ],
)
def test_the_optimizers_state_is_equal_too(optimizer, state, devices):
    model, inputs, loss = branches.build()
    equality = compare(
        model, inputs, loss, optimizer, partial(placed_step, devices=devices), steps=2, threads=1
    )
    names = [name for name, _ in model.named_parameters()]
    parts = {f"{name} {value}" for name in names for value in state}
    assert equality.optimizer_state.keys() == parts
    assert equality.within(0.0)


def test_another_moment_is_found_though_the_parameters_are_the_same():
    model, inputs, loss = branches.build()

    class Forgetful(PlacedStep):
        def close(self):
            super().close()
            self.optimizer.state[model.left.bias]["exp_avg"].zero_()

    def forgetful(model, optimizer):
        optimizers = placed_step(model, optimizer)
        optimizers.__class__ = Forgetful
        return optimizers

    equality = compare(model, inputs, loss, torch.optim.Adam, forgetful, steps=1, threads=1)
    assert (equality.parameter_difference, equality.loss_difference) == (0.0, 0.0)
    assert equality.optimizer_part == "left.bias exp_avg"
    assert not equality.within(0.0)


def test_overwritten_inputs_are_compared():
    model, inputs, loss = branches.build()
    before = [tensor.clone() for tensor in inputs]

    def writing(model, x, y):
        return loss(model, x.mul_(1.5), y)

    optimizers = partial(placed_step, given=(inputs, writing))
    equality = compare(model, inputs, writing, sgd, optimizers, steps=2, threads=1)
    assert (equality.inputs, equality.worst_input) == ({0: 0.0}, 0)
    assert equality.within(0.0)
    assert torch.equal(inputs[0], before[0] * 1.5 * 1.5)


def test_tensors_that_no_placed_step_keeps_are_named():
    model, inputs, loss = branches.build()
    model.seen = [torch.zeros(1)]

    def seeing(model, x, y):
        equality = loss(model, x, y)
        model.seen[0] = equality.detach()
        return equality

    optimizers = partial(placed_step, given=(inputs, seeing))
    equality = compare(model, inputs, seeing, sgd, optimizers, steps=1, threads=1)
    assert (equality.left_out, equality.within(0.0)) == (("model.seen",), True)


def test_an_input_that_is_left_otherwise_is_found():
    model, inputs, loss = branches.build()

    class Writing(PlacedStep):
        def close(self):
            super().close()
            inputs[0][0] += 1

    def writing(model, optimizer):
        optimizers = placed_step(model, optimizer)
        optimizers.__class__ = Writing
        return optimizers

    equality = compare(model, inputs, loss, sgd, writing, steps=1, threads=1)
    assert (equality.worst_input, equality.loss_difference) == (0, 0.0)
    assert equality.input_difference > 0
    assert not equality.within(0.0)


def test_inference_compares_what_the_model_returns():
    model, inputs, loss = branches.build()
    equality = compare(model, inputs, loss, None, placed_step, steps=2, threads=1)
    assert equality.within(0.0)
    assert (len(equality.returned), equality.losses, equality.changed) == (2, (), 0)


# Comparisons that cannot be made.
def test_a_loss_that_is_no_number_proves_nothing():
    model, inputs, loss = branches.endless()
    with pytest.raises(NotFinite, match="the loss of step 1 is inf"):
        compare(model, inputs, loss, sgd, placed_step)


def test_a_model_that_fails_is_one_line():
    model, inputs, _ = branches.build()
    with pytest.raises(SituateError, match=r"net: running the unplaced step: .*ZeroDivisionError"):
        compare(model, inputs, lambda model, x, y: 1 / 0, sgd, placed_step, name="net")


def test_modules_with_kernels_of_their_own_are_named():
    from torch import nn

    model = nn.Sequential(nn.LSTM(2, 2), nn.GRUCell(2, 2), nn.RNN(2, 2), nn.LSTMCell(2, 2))
    assert decomposed_modules(model, training=True) == ["torch.nn.LSTM", "torch.nn.GRUCell"]
    assert decomposed_modules(model, training=False) == ["torch.nn.GRUCell"]
    assert decomposed_modules(nn.Linear(2, 2), training=True) == []


def test_no_steps_are_refused():
    model, inputs, loss = branches.build()
    with pytest.raises(SituateError, match="steps: must be positive, got 0"):
        compare(model, inputs, loss, sgd, placed_step, steps=0)


# The measure of a difference.
@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([0.5, 0.0], [0.5, 0.25], 0.25),
        ([100.0], [101.0], 0.01),
        ([float("nan"), 1.0], [float("nan"), 1.5], 0.5),
        ([float("nan")], [1.0], float("inf")),
        ([1.0], [float("nan")], float("inf")),
        ([float("inf")], [float("inf")], 0.0),
        ([float("inf")], [-float("inf")], float("inf")),
        ([7], [8], 1 / 7),
        ([True], [False], 1.0),
        ([1 + 1j], [1 + 2j], 1.0),
    ],
)
def test_difference(one, other, expected):
    assert difference(torch.tensor(one), torch.tensor(other)) == pytest.approx(expected)


def test_a_whole_tensor_is_compared_with_its_largest_number():
    one, other = torch.tensor([100.0, 1.0, float("inf")]), torch.tensor([100.0, 2.0, float("inf")])
    assert difference(one, other, whole=True) == pytest.approx(0.01)
    assert difference(one, -one, whole=True) == float("inf")


def test_the_worst_is_named():
    equality = Equality((0.0, 3.0, 3.0), {"a": 0.5, "b": 2.0}, 2, (1.0, 1.0, 1.0))
    assert (equality.loss_difference, equality.worst_step) == (3.0, 2)
    assert (equality.parameter_difference, equality.name) == (2.0, "b")
    assert equality.within(3.0)
    assert not equality.within(2.5)


class Tokens(torch.nn.Module):
    """A product of a layout that PyTorch multiplies one way or the other."""

    def __init__(self):
        super().__init__()
        self.norm, self.out = torch.nn.RMSNorm(4), torch.nn.Linear(4, 7)

    def forward(self, x):
        x = self.norm(x).transpose(1, 2).contiguous().transpose(1, 2)
        return self.out(x)


def test_recording_changes_no_kernel():
    inputs = (torch.randn(2, 5, 4),)
    step = partial(placed_step, given=(inputs, None))
    equality = compare(Tokens().eval(), inputs, None, None, step, threads=1)
    assert equality.returned == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("hooked", "name"),
    [(True, "torch.nn.MultiheadAttention"), (False, "torch.nn.TransformerEncoderLayer")],
)
def test_a_module_that_infers_by_a_kernel_of_its_own_is_named(hooked, name):
    """PyTorch takes a layer with a hook apart, as that has whose returns are compared."""
    layer = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True).eval()
    inputs = (torch.randn(2, 5, 16),)
    step = partial(placed_step, given=(inputs, None))
    model = layer if hooked else torch.nn.Sequential(layer)
    equality = compare(model, inputs, None, None, step, threads=1)
    assert equality.decomposed == (name,)
    assert equality.within(1e-5)
