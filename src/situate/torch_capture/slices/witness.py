"""The slices of a step beside the whole batch, run on random numbers at a small size, where an
error in the proof shows in the gradients."""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from situate.data.slices import Reduction
from situate.torch_capture import cost
from situate.torch_capture.build import FakeStep
from situate.torch_capture.comparison import (
    Draws,
    converted,
    gradients_of,
    in_precision,
    model_in,
    tolerance,
    worst_gradient,
)
from situate.torch_capture.slices.cut import Cut
from situate.torch_capture.slices.reduced_model import (
    SmallForm,
    few_layers,
    numbers,
    real,
    small_forms,
)
from situate.torch_capture.tracing import Trace

if TYPE_CHECKING:
    import torch

SAMPLES = 6
"""Samples of the small batch, of which the slices have two thirds and one third."""

LENGTHS = (64, 16, 4)
"""Lengths to which a sequence is cut, in the order of trials, until the step is short enough."""

LARGE_IMAGE = 128
"""Pixels per side from which an image is cut to half."""

MAX_FLOPS = 2e10
"""Floating-point operations of the small batch's step, forward and backward."""

MAX_NODES = 2500
"""Nodes of the trace of such a step."""

MAX_DOUBLES = 100_000_000
"""The most numbers of a model that computes in 64 bits; larger ones compute in 32."""


@dataclass(frozen=True)
class Witness:
    """The difference between the sum of the slices' gradients and the gradient of the whole batch.

    Attributes:
        difference: of the parameter that differs most, as a fraction of its largest number.
        name: of that parameter.
        samples: of the batch.
        tolerance: the difference that rounding explains.
    """

    difference: float
    name: str
    samples: int
    tolerance: float

    @property
    def line(self) -> str:
        """A warning about a difference beyond rounding; empty if there is none."""
        if self.difference <= self.tolerance:
            return ""
        return (
            f"slices: on random numbers, with {self.samples} samples, the gradient of "
            f"{self.name!r} differs from that of the batch by {self.difference:.2g} of its largest "
            "number"
        )


def witness(
    fake: FakeStep, part: Trace, axes: Sequence[int | None], loss: Reduction
) -> Witness | None:
    """The comparison of both steps; None if the step does not run on a few samples, or takes too
    long.

    Of repeated layers two remain, long sequences and large images are cut, and operators that draw
    give every sample the same numbers. The model and its inputs are unchanged afterwards.

    Args:
        fake: the model and its inputs.
        part: the trace of a slice, from which the step's duration is estimated.
        axes: by input, the dimension that is cut.
        loss: the reduction by which slices are added up.
    """
    if fake.sequences:
        return None
    flops, whole = _flops_of_a_sample(part, axes), max(numbers(fake.model), 1)
    for form in small_forms(fake.model):
        count = form.numbers(fake.model)
        # The form's number of nodes shrinks with its share of the parameters, roughly.
        if len(part.graph.nodes) * count > MAX_NODES * whole:
            continue
        for sizes in _smaller_sizes(fake, axes):
            affordable = MAX_FLOPS / max(flops * count / whole * _remaining_share(fake, sizes), 1)
            cut = _cut(fake, axes, affordable)
            if cut is not None:
                inputs = [_input(fake, k, cut, form, sizes) for k in range(len(fake.tensors))]
                run = partial(_on_numbers, partial(_trial, fake, cut, loss, form), inputs)
                # A model may take no other sizes than its own, which is no fault of its slices.
                with contextlib.suppress(Exception), few_layers(fake.model, form.layers):
                    return in_precision(_dtype(count), run)
    return None


def _dtype(count: int) -> torch.dtype:
    """The floating-point type for a model with this many numbers."""
    import torch

    return torch.float64 if count <= MAX_DOUBLES else torch.float32


