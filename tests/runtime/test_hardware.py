"""The real device of each device of a cluster."""

from __future__ import annotations

import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.errors import SituateError
from situate.host.cuda import Gpu
from situate.host.machine import usable_cpus
from situate.runtime import hardware
from situate.runtime.hardware import RealDevice, check_devices, real_devices


def cluster(*kinds: str, threads: int | None = None) -> Cluster:
    devices = tuple(
        Device(
            f"{kind}:{i}",
            kind=kind,
            flops={"float32": 1e10},
            bandwidth=1e10,
            threads=threads if kind == "cpu" else None,
        )
        for i, kind in enumerate(kinds)
    )
    return Cluster("mine", devices, (Link("*", "*", 1e9, 1e-5),))


def of_models(*models: str) -> Cluster:
    devices = tuple(Device(f"gpu{i}", model=model) for i, model in enumerate(models))
    return Cluster("mine", devices, (Link("*", "*", 1e9),))


# Threads and numbers.
def test_cpus_have_the_threads_that_the_cluster_says() -> None:
    assert [d.threads for d in real_devices(cluster("cpu", "cpu", threads=3))] == [3, 3]


def test_cpus_share_the_cores() -> None:
    real = real_devices(cluster("cpu", "cpu"))
    assert [device.torch for device in real] == ["cpu", "cpu"]
    assert {device.threads for device in real} == {max(1, usable_cpus() // 2)}


def test_a_cpu_alone_has_all_of_them() -> None:
    assert [d.threads for d in real_devices(cluster("cpu"))] == [None]


def test_gpus_are_numbered_in_their_order() -> None:
    real = real_devices(cluster("gpu", "cpu", "gpu"))
    assert [device.torch for device in real] == ["cuda:0", "cpu", "cuda:1"]
    assert [device.name for device in real] == ["gpu:0", "cpu:1", "gpu:2"]


# Missing devices.
def test_a_device_that_is_not_here_is_refused() -> None:
    torch = pytest.importorskip("torch")
    count = torch.cuda.device_count()
    devices = [RealDevice("far", f"cuda:{count}", 1)]
    with pytest.raises(SituateError, match=f"'far' of cluster 'mine' .* cuda:{count}; .*discover"):
        check_devices(devices, cluster("gpu"))
    check_devices([RealDevice("here", "cpu", 1)], cluster("cpu"))


def test_a_gpu_under_another_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    gpus = [Gpu("big", "0000:02:00.0", 24 << 30), Gpu("small", "0000:01:00.0", 12 << 30)]
    monkeypatch.setattr(hardware, "visible_gpus", lambda: gpus)
    for models in ("small", "big"), ("small", "unknown"):
        described = of_models(*models)
        with pytest.raises(SituateError, match=r"cuda:0; that is a 'big' and not a 'small': .*"):
            check_devices(real_devices(described), described)
    for models in ("big", "small"), ("other", "unknown"), ("", ""):
        described = of_models(*models)
        check_devices(real_devices(described), described)
