"""Real devices that represent the devices of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from situate.data.cluster import Cluster
from situate.errors import SituateError
from situate.host.cuda import visible_gpus
from situate.host.machine import usable_cpus


@dataclass(frozen=True)
class RealDevice:
    """A device of this machine that runs the share of a cluster's device.

    Attributes:
        name: in the cluster.
        torch: PyTorch's name.
        threads: threads of its kernels; None leaves them unchanged.
        mirrored: it has memory of its own and works on copies of the state there.
    """

    name: str
    torch: str
    threads: int | None
    mirrored: bool = False


def real_devices(cluster: Cluster) -> list[RealDevice]:
    """The real devices of a cluster: CPU devices share the cores, GPU number i is `cuda:i`."""
    cpus = sum(device.kind == "cpu" for device in cluster.devices)
    # A single CPU device may use all cores.
    even = max(1, usable_cpus() // cpus) if cpus > 1 else None
    devices, gpus = [], 0
    for device in cluster.devices:
        if device.kind == "cpu":
            devices.append(RealDevice(device.name, "cpu", device.threads or even))
        else:
            # One thread suffices to launch kernels.
            devices.append(RealDevice(device.name, f"cuda:{gpus}", 1, mirrored=True))
            gpus += 1
    return devices


def has_core_per_thread(devices: Sequence[RealDevice]) -> bool:
    """True if there is a core for every thread of these devices."""
    return sum(device.threads or 1 for device in devices) <= usable_cpus()


def check_devices(devices: list[RealDevice], cluster: Cluster) -> None:
    """Check that this machine has the devices, under their numbers.

    Raises:
        SituateError: names the first missing device.
    """
    gpus = [device for device in devices if device.torch != "cpu"]
    models = {device.name: device.model for device in cluster.devices}
    if not gpus:
        return
    import torch

    count, here = torch.cuda.device_count(), [gpu.name for gpu in visible_gpus()]
    for gpu in gpus:
        number, model = int(gpu.torch.partition(":")[2]), models.get(gpu.name)
        if number >= count:
            _refuse_device(gpu, cluster, f"this machine has {count} CUDA devices")
        # `model` may be any text in a cluster file; only the name of a GPU here can contradict.
        if model in here and here[number] != model:
            _refuse_device(gpu, cluster, f"that is a {here[number]!r} and not a {model!r}")


def _refuse_device(device: RealDevice, cluster: Cluster, why: str) -> NoReturn:
    raise SituateError(
        f"device {device.name!r} of cluster {cluster.name!r} would be {device.torch}; {why}: plan "
        "for the cluster that 'situate cluster discover' describes"
    )
