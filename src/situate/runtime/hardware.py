"""Which real device stands for a device of a cluster."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from situate.cluster import Cluster
from situate.errors import SituateError


@dataclass(frozen=True)
class RealDevice:
    """What runs a device's share.

    Attributes:
        name: the cluster's word for it.
        torch: PyTorch's.
        threads: that its kernels may use; None leaves them as they are.
        mirrored: it has memory of its own, in which it works on copies of the state.
    """

    name: str
    torch: str
    threads: int | None
    mirrored: bool = False


def real_devices(cluster: Cluster) -> list[RealDevice]:
    """Of every device of a cluster: CPU devices share the cores, GPU number i is `cuda:i`."""
    cpus = sum(device.kind == "cpu" for device in cluster.devices)
    even = max(1, _cores() // cpus) if cpus > 1 else None
    found, gpus = [], 0
    for device in cluster.devices:
        if device.kind == "cpu":
            found.append(RealDevice(device.name, "cpu", device.threads or even))
        else:
            found.append(RealDevice(device.name, f"cuda:{gpus}", 1, mirrored=True))
            gpus += 1
    return found


def own_cores(devices: Sequence[RealDevice]) -> bool:
    """Whether there is a core for every thread of these devices."""
    return sum(device.threads or 1 for device in devices) <= _cores()


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_here(devices: list[RealDevice], cluster: Cluster) -> None:
    """Raises SituateError for the first device that this machine does not have."""
    import torch

    for device in devices:
        if device.torch == "cpu":
            continue
        if int(device.torch.partition(":")[2]) >= torch.cuda.device_count():
            raise SituateError(
                f"device {device.name!r} of cluster {cluster.name!r} would be {device.torch}; "
                f"this machine has {torch.cuda.device_count()} CUDA devices: plan for the cluster "
                "that 'situate cluster discover' describes"
            )
