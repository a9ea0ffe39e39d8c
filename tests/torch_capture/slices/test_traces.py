"""Sequences among the inputs that are cut along with the tensors."""

from __future__ import annotations

import copy

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import situate  # noqa: E402
from situate.data.slices import Slices  # noqa: E402
from situate.errors import SituateError  # noqa: E402
from tests.torch_capture.slices.steps import captured  # noqa: E402

EIGHT = (1, 2, 3, 4, 5, 6, 7, 8)


class Recognizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 6)

    def forward(self, x):
        return self.layer(x).log_softmax(-1).transpose(0, 1)


def ctc():
    torch.manual_seed(1)
    words = torch.randint(1, 6, (4, 5), generator=torch.Generator().manual_seed(2))
    inputs = torch.randn(4, 12, 4), words, (12, 10, 12, 9), [5, 4, 3, 2]
    return Recognizer(), inputs, lambda m, x, y, frames, words: F.ctc_loss(m(x), y, frames, words)


def test_lengths_of_a_ctc_loss_are_cut_and_the_step_is_the_whole_batch_s():
    graph = situate.capture(ctc, slices=Slices((1, 1)))
    assert graph.slices.axes == {"2": 0, "3": 0}
    model, inputs, loss = ctc()
    other = copy.deepcopy(model)
    here = situate.discover(cpus=1)
    plan = situate.solve(situate.Problem(graph, here), "single").plan
    optimizer, rule = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (model, other))
    with situate.compile(
        plan, model, inputs, loss, optimizer=optimizer, cluster=here
    ) as placed_step:
        losses = [float(placed_step(*inputs)) for _ in range(2)]
    for value in losses:
        whole = loss(other, *inputs)
        assert value == pytest.approx(float(whole), rel=1e-6)
        rule.zero_grad()
        whole.backward()
        rule.step()


def step(function, numbers):
    """The axes of a step whose loss has numbers beside its tensors."""
    return captured(lambda m, x, y, n: function(m(x), y, n), numbers).slices.axes


# A sequence is cut if the step runs only so, left whole if only that works, and otherwise asked
# about.
def test_numbers_a_sample_are_cut():
    assert step(lambda y, z, n: (y * y.new_tensor(n)[:, None]).mean(), EIGHT) == {"2": 0}


def test_numbers_that_the_step_needs_all_of_are_left_whole():
    assert step(lambda y, z, n: (y * n[7]).mean(), EIGHT) == {}
    assert step(lambda y, z, n: F.mse_loss(y, z), EIGHT) == {}
    assert step(lambda y, z, n: F.mse_loss(y, z) * n[0], (1, 2)) == {}


def test_numbers_that_may_be_either_are_asked_for():
    def weighed(y, z, n):
        return (y * n[-1]).mean()

    with pytest.raises(SituateError, match=r"input 2 holds 8 entries, as many .* --slice-dim 2=0"):
        step(weighed, EIGHT)
    for axis in (0, None):
        cut = {"axes": {"2": axis}, "loss": "mean"}
        graph = captured(lambda m, x, y, n: weighed(m(x), y, n), EIGHT, **cut)
        assert graph.slices.axes == {"2": axis}


def test_a_step_that_fails_either_way_names_the_inputs():
    def of_four(y, z, n):
        return (y.view(4, -1) * len(n)).mean() + y.view(8, 3).mean()

    with pytest.raises(SituateError, match="; input 2 holds 8 entries, as many as the batch has"):
        step(of_four, EIGHT)


@pytest.mark.parametrize(
    ("numbers", "axis", "message"),
    [
        ((1, 2), 0, "input 2 has 2 entries, and the batch 8 samples: --slice-dim 2=whole"),
        (EIGHT, 1, "input 2 has entries and no dimension 1: 2=0"),
    ],
)
def test_a_sequence_that_cannot_be_cut_is_named(numbers, axis, message):
    with pytest.raises(SituateError, match=message):
        captured(lambda m, x, y, n: m(x).mean(), numbers, axes={"2": axis})
