"""CTC losses are captured where their lengths are numbers, and refused where they are tensors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402
from torch.nn.functional import ctc_loss  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from situate.runtime.equality import compare  # noqa: E402
from situate.torch_capture import capture  # noqa: E402
from tests.runtime.placing import placed_step, sgd  # noqa: E402

STEPS, LENGTHS = (30, 30, 25), (5, 0, 4)
LOSSES: dict[str, Callable[..., Any]] = {
    "mean": ctc_loss,
    "sum": partial(ctc_loss, reduction="sum"),
    "none": lambda *given: ctc_loss(*given, reduction="none").mean(),
    "module": nn.CTCLoss(blank=3, zero_infinity=True),
}


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


@pytest.mark.parametrize("name", LOSSES)
def test_a_placed_step_gives_the_loss_and_the_gradient(name: str) -> None:
    model, inputs, loss = step(LOSSES[name], STEPS, LENGTHS)
    make = partial(placed_step, given=(inputs, loss))
    assert compare(model, inputs, loss, sgd, make, threads=1).within(0.0)


def test_loss_and_gradient_are_one_op_each() -> None:
    kinds = [op.kind for op in capture(lambda: step(ctc_loss, STEPS, LENGTHS)).ops]
    assert (kinds.count("aten._ctc_loss"), kinds.count("aten._ctc_loss_backward")) == (1, 1)


def test_lengths_in_tensors_are_refused_with_the_remedy() -> None:
    steps, lengths = torch.tensor(STEPS), torch.tensor(LENGTHS)
    with pytest.raises(SituateError, match=r"m: .*give input_lengths and target_lengths as tuples"):
        capture(lambda: step(ctc_loss, steps, lengths), name="m")
