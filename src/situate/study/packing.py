"""Placements as bytes."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Packing:
    """A device index for each of `ops` ops, unsigned, of one byte or for more than 256 `devices`
    of two with the lower first, compressed by zlib."""

    ops: int
    devices: int

    @classmethod
    def of(cls, header: Mapping[str, str]) -> Packing:
        """The packing in a study with this header.

        Raises:
            ValueError: the header does not say how many ops and devices there are.
        """
        ops, devices = int(header.get("ops", "")), int(header.get("devices", ""))
        if not (0 < ops < 2**31 and 0 < devices <= 2**16):
            raise ValueError(f"no study has {ops} ops on {devices} devices")
        return cls(ops, devices)

    def pack(self, placements: NDArray[np.int32]) -> list[bytes]:
        """Bytes of each of the placements (k, n)."""
        # Level 6 would take up to 14 times as long as level 1 to save a few bytes.
        return [zlib.compress(row, 1) for row in placements.astype(self._dtype)]

    def unpack(self, packed: bytes) -> NDArray[np.int32]:
        """A placement (n,).

        Raises:
            ValueError: not a placement of so many ops on so many devices.
        """
        size = self.ops * self._dtype.itemsize
        try:
            data = zlib.decompressobj().decompress(packed, size + 1)
        except zlib.error as error:
            raise ValueError(str(error)) from None
        if len(data) != size:
            raise ValueError("a placement of another number of ops")
        placement = np.frombuffer(data, self._dtype).astype(np.int32)
        if placement.max(initial=0) >= self.devices:
            raise ValueError("a placement on unknown devices")
        return placement

    @property
    def _dtype(self) -> np.dtype[np.unsignedinteger]:
        return np.dtype("<u1" if self.devices <= 256 else "<u2")
