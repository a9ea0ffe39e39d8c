"""GPUs that CUDA shows, of a driver that only its answers stand for."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from situate.host import cuda
from situate.host.cuda import Gpu, visible_gpus

CARDS = [Gpu("big", "0000:02:00.0", 24 << 30), Gpu("small", "0000:01:00.0", 12 << 30)]


class Driver:
    """Answers of CUDA's driver; a device is 10 more than its number."""

    def __init__(self, status: int = 0) -> None:
        self.status = status

    def cuInit(self, flags: int) -> int:
        return self.status

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = len(CARDS)
        return 0

    def cuDeviceGet(self, device: Any, number: int) -> int:
        device._obj.value = 10 + number
        return 0

    def cuDeviceGetName(self, name: Any, length: int, device: Any) -> int:
        name.value = CARDS[device.value - 10].name.encode()
        return 0

    def cuDeviceGetPCIBusId(self, bus: Any, length: int, device: Any) -> int:
        bus.value = CARDS[device.value - 10].bus.encode()
        return 0

    def cuDeviceTotalMem_v2(self, memory: Any, device: Any) -> int:
        memory._obj.value = CARDS[device.value - 10].memory
        return 0


def test_gpus_come_in_the_drivers_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Driver())
    assert visible_gpus() == CARDS


def test_a_driver_that_shows_none_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Driver(status=100))
    assert visible_gpus() == []


def test_without_a_driver_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "DRIVER", "libthere-is-no-such-driver.so")
    assert visible_gpus() == []


def test_they_are_numbered_as_pytorch_numbers_them() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available() or torch.version.hip:
        pytest.skip("no CUDA device")
    result = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
    assert [(gpu.name, gpu.memory) for gpu in visible_gpus()] == [
        (properties.name, properties.total_memory) for properties in result
    ]
