"""A step without a placement, as PyTorch runs it: the reference of a placed step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

from situate.data.slices import Slices
from situate.runtime.lockstep import Lockstep, Run, over_slices
from situate.runtime.memory import aligned_alike
from situate.runtime.programs.seeds import kept_generator, seeded
from situate.torch_capture.build import from_real, set_mode
from situate.torch_capture.slices.cut import cut_inputs
from situate.torch_capture.trees import flatten

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
        self._slices = slices
        self._model, self._built = model, built
        # Copies, as a step may write over its inputs, which are the caller's; kernels round by
        # alignment.
        self.separate = built.separate
        self.tensors = [
            aligned_alike(tensor).requires_grad_(tensor.requires_grad)
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
            loss = self._accumulated() if self._cut else self._whole()
        if self._clip is not None:
            torch.nn.utils.clip_grad_norm_(self._model.parameters(), self._clip)
        self._optimizer.step()
        self._optimizer.zero_grad()
        return [loss.detach().clone()]

    def _differentiated(self, loss: torch.Tensor, divisor: float = 1) -> torch.Tensor:
        """The loss, after its backward pass."""
        loss = loss if divisor == 1 else loss / divisor
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    def _whole(self) -> torch.Tensor:
        """The loss of the whole batch, after its backward pass."""
        return self._differentiated(self._built.call(self._model, *self.tensors))

    def _accumulated(self) -> torch.Tensor:
        """The sum of the losses of slices, after the backward pass of each."""
        assert self._slices is not None
        found = Accumulation(self._model, self._slices)
        runs = [partial(self._slice, s) for s in range(len(found.places))]
        if self._slices.batch_norm == "batch":
            losses = self._in_lockstep(runs, found.places)
        else:
            losses = _one_by_one(runs, found.places)
        found.finish()
        return reduce(add, losses)

    def _slice(self, s: int) -> torch.Tensor:
        """The loss of a slice, after its backward pass."""
        assert self._cut is not None
        call = self._cut.call_of(self._built, s)
        loss = call(self._model, *self._cut.of_slice(self.tensors, s))
        return self._differentiated(loss, self._divisors[s])

    def _in_lockstep(self, runs: Sequence[Run], places: Sequence[Place]) -> list[torch.Tensor]:
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
                value = self._built.call(self._model, *tensors)
        finally:
            hook.remove()
        return [tensor.clone() for tensor in leaves(returned[-1] if returned else value)]


def _one_by_one(runs: Sequence[Run], places: Sequence[Place]) -> list[torch.Tensor]:
    losses = []
    for run, place in zip(runs, places, strict=True):
        place.put()
        losses.append(run())
        place.take()
    return losses


def leaves(value: Any) -> list[torch.Tensor]:
    """The tensors in what a step returns."""
    import torch

    return [leaf for leaf in flatten(value)[0] if isinstance(leaf, torch.Tensor)]
