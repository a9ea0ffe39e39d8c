"""A step without a placement, as PyTorch runs it: the reference of a placed step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

from situate.data.slices import Slices
from situate.data.update_rule import Recipe
from situate.runtime.lockstep import Lockstep, SliceRun, batch_norm_over_slices
from situate.runtime.memory import aligned_alike
from situate.runtime.model_state.working_model import WorkingModel
from situate.runtime.programs.seeds import kept_generator, seeded_draws
from situate.torch_capture.build import from_real, set_mode
from situate.torch_capture.slices.cut import cut_inputs
from situate.torch_capture.trees import flatten
from situate.torch_capture.updates.recipes import under_recipe

if TYPE_CHECKING:
    import torch


class Accumulation:
    """The states in which the slices of a step leave a model.

    Gradients add up within each replica, then over the replicas, in the order of the slices. A
    slice sees the buffers of the earlier slices of its replica; the model keeps those of the first
    replica.

    Attributes:
        places: by slice, its state. Slices of a replica share buffers and, if gradients add up in a
            chain, also gradients.

    Args:
        in_float32: gradients are cast before they are added up.
    """

    def __init__(self, model: torch.nn.Module, slices: Slices, in_float32: bool = False) -> None:
        self._model, self._sums, self._in_float32 = model, slices.sums, in_float32
        replicas = max(1, len(slices.replicas))
        # Slices that meet in batch norms write the model's buffers together.
        alone = replicas == 1 or slices.batch_norm == "batch"
        self._buffers = [_BufferState(model, alone) for _ in range(replicas)]
        # By replica, the sum that PyTorch makes slice by slice, or the gradients of each slice.
        self._gradients: list[list[_GradientState]] = [[] for _ in range(replicas)]
        self.places: list[SliceState] = []
        for r in slices.replica:
            states = self._gradients[r]
            if slices.sums == "tree" or in_float32 or not states:
                states.append(_GradientState(model))
            self.places.append(SliceState(self._buffers[r], states[-1]))

    def finish(self, owner: torch.nn.Module | None = None) -> None:
        """Put the sums of all slices' gradients into the model, or into the owner of its
        masters."""
        self._buffers[0].restore()
        for i, parameter in enumerate((owner or self._model).parameters()):
            states = ([state.gradients[i] for state in replica] for replica in self._gradients)
            total = self._sum([self._sum(state) for state in states])
            parameter.grad = None if total is None else total.to(parameter.dtype)

    def _sum(self, gradients: Sequence[torch.Tensor | None]) -> torch.Tensor | None:
        """The sum of the gradients that exist."""
        present = [gradient for gradient in gradients if gradient is not None]
        if self._in_float32:
            present = [gradient.float() for gradient in present]
        if not present:
            return None
        return _pairwise_sum(present) if self._sums == "tree" else reduce(add, present)


class SliceState(NamedTuple):
    """The state in which slices leave a model, restored before the next of them runs."""

    buffers: _BufferState
    gradients: _GradientState

    def restore(self) -> None:
        """Put buffers and gradients into the model."""
        for part in self:
            part.restore()

    def save(self) -> None:
        """Save the model's buffers and gradients."""
        for part in self:
            part.save()


class _BufferState:
    """The buffers of a model, as the slices of a replica leave them.

    Args:
        alone: no other replica has buffers of its own.
    """

    def __init__(self, model: torch.nn.Module, alone: bool) -> None:
        self._model, self._alone = model, alone
        self._values: list[torch.Tensor] = []
        self.save()

    def restore(self) -> None:
        import torch

        with torch.no_grad():
            for buffer, value in zip(self._buffers(), self._values, strict=True):
                buffer.copy_(value)

    def save(self) -> None:
        self._values = [buffer.detach().clone() for buffer in self._buffers()]

    def _buffers(self) -> list[torch.Tensor]:
        # A step may put other tensors in their place.
        return [] if self._alone else list(self._model.buffers())


class _GradientState:
    """The gradients of a model, as slices leave them.

    Attributes:
        gradients: the sum so far, by parameter.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        self._parameters = list(model.parameters())
        self.gradients: list[torch.Tensor | None] = [None for _ in self._parameters]

    def restore(self) -> None:
        for parameter, gradient in zip(self._parameters, self.gradients, strict=True):
            parameter.grad = gradient

    def save(self) -> None:
        self.gradients = [parameter.grad for parameter in self._parameters]


def _pairwise_sum(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Sum of the first 2**k tensors plus that of the rest, recursively, with the largest k that
    leaves a rest."""
    if len(tensors) == 1:
        return tensors[0]
    # The largest power of two below the length.
    half = 1 << ((len(tensors) - 1).bit_length() - 1)
    return _pairwise_sum(tensors[:half]) + _pairwise_sum(tensors[half:])


