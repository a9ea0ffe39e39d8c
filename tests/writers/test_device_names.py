"""Other tools' names of devices."""

from __future__ import annotations

from situate.writers.device_names import device_names
from tests.writers.layered import network


def test_accelerators_are_numbered_past_cpus_and_disks():
    kinds = ("cpu", "gpu", "disk", "npu", "gpu")
    assert device_names(network(kinds=kinds).cluster) == ["cpu", 0, "disk", 1, 2]
