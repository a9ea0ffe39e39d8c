"""A step without a placement, as PyTorch runs it: what a placed step is held against."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import add
from typing import TYPE_CHECKING, Any

from situate.data.slices import Slices
from situate.runtime.accumulation import Accumulation, Place
from situate.runtime.lockstep.norms import over_slices
from situate.runtime.lockstep.turns import Lockstep, Run
from situate.runtime.memory import aligned_alike
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
