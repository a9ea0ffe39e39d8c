"""A step without a placement, as PyTorch runs it: what a placed step is held against."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from situate.data.slices import Slices
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
        slices: of the batch, as a captured step has them: their gradients add up one by one.

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
        """The sum of the losses of slices, after the backward pass of each: gradients add up slice
        by slice for each replica, and then these sums in the order of the replicas."""
        assert self._cut is not None
        parameters, losses = list(self._model.parameters()), []
        sums: list[list[torch.Tensor | None]] = [[None] * len(parameters) for _ in {*self._replica}]
        for s, (r, divisor) in enumerate(zip(self._replica, self._divisors, strict=True)):
            for parameter, gradient in zip(parameters, sums[r], strict=True):
                parameter.grad = gradient
            losses.append(self._differentiated(self._cut.of_slice(self.tensors, s), divisor))
            sums[r] = [parameter.grad for parameter in parameters]
        for parameter, *gradients in zip(parameters, *sums, strict=True):
            found = [gradient for gradient in gradients if gradient is not None]
            parameter.grad = reduce(add, found) if found else None
        return reduce(add, losses)

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


def leaves(value: Any) -> list[torch.Tensor]:
    """The tensors in what a step returns."""
    import torch

    return [leaf for leaf in flatten(value)[0] if isinstance(leaf, torch.Tensor)]
