"""A program cut along a placement: the source of every device, and the tensors that cross.

Tensors that cross share memory: one that all receivers have read makes room for another whose
sender cannot run earlier.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from situate.runtime.memory import ALIGNMENT, Place, extent, strides
from situate.runtime.programs.program import Program, Roles
from situate.runtime.programs.source import DeviceSource, Names
from situate.torch_capture.cuts.state import StatePart
from situate.torch_capture.flow import Storage
from situate.torch_capture.names import state_name

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Crossing:
    """A tensor that crosses; it lies in the memory of its first receiving device.

    Attributes:
        sender: the op that makes it.
        readers: by receiving device, the number of its ops that have run at the last read.
    """

    nbytes: int
    sender: int
    readers: Mapping[int, int]

    @property
    def home(self) -> int:
        """The first device that receives it."""
        return min(self.readers)


def completed_ops(
    placement: NDArray[np.int32], order: Sequence[int], senders: Mapping[int, Iterable[int]]
) -> NDArray[np.int32]:
    """(ops, devices) number of each device's ops that have certainly ended when an op computes: a
    vector clock (Fidge 1988, Mattern 1989).

    Args:
        senders: by op, the ops whose tensors it receives.
    """
    devices = int(placement.max(initial=0)) + 1
    # Row d of `now` is the knowledge of device d: the number of ops of each device, its own
    # included, that have ended.
    clock = np.zeros((len(placement), devices), np.int32)
    now = np.zeros((devices, devices), np.int32)
    for op in order:
        device = placement[op]
        for sender in senders.get(op, ()):
            # The sender has ended the op that made the tensor, and all ops that this op knew to
            # have ended.
            knowledge = clock[sender].copy()
            knowledge[placement[sender]] += 1
            np.maximum(now[device], knowledge, out=now[device])
        # The clock is read before the op counts: it has not ended while it computes.
        clock[op] = now[device]
        now[device, device] += 1
    return clock


def offsets(
    crossings: Sequence[Crossing], order: Sequence[int], clock: NDArray[np.int32]
) -> tuple[list[int], list[int]]:
    """The offset of every tensor in a common block, and each device's bytes in it."""
    devices = clock.shape[1]
    blocks = [_Block(devices) for _ in range(devices)]
    rank = {op: i for i, op in enumerate(order)}
    offset_of = [0] * len(crossings)
    # In the order of sending, so that only tensors sent later reuse a place.
    for k in sorted(range(len(crossings)), key=lambda k: rank[crossings[k].sender]):
        crossing = crossings[k]
        offset_of[k] = blocks[crossing.home].reserve(crossing, clock[crossing.sender])
    sizes = [block.nbytes for block in blocks]
    # The blocks of the devices lie one behind the other in the common block.
    begin = [sum(sizes[:d]) for d in range(len(sizes))]
    return [begin[c.home] + offset for c, offset in zip(crossings, offset_of, strict=True)], sizes


