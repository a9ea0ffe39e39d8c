"""Memory that a step allocates."""

from __future__ import annotations

import os
import time

import pytest
import torch

from situate.runtime.device import Ran
from situate.runtime.processes.allocated import with_memory

KIB = 1 << 10


def allocating() -> Ran:
    """Op 0 allocates 64 KiB, 32 of which it keeps; op 1 allocates nothing."""
    began, ended = {}, {}
    began[0] = time.perf_counter()
    kept = torch.empty(32 * KIB, dtype=torch.uint8)
    torch.empty(32 * KIB, dtype=torch.uint8)
    ended[0] = began[1] = time.perf_counter()
    ended[1] = time.perf_counter()
    del kept
    return Ran(began[0], ended[1], 0.0, began, ended)


def test_the_peak_is_the_most_that_was_allocated_at_once() -> None:
    assert with_memory(allocating, torch.device("cpu")).peak == 64 * KIB


def test_each_op_is_told_what_it_allocated() -> None:
    allocated = with_memory(allocating, torch.device("cpu")).allocated
    assert allocated[0] == 64 * KIB
    assert allocated[1] == 0


def test_the_environment_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    before = dict(os.environ)
    with_memory(allocating, torch.device("cpu"))
    assert dict(os.environ) == before
    monkeypatch.setenv("KINETO_LOG_LEVEL", "3")
    with_memory(allocating, torch.device("cpu"))
    assert os.environ["KINETO_LOG_LEVEL"] == "3"


def test_what_another_device_allocated_does_not_count() -> None:
    assert with_memory(allocating, torch.device("cuda:0")).peak == 0
