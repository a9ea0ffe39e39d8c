"""Transport of tensors into a placed step, and out of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from situate.errors import SituateError
from situate.runtime.memory import misalignment
from situate.runtime.model_state.bindings import address_range, type_and_shape
from situate.runtime.model_state.state import Common
from situate.runtime.programs.program import Program
from situate.torch_capture.values.required import RequiredValues

if TYPE_CHECKING:
    import torch


class Exchange:
    """Passes inputs and results through common memory, or directly to a device in this process.

    Args:
        has_processes: devices are processes of their own.

    Attributes:
        shifts: of the last inputs in common memory, see `Common`.
    """

    def __init__(self, program: Program, common: Common, has_processes: bool) -> None:
        self._program, self._common, self._has_processes = program, common, has_processes
        self.shifts: tuple[int, ...] = ()

    def check_inputs(self, arguments: tuple[Any, ...]) -> list[torch.Tensor]:
        """The tensors of the inputs.

        Raises:
            SituateError: they do not match the captured ones, or have other values where the step
                depends on them.
        """
        tensors = [tensor.detach() for tensor in self._program.separate(arguments)]
        for k, (tensor, place) in enumerate(zip(tensors, self._common.inputs, strict=True)):
            if tensor.shape != place.shape or tensor.dtype != place.dtype:
                raise SituateError(
                    f"input {k} is {type_and_shape(tensor)}, the step was captured with "
                    f"{type_and_shape(place)}: give such batches, or capture and plan for this one"
                )
        for values in self._program.step.trace.required:
            _check_values(values, tensors[values.number])
        for number in self._program.overwritten:
            self._check_separate(number, tensors)
        return tensors

    def _check_separate(self, number: int, tensors: Sequence[torch.Tensor]) -> None:
        """Refuse an overwritten input that shares memory with another tensor."""
        tensor = tensors[number]
        if any(
            length > 1 and not step
            for length, step in zip(tensor.shape, tensor.stride(), strict=True)
        ):
            raise SituateError(f"input {number} is expanded, and the step writes it: clone it")
        begin, end = address_range(tensor)
        for k, other in enumerate([*tensors, self._common.raw]):
            first, last = address_range(other)
            if k != number and first < end and begin < last:
                what = f"input {k}" if k < len(tensors) else "the model"
                raise SituateError(
                    f"input {number}, which the step writes over, shares memory with {what}: "
                    "clone it"
                )

    def read(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
        """The tensors that the step reads as its inputs.

        None for those in common memory, where they are aligned like the caller's.
        """
        self.shifts = tuple(map(misalignment, tensors))
        self._common.shift_inputs(self.shifts)
        places = self._common.inputs
        inputs = list(map(self._read_one, tensors, places))
        return None if self._has_processes else inputs

    def _read_one(self, tensor: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        if self._has_processes or self._must_copy(tensor, place):
            place.copy_(tensor)  # which for a tensor of another kind returns one of that kind
            return place
        return tensor

    def _must_copy(self, tensor: torch.Tensor, place: torch.Tensor) -> bool:
        """True for an input with another layout than at capture, a tensor of another kind, or state
        of the model, which the step changes."""
        import torch

        # Kernels read plain memory: a lazy conjugate or sign would be left out.
        if type(tensor) is not torch.Tensor or tensor.is_conj() or tensor.is_neg():
            return True
        # An input in the common memory could be overwritten by the step before it is read.
        raw = self._common.raw
        within = 0 <= tensor.data_ptr() - raw.data_ptr() < raw.nbytes
        return within or tensor.stride() != place.stride()

    def result_buffers(self) -> list[torch.Tensor] | None:
        """The tensors that the step writes as its results; None for those in common memory."""
        import torch

        return None if self._has_processes else [torch.empty_like(r) for r in self._common.results]

    def write_back(
        self, inputs: Sequence[torch.Tensor], results: Sequence[torch.Tensor] | None
    ) -> None:
        """Overwrite inputs as the replaced step does."""
        import torch

        sources = self._common.results if results is None else results
        overwritten = self._program.overwritten
        with torch.inference_mode():
            # The results end with the new values of overwritten inputs, often none: then [-0:] is
            # unused.
            for number, result in zip(overwritten, sources[-len(overwritten) :], strict=False):
                inputs[number].copy_(result)

    def restore_results(self, results: Sequence[torch.Tensor] | None) -> Any:
        """The results, in the structure of the replaced step's."""
        if results is None:
            results = [tensor.clone() for tensor in self._common.results]
        return self._program.restore([*results])


def _check_values(values: RequiredValues, tensor: torch.Tensor) -> None:
    """Refuse values that differ from the captured ones, where the step depends on them."""
    import torch

    current = values.of(tensor.to(values.values.device))
    if torch.equal(current, values.values):
        return
    [first, *_] = (current != values.values).nonzero().tolist()
    place, at = ", ".join(map(str, first)), tuple(first)
    raise SituateError(
        f"input {values.name} is {current[at].item()} at [{place}] and was "
        f"{values.values[at].item()} when the step was captured, which holds for those values "
        f"alone: {values.line} depends on them; capture and plan for these, or {values.remedy}"
    )
