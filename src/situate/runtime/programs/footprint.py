"""Peak memory of a placed program, computed from its source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from situate.runtime.programs.lines import OUTSIDE_MEMORY, ExecutedLine
from situate.runtime.programs.placed import PlacedProgram


class Memory(Protocol):
    """The memory of local names, see `situate.runtime.programs.source.DeviceSource`."""

    memory: dict[str, str]
    nbytes: dict[str, int]


def footprint(program: PlacedProgram, workspace: NDArray[np.int64]) -> list[int]:
    """Peak bytes by device: parameters, buffers, optimiser state, inputs, received tensors, and the
    live values of the step.

    Args:
        workspace: (ops,) bytes that each op needs while it runs.
    """
    needs = dict(enumerate(workspace.tolist()))
    return [
        _state_and_inputs(program, d)
        + program.received(d)
        + largest(source.executed(), source, needs)
        for d, source in enumerate(program.sources)
    ]


def _state_and_inputs(placed_program: PlacedProgram, device: int) -> int:
    """Bytes of the state and the inputs of a device."""
    program, ops = placed_program.program, placed_program.sources[device].here
    input_devices = zip(program.inputs, placed_program.inputs, strict=True)
    inputs = sum(program.step.nbytes((node, 0)) for node, d in input_devices if d == device)
    return inputs + sum(program.graph.ops[op].persistent for op in ops)


def largest(lines: Iterable[ExecutedLine], source: Memory, workspace: Mapping[int, int]) -> int:
    """Peak bytes of a step's live values and the running op's workspace.

    Args:
        workspace: by op.
    """
    # Straight-line code has one live set between any two lines, so a single pass finds the peak.
    rooms = _Rooms(source)
    most = 0
    for executed in lines:
        # Results are there while the op still reads its arguments, so they are made before others
        # leave.
        for name in executed.line.assigned:
            rooms.make(name, executed)
        op = executed.line.op
        most = max(most, rooms.nbytes + (0 if op is None else workspace.get(op, 0)))
        for name in executed.last:
            rooms.leave(name)
    return most


class _Rooms:
    """The storages in memory between two lines."""

    def __init__(self, source: Memory) -> None:
        self.nbytes = 0
        self._source = source
        self._names: dict[str, set[str]] = {}
        self._nbytes: dict[str, int] = {}
        self._over: dict[str, str] = {}

    def make(self, name: str, executed: ExecutedLine) -> None:
        if executed.over is not None:
            self._over[name] = self._room(executed.over)
        room = self._room(name)
        if room not in self._names:
            # A result written into a channel lies in the memory for received tensors, which is
            # counted separately.
            self._nbytes[room] = 0 if executed.direct else self._source.nbytes.get(room, 0)
            self.nbytes += self._nbytes[room]
        self._names.setdefault(room, set()).add(name)

    def leave(self, name: str) -> None:
        room = self._room(name)
        self._names[room].discard(name)
        # Views share a room, which is free when the last of them is gone.
        if not self._names[room]:
            del self._names[room]
            self.nbytes -= self._nbytes.pop(room)

    def _room(self, name: str) -> str:
        """The first name of this memory."""
        room = self._source.memory.get(name, OUTSIDE_MEMORY)
        return self._over.get(room, room)