def _cut(fake: FakeStep, axes: Sequence[int | None], affordable: float) -> Cut | None:
    """A small batch in two slices; None if it would have fewer than two samples."""
    sizes = (t.shape[axis] for t, axis in zip(fake.tensors, axes, strict=True) if axis is not None)
    samples = int(min(*sizes, SAMPLES, affordable))
    # Equal slices would hide a loss that weighs them equally instead of by their samples.
    last = max(samples // 3, 1)
    return Cut((samples - last, last), tuple(axes)) if samples >= 2 else None


def _flops_of_a_sample(part: Trace, axes: Sequence[int | None]) -> float:
    """Floating-point operations of a step's products, per sample of its slice."""
    total, samples = 0, 1
    for node in part.graph.nodes:
        # By name, since the class is in a private module of PyTorch.
        descriptor = node.meta.get("desc")
        if type(descriptor).__name__ == "PlainAOTInput" and axes[descriptor.idx] is not None:
            samples = node.meta["val"].shape[axes[descriptor.idx]]
        elif node.op == "call_function" and hasattr(node.target, "overloadpacket"):
            args, kwargs = cost.values(node.args), cost.values(node.kwargs)
            total += cost.flops(node.target.overloadpacket, args, kwargs, node.meta.get("val"))
    return total / samples


def _smaller_sizes(fake: FakeStep, axes: Sequence[int | None]) -> list[dict[int, int]]:
    """Smaller sizes by original size, in the order of trials: lengths of sequences, which are
    integers, sides of images, and last none."""
    lengths, sides = set(), set()
    for tensor, axis in zip(fake.tensors, axes, strict=True):
        if axis == 0 and tensor.dim() == 2 and not tensor.is_floating_point():
            lengths.add(tensor.shape[1])
        if axis == 0 and tensor.dim() == 4 and tensor.is_floating_point():
            sides |= set(tensor.shape[2:])
    halves = {side: side // 2 for side in sides if side >= LARGE_IMAGE}
    shorter = [
        dict.fromkeys(lengths, length)
        for length in LENGTHS
        if len(lengths) == 1 and length < max(lengths)
    ]
    return [*shorter, *([halves] if halves else []), {}]


def _remaining_share(fake: FakeStep, smaller: Mapping[int, int]) -> float:
    """The share of a sample's numbers that remains with the smaller sizes."""
    shapes = [tensor.shape for tensor in fake.tensors]
    numbers_left = sum(math.prod(smaller.get(size, size) for size in shape) for shape in shapes)
    return numbers_left / max(sum(map(math.prod, shapes)), 1)


def _input(
    fake: FakeStep, k: int, cut: Cut, form: SmallForm, smaller: Mapping[int, int]
) -> torch.Tensor:
    """A real input of a small batch with smaller sizes."""
    import torch

    example_tensor, axis = fake.tensors[k], cut.axes[k]
    sizes = [smaller.get(size, size) for size in example_tensor.shape]
    if axis is not None:
        sizes[axis] = sum(cut.samples)
    if example_tensor.is_floating_point() or example_tensor.is_complex():
        generator = torch.Generator().manual_seed(k)
        return torch.randn(sizes, dtype=example_tensor.dtype, generator=generator)
    example = fake.examples.get(k)
    if example is None:
        return torch.zeros(sizes, dtype=example_tensor.dtype)
    values = example.values
    for i, size in enumerate(sizes):
        values = values.narrow(i, 0, size)
    return form.indices(values).contiguous()


def _on_numbers(
    trial: Callable[[Sequence[torch.Tensor], torch.dtype | None], Witness | None],
    inputs: Sequence[torch.Tensor],
    dtype: torch.dtype | None,
) -> Witness | None:
    """A trial on these inputs, or on positive ones if these give no numbers, as a logarithm may;
    None if neither does."""
    positive = [t.abs() + 0.5 if t.is_floating_point() else t for t in inputs]
    return trial(inputs, dtype) or trial(positive, dtype)


def _trial(
    fake: FakeStep,
    cut: Cut,
    loss: Reduction,
    form: SmallForm,
    inputs: Sequence[torch.Tensor],
    dtype: torch.dtype | None,
) -> Witness | None:
    """The step of the batch beside that of its slices; None if gradients are not numbers."""
    import torch

    model = model_in(dtype, real(fake, form))
    if dtype:
        inputs = [converted(tensor, dtype) for tensor in inputs]
    # A step may write to what the model has, and the other must not see it; of a large model two
    # copies take too much memory.
    is_large = dtype is torch.float32
    other = copy.deepcopy(model, {id(p): p for p in model.parameters()} if is_large else None)
    draws = Draws()
    # The random numbers of the program's owner stay as they are.
    with torch.random.fork_rng(devices=()), draws.fixed():
        _differentiate(fake, model, inputs, 1)
        ours = gradients_of(model)
        model.zero_grad()
        for s, divisor in enumerate(cut.divisors(loss)):
            _differentiate(fake, other, cut.of_slice(inputs, s), divisor)
    size, name = worst_gradient(ours, gradients_of(other))
    # Infinite or undefined gradients of the batch itself say nothing about slices.
    if math.isinf(size) and not all(bool(gradient.isfinite().all()) for gradient in ours.values()):
        return None
    return Witness(size, name, sum(cut.samples), tolerance(draws.bits))


def _differentiate(
    fake: FakeStep, model: torch.nn.Module, tensors: Sequence[torch.Tensor], divisor: float
) -> None:
    loss = fake.call(model, *(tensor.clone() for tensor in tensors))
    (loss / divisor).sum().backward()
