"""Errors of devices are one line, which names the device."""

from __future__ import annotations

import pytest

from situate.evaluators.measurements import OUTCOMES
from situate.runtime.processes.failures import OutOfMemory, StepFailed, WorkerEnded, device_failure
from situate.runtime.processes.messages import Failed

REMEDY = "end other programs, give a smaller batch, or leave this device out of the cluster"


@pytest.mark.parametrize(
    ("status", "how"),
    [(None, "hung up"), (0, "ended with exit status 0"), (-9, "ended by SIGKILL")],
)
def test_a_process_that_ended_says_how(status: int | None, how: str) -> None:
    assert str(WorkerEnded("gpu0", status)) == f"device 'gpu0': its process {how}"


@pytest.mark.parametrize(
    ("failed", "line"),
    [
        (Failed("error", ""), "device 'gpu0': error"),
        (Failed("error", "\n\n"), "device 'gpu0': error"),
        (Failed("error", " a\nb"), "device 'gpu0': a"),
        (Failed("out_of_memory", " a\nb"), f"device 'gpu0': out of memory (a): {REMEDY}"),
    ],
)
def test_a_device_that_failed_is_named_in_one_line(failed: Failed, line: str) -> None:
    assert str(device_failure("gpu0", failed)) == line


def test_every_failure_is_an_outcome() -> None:
    assert {kind.outcome for kind in (StepFailed, OutOfMemory, WorkerEnded)} <= set(OUTCOMES)
