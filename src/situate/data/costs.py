"""Measured costs: a file with the durations of ops on the devices of a machine."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

import msgspec

from situate.data.cluster import Device
from situate.data.graph import BYTES_LIMIT
from situate.data.op_classes import DTYPES, EFFICIENCY
from situate.errors import ReadError, nearest

LIMIT = 2**30
"""Largest cost file, in bytes."""

Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Positive = Annotated[float, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=1, le=2**53)]
Bytes = Annotated[int, msgspec.Meta(ge=1, le=BYTES_LIMIT)]


class Timing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Seconds of an op: the median, and the first and third quartile of `count` runs.

    A quartile is the median if the median lies outside the range.
    """

    median: Seconds
    low: Seconds
    high: Seconds
    count: Count


class Efficiency(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fractions of a device's peaks that ops of one class reach, fitted to measured ops."""

    arithmetic: Positive
    """Fraction of the peak FLOP/s."""
    memory: Positive
    """Fraction of the bandwidth."""
    launches: Positive
    """Number of launches that it takes to start an op."""
    ops: Count
    """Distinct ops it was fitted to."""
    error: Annotated[float, msgspec.Meta(ge=1)]
    """Half of the measured times are between 1 / error and error times the fit."""


class MeasuredDevice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A device and its measurements."""

    name: str
    kind: str
    model: str = ""
    threads: Count | None = None
    flops: dict[str, Positive] = {}
    """Peak FLOP/s by dtype that the efficiencies are fractions of."""
    bandwidth: Positive | None = None
    """Peak bytes/s, likewise."""
    launch: Seconds = 0.0
    """Seconds of an op that does next to nothing."""
    seconds: dict[str, Timing] = {}
    """By signature, while no other device works."""
    efficiency: dict[str, Efficiency] = {}
    """By op class."""
    contention: dict[str, Annotated[float, msgspec.Meta(ge=1)]] = {}
    """By op class, how many times longer ops take while all other devices work too."""
    wall: Annotated[float, msgspec.Meta(ge=1)] = 1.0
    """Wall-clock seconds of steps per counted second; above 1 if other programs ran."""
    workspace: dict[str, Bytes] = {}
    """By signature, an op's temporary bytes beyond its outputs; without entries that are zero."""

    def is_like(self, device: Device) -> bool:
        """True if the device may be this one: nothing that both state differs."""
        models = self.model in ("", device.model) or not device.model
        threads = None in (self.threads, device.threads) or self.threads == device.threads
        return self.kind == device.kind and models and threads


class MeasuredLink(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename={"source": "from", "target": "to"},
):
    """The measured cost of a tensor from one device to another: `latency + bytes / bandwidth`
    seconds."""

    source: str
    target: str
    latency: Seconds
    bandwidth: Positive


class Costs(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="format", tag="situate-costs"
):
    """Measured costs of ops and transfers on one machine. See docs/cost-format.md."""

    machine: str
    date: str
    """ISO 8601."""
    versions: dict[str, str]
    """Versions of situate, torch and Python."""
    devices: list[MeasuredDevice]
    links: list[MeasuredLink] = []
    synchronisation: Seconds = 0.0
    """Seconds that a tensor pays to cross devices, beside its link."""
    step: Seconds = 0.0
    """Fixed seconds of a step on several devices."""
    version: int = 1

    @property
    def hash(self) -> str:
        """SHA-256 in hexadecimal of the measured seconds and rates. Links and synchronisation
        belong to a cluster."""
        content = (self.devices, self.step)
        return hashlib.sha256(msgspec.msgpack.encode(content)).hexdigest()

    def write(self, path: str | Path) -> None:
        """Write the costs as JSON; the file is complete or not there.

        Raises:
            SituateError: the path cannot be written.
        """
        from situate.files.atomic import write_bytes
        from situate.files.strict_json import json_bytes

        write_bytes(path, json_bytes(self))

    @classmethod
    def read(cls, path: str | Path) -> Costs:
        """Read a cost file.

        Raises:
            ReadError: no such file, or no valid costs; names the file and the field.
        """
        from situate.files.contents import packed, reason_of
        from situate.files.strict_json import decode

        try:
            costs = decode(packed(Path(path), LIMIT), cls)
            _check(costs)
        except ReadError as error:
            raise ReadError(f"{path}: not a cost file: {error}") from None
        except (OSError, ValueError) as error:
            raise ReadError(f"{path}: {reason_of(error)}") from None
        return costs


def _check(costs: Costs) -> None:
    if costs.version != 1:
        raise ReadError(f"version {costs.version}; this situate reads version 1")
    names = [device.name for device in costs.devices]
    for i, device in enumerate(costs.devices):
        if names.index(device.name) < i:
            raise ReadError(f"devices[{i}].name: two devices are called {device.name!r}")
        for dtype in sorted(device.flops.keys() - DTYPES):
            close = nearest(dtype, DTYPES)
            raise ReadError(f"devices[{i}].flops: unknown dtype {dtype!r}{close}")
        for name in sorted({*device.efficiency, *device.contention} - EFFICIENCY.keys()):
            raise ReadError(f"devices[{i}]: unknown op class {name!r}{nearest(name, EFFICIENCY)}")
