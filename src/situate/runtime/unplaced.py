"""A step without a placement, as PyTorch runs it: what a placed step is held against."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

from situate.data.slices import Slices, Sums
from situate.runtime.lockstep.norms import over_slices
from situate.runtime.lockstep.turns import Lockstep, Run
from situate.runtime.programs.seeds import kept_generator, seeded
from situate.torch_capture.build import from_real, set_mode
from situate.torch_capture.slices.cut import cut_inputs
from situate.torch_capture.trees import flatten

if TYPE_CHECKING:
    import torch


class Unplaced:
    """Steps of a model on the same inputs, drawing what a placed step of that seed draws.

    Args:
        inputs: a tuple or a dict by name.
        loss: as in `situate.capture`.
        optimizer: of the model's parameters; None infers.
        clip: the largest norm of the gradients, all together.
        slices: of the batch, as a captured step has them.

    Attributes:
        tensors: copies of those in the inputs, which the steps may write over.
        separate: the tensors in inputs of the same structure.

    Raises:
        SituateError: not a model, its inputs and a loss.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        inputs: Any,
        loss: Callable[..., Any] | None,
        optimizer: torch.optim.Optimizer | None,
        *,
        clip: float | None = None,
        seed: int = 0,
        name: str = "model",
        slices: Slices | None = None,
    ) -> None:
        built = from_real(model, inputs, loss, name)
        self._cut = None if slices is None else cut_inputs(built, slices)
        self._divisors = self._cut.divisors(slices.loss) if self._cut and slices else []
        self._replica = slices.replica if slices else ()
        self._sums: Sums = slices.sums if slices else "chain"
        self._meets = slices is not None and slices.batch_norm == "batch"
        self._model, self._call = model, built.call
        # A step may write over its inputs, which are the caller's.
        self.separate = built.separate
        self.tensors = [
            tensor.detach().clone().requires_grad_(tensor.requires_grad)
            for tensor in built.separate(inputs)
        ]
        self._optimizer, self._clip = optimizer, clip
        self._seed, self._step = seed, 0
        set_mode(model, optimizer is not None)

    def __call__(self) -> list[torch.Tensor]:
        """Run the next step: the loss, or the tensors that the model returns."""
        import torch

        self._step += 1
        with kept_generator(), seeded(self._seed, self._step):
            if self._optimizer is None:
                return self._infer(self.tensors)
            loss = self._accumulated() if self._cut else self._differentiated(self.tensors)
        if self._clip is not None:
            torch.nn.utils.clip_grad_norm_(self._model.parameters(), self._clip)
        self._optimizer.step()
        self._optimizer.zero_grad()
        return [loss.detach().clone()]

    def _differentiated(self, tensors: Sequence[torch.Tensor], divisor: float = 1) -> torch.Tensor:
        """The loss, after its backward pass."""
        loss: torch.Tensor = self._call(self._model, *tensors)
        loss = loss if divisor == 1 else loss / divisor
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    def _accumulated(self) -> torch.Tensor:
        """The sum of the losses of slices, after the backward pass of each: their gradients add up
        for each replica, and then these sums. What slices write into the model is seen by the next
        of their replica; that of the first stays."""
        count = max(self._replica) + 1
        # What slices that meet write into the model, they write together.
        alone = count == 1 or self._meets
        buffers = [_Buffers(self._model, alone) for _ in range(count)]
        # By replica, gradients that PyTorch adds up slice by slice, or those of each slice.
        gradients: list[list[_Gradients]] = [[] for _ in range(count)]
        places = []
        for r in self._replica:
            if self._sums == "tree" or not gradients[r]:
                gradients[r].append(_Gradients(self._model))
            places.append(_Place(buffers[r], gradients[r][-1]))
        runs = [partial(self._slice, s) for s in range(len(places))]
        losses = self._in_lockstep(runs, places) if self._meets else _one_by_one(runs, places)
        buffers[0].put()
        for i, parameter in enumerate(self._model.parameters()):
            found = ([each.of[i] for each in of_replica] for of_replica in gradients)
            parameter.grad = self._sum([self._sum(each) for each in found])
        return reduce(add, losses)

    def _sum(self, gradients: Sequence[torch.Tensor | None]) -> torch.Tensor | None:
        """The sum of those that are there."""
        found = [gradient for gradient in gradients if gradient is not None]
        if not found:
            return None
        return _in_pairs(found) if self._sums == "tree" else reduce(add, found)

    def _slice(self, s: int) -> torch.Tensor:
        """The loss of a slice, after its backward pass."""
        assert self._cut is not None
        return self._differentiated(self._cut.of_slice(self.tensors, s), self._divisors[s])

    def _in_lockstep(self, runs: Sequence[Run], places: Sequence[_Place]) -> list[torch.Tensor]:
        lockstep = Lockstep(places)
        with over_slices(self._model, lockstep, len(runs)):
            return lockstep.results(runs)

    def _infer(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The results of the model, of which the call may make a loss."""
        import torch

        returned: list[Any] = []
        hook = self._model.register_forward_hook(lambda *given: returned.append(given[-1]))
        try:
            # In inference mode, kernels would be others where something records their names.
            with torch.no_grad():
                value = self._call(self._model, *tensors)
        finally:
            hook.remove()
        return [tensor.clone() for tensor in leaves(returned[-1] if returned else value)]


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


class _Place(NamedTuple):
    """The state in which slices leave a model, put back before the next of them runs."""

    buffers: _Buffers
    gradients: _Gradients

    def put(self) -> None:
        for part in self:
            part.put()

    def take(self) -> None:
        for part in self:
            part.take()


def _one_by_one(runs: Sequence[Run], places: Sequence[_Place]) -> list[torch.Tensor]:
    losses = []
    for run, place in zip(runs, places, strict=True):
        place.put()
        losses.append(run())
        place.take()
    return losses


def _in_pairs(found: Sequence[torch.Tensor]) -> torch.Tensor:
    """The sum of the first 2**k tensors and that of the others, each of them made in this way, with
    the largest k that leaves any."""
    if len(found) == 1:
        return found[0]
    half = 1 << ((len(found) - 1).bit_length() - 1)
    return _in_pairs(found[:half]) + _in_pairs(found[half:])


def leaves(value: Any) -> list[torch.Tensor]:
    """The tensors in what a step returns."""
    import torch

    return [leaf for leaf in flatten(value)[0] if isinstance(leaf, torch.Tensor)]
