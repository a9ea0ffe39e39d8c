"""A step may read values that it fills with numbers of its own, and no other values."""

from __future__ import annotations

from functools import partial

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from situate.runtime.equality import compare  # noqa: E402
from situate.torch_capture import capture  # noqa: E402
from situate.torch_capture.build import build_fake  # noqa: E402
from situate.torch_capture.patches.constant_values import (  # noqa: E402
    MAX_KEPT_NUMBERS,
    MAX_KEPT_TOTAL,
    constants_known,
)
from tests.runtime.placing import placed_step, sgd  # noqa: E402

causal = nn.Transformer.generate_square_subsequent_mask


class Doubling(nn.Module):
    """Doubles or triples the output of a layer, by the answer of `asks(self, x)`."""

    def __init__(self, asks):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.scale = nn.Parameter(torch.ones(4))
        self.register_buffer("ones", torch.ones(4))
        self.plain = torch.zeros(4)
        self.asks = asks

    def forward(self, x):
        y = self.layer(x) * self.scale
        return y + y if self.asks(self, x) else y * 3


def change_zeros(x, change):
    values = torch.zeros(4)
    change(values)
    return values.sum() > 1


def with_data_of(x):
    values = torch.ones(4)
    values.data = x[0].detach()
    return values.sum() > 1


def seen_through_a_view(x):
    values = torch.zeros(4)
    view = values.view(2, 2)
    values.copy_(x[0])
    return view.sum() > 1


# Values that the program fills itself are known, and decide branches of the step.
CONSTANT = {
    "a causal mask": lambda _, x: (causal(3) == torch.zeros(3, 3)).any(),
    "numbers listed": lambda _, x: torch.tensor([1.0, 2.0]).sum() > 2,
    "zeros, one of them set": lambda _, x: change_zeros(x, lambda values: values[1].fill_(2)),
    "of a tensor's size": lambda _, x: torch.full_like(x, 2.0).sum() > 4,
    "of a tensor's kind": lambda _, x: (x.new_ones(3) + torch.arange(3)).sum() > 4,
}
MODEL = ["aten.addmm", "aten.mul", "aten.add"]
UNKNOWN = {
    "an input": lambda _, x: x.sum() > 0,
    "a parameter of ones": lambda model, x: model.scale.sum() > 0,
    "a buffer of ones": lambda model, x: model.ones.sum() > 0,
    "an attribute of zeros": lambda model, x: model.plain.sum() > 0,
    "chance": lambda _, x: torch.rand(4).sum() > 1,
    "zeros dropped by chance": lambda _, x: torch.dropout(torch.ones(4), 0.5, True).sum() > 1,
    "zeros filled by chance": lambda _, x: change_zeros(x, lambda values: values.uniform_()),
    "zeros, an input written to them": lambda _, x: change_zeros(
        x, lambda values: values.copy_(x[0])
    ),
    "zeros, written to in a list": lambda _, x: change_zeros(
        x, lambda values: torch._foreach_add_([values], [x[0]])
    ),
    "ones, with other data put into them": lambda _, x: with_data_of(x),
    "a view of them": lambda _, x: seen_through_a_view(x),
    "a parameter added": lambda model, x: (torch.zeros(4) + model.scale).sum() > 0,
    "what was there": lambda _, x: torch.empty(4).sum() > 0,
    "what was there, of a kind": lambda _, x: torch.empty_like(torch.ones(4)).sum() > 0,
    "what was there, of a size": lambda _, x: torch.ones(4).new_empty(3).sum() > 0,
    "numbers in an order by chance": lambda _, x: torch.arange(4)[torch.randperm(4)][0] > 1,
    "numbers that an input chooses": lambda _, x: torch.arange(4).gather(0, x[0].long())[0] > 1,
}


def doubling(asks):
    return Doubling(asks), (torch.randn(2, 4),), lambda model, x: model(x).square().mean()


@pytest.mark.parametrize("case", CONSTANT)
def test_what_a_program_fills_alone_leaves_no_op(case):
    graph = capture(partial(doubling, CONSTANT[case]), training=False)
    assert [op.kind for op in graph.ops if op.kind.startswith("aten")] == MODEL


@pytest.mark.parametrize("case", UNKNOWN)
def test_other_values_do_not(case):
    with pytest.raises(
        SituateError, match=r"test_constant_values.py:\d+: .* depends on the values"
    ):
        capture(partial(doubling, UNKNOWN[case]))


def transformer(training: bool):
    torch.manual_seed(0)
    model = nn.Transformer(16, 2, 1, 1, 32, dropout=0.0, batch_first=True).train(training)
    inputs = torch.randn(2, 5, 16), torch.randn(2, 6, 16)

    def loss(model, source, target):
        return model(source, target, tgt_mask=causal(6)).square().mean()

    return model, inputs, loss


def test_a_transformer_with_a_causal_mask_is_equal_to_the_last_bit():
    model, inputs, loss = transformer(True)
    step = partial(placed_step, given=(inputs, loss))
    assert compare(model, inputs, loss, sgd, step, threads=1).within(0.0)


def test_a_model_that_looks_at_rates_of_its_own_is_built_without_memory():
    def build():
        rates = [rate.item() for rate in torch.linspace(0, 0.2, 3)]
        model = nn.Sequential(*(nn.Dropout(rate) for rate in rates), nn.Linear(4, 4))
        return model, (torch.randn(2, 4),), lambda model, x: model(x).mean()

    model = build_fake(build, "m").model
    assert [part.p for part in model[:3]] == pytest.approx([0, 0.1, 0.2])
    assert isinstance(model[3].weight.data, FakeTensor)


# Values are kept up to a limit of memory.
def test_large_tensors_have_no_values():
    with FakeTensorMode(), constants_known():
        assert torch.zeros(MAX_KEPT_NUMBERS).constant is not None
        assert torch.zeros(MAX_KEPT_NUMBERS + 1).constant is None


def test_no_more_values_are_kept_than_memory_is_meant_for():
    with FakeTensorMode(), constants_known():
        for _ in range(MAX_KEPT_TOTAL // MAX_KEPT_NUMBERS):
            assert torch.zeros(MAX_KEPT_NUMBERS).constant is not None
        assert torch.zeros(MAX_KEPT_NUMBERS).constant is None
        assert torch.zeros(1).constant is not None
