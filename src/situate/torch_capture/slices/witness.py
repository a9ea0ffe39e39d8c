"""A step of slices beside the step of the whole batch, run on random numbers at a small size: an
error in the proof shows in the gradients."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from situate.data.slices import Reduction
from situate.torch_capture import cost
from situate.torch_capture.build import Built
from situate.torch_capture.comparison.double_precision import doubled, in_most_bits
from situate.torch_capture.comparison.fixed_draws import Draws
from situate.torch_capture.comparison.gradient_difference import (
    gradients_of,
    tolerance,
    worst_gradient,
)
from situate.torch_capture.slices.cut import Cut
from situate.torch_capture.slices.reduced_model import MAX_BYTES, few_layers, model_bytes, real
from situate.torch_capture.tracing import Trace

if TYPE_CHECKING:
    import torch

SAMPLES = 6
"""Samples of the small batch, of which slices have two thirds and one third."""

LONGEST = 64
"""Entries of a sequence that are kept of it."""

MAX_FLOPS = 5e10
"""Floating-point operations of the step of the small batch, forward and backward."""

MAX_NODES = 2500
"""Nodes of the trace of a step."""


@dataclass(frozen=True)
class Witness:
    """The distance of the sum of the slices' gradients from the gradient of the whole batch.

    Attributes:
        difference: of the parameter that differs most, in parts of its largest number.
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
        """A line on a difference beyond rounding; empty where there is none."""
        if self.difference <= self.tolerance:
            return ""
        return (
            f"slices: on random numbers, with {self.samples} samples, the gradient of "
            f"{self.name!r} differs from that of the batch by {self.difference:.2g} of its largest "
            "number"
        )


def witness(
    what: Built, part: Trace, axes: Sequence[int | None], loss: Reduction
) -> Witness | None:
    """The two steps, compared; None where the step does not run on a few samples, or takes long.

    Repeated layers are left out but for two, long sequences are cut short, and operators that draw
    give every sample the same numbers. The model and its inputs stay as they are.

    Args:
        what: the model and its inputs.
        part: the trace of a slice, which says how long the step takes.
        axes: by input the dimension that is cut.
        loss: as slices are added up.
    """
    whole_bytes = model_bytes(what.model)
    with few_layers(what.model):
        kept = model_bytes(what.model)
        if kept > MAX_BYTES or len(part.graph.nodes) > MAX_NODES or what.sequences:
            return None
        flops = _flops_of_a_sample(part, axes) * kept / max(whole_bytes, 1)
        long = _sequence(what, axes)
        for longest in (LONGEST, 0) if long else (0,):
            affordable = MAX_FLOPS / max(flops * (longest / long if longest else 1), 1)
            cut = _cut(what, axes, affordable)
            if cut is not None:
                # A model may take no other sizes than its own, which is no fault of its slices.
                with contextlib.suppress(Exception):
                    inputs = _inputs(what, cut, long, longest)
                    return in_most_bits(partial(_compared, what, inputs, cut, loss))
    return None


def _cut(what: Built, axes: Sequence[int | None], affordable: float) -> Cut | None:
    """A small batch in two slices; None where it would have fewer than two samples."""
    sizes = (t.shape[axis] for t, axis in zip(what.tensors, axes, strict=True) if axis is not None)
    samples = int(min(*sizes, SAMPLES, affordable))
    last = max(samples // 3, 1)
    return Cut((samples - last, last), tuple(axes)) if samples >= 2 else None


def _flops_of_a_sample(part: Trace, axes: Sequence[int | None]) -> float:
    """Floating-point operations of the products of a step, for each sample of its slice."""
    total, samples = 0, 1
    for node in part.graph.nodes:
        descriptor = node.meta.get("desc")
        if type(descriptor).__name__ == "PlainAOTInput" and axes[descriptor.idx] is not None:
            samples = node.meta["val"].shape[axes[descriptor.idx]]
        elif node.op == "call_function" and hasattr(node.target, "overloadpacket"):
            args, kwargs = cost.values(node.args), cost.values(node.kwargs)
            total += cost.flops(node.target.overloadpacket, args, kwargs, node.meta.get("val"))
    return total / samples


def _inputs(what: Built, cut: Cut, long: int, longest: int) -> list[torch.Tensor]:
    """Real inputs of a small batch, in which sequences of `long` entries have `longest`."""
    return [_input(what, k, cut, long if longest else 0, longest) for k in range(len(what.tensors))]


def _sequence(what: Built, axes: Sequence[int | None]) -> int:
    """The length of the sequences among the inputs, which are integers; 0 where there are none."""
    lengths = {
        tensor.shape[1]
        for tensor, axis in zip(what.tensors, axes, strict=True)
        if axis == 0 and tensor.dim() == 2 and not tensor.is_floating_point()
    }
    return lengths.pop() if len(lengths) == 1 and max(lengths) > LONGEST else 0


def _input(what: Built, k: int, cut: Cut, long: int, longest: int) -> torch.Tensor:
    import torch

    fake, axis = what.tensors[k], cut.axes[k]
    example = what.examples.get(k)
    sizes = list(fake.shape)
    if axis is not None:
        sizes[axis] = sum(cut.samples)
    if long:
        sizes = [longest if n == long and i != axis else n for i, n in enumerate(sizes)]
    if fake.is_floating_point() or fake.is_complex():
        generator = torch.Generator().manual_seed(k)
        return torch.randn(sizes, dtype=fake.dtype, generator=generator)
    if example is None:
        return torch.zeros(sizes, dtype=fake.dtype)
    values = example.values
    for i, size in enumerate(sizes):
        values = values.narrow(i, 0, size)
    return values.contiguous()


def _compared(
    what: Built, inputs: Sequence[torch.Tensor], cut: Cut, loss: Reduction, doubles: bool
) -> Witness | None:
    import torch

    whole = real(what)
    if doubles:
        whole, inputs = whole.double(), [doubled(tensor) for tensor in inputs]
    parts = copy.deepcopy(whole)
    draws = Draws()
    # The random numbers of the program's owner stay as they are.
    with torch.random.fork_rng(devices=()), draws.fixed():
        _differentiate(what, whole, inputs, 1)
        for s, divisor in enumerate(cut.divisors(loss)):
            _differentiate(what, parts, cut.of_slice(inputs, s), divisor)
    ours, theirs = gradients_of(whole), gradients_of(parts)
    if not all(bool(gradient.isfinite().all()) for gradient in ours.values()):
        return None
    size, name = worst_gradient(ours, theirs)
    return Witness(size, name, sum(cut.samples), tolerance(draws.bits))


def _differentiate(
    what: Built, model: torch.nn.Module, tensors: Sequence[torch.Tensor], divisor: float
) -> None:
    loss = what.call(model, *(tensor.clone() for tensor in tensors))
    (loss / divisor).sum().backward()
