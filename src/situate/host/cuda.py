"""The GPUs that CUDA shows this process, numbered as programs number them."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from typing import Any

DRIVER = "nvcuda.dll" if os.name == "nt" else "libcuda.so.1"


@dataclass(frozen=True)
class Gpu:
    """A GPU, or the part of one (MIG) that CUDA shows as a device.

    Attributes:
        name: the product.
        bus: its address on the PCI bus.
        memory: bytes.
    """

    name: str
    bus: str
    memory: int


def visible_gpus() -> list[Gpu]:
    """Number i is `cuda:i`; none without a driver.

    The driver itself decides: the GPUs and their order depend on `CUDA_VISIBLE_DEVICES`, on
    `CUDA_DEVICE_ORDER` and on their speed.
    """
    try:
        driver = ctypes.CDLL(DRIVER)
    except OSError:
        return []
    count = ctypes.c_int()
    # Functions of the driver return 0 for success.
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return []
    return [_gpu(driver, number) for number in range(count.value)]


def _gpu(driver: Any, number: int) -> Gpu:
    device, memory = ctypes.c_int(), ctypes.c_size_t()
    name, bus = ctypes.create_string_buffer(256), ctypes.create_string_buffer(32)
    driver.cuDeviceGet(ctypes.byref(device), number)
    driver.cuDeviceGetName(name, len(name), device)
    driver.cuDeviceGetPCIBusId(bus, len(bus), device)
    # The first version of this function counts in 32 bits.
    driver.cuDeviceTotalMem_v2(ctypes.byref(memory), device)
    return Gpu(name.value.decode(errors="replace"), bus.value.decode(), memory.value)
