"""The inputs of a step cut into slices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from situate.data.slices import Reduction, Slices
from situate.errors import SituateError, nearest
from situate.torch_capture.build import FakeStep
from situate.torch_capture.values.required import Example

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Cut:
    """The cut of a step's inputs along its batch.

    Attributes:
        samples: of each slice.
        axes: by input number, the dimension along which the input is cut; None if every slice reads
            all of it.
        sequences: names of inputs without tensors that are cut.
    """

    samples: tuple[int, ...]
    axes: tuple[int | None, ...]
    sequences: tuple[str, ...] = ()

    def number(self, s: int, k: int) -> int:
        """The number of slice `s`'s input `k` among the inputs of the sliced step.

        Inputs of slice 0 come first. An input that every slice reads is one of them.
        """
        if s == 0 or self.axes[k] is None:
            return k
        cut = [i for i, axis in enumerate(self.axes) if axis is not None]
        # Slices after the first have inputs of their own only for tensors that are cut.
        return len(self.axes) + (s - 1) * len(cut) + cut.index(k)

    def pieces(self, tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """The inputs of the sliced step: views of the step's inputs.

        Raises:
            SituateError: a batch of another size.
        """
        batch = sum(self.samples)
        for k, (tensor, axis) in enumerate(zip(tensors, self.axes, strict=True)):
            if axis is not None and (tensor.dim() <= axis or tensor.shape[axis] != batch):
                raise SituateError(
                    f"input {k} has shape {list(tensor.shape)}, and the step was captured for "
                    f"{batch} samples along dimension {axis}: give such batches, or capture and "
                    "plan for this one"
                )
        return tuple(
            self._piece(tensor, s, axis)
            for s in range(len(self.samples))
            for tensor, axis in zip(tensors, self.axes, strict=True)
            if s == 0 or axis is not None
        )

    def of_slice(self, tensors: Sequence[torch.Tensor], s: int) -> tuple[torch.Tensor, ...]:
        """The inputs of slice `s`: views of the step's inputs."""
        pairs = zip(tensors, self.axes, strict=True)
        return tuple(self._piece(tensor, s, axis) for tensor, axis in pairs)

    def divisors(self, loss: Reduction | None) -> list[float]:
        """By slice, the divisor of its loss with which all losses add up to the batch's. It is an
        integer where the slices are equal."""
        batch = sum(self.samples)
        if loss == "sum":
            return [1] * len(self.samples)
        return [batch / n if batch % n else batch // n for n in self.samples]

    def slice_of(self, fake: FakeStep, s: int) -> FakeStep:
        """The step with the inputs of one slice, which share no memory with the others."""
        tensors = [self._apart(fake, piece) for piece in self.of_slice(fake.tensors, s)]
        examples = {k: self._example(example, s, k) for k, example in fake.examples.items()}
        call = self.call_of(fake, s)
        return replace(fake, tensors=tuple(tensors), examples=examples, call=call)

    def call_of(self, fake: FakeStep, s: int) -> Callable[..., Any]:
        """The call of a slice, with its part of each sequence that is cut."""
        if not self.sequences or fake.call_with is None:
            return fake.call
        begin = sum(self.samples[:s])
        end = begin + self.samples[s]
        return fake.call_with({name: fake.sequences[name][begin:end] for name in self.sequences})

    def _piece(self, tensor: torch.Tensor, s: int, axis: int | None) -> torch.Tensor:
        if axis is None:
            return tensor
        return tensor.narrow(axis, sum(self.samples[:s]), self.samples[s])

    def _apart(self, fake: FakeStep, piece: torch.Tensor) -> torch.Tensor:
        import torch

        with fake.mode:
            # Inputs that share a storage are aliases to AOTAutograd, which handles writes to them
            # differently.
            apart = torch.empty_strided(piece.shape, piece.stride(), dtype=piece.dtype)
        return apart.requires_grad_(piece.requires_grad)

    def _example(self, example: Example, s: int, k: int) -> Example:
        return replace(example, values=self._piece(example.values, s, self.axes[k]).clone())


def cut_inputs(fake: FakeStep, slices: Slices) -> Cut:
    """The cut of a step's inputs.

    Raises:
        SituateError: an input lacks the dimension, or has another number of samples; there are
            fewer samples than slices.
    """
    axes, batch = batch_of(fake, slices.axes)
    sequences = tuple(name for name in fake.sequences if slices.axes.get(name) is not None)
    return Cut(slices.samples(batch), axes, sequences)


def batch_of(
    fake: FakeStep, dimensions: Mapping[str, int | None]
) -> tuple[tuple[int | None, ...], int]:
    """By input number, the dimension along which the input is cut (None if every slice reads all of
    it); and the number of samples in the batch.

    Args:
        fake: a model and its inputs.
        dimensions: by name of an input, its dimension; 0 for inputs that are left out.

    Raises:
        SituateError: an input lacks the dimension, or has another number of samples; no input is
            cut.
    """
    names = fake.names
    input_names = (*names, *fake.sequences)
    for name in dimensions:
        if name not in input_names:
            raise SituateError(f"slices: no input is called {name!r}{nearest(name, input_names)}")
    axes = tuple(dimensions.get(name, 0) for name in names)
    batch = 0
    for tensor, name, axis in zip(fake.tensors, names, axes, strict=True):
        if axis is None:
            continue
        shape = list(tensor.shape)
        if len(shape) <= axis:
            other = f"{name}=AXIS, or " if shape else ""
            raise SituateError(
                f"slices: input {name} of shape {shape} has no dimension {axis} to be cut along: "
                f"--slice-dim {other}{name}=whole if every slice reads all of it"
            )
        batch = batch or shape[axis]
        if shape[axis] != batch:
            raise SituateError(
                f"slices: input {name} of shape {shape} has {shape[axis]} samples along dimension "
                f"{axis}, and the inputs before it {batch}: --slice-dim {name}=AXIS names the "
                f"batch's dimension, {name}=whole lets every slice read all of it"
            )
    if not batch:
        raise SituateError(
            "slices: no input is cut, so that all slices are the same: leave --slices out, or let "
            "the samples be an input"
        )
    for name, entries in fake.sequences.items():
        _check_sequence(name, len(entries), dimensions.get(name), batch)
    return axes, batch


def _check_sequence(name: str, entries: int, axis: int | None, batch: int) -> None:
    """Raises SituateError for an input without tensors that cannot be cut as asked."""
    if axis:
        raise SituateError(f"slices: input {name} has entries and no dimension {axis}: {name}=0")
    if axis == 0 and entries != batch:
        raise SituateError(
            f"slices: input {name} has {entries} entries, and the batch {batch} samples: "
            f"--slice-dim {name}=whole lets every slice read all of it"
        )
