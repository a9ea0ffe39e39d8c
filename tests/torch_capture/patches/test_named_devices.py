"""Names of devices, noted once each."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.torch_capture.patches.named_devices import NamedDevices, is_here  # noqa: E402


# Devices that a program names are recorded once.
@pytest.mark.parametrize("device", ["cpu", "cpu:0", "meta", None, True, torch.device("cpu")])
def test_the_cpu_meta_and_what_is_no_device_are_here(device):
    devices = NamedDevices()
    assert is_here(device)
    assert devices.here(device) is device
    assert not devices.warnings


@pytest.mark.parametrize("device", ["cuda", "cuda:1", "mps", 0, torch.device("xpu", 1)])
def test_every_other_is_the_cpu(device):
    devices = NamedDevices()
    assert devices.here(device) == "cpu"
    assert devices


def test_a_line_names_them_once_and_sorted():
    devices = NamedDevices()
    for device in ("cuda:1", "cuda:0", torch.device("cuda:1"), 1):
        devices.here(device)
    (line,) = devices.warnings
    assert "names cuda:0, cuda:1, device 1:" in line
