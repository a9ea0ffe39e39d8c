"""A program cut along a placement: the source of every device, and the tensors that cross."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from situate.readers.torch_flow import Storage
from situate.readers.torch_names import held
from situate.runtime.program import Program
from situate.runtime.roles import Roles
from situate.runtime.source import DeviceSource, Names
from situate.schedule import Schedule

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Channel:
    """One tensor that crosses; who receives it reads it where the sender wrote it.

    Attributes:
        size, stride, dtype: of the tensor.
        source: the device that sends.
        targets: the devices that receive.
    """

    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    source: int
    targets: tuple[int, ...]


@dataclass(frozen=True)
class PlacedProgram:
    """A program on devices.

    Attributes:
        names: what the sources refer to.
        sources: by device.
        channels: as `names` numbers them.
        home: by path of a parameter or buffer, the device that holds it.
    """

    program: Program
    names: Names
    sources: tuple[DeviceSource, ...]
    channels: tuple[Channel, ...]
    home: dict[str, int]

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
    names.seeds.update({node: k for k, node in enumerate(roles.random)})
    here = [frozenset(np.flatnonzero(placement == d).tolist()) for d in range(devices)]
    sources = [DeviceSource(roles, names, ops) for ops in here]
    for op in order:
        sources[placement[op]].write(op)
    for source in sources:
        source.write_results()
    channels = [
        _channel(storage, int(placement[roles.owner[storage]]), k, sources)
        for storage, k in names.channels.items()
    ]
    for storage in names.channels:
        sources[placement[roles.owner[storage]]].send(storage)
    homes = _homes(roles, names, placement)
    return PlacedProgram(program, names, tuple(sources), tuple(channels), homes)


def order_of(schedule: Schedule, topological: Sequence[int]) -> list[int]:
    """All ops as a schedule starts them; those that start at once in topological order."""
    rank = np.empty(len(topological), np.int64)
    rank[list(topological)] = np.arange(len(topological))
    return [int(op) for op in np.lexsort((rank, schedule.start))]


def _channel(
    storage: Storage, source: int, number: int, sources: Sequence[DeviceSource]
) -> Channel:
    node, k = storage
    value = node.meta["val"]
    value = value[k] if k and isinstance(value, (list, tuple)) else value
    value = value[0] if isinstance(value, (list, tuple)) else value
    targets = tuple(d for d, device in enumerate(sources) if number in device.received)
    return Channel(tuple(value.shape), tuple(value.stride()), value.dtype, source, targets)


def _homes(roles: Roles, names: Names, placement: NDArray[np.int32]) -> dict[str, int]:
    canonical = roles.program.step.trace.canonical
    found = {}
    for (node, _), op in roles.owner.items():
        path = canonical.get(held(node), held(node))
        if path in names.state:
            found[path] = int(placement[op])
    return found
