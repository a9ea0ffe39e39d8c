"""Comparison of a step in parts with the step of whole ops, both without a placement."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from situate.data.slices import Slices
from situate.runtime.equality import cpu_device_names, difference
from situate.runtime.parts.loop import LoopOfParts
from situate.runtime.programs.program import Program, capture_program
from situate.runtime.settings import use_threads as using
from situate.runtime.unplaced import UnplacedStep
from situate.runtime.whole_batch import BatchDifference
from situate.torch_capture.comparison import (
    Draws,
    converted,
    gradients_of,
    in_precision,
    model_in,
    tolerance,
    worst_gradient,
)
from situate.torch_capture.refusals.errors import explained

if TYPE_CHECKING:
    import torch

    from situate.torch_capture.patches.named_devices import NamedDevices


def compare_with_whole_ops(
    model: torch.nn.Module,
    inputs: Any,
    loss: Callable[..., Any] | None,
    program: Program,
    *,
    seed: int = 0,
    threads: int | None = None,
    named_devices: NamedDevices | None = None,
) -> BatchDifference:
    """Compare the results and gradients of one step in parts and of whole ops, on copies of a
    model.

    Both steps compute in double precision where the model allows it, and draw the same numbers.

    Args:
        model, inputs, loss, seed, threads, named_devices: see `situate.runtime.equality.compare`.
        program: the captured step in parts.

    Raises:
        SituateError: the model cannot be copied or captured, or a step fails.
    """
    import torch

    name, slices = program.graph.name, program.graph.slices

    def compare_in(dtype: torch.dtype | None) -> BatchDifference:
        draws = Draws()
        own = _converted(inputs, dtype)
        whole, parts = (model_in(dtype, copy.deepcopy(model)) for _ in range(2))
        recaptured = _recaptured(program, parts, own, loss)
        recorders = [_Gradients(one) if program.training else None for one in (whole, parts)]
        unplaced: Any = recorders[0]
        expected = UnplacedStep(whole, own, loss, unplaced, seed=seed, name=name, slices=slices)()
        unplaced = recorders[1]
        with draws.observed():
            results = LoopOfParts(recaptured, parts, own, unplaced, seed)()
        off = max(difference(one, other) for one, other in zip(expected, results, strict=True))
        ours, theirs = (recorder.gradients if recorder else {} for recorder in recorders)
        size, worst = worst_gradient(ours, theirs)
        return BatchDifference(off, size, worst, tolerance(draws.bits))

    with (
        explained(name, "comparing parts with whole ops"),
        using(threads),
        cpu_device_names(named_devices),
    ):
        # In double precision rounding explains little, so that other differences show.
        return in_precision(torch.float64, compare_in)


class _Gradients:
    """Keeps the gradients of a step, in the place of an optimiser."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._model = model
        self.gradients: dict[str, torch.Tensor] = {}

    def step(self) -> None:
        self.gradients = gradients_of(self._model)

    def zero_grad(self) -> None:
        self._model.zero_grad()


def _recaptured(
    program: Program,
    model: torch.nn.Module,
    inputs: Any,
    loss: Callable[..., Any] | None,
) -> Program:
    """The same step of a model in another precision, without clipping."""
    graph = program.graph
    slices: Slices | None = graph.slices
    return capture_program(
        model,
        inputs,
        loss,
        training=program.training,
        optimizer=program.optimizer,
        name=graph.name,
        named_devices=program.named_devices,
        slices=slices,
        cuts=graph.cuts,
    )


def _converted(inputs: Any, dtype: torch.dtype | None) -> Any:
    """The inputs, with floating-point tensors of this type."""
    import torch
    from torch.utils._pytree import tree_map_only

    if dtype is None:
        return inputs
    return tree_map_only(torch.Tensor, lambda tensor: converted(tensor, dtype), inputs)
