"""Passes of slices through stages: their ranks, and the ops in the order of the passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from situate.data.arrays import Ints, Order
from situate.data.problem import Problem
from situate.data.topology import places
from situate.data.weight_gradients import weight_gradients
from situate.solvers.slice_pipelines.stages import Line

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
                    # W waits for its I alone, which is earlier on the same device.
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


class OpOrders:
    """Orders of the ops of a step, for any passes through any stages."""

    def __init__(self, problem: Problem, line: Line) -> None:
        self._line = line
        weights = weight_gradients(problem)
        self._ops: dict[Kind, Ints] = {
            "F": np.flatnonzero((line.slices >= 0) & ~line.backward),
            "I": np.flatnonzero(line.backward & ~weights),
            "W": np.flatnonzero(weights),
        }
        self._program = places(problem.graph.program_order)
        self._late = _late(problem, line.place)

    def order(self, ranks: Mapping[Kind, Ints], borders: Ints) -> Order:
        """(n,) ops by their pass, and within a pass in program order.

        An op that reads from no slice, such as a parameter, joins the first pass that reads it. An
        op that runs once after slices, such as an update, joins the last pass that it reads from.

        Args:
            ranks: of passes, see `ranks`.
            borders: (stages - 1,) first places of all stages but the first.
        """
        line = self._line
        stage = np.searchsorted(borders, line.place, "right")
        # Ops of no slice keep the first forward pass of their stage; the loops replace all others.
        rank = ranks["F"].min(axis=0)[stage]
        for kind, ops in self._ops.items():
            rank[ops] = ranks[kind][line.slices[ops], stage[ops]]
        for op, producers in self._late:
            rank[op] = max((rank[other] for other in producers), default=0)
        return np.lexsort((self._program, rank)).astype(np.int32)


def _late(problem: Problem, place: Ints) -> list[tuple[int, list[int]]]:
    """Ops without a place, in the graph's order, each with the producers of its inputs."""
    producers: dict[int, list[int]] = {op: [] for op in problem.graph.order if place[op] < 0}
    for producer, reader in problem.graph.edges():
        if reader in producers:
            producers[reader].append(producer)
    return list(producers.items())
