"""Sequences among the inputs that have an entry a sample: cut as the tensors are, where the step
runs so alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import msgspec

from situate.data.slices import Slices
from situate.errors import SituateError
from situate.torch_capture.slices.cut import batch_of, cut_inputs
from situate.torch_capture.slices.traces import Traces

MOST_COMBINED = 3
"""Sequences of which every choice is tried; of more, all and none."""


def with_sequences(traces: Traces, slices: Slices) -> Slices:
    """The slices, with a dimension for each sequence that is cut along with the tensors.

    A sequence of as many entries as the batch has samples may be of samples, such as lengths, or
    not, such as a size. It is cut where the step runs at a slice's size only so, and left whole
    where it runs only with all of it.

    Raises:
        SituateError: the step runs either way and computes something else; or neither way.
    """
    samples = batch_of(traces.what, slices.axes)[1]
    names = [
        name
        for name, entries in traces.what.sequences.items()
        if len(entries) == samples and name not in slices.axes
    ]
    if not names:
        return slices
    working = dict[str, Slices]()
    failures = list[SituateError]()
    for chosen in _choices(names):
        asked = msgspec.structs.replace(slices, axes={**slices.axes, **dict.fromkeys(chosen, 0)})
        try:
            parts = traces.parts(cut_inputs(traces.what, asked))
        except SituateError as error:
            failures.append(error)
        else:
            working.setdefault("".join(str(part.graph) for part in parts), asked)
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
    """Those that are cut: none first, then ever more of them."""
    counts = range(len(names) + 1) if len(names) <= MOST_COMBINED else (0, len(names))
    for count in counts:
        yield from combinations(names, count)
