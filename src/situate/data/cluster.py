"""Devices, the links between them, and the TOML files that describe both."""

from __future__ import annotations

import hashlib
import math
import os
import re
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, NoReturn, cast, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from situate.data.cluster_keys import NO_UNIT, check_keys
from situate.data.graph import BYTES_LIMIT, MachineDevice
from situate.data.op_classes import DTYPES, EFFICIENCY
from situate.errors import ClusterError, nearest
from situate.files.strict_json import plain
from situate.validation import check, check_items

PRESETS = Path(__file__).parent / "clusters"

LIMIT = 2**24
"""Largest file of a cluster, in bytes."""

OWN_MACHINE = "its own machine"
"""Name of the cluster of devices that a graph's own file brings."""

MOST_DEVICES = 256
"""Largest number of devices of one cluster."""

MOST_THREADS = 4096
"""Largest number of CPU threads of one device."""

Transfers = Literal["overlapped", "blocking"]

LEAST_BARE = 2**20
"""Smallest memory that a file says without a unit, in bytes: fewer were meant as MiB or GiB."""

UNITS = {"B": 1} | {
    prefix + suffix: base**power
    for power, prefix in enumerate("KMGT", start=1)
    for suffix, base in (("B", 1000), ("iB", 1024))
}


class Device(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One device. The roofline needs its rates; a graph with its own seconds needs none."""

    name: str
    kind: str = "gpu"
    model: str = ""
    memory: int | None = None
    """Usable bytes; None is unlimited."""
    flops: dict[str, float] = {}
    """Peak FLOP/s by dtype, such as `float32`."""
    bandwidth: float = math.inf
    """Bytes/s of the device's own memory."""
    launch: float = 0.0
    """Seconds to launch one op."""
    efficiency: dict[str, float] = {}
    """Fraction of the peak that an op class reaches, over the roofline's defaults."""
    threads: int | None = None
    """CPU threads its ops use; None: all cores, shared evenly among the cluster's CPU devices."""


class Link(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename={"source": "from", "target": "to"},
):
    """The path of tensors from every device matching `from` to every device matching `to`.

    Patterns are shell-style (`gpu*`). `{from}` and `{to}` in `channel` stand for the devices'
    names; without a channel every ordered pair has its own.
    """

    source: str
    target: str
    bandwidth: float
    """Bytes/s."""
    latency: float = 0.0
    """Seconds."""
    channel: str = ""
    both: bool = True
    """Holds in the other direction too."""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    devices: list[dict[str, Any]]
    links: list[Link] = []
    description: str = ""
    unit: str = "s"
    transfers: str = "overlapped"
    synchronisation: float = 0.0


@dataclass(frozen=True)
class Cluster:
    """Devices and links, validated.

    Args:
        name: in reports.
        devices: at least one; names are unique.
        links: where two match the same pair of devices, the later one holds.
        transfers: `overlapped` or `blocking`, see the execution model.
        synchronisation: seconds that every tensor and control edge pays to cross devices.
        description: a line for lists of clusters.
        unit: `s`, or empty where times and rates count in the numbers of a graph without a unit.

    Raises:
        ClusterError: names the device or link at fault.
    """

    name: str
    devices: tuple[Device, ...]
    links: tuple[Link, ...] = ()
    transfers: Transfers = "overlapped"
    synchronisation: float = 0.0
    description: str = ""
    unit: str = "s"

    def __post_init__(self) -> None:
        self._check_types()
        if not self.devices:
            raise ClusterError(f"cluster {self.name!r}: has no devices")
        _device_count(len(self.devices))
        for i, device in enumerate(self.devices):
            _check_device(device, f"cluster {self.name!r}: devices[{i}] {device.name!r}")
        names = [device.name for device in self.devices]
        for name in names:
            if names.count(name) > 1:
                raise ClusterError(f"cluster {self.name!r}: two devices are called {name!r}")
        for i, link in enumerate(self.links):
            _check_link(link, names, f"cluster {self.name!r}: links[{i}]")
        if self.transfers not in (modes := get_args(Transfers)):
            hint = nearest(str(self.transfers), modes)
            raise ClusterError(f"cluster {self.name!r}: unknown transfers {self.transfers!r}{hint}")
        _check_number(self.synchronisation, f"cluster {self.name!r}: synchronisation")
        self._tables  # noqa: B018 - a pair without a link is an error here, not in a solver

    def _check_types(self) -> None:
        check_items([self], Cluster, lambda _: "cluster", ClusterError)
        where = f"cluster {self.name!r}"
        check_items(
            self.devices, Device, lambda i: f"{where}: devices[{i}]", ClusterError, ["memory"]
        )
        check_items(self.links, Link, lambda i: f"{where}: links[{i}]", ClusterError)

    @property
    def names(self) -> list[str]:
        """Device names, in order."""
        return [device.name for device in self.devices]

    @property
    def latency(self) -> NDArray[np.float64]:
        """Seconds, shape (devices, devices); zero on the diagonal."""
        return self._tables[0]

    @property
    def bandwidth(self) -> NDArray[np.float64]:
        """Bytes/s, shape (devices, devices); infinite on the diagonal."""
        return self._tables[1]

    @property
    def channel(self) -> NDArray[np.int32]:
        """Index into `channels`, shape (devices, devices); -1 on the diagonal."""
        return self._tables[2]

    @property
    def channels(self) -> list[str]:
        """Names of the channels; `a->b` for a pair with a channel of its own."""
        return self._tables[3]

    @cached_property
    def hash(self) -> str:
        """SHA-256 in hexadecimal of the fields that times and memory depend on."""
        devices = [_given_keys(device) for device in self.devices]
        content = (devices, self.links, self.transfers, self.synchronisation)
        return hashlib.sha256(msgspec.msgpack.encode(content, enc_hook=plain)).hexdigest()

    @cached_property
    def _tables(
        self,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int32], list[str]]:
        n = len(self.devices)
        latency, bandwidth = np.zeros((n, n)), np.full((n, n), np.inf)
        channel = np.full((n, n), -1, np.int32)
        index: dict[str, int] = {}
        link_index = self._link_index().tolist()
        for i, source in enumerate(self.names):
            for j, target in enumerate(self.names):
                if i == j:
                    continue
                link = self.links[link_index[i][j]]
                latency[i, j], bandwidth[i, j] = link.latency, link.bandwidth
                name = link.channel.replace("{from}", source).replace("{to}", target)
                channel[i, j] = index.setdefault(name or f"{source}->{target}", len(index))
        return latency, bandwidth, channel, list(index)

    def _link_index(self) -> NDArray[np.int64]:
        """Index of the last link that matches each pair, shape (devices, devices)."""
        n = len(self.devices)
        link_index = np.full((n, n), -1)
        for i, link in enumerate(self.links):
            ends = [
                [j for j, name in enumerate(self.names) if fnmatchcase(name, pattern)]
                for pattern in (link.source, link.target)
            ]
            # `ix_` selects all pairs of a source and a target; a later link replaces earlier ones.
            link_index[np.ix_(*ends)] = i
            if link.both:
                link_index[np.ix_(*ends[::-1])] = i
        # No link goes from a device to itself; any index hides these pairs from the search below.
        np.fill_diagonal(link_index, 0)
        for a, b in np.argwhere(link_index < 0)[:1]:
            self._fail_unlinked(self.names[a], self.names[b])
        return link_index

    def _fail_unlinked(self, source: str, target: str) -> NoReturn:
        raise ClusterError(
            f"cluster {self.name!r}: no link from {source!r} to {target!r}: add a [[links]] "
            f'entry with from = "{source}", to = "{target}"'
        )

    @classmethod
    def read(cls, path: str | Path) -> Cluster:
        """Read a TOML file.

        Raises:
            ClusterError: no such file, or no valid cluster; names the file and the entry.
        """
        from situate.files.contents import one_line, packed, reason_of

        try:
            return cls._of_toml(packed(Path(path), LIMIT).decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            reason = f"not UTF-8 at byte {error.start}"
        except RecursionError:
            reason = "is nested too deeply"
        except tomllib.TOMLDecodeError as error:
            reason = f"is no TOML: {error}"
        except (OSError, ValueError) as error:  # msgspec's and ours are ValueErrors too
            reason = reason_of(error)
        raise ClusterError(one_line(f"{path}: {reason}"))

    @classmethod
    def _of_toml(cls, text: str) -> Cluster:
        content = tomllib.loads(text)
        check_keys(content)
        file = msgspec.convert(content, _File)
        unitless = file.unit == ""
        devices = [d for i, entry in enumerate(file.devices) for d in _devices(entry, i, unitless)]
        return cls(
            file.name,
            tuple(devices),
            tuple(file.links),
            cast("Transfers", file.transfers),
            file.synchronisation,
            file.description,
            file.unit,
        )

    @classmethod
    def preset(cls, name: str) -> Cluster:
        """One of the clusters that come with situate; `Cluster.presets()` lists them.

        Raises:
            ClusterError: there is none of that name.
        """
        check(name, str, "preset", ClusterError)
        if name not in cls.presets():
            raise ClusterError(f"no cluster file or preset {name!r}{nearest(name, cls.presets())}")
        return cls.read(PRESETS / f"{name}.toml")

    @staticmethod
    def presets() -> list[str]:
        """Names of the clusters that come with situate."""
        return sorted(path.stem for path in PRESETS.glob("*.toml"))

    @classmethod
    def identical(cls, count: int) -> Cluster:
        """`count` equal devices of unlimited memory. The graph's own costs apply to transfers;
        tensors without costs are free.

        Raises:
            ClusterError: a count that is no integer, or is below one or above `MOST_DEVICES`.
        """
        check(count, int, "identical: the number of devices", ClusterError)
        devices = tuple(MachineDevice(f"d{i}", "any") for i in range(_device_count(int(count))))
        return cls.of_machine(f"identical:{int(count)}", devices)

    @classmethod
    def of_machine(cls, name: str, machine: tuple[MachineDevice, ...]) -> Cluster:
        """The devices in a graph's own file, `Graph.machine`; the graph's own costs apply to
        transfers.

        Raises:
            ClusterError: as of `Cluster`.
        """
        check(machine, tuple, "machine", ClusterError)
        check_items(machine, MachineDevice, lambda i: f"machine[{i}]", ClusterError)
        devices = tuple(Device(d.name, kind=d.kind, memory=d.memory) for d in machine)
        return cls(name, devices, (Link("*", "*", math.inf),))

    @classmethod
    def find(cls, text: str | Path) -> Cluster:
        """The argument of `--cluster`: a TOML file, a preset, or `identical:N`.

        Raises:
            ClusterError: none of these, or as `read` and `preset`.
        """
        text = os.fspath(text)
        check(text, str, "cluster", ClusterError)
        if match := re.fullmatch(r"identical:(-?\d+)", text):
            # Nine digits are too many devices anyway, and Python refuses to parse thousands of
            # digits.
            return cls.identical(_device_count(int(match[1][:9])))
        if text.endswith(".toml") or os.path.isfile(text):
            return cls.read(text)
        if text.partition(":")[0] == "identical":
            raise ClusterError(f"{text}: identical:N takes a number, such as identical:2")
        return cls.preset(text)


def _given_keys(device: Device) -> dict[str, Any]:
    """The given keys of a device, without `threads` if nobody set them."""
    content: dict[str, Any] = msgspec.to_builtins(device, enc_hook=plain)
    if device.threads is None:
        del content["threads"]
    return content


def _devices(entry: dict[str, Any], index: int, unitless: bool) -> list[Device]:
    """The devices of one [[devices]] entry; `count` repeats it with a number behind the name."""
    where = f"devices[{index}]"
    entry = dict(entry)
    count = entry.pop("count", None)
    if "memory" in entry:
        entry["memory"] = _bytes(entry["memory"], f"{where}.memory", unitless)
    try:
        device = msgspec.convert(entry, Device)
    except msgspec.ValidationError as error:
        raise ClusterError(f"{where}: {error}") from None
    if count is None:
        return [device]
    if not 1 <= count <= MOST_DEVICES:
        raise ClusterError(f"{where}.count: must be between 1 and {MOST_DEVICES}, got {count}")
    return [msgspec.structs.replace(device, name=f"{device.name}{i}") for i in range(count)]


def _device_count(count: int) -> int:
    if not 1 <= count <= MOST_DEVICES:
        raise ClusterError(f"a cluster needs between 1 and {MOST_DEVICES} devices, got {count}")
    return count


def _bytes(value: object, where: str, unitless: bool) -> int:
    """Bytes from a number or a text such as `24 GiB`."""
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return int(value) if unitless else _bare(int(value), where)
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(-?\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", value)
        if match and match[2] in UNITS:
            # Limited before the product: digits beyond a double's range are infinite, and `int`
            # raises.
            return int(min(float(match[1]), 2.0 * BYTES_LIMIT) * UNITS[match[2]])
    raise ClusterError(f"{where}: must be bytes or a text such as '24 GiB', got {value!r}")


def _bare(value: int, where: str) -> int:
    """Bytes that are written without a unit."""
    if 0 < value < LEAST_BARE:
        raise ClusterError(
            f"{where}: {value} without a unit is bytes: write a unit, such as '24 GiB'; "
            f"'{value} B' if so few are meant; {NO_UNIT}"
        )
    return value


def _check_device(device: Device, where: str) -> None:
    if not device.name or any(c in device.name for c in "*?[]"):
        raise ClusterError(f"{where}: a name must not be empty or hold any of * ? [ ]")
    if device.kind.lower() == "cpu" and device.kind != "cpu":
        raise ClusterError(f"{where}: kind {device.kind!r} is no CPU's: write 'cpu'")
    if device.memory is not None:
        _check_memory(device.memory, f"{where}: memory")
    if not device.bandwidth > 0:
        raise ClusterError(f"{where}: bandwidth: must be positive, got {device.bandwidth}")
    _check_number(device.launch, f"{where}: launch")
    if device.threads is not None and not 1 <= device.threads <= MOST_THREADS:
        raise ClusterError(
            f"{where}: threads: must be between 1 and {MOST_THREADS}, got {device.threads}"
        )
    _check_rates(device, where)


def _check_memory(memory: Any, where: str) -> None:
    number = isinstance(memory, Real)
    if number and not 0 < memory <= BYTES_LIMIT:
        raise ClusterError(f"{where}: must be between 1 and 2^53, got {memory}")
    if not isinstance(memory, Integral):
        raise ClusterError(f"{where}: must be an integer, got {memory!r}")


def _check_rates(device: Device, where: str) -> None:
    for name, rate in device.flops.items():
        check(rate, float, f"{where}: flops {name!r}", ClusterError)
        if name not in DTYPES:
            raise ClusterError(
                f"{where}: flops: unknown dtype {name!r}{nearest(str(name), DTYPES)}"
            )
        if not (math.isfinite(rate) and rate > 0):
            raise ClusterError(f"{where}: flops {name!r}: must be finite and positive, got {rate}")
    for name, fraction in device.efficiency.items():
        check(fraction, float, f"{where}: efficiency {name!r}", ClusterError)
        if name not in EFFICIENCY:
            hint = nearest(str(name), EFFICIENCY)
            raise ClusterError(f"{where}: efficiency: unknown op class {name!r}{hint}")
        if not 0 < fraction <= 1:
            raise ClusterError(
                f"{where}: efficiency {name!r}: must be above 0 and at most 1, a fraction of the "
                f"peak, got {fraction}"
            )


def _check_link(link: Link, names: list[str], where: str) -> None:
    for side, pattern in (("from", link.source), ("to", link.target)):
        if not any(fnmatchcase(name, pattern) for name in names):
            listed_names = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
            raise ClusterError(f"{where}: {side} {pattern!r} matches no device of {listed_names}")
    if not link.bandwidth > 0:
        raise ClusterError(f"{where}: bandwidth: must be positive, got {link.bandwidth}")
    _check_number(link.latency, f"{where}: latency")
    for place in re.findall(r"\{.*?\}", link.channel):
        if place not in ("{from}", "{to}"):
            raise ClusterError(f"{where}: channel: {place!r} is neither {{from}} nor {{to}}")


def _check_number(value: float, where: str) -> None:
    if not (math.isfinite(value) and value >= 0):
        raise ClusterError(f"{where}: must be finite and not negative, got {value}")
