"""Passes of slices through stages, in the order in which each device of a pipeline runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from situate.data.arrays import Ints

Kind = Literal["F", "B", "I", "W"]
"""F: forward pass; B: whole backward pass; I and W: its halves, the gradients of a stage's inputs
and of its weights."""

UNITS: dict[Kind, int] = {"F": 1, "B": 2, "I": 1, "W": 1}
"""Duration of a pass in units of a forward pass, if all stages are alike."""

ACTIVATION_CHANGE: dict[Kind, int] = {"F": 1, "B": -1, "I": 0, "W": -1}
"""Change of the number of slices whose activations a stage holds, by kind of pass."""


class Pass(NamedTuple):
    """One slice in one stage."""

    kind: Kind
    slice: int
    stage: int


class PassOrder(NamedTuple):
    """A published order of passes.

    Attributes:
        passes: (devices, slices, device) -> the passes of a device, in the order it runs them.
        chunks: stages per device, assigned to the devices in rounds.
    """

    passes: Callable[[int, int, int], list[Pass]]
    chunks: int = 1


Turns = Sequence[Sequence[Pass]]
"""The passes of each device, in the order it runs them."""


def ranks(turns: Turns, slices: int, stages: int) -> dict[Kind, Ints]:
    """(slices, stages) ranks of all passes by kind; each pass ranks behind its predecessors.

    Passes rank by their start if all stages are alike, then by device. A whole backward pass has
    the same rank for both halves.
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
    """(stages,) largest number of slices whose activations a stage holds at once."""
    now, most = np.zeros(stages, np.int64), np.zeros(stages, np.int64)
    for passes in turns:
        for kind, _, stage in passes:
            now[stage] += ACTIVATION_CHANGE[kind]
            most[stage] = max(most[stage], now[stage])
    return most


def _starts(turns: Turns, slices: int, stages: int) -> Iterator[tuple[float, int, Pass]]:
    """(start, device, pass) of every pass."""
    # A slice goes through all stages and back: (slices, legs + 1) the time at which each leg may
    # begin; infinite until the leg before it has run.
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
