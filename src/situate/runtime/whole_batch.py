"""Comparison of steps in slices with steps of the whole batch, both run by PyTorch."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from situate.data.slices import Slices
from situate.runtime.equality import MakeOptimizer, cpu_device_names, difference
from situate.runtime.settings import use_threads as using
from situate.runtime.unplaced import UnplacedStep
from situate.torch_capture.comparison import (
    Draws,
    converted,
    gradients_of,
    in_precision,
    model_in,
    tolerance,
    worst_gradient,
)
from situate.torch_capture.patches.named_devices import NamedDevices
from situate.torch_capture.refusals.errors import explained

if TYPE_CHECKING:
    import torch


FURTHER_SECONDS = 30.0
"""No further step begins after this time."""


@dataclass(frozen=True)
class BatchDifference:
    """The difference of steps in slices from the steps of the whole batch, without randomness.

    Each number is the largest of all steps.

    Attributes:
        loss: |a - b| / max(1, |a|), with a of the whole batch.
        gradient: of a parameter's gradients, relative to the largest number of the gradient.
        name: of that parameter; empty if none differs.
        tolerance: the largest difference that rounding explains.
        buffer: of a buffer after the step, relative to its largest number if that is above 1.
        buffer_name: of that buffer; empty if none differs.
        steps: compared.
    """

    loss: float
    gradient: float
    name: str
    tolerance: float
    buffer: float = 0.0
    buffer_name: str = ""
    steps: int = 1

    @property
    def is_rounding(self) -> bool:
        """True if the order of additions explains the difference."""
        return max(self.loss, self.gradient, self.buffer) <= self.tolerance


def compare_with_batch(
    model: torch.nn.Module,
    inputs: Any,
    loss: Callable[..., Any] | None,
    slices: Slices,
    *,
    optimizer: MakeOptimizer | None = None,
    steps: int = 1,
    seed: int = 0,
    threads: int | None = None,
    name: str = "model",
    named_devices: NamedDevices | None = None,
) -> BatchDifference:
    """Compare losses, gradients and buffers of steps in slices and in one batch, on copies of a
    model.

    Random operators draw the same numbers for every sample, so that randomness causes no
    difference. Every step in slices begins with the parameters of the batch, so that differences
    do not grow from step to step, and with buffers of its own.

    Args:
        model, inputs, loss, optimizer, seed: see `situate.runtime.equality.compare`.
        threads, name, named_devices: see `situate.runtime.equality.compare`.
        slices: of the batch.
        steps: at most; there are fewer if they take longer than `FURTHER_SECONDS`.

    Raises:
        SituateError: the model cannot be copied, or a step fails.
    """

    import torch

    def compare_in(dtype: torch.dtype | None) -> BatchDifference:
        draws, begin = Draws(), time.perf_counter()
        whole, parts = (
            _Run(model_in(dtype, copy.deepcopy(model)), inputs, loss, cut, dtype, seed, name)
            for cut in (None, slices)
        )
        update = optimizer(list(whole.model.parameters())) if optimizer else None
        differences: list[BatchDifference] = []
        while len(differences) < steps:
            with draws.fixed():
                losses = whole.loss(), parts.loss()
            differences.append(_difference(losses, whole, parts, draws.bits))
            if update is None or time.perf_counter() - begin > FURTHER_SECONDS:
                break
            whole.update(update)
            parts.take_parameters(whole.model)
        return _largest(differences)

    with (
        explained(name, "comparing slices with the whole batch"),
        using(threads),
        cpu_device_names(named_devices),
    ):
        # In double precision rounding explains little, so that other differences show.
        return in_precision(torch.float64, compare_in)


class _Run:
    """Steps of a model by PyTorch that leave the gradients to their caller.

    Attributes:
        model: whose gradients are cleared before each step.
        gradients: by parameter, of the last step.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        inputs: Any,
        loss: Callable[..., Any] | None,
        slices: Slices | None,
        dtype: torch.dtype | None,
        seed: int,
        name: str,
    ) -> None:
        self.model = model
        self.gradients: dict[str, torch.Tensor] = {}
        # `UnplacedStep` needs `step` and `zero_grad` of its optimiser alone.
        recorder: Any = self
        self._step = UnplacedStep(
            model, inputs, loss, recorder, seed=seed, name=name, slices=slices
        )
        if dtype:
            self._step.tensors[:] = [converted(tensor, dtype) for tensor in self._step.tensors]

    def loss(self) -> float:
        """The loss of the next step."""
        [value] = self._step()
        return float(value)

    def step(self) -> None:
        """Keep the gradients of this step, in the place of an optimiser."""
        self.gradients = gradients_of(self.model)

    def zero_grad(self) -> None:
        """Clear the model's gradients."""
        self.model.zero_grad()

    def update(self, optimizer: torch.optim.Optimizer) -> None:
        """Update the parameters by the gradients of the last step."""
        for name, parameter in self.model.named_parameters():
            parameter.grad = self.gradients.get(name)
        optimizer.step()
        self.model.zero_grad()

    def take_parameters(self, other: torch.nn.Module) -> None:
        """Set the parameters to those of another model."""
        import torch

        with torch.no_grad():
            for ours, theirs in zip(self.model.parameters(), other.parameters(), strict=True):
                ours.copy_(theirs)


def _difference(
    losses: tuple[float, float], whole: _Run, parts: _Run, bits: int
) -> BatchDifference:
    size, name = worst_gradient(whole.gradients, parts.gradients)
    # Relative for losses above one, absolute below.
    loss = abs(losses[0] - losses[1]) / max(1.0, abs(losses[0]))
    buffers = _buffer_differences(whole.model, parts.model)
    worst = max(buffers, key=buffers.__getitem__, default="")
    buffer = buffers.get(worst, 0.0)
    return BatchDifference(loss, size, name, tolerance(bits), buffer, worst if buffer else "")


def _buffer_differences(whole: torch.nn.Module, parts: torch.nn.Module) -> dict[str, float]:
    """By name, the differences of two models' buffers, without the counters of steps."""
    ours, theirs = dict(whole.named_buffers()), dict(parts.named_buffers())
    return {
        name: difference(one, theirs[name], whole=True)
        if name in theirs and one.shape == theirs[name].shape
        else math.inf
        for name, one in ours.items()
        if one.numel() > 1 or one.is_floating_point()
    }


def _largest(differences: Sequence[BatchDifference]) -> BatchDifference:
    """The largest differences of all steps."""
    by_gradient = max(differences, key=lambda step: step.gradient)
    by_buffer = max(differences, key=lambda step: step.buffer)
    return replace(
        by_gradient,
        loss=max(step.loss for step in differences),
        # The precision of the shortest numbers, which the first step may not have seen.
        tolerance=max(step.tolerance for step in differences),
        buffer=by_buffer.buffer,
        buffer_name=by_buffer.buffer_name,
        steps=len(differences),
    )
