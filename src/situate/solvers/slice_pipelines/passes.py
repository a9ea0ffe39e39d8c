"""Passes of slices through stages: what every device of a pipeline does, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from situate.data.arrays import Ints

Kind = Literal["F", "B", "I", "W"]
"""The forward pass, the whole backward pass, or its two halves: the gradients of a stage's inputs,
and those of its weights."""

UNITS: dict[Kind, int] = {"F": 1, "B": 2, "I": 1, "W": 1}
"""Time of a pass where all stages are alike, in units of a forward pass."""

ACTIVATION_CHANGE: dict[Kind, int] = {"F": 1, "B": -1, "I": 0, "W": -1}
"""Slices of whose activations a stage holds more when a pass has ended."""


class Pass(NamedTuple):
    """One slice in one stage."""

    kind: Kind
    slice: int
    stage: int


class PassOrder(NamedTuple):
    """A published order of passes.

    Attributes:
        passes: those of a device as it runs them, from the numbers of devices and of slices and the
            number of the device.
        chunks: stages on a device; between two of them every other device has one.
    """

    passes: Callable[[int, int, int], list[Pass]]
    chunks: int = 1


Turns = Sequence[Sequence[Pass]]
"""By device, its passes as it runs them."""


def ranks(turns: Turns, slices: int, stages: int) -> dict[Kind, Ints]:
    """By kind (slices, stages) ranks of all passes, each behind those that it waits for; a whole
    backward pass is both of its halves.

    Passes rank by when they start where all stages are alike, and then by device.
    """
    ranks_of: dict[Kind, Ints] = {
        kind: np.zeros((slices, stages), np.int64) for kind in ("F", "I", "W")
    }
    starts = sorted(_starts(turns, slices, stages))
    for rank, (_, _, (kind, part, stage)) in enumerate(starts):
        halves: tuple[Kind, ...] = ("I", "W") if kind == "B" else (kind,)
        for half in halves:
            ranks_of[half][part, stage] = rank
    return ranks_of


def in_flight(turns: Turns, stages: int) -> Ints:
    """(stages,) the most slices of which a stage holds the activations at once."""
    now, most = np.zeros(stages, np.int64), np.zeros(stages, np.int64)
    for passes in turns:
        for kind, _, stage in passes:
            now[stage] += ACTIVATION_CHANGE[kind]
            most[stage] = max(most[stage], now[stage])
    return most


def _starts(turns: Turns, slices: int, stages: int) -> Iterator[tuple[float, int, Pass]]:
    """The start of every pass, with its device."""
    # A slice goes through all stages and back: (slices, legs + 1) when each leg of that way may
    # begin; infinite while the one before it has not run.
    ready = np.full((slices, 2 * stages + 1), np.inf)
    ready[:, 0] = 0
    passes_begun, free = [0] * len(turns), [0.0] * len(turns)
    progress = True
    while progress:
        progress = False
        for device, passes in enumerate(turns):
            for one_pass in passes[passes_begun[device] :]:
                start = free[device]
                leg = one_pass.stage if one_pass.kind == "F" else 2 * stages - 1 - one_pass.stage
                if one_pass.kind != "W":
                    start = max(start, ready[one_pass.slice, leg])
                if np.isinf(start):
                    break
                yield start, device, one_pass
                free[device] = start + UNITS[one_pass.kind]
                if one_pass.kind != "W":
                    ready[one_pass.slice, leg + 1] = free[device]
                passes_begun[device] += 1
                progress = True
    assert passes_begun == [len(passes) for passes in turns], "passes wait for one another"
