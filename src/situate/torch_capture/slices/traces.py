"""The traces of a training step at several batch sizes, and the input sequences that are cut along
with its tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import combinations

import msgspec

from situate.data.slices import Reduction, Slices
from situate.errors import SituateError
from situate.torch_capture.build import FakeStep
from situate.torch_capture.slices.cut import Cut, batch_of, cut_inputs
from situate.torch_capture.slices.witness import Witness, witness
from situate.torch_capture.tracing import Trace, joint
from situate.torch_capture.updates.recipes import sum_in_float32


class Traces:
    """The traces of a step, each made on first use.

    Args:
        fake: the model with the inputs of its whole batch.
        name: of the step, in errors.
        check: run the slices on random numbers, too.
    """

    def __init__(self, fake: FakeStep, name: str, check: bool = False) -> None:
        self.fake = fake
        self.name = name
        self.check = check
        # In a tuple, because None is a result as well.
        self._witness: tuple[Witness | None] | None = None
        # By the dimensions that are cut, and the samples of a slice.
        self._parts: dict[tuple[tuple[int | None, ...], int], Trace] = {}
        # Traces of slices with sequences of their own, by cut and slice.
        self._own: dict[tuple[Cut, int], Trace] = {}

    @cached_property
    def whole(self) -> Trace:
        """The trace of the whole batch."""
        return _traced(self.fake, self.name)

    def witness(self, part: Trace, cut: Cut, loss: Reduction) -> Witness | None:
        """The comparison of slices on random numbers, run once for all cuts; None if it cannot run,
        or is not wanted."""
        if not self.check:
            return None
        if self._witness is None:
            self._witness = (witness(self.fake, part, cut.axes, loss),)
        return self._witness[0]

    def parts(self, cut: Cut) -> list[Trace]:
        """The trace of each slice. Slices of equal size share one, unless it depends on input
        values.

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
        trace = self._parts.get(size)
        # A trace that depends on input values holds for one slice's values alone.
        if trace is None or trace.required:
            trace = self._parts[size] = self._traced(cut, s)
        return trace

    def _traced(self, cut: Cut, s: int) -> Trace:
        try:
            return _traced(cut.slice_of(self.fake, s), self.name)
        except SituateError as error:
            raise SituateError(
                f"{error}; the step runs on the whole batch, and not on {cut.samples[s]} of its "
                f"{sum(cut.samples)} samples: let sizes that it has as numbers follow from its "
                "inputs"
            ) from None


def _traced(fake: FakeStep, name: str) -> Trace:
    """The trace of a training step, whose gradients have the type in which slices add them up."""
    trace = joint(fake, True, name)
    if fake.recipe is not None and fake.recipe.sums_float32:
        sum_in_float32(trace)
    return trace


MOST_COMBINED = 3
"""Up to this many sequences, every subset is tried; of more, all and none."""


def with_sequences(traces: Traces, slices: Slices) -> Slices:
    """The slices, with a dimension for each sequence that is cut along with the tensors.

    A sequence with as many entries as the batch has samples may be per sample, such as lengths, or
    not, such as a size. Traces decide: the sequence is cut if the step runs at a slice's size only
    with a part of it, and stays whole if only with all of it.

    Raises:
        SituateError: the step runs either way and computes something else; or neither way.
    """
    samples = batch_of(traces.fake, slices.axes)[1]
    names = [
        name
        for name, entries in traces.fake.sequences.items()
        if len(entries) == samples and name not in slices.axes
    ]
    if not names:
        return slices
    working = dict[str, Slices]()
    failures = list[SituateError]()
    for cut_names in _choices(names):
        candidate = msgspec.structs.replace(
            slices, axes={**slices.axes, **dict.fromkeys(cut_names, 0)}
        )
        try:
            parts = traces.parts(cut_inputs(traces.fake, candidate))
        except SituateError as error:
            failures.append(error)
        else:
            # Equal graphs mean that the choice does not matter.
            working.setdefault("".join(str(part.graph) for part in parts), candidate)
    if len(working) == 1:
        return next(iter(working.values()))
    hold = f"{_listed(names)} {samples} entries, as many as the batch has samples"
    if not working:
        raise SituateError(f"{failures[0]}; {hold}, and it fails with those of a slice alone, too")
    raise SituateError(
        f"slices: {hold}. The step runs with all of them in every slice, and otherwise with those "
        f"of its samples alone: --slice-dim {names[0]}=0 cuts them, {names[0]}=whole does not"
    )


def _listed(names: Sequence[str]) -> str:
    return f"input {names[0]} holds" if len(names) == 1 else f"inputs {', '.join(names)} hold"


def _choices(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The subsets of sequences to cut: none first, then ever more."""
    counts = range(len(names) + 1) if len(names) <= MOST_COMBINED else (0, len(names))
    for count in counts:
        yield from combinations(names, count)
