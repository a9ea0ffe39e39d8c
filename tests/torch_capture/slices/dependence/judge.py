"""The steps of slices against the step of the whole batch, by plain PyTorch, to judge situate's
warnings."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from situate.data.slices import Slices
from situate.errors import SituateError
from situate.torch_capture import Captures

SAMPLES = 8

ROUNDING = 2e-5
"""The largest difference, |a - b| / max(1, |a|), of numbers that add up in another order."""

Loss = Callable[..., Any]


@dataclass(frozen=True)
class Step:
    """A step to be judged.

    Attributes:
        loss: of a model and its inputs.
        model: makes the model.
        inputs: makes the inputs, of 8 samples.
    """

    loss: Loss
    model: Callable[[], nn.Module] = lambda: nn.Linear(6, 6)
    inputs: Callable[[], tuple[Tensor, ...]] = lambda: (torch.randn(8, 6), torch.randn(8, 6))

    def build(self) -> tuple[nn.Module, tuple[Tensor, ...], Loss]:
        """Model, inputs and loss, the same at each call."""
        torch.manual_seed(3)
        return self.model(), self.inputs(), self.loss


@dataclass(frozen=True)
class Verdict:
    """The answer to a step in slices: a refusal, or the loss that it is taken for and warnings."""

    refusal: str
    loss: str | None
    warnings: tuple[str, ...]

    @property
    def is_silent(self) -> bool:
        """True if there is no warning."""
        return not self.refusal and not self.warnings

    def __str__(self) -> str:
        return self.refusal or "; ".join(self.warnings) or "silent"


def verdict(step: Step, shares: tuple[int, ...], **slices: Any) -> Verdict:
    """The verdict of a capture."""
    try:
        # The proof alone, without the trial on random numbers behind it.
        graph = Captures(check=False).capture(step.build, slices=Slices(shares, **slices))
    except SituateError as error:
        if "Error: " in str(error):  # a fault, which capture reports in its one line
            raise
        return Verdict(str(error), None, ())
    warnings = tuple(text for text in graph.warnings if text.startswith("slices: "))
    return Verdict("", graph.slices.loss if graph.slices else None, warnings)


def difference(step: Step, shares: tuple[int, ...], loss: str) -> float:
    """The largest difference between slices and batch, of the loss and the gradients."""
    model, inputs, function = step.build()
    model.train()
    whole, parts = copy.deepcopy(model), copy.deepcopy(model)
    torch.manual_seed(4)
    total = _backward(whole, inputs, function, 1)
    samples = [SAMPLES * share // sum(shares) for share in shares]
    cuts = zip(*(tensor.split(samples) for tensor in inputs), strict=True)
    factors = [n / SAMPLES if loss == "mean" else 1 for n in samples]
    torch.manual_seed(4)
    losses = [_backward(parts, cut, function, f) for cut, f in zip(cuts, factors, strict=True)]
    return max(_off(total, sum(losses)), *_gradients_off(whole, parts))


def _backward(model: nn.Module, inputs: Any, function: Loss, factor: float) -> Tensor:
    loss: Tensor = function(model, *inputs) * factor
    loss.backward()
    return loss.detach()


def _gradients_off(one: nn.Module, other: nn.Module) -> Iterator[float]:
    for ours, theirs in zip(one.parameters(), other.parameters(), strict=True):
        if ours.grad is not None and theirs.grad is not None:
            yield _off(ours.grad, theirs.grad)


def _off(one: Any, other: Any) -> float:
    return float(((one - other).abs() / one.abs().clamp(min=1)).max())
