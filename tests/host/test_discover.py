"""This machine, and machines with GPUs that only the driver's answers stand for."""

from __future__ import annotations

import math
import sys

import msgspec
import numpy as np
import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.errors import ClusterError
from situate.host import discover
from situate.host.cuda import Gpu


class DriverError(Exception):
    pass


class Driver:
    """Answers of nvidia-ml-py for H100s on PCIe 5.0 x16, where card 7 has half the units."""

    NVMLError = DriverError
    NVML_CLOCK_SM, NVML_CLOCK_MEM = 1, 2

    def __init__(self) -> None:
        self.open = 0

    def nvmlInit(self) -> None:
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetHandleByPciBusId(self, bus: bytes) -> int:
        return int(bus)

    def nvmlDeviceGetCudaComputeCapability(self, handle: int) -> tuple[int, int]:
        return 9, 0

    def nvmlDeviceGetNumGpuCores(self, handle: int) -> int:
        return 16896 // (1 + (handle == 7))

    def nvmlDeviceGetMaxClockInfo(self, handle: int, clock: int) -> int:
        return {self.NVML_CLOCK_SM: 1980, self.NVML_CLOCK_MEM: 2619}[clock]

    def nvmlDeviceGetMemoryBusWidth(self, handle: int) -> int:
        return 5120

    def nvmlDeviceGetMaxPcieLinkGeneration(self, handle: int) -> int:
        return 5

    def nvmlDeviceGetMaxPcieLinkWidth(self, handle: int) -> int:
        return 16


@pytest.fixture(autouse=True)
def _measured(monkeypatch):
    """Figures of the CPU that need no measuring."""
    monkeypatch.setattr(discover, "_multiply_rate", lambda dtype: 1e11)
    monkeypatch.setattr(discover, "_copy_rate", lambda: 2e10)


@pytest.fixture
def show(monkeypatch):
    """Lets CUDA show other GPUs."""

    def shown(*gpus: Gpu) -> None:
        monkeypatch.setattr(discover, "visible_gpus", lambda: list(gpus))

    return shown


@pytest.fixture
def driver(monkeypatch, show) -> Driver:
    driver = Driver()
    monkeypatch.setitem(sys.modules, "pynvml", driver)
    show(*(Gpu("NVIDIA H100", str(bus), 80 * 2**30) for bus in range(2)))
    return driver


