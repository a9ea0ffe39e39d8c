"""What other tools call devices."""

from __future__ import annotations

from situate.writers.places import places
from tests.writers.layered import network


def test_accelerators_are_numbered_past_cpus_and_disks():
    kinds = ("cpu", "gpu", "disk", "npu", "gpu")
    assert places(network(kinds=kinds).cluster) == ["cpu", 0, "disk", 1, 2]
