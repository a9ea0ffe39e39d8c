"""Ops that a trace keeps whole, or unrolls, as eager PyTorch does."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import (  # noqa: E402
    Tensor,
    nn,
)
from torch.nn import functional as F  # noqa: E402
from torch.nn.functional import ctc_loss  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from situate.runtime.equality import compare  # noqa: E402
from situate.torch_capture import capture  # noqa: E402
from tests.runtime.placing import placed_step, sgd  # noqa: E402

# Interpolation is one op each way.
MODES = {
    "nearest": (nn.Conv2d, 2, "aten.upsample_nearest2d"),
    "nearest-exact": (nn.Conv3d, 3, "aten._upsample_nearest_exact3d"),
    "linear": (nn.Conv1d, 1, "aten.upsample_linear1d"),
    "bilinear": (nn.Conv2d, 2, "aten.upsample_bilinear2d"),
    "trilinear": (nn.Conv3d, 3, "aten.upsample_trilinear3d"),
    "bicubic": (nn.Conv2d, 2, "aten.upsample_bicubic2d"),
}
SCALED, SIZED = {"scale_factor": 2.0}, {"size": 7, "align_corners": True}
ALIGNED = [mode for mode in MODES if not mode.startswith("nearest")]


def build(mode: str, **how: object):
    """A convolution, its interpolated output, and the mean square."""
    convolution, dimensions, _ = MODES[mode]
    torch.manual_seed(0)
    model = nn.Sequential(convolution(3, 4, 1), nn.Upsample(mode=mode, **how))
    return model, (torch.randn(2, 3, *[5] * dimensions),), lambda model, x: (model(x) ** 2).mean()


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    ("mode", "how"), [*((mode, SCALED) for mode in MODES), *((mode, SIZED) for mode in ALIGNED)]
)
def test_a_placed_step_is_equal_to_the_last_bit(mode, how, training):
    model, inputs, loss = build(mode, **how)
    step = partial(placed_step, given=(inputs, loss if training else None))
    optimizer = sgd if training else None
    assert compare(model, inputs, loss if training else None, optimizer, step, threads=1).within(
        0.0
    )


@pytest.mark.parametrize("mode", MODES)
def test_there_is_one_op_each_way(mode):
    kernel = MODES[mode][2]
    graph = capture(partial(build, mode, scale_factor=2.0), name="m")
    kinds = [op.kind for op in graph.ops if "upsample" in op.kind]
    assert kinds == [kernel, f"{kernel}_backward"]
    assert not any("index" in op.kind for op in graph.ops)


def channels_last(model, x):
    """A loss whose gradient comes back with its channels last."""
    return model(x).to(memory_format=torch.channels_last).square().sum()


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
def test_a_gradient_keeps_its_memory_format(mode):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 1), nn.Upsample(scale_factor=2.0, mode=mode))
    inputs = (torch.randn(2, 3, 8, 8),)
    step = partial(placed_step, given=(inputs, channels_last))
    assert compare(model, inputs, channels_last, sgd, step, threads=1).within(0.0)


# Losses of margins are one op each way.
LABEL = torch.tensor([1, 2, 3])
LABELS = torch.tensor([[1, 2, -1, 0, 0], [3, -1, 0, 0, 0], [-1, 0, 0, 0, 0]])

LOSSES = {
    "multilabel_margin_loss_forward": (LABELS, F.multilabel_margin_loss),
    "multi_margin_loss": (LABEL, F.multi_margin_loss),
}


def margin_build(name: str, **how: object):
    """A layer, and the loss of its margins."""
    labels, function = LOSSES[name]
    torch.manual_seed(0)
    inputs = (torch.randn(3, 5), labels)
    return nn.Linear(5, 5), inputs, lambda model, x, y: function(model(x), y, **how).sum()


@pytest.mark.parametrize("how", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", LOSSES)
def test_a_placed_step_is_equal_to_the_last_bit_margin(name, how):
    model, inputs, loss = margin_build(name, reduction=how)
    step = partial(placed_step, given=(inputs, loss))
    assert compare(model, inputs, loss, sgd, step, threads=1).within(0.0)


@pytest.mark.parametrize("name", LOSSES)
def test_there_is_one_op_each_way_margin(name):
    kinds = [op.kind for op in capture(partial(margin_build, name), name="m").ops]
    kernel = name.removesuffix("_forward")
    margin_kinds = [kind for kind in kinds if "margin" in kind]
    assert margin_kinds == [f"aten.{name}", f"aten.{kernel}_backward"]


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_there_is_dropout_between_recurrent_layers(kind: type[nn.Module]) -> None:
    def build() -> Any:
        layers = kind(3, 3, 3, dropout=0.5)
        return layers, (torch.ones(2, 2, 3),), lambda model, x: model(x)[0].mean()

    forward = [op.kind for op in capture(build, name="m").ops if op.phase == "forward"]
    assert sum("bernoulli" in kind or kind == "aten.native_dropout" for kind in forward) == 2


STEPS, LENGTHS = (30, 30, 25), (5, 0, 4)
CTC_LOSSES: dict[str, Callable[..., Any]] = {
    "mean": ctc_loss,
    "sum": partial(ctc_loss, reduction="sum"),
    "none": lambda *args: ctc_loss(*args, reduction="none").mean(),
    "module": nn.CTCLoss(blank=3, zero_infinity=True),
}


# A CTC loss with lengths as numbers is one op each way.
class Labels(nn.Linear):
    """Scores of eight labels at every step."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).log_softmax(-1)


def step(
    of: Callable[..., Any], steps: Any, lengths: Any
) -> tuple[nn.Module, tuple[Any, ...], Callable[..., Any]]:
    torch.manual_seed(0)
    inputs = torch.randn(30, 3, 4), torch.randint(4, 8, (3, 5)), steps, lengths
    return Labels(4, 8), inputs, lambda model, x, *rest: of(model(x), *rest)


@pytest.mark.parametrize("name", CTC_LOSSES)
def test_a_placed_step_gives_the_loss_and_the_gradient(name: str) -> None:
    model, inputs, loss = step(CTC_LOSSES[name], STEPS, LENGTHS)
    make = partial(placed_step, given=(inputs, loss))
    assert compare(model, inputs, loss, sgd, make, threads=1).within(0.0)


def test_loss_and_gradient_are_one_op_each() -> None:
    kinds = [op.kind for op in capture(lambda: step(ctc_loss, STEPS, LENGTHS)).ops]
    assert (kinds.count("aten._ctc_loss"), kinds.count("aten._ctc_loss_backward")) == (1, 1)


@pytest.mark.parametrize("name", CTC_LOSSES)
def test_lengths_that_the_step_makes_itself_may_be_tensors(name: str) -> None:
    model, inputs, _ = step(ctc_loss, STEPS, LENGTHS)

    def loss(model: Any, x: Tensor, labels: Tensor) -> Any:
        count = x.shape[1]
        frames, words = torch.full((count,), 30), torch.full(size=(count,), fill_value=5)
        return CTC_LOSSES[name](model(x), labels, frames, words)

    make = partial(placed_step, given=(inputs[:2], loss))
    assert compare(model, inputs[:2], loss, sgd, make, threads=1).within(0.0)


def test_lengths_among_the_inputs_are_refused_as_tensors_with_the_remedy() -> None:
    steps, lengths = torch.tensor(STEPS), torch.tensor(LENGTHS)
    with pytest.raises(SituateError, match=r"m: .*give input_lengths and target_lengths as tuples"):
        capture(lambda: step(ctc_loss, steps, lengths), name="m")
