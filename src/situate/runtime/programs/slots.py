"""Memory for the tensors that cross: one that all have read makes room for another, where the
sender of the other cannot run before they have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from situate.runtime.memory import ALIGNMENT


@dataclass(frozen=True)
class Crossing:
    """A tensor that crosses; it lies in the memory of the first device that receives it.

    Attributes:
        sender: the op that makes it.
        readers: by receiving device, how many of its ops have run when it has read for the last
            time.
    """

    nbytes: int
    sender: int
    readers: Mapping[int, int]

    @property
    def home(self) -> int:
        """The first device that receives it."""
        return min(self.readers)


def ran_before(
    placement: NDArray[np.int32], order: Sequence[int], senders: Mapping[int, Iterable[int]]
) -> NDArray[np.int32]:
    """(ops, devices) how many ops of each device have surely ended when an op computes: a vector
    clock (Fidge 1988, Mattern 1989).

    Args:
        senders: by op, the ops whose tensors it receives.
    """
    devices = int(placement.max(initial=0)) + 1
    # Row d of `now` is what device d knows: how many ops of each device, its own too, have ended.
    clock = np.zeros((len(placement), devices), np.int32)
    now = np.zeros((devices, devices), np.int32)
    for op in order:
        device = placement[op]
        for sender in senders.get(op, ()):
            # Who sends a tensor has ended the op that made it, and all that this op knew of.
            known = clock[sender].copy()
            known[placement[sender]] += 1
            np.maximum(now[device], known, out=now[device])
        # The clock is read before the op counts: it has not ended while it computes.
        clock[op] = now[device]
        now[device, device] += 1
    return clock


def offsets(
    crossings: Sequence[Crossing], order: Sequence[int], clock: NDArray[np.int32]
) -> tuple[list[int], list[int]]:
    """The offset of every tensor in a common block, and the bytes in it of each device."""
    devices = clock.shape[1]
    blocks = [_Block(devices) for _ in range(devices)]
    rank = {op: i for i, op in enumerate(order)}
    found = [0] * len(crossings)
    # In the order of sending, so that a place is given on only to tensors that are sent later.
    for k in sorted(range(len(crossings)), key=lambda k: rank[crossings[k].sender]):
        crossing = crossings[k]
        found[k] = blocks[crossing.home].put(crossing, clock[crossing.sender])
    sizes = [block.nbytes for block in blocks]
    # The blocks of the devices lie one behind the other in the common block.
    begin = [sum(sizes[:d]) for d in range(len(sizes))]
    return [begin[c.home] + offset for c, offset in zip(crossings, found, strict=True)], sizes


class _Block:
    """The memory of one device for what it receives: by their offsets, the tensors put there."""

    def __init__(self, devices: int) -> None:
        self.nbytes = 0
        self._begin = np.empty(0, np.int64)
        self._end = np.empty(0, np.int64)
        self._readers = np.empty((0, devices), np.int32)

    def put(self, crossing: Crossing, ended: NDArray[np.int32]) -> int:
        """The lowest offset at which all is surely read when `ended` ops of each device are."""
        # Rounded up, so that the next tensor begins aligned, too.
        size = -(-crossing.nbytes // ALIGNMENT) * ALIGNMENT
        offset = self._room(size, ended)
        place = np.searchsorted(self._begin, offset)
        self._begin = np.insert(self._begin, place, offset)
        self._end = np.insert(self._end, place, offset + size)
        readers = _counts(crossing, len(ended))
        self._readers = np.insert(self._readers, place, readers, axis=0)
        self.nbytes = max(self.nbytes, offset + size)
        return offset

    def _room(self, size: int, ended: NDArray[np.int32]) -> int:
        """The lowest offset of so many bytes of which none may still be read."""
        # (tensors, devices) -> (tensors,): one device that may still read keeps a place taken.
        unread = (self._readers > ended).any(axis=1)
        begin, end = self._begin[unread], self._end[unread]
        # Places that are taken may overlap places given on before them, so what ends a gap on the
        # left is the largest end so far: (taken,) -> (taken + 1,) starts of gaps, the last without
        # an end.
        free = np.concatenate(([0], np.maximum.accumulate(end)))
        wide = np.flatnonzero(free[:-1] + size <= begin)
        return int(free[wide[0]] if len(wide) else free[-1])


def _counts(crossing: Crossing, devices: int) -> NDArray[np.int32]:
    """(devices,) how many ops of each have run when it has read for the last time."""
    found = np.zeros(devices, np.int32)
    found[list(crossing.readers)] = list(crossing.readers.values())
    return found
