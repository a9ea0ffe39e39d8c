"""The traces of a training step at several sizes of its batch."""

from __future__ import annotations

from functools import cached_property

from situate.data.slices import Reduction
from situate.errors import SituateError
from situate.torch_capture.build import Built
from situate.torch_capture.slices.cut import Cut
from situate.torch_capture.slices.witness import Witness, witness
from situate.torch_capture.tracing import Trace, joint


class Traces:
    """The traces of a step, each made when it is first asked for.

    Args:
        what: the model with the inputs of its whole batch.
        name: of the step, in errors.
        check: whether slices are also tried on random numbers.
    """

    def __init__(self, what: Built, name: str, check: bool = False) -> None:
        self.what = what
        self.name = name
        self.check = check
        self._witness: tuple[Witness | None] | None = None
        # By the dimensions that are cut, and the samples of a slice.
        self._parts: dict[tuple[tuple[int | None, ...], int], Trace] = {}
        # Those of slices with numbers of their own, by the cut and the slice.
        self._own: dict[tuple[Cut, int], Trace] = {}

    @cached_property
    def whole(self) -> Trace:
        """That of the whole batch."""
        return joint(self.what, True, self.name)

    def witness(self, part: Trace, cut: Cut, loss: Reduction) -> Witness | None:
        """The step of slices on random numbers, tried once, whatever the slices; None where it
        cannot be tried, or is not to be."""
        if not self.check:
            return None
        if self._witness is None:
            self._witness = (witness(self.what, part, cut.axes, loss),)
        return self._witness[0]

    def parts(self, cut: Cut) -> list[Trace]:
        """The trace of each slice; slices of equal size share one, unless it counts on values.

        Raises:
            SituateError: the step cannot be captured at a slice's size.
        """
        return [self._part(cut, s) for s in range(len(cut.samples))]

    def _part(self, cut: Cut, s: int) -> Trace:
        if cut.sequences:
            if (cut, s) not in self._own:
                self._own[cut, s] = self._traced(cut, s)
            return self._own[cut, s]
        size = cut.axes, cut.samples[s]
        known = self._parts.get(size)
        if known is None or known.taken:
            known = self._parts[size] = self._traced(cut, s)
        return known

    def _traced(self, cut: Cut, s: int) -> Trace:
        try:
            return joint(cut.slice_of(self.what, s), True, self.name)
        except SituateError as error:
            raise SituateError(
                f"{error}; the step runs on the whole batch, and not on {cut.samples[s]} of its "
                f"{sum(cut.samples)} samples: let sizes that it has as numbers follow from its "
                "inputs"
            ) from None