class UnplacedStep:
    """Steps of a model on the same inputs, with the random draws of a placed step of that seed.

    Args:
        inputs: a tuple or a dict by name.
        loss: as in `situate.capture`.
        optimizer: of the model's parameters; None for inference.
        clip: the largest norm of all gradients together.
        slices: of the batch, as in a captured step.
        recipe: of mixed precision, as in a captured step; a model under recipe `pure` is in
            bfloat16.

    Attributes:
        tensors: copies of the input tensors, which the steps may overwrite.
        separate: returns the tensors in inputs of the same structure.

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
        recipe: Recipe | None = None,
    ) -> None:
        parts = from_real(model, inputs, loss, name)
        if recipe is not None and recipe.is_autocast:
            parts = under_recipe(parts, recipe)
        self._cut = None if slices is None else cut_inputs(parts, slices)
        self._divisors = self._cut.divisors(slices.loss) if self._cut and slices else []
        self._slices = slices
        set_mode(model, optimizer is not None)
        self._model, self._parts = model, parts
        self._working = WorkingModel(model, recipe)
        # Copies, as a step may write over its inputs, which are the caller's; kernels round by
        # alignment.
        self.separate = parts.separate
        self.tensors = [
            aligned_alike(tensor).requires_grad_(tensor.requires_grad)
            for tensor in parts.separate(inputs)
        ]
        self._optimizer, self._clip = optimizer, clip
        self._seed, self._step = seed, 0

    def __call__(self) -> list[torch.Tensor]:
        """Run the next step: the loss, or the tensors that the model returns."""
        import torch

        self._step += 1
        with kept_generator(), seeded_draws(self._seed, self._step):
            if self._optimizer is None:
                return self._infer(self.tensors)
            self._working.begin()
            loss = self._accumulated() if self._cut else self._whole()
            self._working.give_buffers()
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
        loss = self._differentiated(self._parts.call(self._working.model, *self.tensors))
        self._working.give_gradients()
        return loss

    def _accumulated(self) -> torch.Tensor:
        """The sum of the losses of slices, after the backward pass of each."""
        assert self._slices is not None
        working = self._working
        accumulation = Accumulation(working.model, self._slices, working.sums_float32)
        runs = [partial(self._slice, s) for s in range(len(accumulation.places))]
        if self._slices.batch_norm == "batch":
            losses = self._in_lockstep(runs, accumulation.places)
        else:
            losses = _one_by_one(runs, accumulation.places)
        accumulation.finish(working.masters)
        return reduce(add, losses)

    def _slice(self, s: int) -> torch.Tensor:
        """The loss of a slice, after its backward pass."""
        assert self._cut is not None
        call = self._cut.call_of(self._parts, s)
        loss = call(self._working.model, *self._cut.of_slice(self.tensors, s))
        return self._differentiated(loss, self._divisors[s])

    def _in_lockstep(
        self, runs: Sequence[SliceRun], places: Sequence[SliceState]
    ) -> list[torch.Tensor]:
        lockstep = Lockstep(places)
        with batch_norm_over_slices(self._working.model, lockstep, len(runs)):
            return lockstep.results(runs)

    def _infer(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The model's results, even if the call computes a loss."""
        import torch

        returned: list[Any] = []
        hook = self._model.register_forward_hook(lambda *arguments: returned.append(arguments[-1]))
        try:
            # Not `inference_mode`, in which a mode that records kernels would see other ones.
            with torch.no_grad():
                value = self._parts.call(self._model, *tensors)
        finally:
            hook.remove()
        return [tensor.clone() for tensor in result_tensors(returned[-1] if returned else value)]


def _one_by_one(runs: Sequence[SliceRun], places: Sequence[SliceState]) -> list[torch.Tensor]:
    losses = []
    for run, place in zip(runs, places, strict=True):
        place.restore()
        losses.append(run())
        place.save()
    return losses


def result_tensors(value: Any) -> list[torch.Tensor]:
    """The tensors in the result of a step."""
    import torch

    return [leaf for leaf in flatten(value)[0] if isinstance(leaf, torch.Tensor)]
