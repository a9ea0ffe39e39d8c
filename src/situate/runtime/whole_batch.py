"""Comparison of a step in slices with the step of the whole batch, both run by PyTorch."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from situate.data.slices import Slices
from situate.runtime.equality import cpu_device_names
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


_Step = tuple[float, "dict[str, torch.Tensor]"]
"""The loss of a step, and its gradients."""


@dataclass(frozen=True)
class BatchDifference:
    """The difference of a step in slices from the step of the whole batch, without randomness.

    Attributes:
        loss: |a - b| / max(1, |a|), with a of the whole batch.
        gradient: the largest difference of a parameter's gradients, relative to its largest number.
        name: of that parameter; empty if none differs.
        tolerance: the largest difference that rounding explains.
    """

    loss: float
    gradient: float
    name: str
    tolerance: float

    @property
    def is_rounding(self) -> bool:
        """True if the order of additions explains the difference."""
        return max(self.loss, self.gradient) <= self.tolerance


def compare_with_batch(
    model: torch.nn.Module,
    inputs: Any,
    loss: Callable[..., Any] | None,
    slices: Slices,
    *,
    seed: int = 0,
    threads: int | None = None,
    name: str = "model",
    named_devices: NamedDevices | None = None,
) -> BatchDifference:
    """Compare loss and gradients of one step in slices and in one batch, on copies of a model.

    Random operators draw the same numbers for every sample, so that randomness causes no
    difference.

    Args:
        model, inputs, loss, seed: see `situate.runtime.equality.compare`.
        threads, name, named_devices: see `situate.runtime.equality.compare`.
        slices: of the batch.

    Raises:
        SituateError: the model cannot be copied, or a step fails.
    """

    import torch

    def compare_in(dtype: torch.dtype | None) -> BatchDifference:
        draws, steps = Draws(), []
        for cut in (None, slices):
            copied = model_in(dtype, copy.deepcopy(model))
            record: Any = _Gradients(copied)
            step = UnplacedStep(copied, inputs, loss, record, seed=seed, name=name, slices=cut)
            if dtype:
                step.tensors[:] = [converted(tensor, dtype) for tensor in step.tensors]
            with draws.fixed():
                [value] = step()
            steps.append((float(value), record.gradients))
        whole, parts = steps
        return _difference(whole, parts, tolerance(draws.bits))

    with (
        explained(name, "comparing slices with the whole batch"),
        using(threads),
        cpu_device_names(named_devices),
    ):
        return in_precision(torch.float64, compare_in)


def _difference(whole: _Step, parts: _Step, rounding: float) -> BatchDifference:
    size, name = worst_gradient(whole[1], parts[1])
    loss = abs(whole[0] - parts[0]) / max(1.0, abs(whole[0]))
    return BatchDifference(loss, size, name, rounding)


class _Gradients:
    """An optimiser that records gradients and updates nothing."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._model = model
        self.gradients: dict[str, torch.Tensor] = {}

    def step(self) -> None:
        """Record the gradients of this step."""
        self.gradients = {name: g.clone() for name, g in gradients_of(self._model).items()}

    def zero_grad(self) -> None:
        """Clear the model's gradients."""
        self._model.zero_grad()