class _Block:
    """The memory of one device for received tensors, sorted by offset."""

    def __init__(self, devices: int) -> None:
        self.nbytes = 0
        self._begin = np.empty(0, np.int64)
        self._end = np.empty(0, np.int64)
        self._readers = np.empty((0, devices), np.int32)

    def reserve(self, crossing: Crossing, completed: NDArray[np.int32]) -> int:
        """The lowest offset whose memory is certainly read once `completed` ops of each device have
        ended."""
        # Rounded up, so that the next tensor begins aligned, too.
        size = -(-crossing.nbytes // ALIGNMENT) * ALIGNMENT
        offset = self._room(size, completed)
        place = np.searchsorted(self._begin, offset)
        self._begin = np.insert(self._begin, place, offset)
        self._end = np.insert(self._end, place, offset + size)
        readers = _counts(crossing, len(completed))
        self._readers = np.insert(self._readers, place, readers, axis=0)
        self.nbytes = max(self.nbytes, offset + size)
        return offset

    def _room(self, size: int, completed: NDArray[np.int32]) -> int:
        """The lowest offset of `size` bytes without unread tensors."""
        # (tensors, devices) -> (tensors,): one device that may still read keeps a place taken.
        unread = (self._readers > completed).any(axis=1)
        begin, end = self._begin[unread], self._end[unread]
        # A reserved place may overlap an older one that it reuses, so a gap starts at the largest
        # end so far: (reserved,) -> (reserved + 1,) starts of gaps, the last without an end.
        free = np.concatenate(([0], np.maximum.accumulate(end)))
        wide = np.flatnonzero(free[:-1] + size <= begin)
        return int(free[wide[0]] if len(wide) else free[-1])


def _counts(crossing: Crossing, devices: int) -> NDArray[np.int32]:
    """(devices,) number of each device's ops that have run at the last read."""
    counts = np.zeros(devices, np.int32)
    counts[list(crossing.readers)] = list(crossing.readers.values())
    return counts


@dataclass(frozen=True)
class PlacedProgram:
    """A program on devices.

    Attributes:
        names: the names in the sources.
        sources: by device.
        channels: places of the tensors that cross, as `names` numbers them, in a block that all
            devices map. A receiver reads in the sender's memory.
        channel_bytes: of that block, by receiving device.
        home: by path of a parameter or buffer, its device.
        inputs: by input of the step, its device.
    """

    program: Program
    names: Names
    sources: tuple[DeviceSource, ...]
    channels: tuple[Place, ...]
    channel_bytes: tuple[int, ...]
    home: dict[str, int]
    inputs: tuple[int, ...]

    def received(self, device: int) -> int:
        """Bytes of a device's received tensors."""
        return self.channel_bytes[device] if device < len(self.channel_bytes) else 0

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """The tensors of the model's state by number: those in `names`, then the parameters that
        are held in parts."""
        parts = self.program.step.trace.parts
        wholes = (parts[path].of for path in self.names.state if path in parts)
        return (*self.names.state, *dict.fromkeys(wholes))

    @cached_property
    def parts(self) -> dict[int, tuple[int, StatePart]]:
        """By number of a part of a parameter, the parameter's number and the place of the part."""
        number, parts = (
            {path: k for k, path in enumerate(self.paths)},
            self.program.step.trace.parts,
        )
        return {
            k: (number[parts[path].of], parts[path])
            for k, path in enumerate(self.paths)
            if path in parts
        }

    @property
    def updated(self) -> dict[int, str]:
        """The kind of optimiser of each updated parameter, by number."""
        program = self.program
        return {self.names.state[path]: program.optimizer for path in program.gradients}

    @property
    def copies(self) -> dict[int, int]:
        """By number of a further copy of a parameter, or of a part of one, the number of its
        original."""
        numbers = {path: k for k, path in enumerate(self.paths)}
        copies = self.program.step.trace.copies
        return {numbers[c]: numbers[name] for c, name in copies.items() if c in numbers}

    @property
    def overwritten(self) -> frozenset[int]:
        """Numbers of state that the step overwrites without an update, such as running means."""
        numbers = self.names.state
        return frozenset(numbers[path] for path in self.program.mutations if path in numbers)

    @property
    def used(self) -> list[int]:
        """The devices with any work."""
        devices = [
            d
            for d, source in enumerate(self.sources)
            if any(block.body or block.sends for block in source.blocks)
        ]
        return devices or [0]


def place(
    program: Program, placement: NDArray[np.int32], order: Sequence[int], devices: int
) -> PlacedProgram:
    """Cut a program.

    Args:
        placement: (ops,) device of every op.
        order: all ops, each after its predecessors.
        devices: number of devices.
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
    # The tensors that cross are known once the sources of all devices are written.
    for storage in names.channels:
        sources[placement[roles.owner[storage]]].send(storage)
    channels, nbytes = _channels(roles, names, sources, placement, order)
    homes = _homes(roles, names, placement)
    input_devices = tuple(int(placement[roles.owner.get((node, 0), 0)]) for node in program.inputs)
    return PlacedProgram(
        program, names, tuple(sources), channels, tuple(nbytes), homes, input_devices
    )


def _channels(
    roles: Roles,
    names: Names,
    sources: Sequence[DeviceSource],
    placement: NDArray[np.int32],
    order: Sequence[int],
) -> tuple[tuple[Place, ...], list[int]]:
    """The places of all tensors that cross, and each device's received bytes."""
    received = [source.received() for source in sources]
    values = [_value(storage) for storage in names.channels]
    owners = [roles.owner[storage] for storage in names.channels]
    senders: dict[int, list[int]] = {}
    for k, owner in enumerate(owners):
        # By receiving op, the ops it waits for: the edges along which the vector clock is passed
        # on.
        for op in (op for by_channel in received for op in by_channel.get(k, ([], 0))[0]):
            senders.setdefault(op, []).append(owner)
    clock = completed_ops(placement, order, senders)
    crossings = [
        Crossing(
            extent(tuple(value.shape), strides(value)) * value.dtype.itemsize,
            owner,
            {d: by_channel[k][1] for d, by_channel in enumerate(received) if k in by_channel},
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
    """The fake tensor of a storage: an output of a node, or the value of a placeholder."""
    node, k = storage
    values = node.meta["val"]
    value: torch.Tensor = values[k] if isinstance(values, (list, tuple)) else values
    return value


def _homes(roles: Roles, names: Names, placement: NDArray[np.int32]) -> dict[str, int]:
    canonical = roles.program.step.trace.canonical
    homes = {}
    for (node, _), op in roles.owner.items():
        path = canonical.get(state_name(node), state_name(node))
        if path in names.state:
            homes[path] = int(placement[op])
    return homes
