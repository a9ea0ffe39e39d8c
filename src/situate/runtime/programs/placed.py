"""A program cut along a placement: the source of every device, and the tensors that cross."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from situate.runtime.memory import Place, extent, strides
from situate.runtime.programs.program import Program
from situate.runtime.programs.roles import Roles
from situate.runtime.programs.slots import Crossing, offsets, ran_before
from situate.runtime.programs.source import DeviceSource, Names
from situate.torch_capture.flow import Storage
from situate.torch_capture.names import state_name

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class PlacedProgram:
    """A program on devices.

    Attributes:
        names: what the sources refer to.
        sources: by device.
        channels: one for each tensor that crosses, as `names` numbers them, in a block of memory
            that all devices map: who receives reads where the sender wrote.
        channel_bytes: of that block, by receiving device.
        home: by path of a parameter or buffer, the device that holds it.
        inputs: by input of the step, the device that it belongs to.
    """

    program: Program
    names: Names
    sources: tuple[DeviceSource, ...]
    channels: tuple[Place, ...]
    channel_bytes: tuple[int, ...]
    home: dict[str, int]
    inputs: tuple[int, ...]

    def received(self, device: int) -> int:
        """Bytes of the room for what a device receives."""
        return self.channel_bytes[device] if device < len(self.channel_bytes) else 0

    @property
    def updated(self) -> dict[int, str]:
        """The kind of optimiser of each parameter that the step updates, by its number."""
        program = self.program
        return {self.names.state[path]: program.optimizer for path in program.gradients}

    @property
    def copies(self) -> dict[int, int]:
        """The number of the parameter that each further copy is of, by the copy's number."""
        numbers, copies = self.names.state, self.program.step.trace.copies
        return {numbers[c]: numbers[name] for c, name in copies.items() if c in numbers}

    @property
    def overwritten(self) -> frozenset[int]:
        """Numbers of the state that the step writes otherwise, such as running means."""
        numbers = self.names.state
        return frozenset(numbers[path] for path in self.program.mutations if path in numbers)

    @property
    def used(self) -> list[int]:
        """The devices that have anything to do."""
        found = [
            d
            for d, source in enumerate(self.sources)
            if any(block.body or block.sends for block in source.blocks)
        ]
        return found or [0]


def place(
    program: Program, placement: NDArray[np.int32], order: Sequence[int], devices: int
) -> PlacedProgram:
    """Cut a program.

    Args:
        placement: (ops,) device of every op.
        order: all ops, each after those it waits for.
        devices: how many there are.
    """
    roles, names = Roles(program), Names()
    names.seeds.update(roles.random)
    here = [frozenset(np.flatnonzero(placement == d).tolist()) for d in range(devices)]
    sources = [DeviceSource(roles, names, ops) for ops in here]
    # Sources are written op by op in one order over all devices, so no two wait for each other.
    for op in order:
        sources[placement[op]].write(op)
    for source in sources:
        source.write_results()
    # What crosses is known only now that all devices have said what they receive.
    for storage in names.channels:
        sources[placement[roles.owner[storage]]].send(storage)
    channels, nbytes = _channels(roles, names, sources, placement, order)
    homes = _homes(roles, names, placement)
    given = tuple(int(placement[roles.owner.get((node, 0), 0)]) for node in program.inputs)
    return PlacedProgram(program, names, tuple(sources), channels, tuple(nbytes), homes, given)


def _channels(
    roles: Roles,
    names: Names,
    sources: Sequence[DeviceSource],
    placement: NDArray[np.int32],
    order: Sequence[int],
) -> tuple[tuple[Place, ...], list[int]]:
    """The places of all tensors that cross, and the bytes of those that each device receives."""
    received = [source.received() for source in sources]
    values = [_value(storage) for storage in names.channels]
    owners = [roles.owner[storage] for storage in names.channels]
    senders: dict[int, list[int]] = {}
    for k, owner in enumerate(owners):
        # By receiving op, the ops it waits for: the edges along which the vector clock is passed
        # on.
        for op in (op for found in received for op in found.get(k, ([], 0))[0]):
            senders.setdefault(op, []).append(owner)
    clock = ran_before(placement, order, senders)
    crossings = [
        Crossing(
            extent(tuple(value.shape), strides(value)) * value.dtype.itemsize,
            owner,
            {d: found[k][1] for d, found in enumerate(received) if k in found},
        )
        for k, (owner, value) in enumerate(zip(owners, values, strict=True))
    ]
    begin, nbytes = offsets(crossings, order, clock)
    places = (
        Place(offset, tuple(value.shape), strides(value), value.dtype)
        for offset, value in zip(begin, values, strict=True)
    )
    return tuple(places), nbytes


def _value(storage: Storage) -> torch.Tensor:
    """The fake tensor of a storage: an output of a node, or what a placeholder holds."""
    node, k = storage
    values = node.meta["val"]
    value: torch.Tensor = values[k] if isinstance(values, (list, tuple)) else values
    return value


def _homes(roles: Roles, names: Names, placement: NDArray[np.int32]) -> dict[str, int]:
    canonical = roles.program.step.trace.canonical
    found = {}
    for (node, _), op in roles.owner.items():
        path = canonical.get(state_name(node), state_name(node))
        if path in names.state:
            found[path] = int(placement[op])
    return found
