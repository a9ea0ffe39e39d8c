"""The clock is read when the device is done."""

from __future__ import annotations

import time

import pytest

torch = pytest.importorskip("torch")

from situate.runtime.processes.clock import clock  # noqa: E402


def test_of_a_cpu_it_is_that_of_module_time() -> None:
    assert clock("perf_counter", torch.device("cpu")) is time.perf_counter
    assert clock("thread_time", torch.device("cpu")) is time.thread_time


def test_a_gpu_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
    gpu = torch.device("cuda:1")
    before = time.perf_counter()
    assert clock("perf_counter", gpu)() >= before
    assert waited == [gpu]