def test_without_nvidia_ml_py_there_is_the_cpu_alone(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    (cpu,) = discover.discover().devices
    assert (cpu.name, cpu.kind) == ("cpu", "cpu")
    assert cpu.memory is None or cpu.memory > 2**27
    assert cpu.flops == {"float32": 1e11, "float64": 1e11}


def test_without_a_driver_there_is_the_cpu_alone(driver, monkeypatch):
    def no_driver() -> None:
        raise DriverError("Driver Not Loaded")

    monkeypatch.setattr(driver, "nvmlInit", no_driver)
    assert discover.discover().names == ["cpu"]


def test_gpus_have_the_rates_of_their_datasheet(driver):
    gpu = discover.discover().devices[0]
    assert (gpu.name, gpu.kind, gpu.model) == ("gpu0", "gpu", "NVIDIA H100")
    assert gpu.memory == 79 * 2**30
    assert gpu.flops["float32"] == pytest.approx(67e12, rel=0.02)
    assert gpu.flops["float64"] == pytest.approx(34e12, rel=0.04)
    assert gpu.flops["bfloat16"] == pytest.approx(989e12, rel=0.02)
    assert gpu.bandwidth == pytest.approx(3.35e12, rel=0.02)
    assert driver.open == 0


def test_gpus_are_linked_over_pcie_to_the_cpu_and_each_other(driver):
    cluster = discover.discover()
    assert cluster.names == ["gpu0", "gpu1", "cpu"]
    assert cluster.bandwidth[0, 2] == pytest.approx(50e9, rel=0.02)
    assert cluster.channel[0, 1] == cluster.channel[0, 2]
    assert cluster.channel[2, 0] != cluster.channel[2, 1]


def test_one_gpu_needs_no_link_to_another(driver, show):
    show(Gpu("NVIDIA H100", "0", 80 * 2**30))
    assert discover.discover().names == ["gpu0", "cpu"]


def test_gpus_are_those_that_cuda_shows_in_its_order(driver, show):
    show(Gpu("small", "7", 12 * 2**30), Gpu("big", "0", 24 * 2**30))
    small, big, _ = discover.discover().devices
    assert (small.name, small.model, small.memory) == ("gpu0", "small", 11 * 2**30)
    assert (big.name, big.model, big.memory) == ("gpu1", "big", 23 * 2**30)
    assert big.flops["float32"] == pytest.approx(2 * small.flops["float32"], rel=0.05)


def test_an_unknown_gpu_generation_has_the_rates_of_its_units(driver, monkeypatch):
    monkeypatch.setattr(driver, "nvmlDeviceGetCudaComputeCapability", lambda handle: (99, 0))
    assert set(discover.discover().devices[0].flops) == {"float32", "float64"}


def test_a_driver_that_fails_is_an_error_and_is_closed(driver, monkeypatch):
    def lost(handle: int) -> None:
        raise DriverError("GPU is lost")

    monkeypatch.setattr(driver, "nvmlDeviceGetNumGpuCores", lost)
    with pytest.raises(ClusterError, match="does not describe its GPUs: GPU is lost"):
        discover.discover()
    assert driver.open == 0


def test_a_cpu_as_several_devices_is_shared_evenly(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setattr(discover, "usable_cpus", lambda: 7)
    monkeypatch.setattr(discover, "usable_memory", lambda: 900)
    cluster = discover.discover(cpus=3)
    assert cluster.names == ["cpu:0", "cpu:1", "cpu:2"]
    for device in cluster.devices:
        assert (device.kind, device.threads, device.memory) == ("cpu", 2, 300)
        assert device.model.endswith("(2 threads)")
        assert device.flops["float32"] == pytest.approx(1e11 / 3, rel=0.02)
    assert cluster.bandwidth[0, 2] == 1e10


def test_more_cpus_than_threads_have_one_thread_each(monkeypatch):
    monkeypatch.setattr(discover, "usable_cpus", lambda: 2)
    (*_, last) = discover.discover(cpus=4).devices
    assert (last.name, last.threads) == ("cpu:3", 1)
    assert last.model.endswith("(1 thread)")


def test_every_gpu_is_linked_to_every_cpu(driver):
    cluster = discover.discover(cpus=2)
    assert cluster.names == ["gpu0", "gpu1", "cpu:0", "cpu:1"]
    assert cluster.channel[0, 2] == cluster.channel[0, 3] != cluster.channel[1, 2]


@pytest.mark.parametrize("cpus", [0, -1, 257])
def test_an_impossible_number_of_cpus_is_refused(cpus):
    with pytest.raises(ClusterError, match="cpus: must be between 1 and 256"):
        discover.discover(cpus)


@pytest.mark.parametrize("cpus", [None, 2])
def test_what_was_discovered_reads_back_the_same(driver, tmp_path, cpus):
    cluster = discover.discover(cpus)
    (tmp_path / "c.toml").write_text(discover.to_toml(cluster))
    assert Cluster.read(tmp_path / "c.toml") == cluster


@pytest.mark.parametrize("name", Cluster.presets())
def test_every_preset_reads_back_the_same(name, tmp_path):
    (tmp_path / "c.toml").write_text(discover.to_toml(Cluster.preset(name)), encoding="utf-8")
    assert Cluster.read(tmp_path / "c.toml") == Cluster.preset(name)


def test_any_name_and_number_reads_back_the_same(tmp_path):
    awkward = '"\\\n\t\x00\x1b[31m\x7f</script>é\U0001f600'
    cluster = Cluster(
        awkward,
        (
            Device("a b", model=awkward, memory=1, flops={"float32": 1e12 / 3}, launch=1e-300),
            Device("b", kind="cpu", efficiency={"matmul": 0.1 + 0.2}),
        ),
        (Link("a b", "b", math.inf, 5e-324, awkward, both=False), Link("b", "*", 123456789.0)),
        transfers="blocking",
        synchronisation=1e-6,
        description=awkward,
    )
    (tmp_path / "c.toml").write_text(discover.to_toml(cluster), encoding="utf-8")
    assert Cluster.read(tmp_path / "c.toml") == cluster


def test_numbers_out_of_arrays_are_written_as_numbers(tmp_path):
    gpu = Device("g0", memory=np.int64(2**40 + 1), flops={"float32": np.float64(1e12 / 3)})
    link = Link("g0", "g1", np.float64(1e9 / 7))
    both = (gpu, msgspec.structs.replace(gpu, name="g1"))
    cluster = Cluster("c", both, (link,), synchronisation=np.float64(1 / 9))
    (tmp_path / "c.toml").write_text(discover.to_toml(cluster))
    assert Cluster.read(tmp_path / "c.toml") == cluster


def test_rates_are_measured_and_positive(monkeypatch):
    monkeypatch.undo()
    assert 0 < discover._multiply_rate(np.float32, n=16) < math.inf
    assert 0 < discover._copy_rate(1 << 16) < math.inf


def test_a_rate_is_that_of_the_fastest_of_many_repetitions(monkeypatch):
    clock, takes = [0.0], iter([1.0] + [0.05] * 9 + [0.001] + [0.05] * 99)

    def work():
        clock[0] += next(takes)

    monkeypatch.setattr(discover.time, "perf_counter", lambda: clock[0])
    assert discover._fastest(work, seconds=0.6) == pytest.approx(0.001)
