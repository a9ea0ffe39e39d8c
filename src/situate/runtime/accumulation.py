"""The gradients and buffers of slices that run one after the other, or in turns, in one model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, NamedTuple

from situate.data.slices import Slices

if TYPE_CHECKING:
    import torch


class Accumulation:
    """The state in which the slices of a step leave a model: gradients add up for each replica, and
    then these sums, in the order that the slices say. A slice sees the buffers that those before it
    of its replica have written; the model keeps those of the first.

    Attributes:
        places: by slice, what it finds and leaves; slices of a replica share buffers and, where
            gradients add up in a chain, also these.
    """

    def __init__(self, model: torch.nn.Module, slices: Slices) -> None:
        self._model, self._sums = model, slices.sums
        replicas = max(1, len(slices.replicas))
        # What slices that meet in batch norms write into the model, they write together.
        alone = replicas == 1 or slices.batch_norm == "batch"
        self._buffers = [_Buffers(model, alone) for _ in range(replicas)]
        # By replica, the sum that PyTorch makes slice by slice, or the gradients of each slice.
        self._gradients: list[list[_Gradients]] = [[] for _ in range(replicas)]
        self.places: list[Place] = []
        for r in slices.replica:
            found = self._gradients[r]
            if slices.sums == "tree" or not found:
                found.append(_Gradients(model))
            self.places.append(Place(self._buffers[r], found[-1]))

    def finish(self) -> None:
        """Let the model have the sums of the gradients of all slices."""
        self._buffers[0].put()
        for i, parameter in enumerate(self._model.parameters()):
            found = ([each.of[i] for each in replica] for replica in self._gradients)
            parameter.grad = self._sum([self._sum(each) for each in found])

    def _sum(self, gradients: Sequence[torch.Tensor | None]) -> torch.Tensor | None:
        """The sum of those that are there."""
        found = [gradient for gradient in gradients if gradient is not None]
        if not found:
            return None
        return _in_pairs(found) if self._sums == "tree" else reduce(add, found)


class Place(NamedTuple):
    """The state in which slices leave a model, put back before the next of them runs."""

    buffers: _Buffers
    gradients: _Gradients

    def put(self) -> None:
        for part in self:
            part.put()

    def take(self) -> None:
        for part in self:
            part.take()


class _Buffers:
    """The buffers of a model, as the slices of a replica leave them.

    Args:
        alone: there is no other replica whose buffers must be kept apart.
    """

    def __init__(self, model: torch.nn.Module, alone: bool) -> None:
        self._model, self._alone = model, alone
        self._left: list[torch.Tensor] = []
        self.take()

    def put(self) -> None:
        import torch

        with torch.no_grad():
            for buffer, left in zip(self._buffers(), self._left, strict=True):
                buffer.copy_(left)

    def take(self) -> None:
        self._left = [buffer.detach().clone() for buffer in self._buffers()]

    def _buffers(self) -> list[torch.Tensor]:
        # A step may put other tensors in their place.
        return [] if self._alone else list(self._model.buffers())


class _Gradients:
    """The gradients of a model, as slices leave them.

    Attributes:
        of: each parameter, the sum so far.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        self._parameters = list(model.parameters())
        self.of: list[torch.Tensor | None] = [None for _ in self._parameters]

    def put(self) -> None:
        for parameter, gradient in zip(self._parameters, self.of, strict=True):
            parameter.grad = gradient

    def take(self) -> None:
        self.of = [parameter.grad for parameter in self._parameters]


def _in_pairs(found: Sequence[torch.Tensor]) -> torch.Tensor:
    """The sum of the first 2**k tensors and that of the others, each of them made in this way, with
    the largest k that leaves any."""
    if len(found) == 1:
        return found[0]
    half = 1 << ((len(found) - 1).bit_length() - 1)
    return _in_pairs(found[:half]) + _in_pairs(found[half:])
