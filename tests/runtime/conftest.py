"""Fixtures of the tests: workers for three devices, started once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.runtime.apart.compiler import COMPILER, library

if TYPE_CHECKING:
    from situate.evaluators.hardware.workers import HardwareWorkers
    from situate.runtime.step import StartDevices


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Sums are the same to the last bit only with as many threads."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def pool() -> Iterator[HardwareWorkers]:
    """Devices, each in a process of its own, that run one placed step after the other."""
    pytest.importorskip("torch")
    from situate.evaluators.hardware.workers import HardwareWorkers

    library_path = HardwareWorkers(600.0)
    yield library_path
    library_path.close()


@pytest.fixture(scope="session")
def apart() -> None:
    """The device `apart:0` is compiled, which takes longer than a device may take to start."""
    if COMPILER is None:
        pytest.skip("the device is compiled")
    library()


@pytest.fixture
def processes(pool: HardwareWorkers) -> Iterator[StartDevices]:
    """Starts devices, for this test."""
    yield pool.start
    pool.finish()
