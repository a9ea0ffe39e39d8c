"""Messages between a step and its workers, and the errors from failures."""

from __future__ import annotations

import pickle

import pytest

torch = pytest.importorskip("torch")

from situate.evaluators.measurements import OUTCOMES  # noqa: E402
from situate.runtime.processes.messages import (  # noqa: E402
    FailureReport,
    OutOfMemory,
    Run,
    StepFailed,
    Store,
    WorkerEnded,
    device_failure,
    failure_report,
)


# Messages are plain data, and reports give reasons.
@pytest.mark.parametrize(
    "message", [Run(1, True, [{"lr": 0.1}]), Store(2), FailureReport("error", "no")]
)
def test_messages_are_plain_data(message: object) -> None:
    again = pickle.loads(pickle.dumps(message))  # noqa: S301 - made in this line
    assert again == message


@pytest.mark.parametrize(
    "error",
    [MemoryError(), torch.OutOfMemoryError("CUDA"), RuntimeError("can't allocate memory: 1 byte")],
)
def test_all_that_say_so_are_out_of_memory(error: Exception) -> None:
    assert failure_report(error).reason == "out_of_memory"


def test_every_other_error_says_its_kind() -> None:
    assert failure_report(ValueError("no")) == FailureReport("error", "ValueError: no")


REMEDY = "end other programs, give a smaller batch, or leave this device out of the cluster"


# Errors in one line.
@pytest.mark.parametrize(
    ("status", "how"),
    [(None, "hung up"), (0, "ended with exit status 0"), (-9, "ended by SIGKILL")],
)
def test_a_process_that_ended_says_how(status: int | None, how: str) -> None:
    assert str(WorkerEnded("gpu0", status)) == f"device 'gpu0': its process {how}"


@pytest.mark.parametrize(
    ("failed", "line"),
    [
        (FailureReport("error", ""), "device 'gpu0': error"),
        (FailureReport("error", "\n\n"), "device 'gpu0': error"),
        (FailureReport("error", " a\nb"), "device 'gpu0': a"),
        (FailureReport("out_of_memory", " a\nb"), f"device 'gpu0': out of memory (a): {REMEDY}"),
    ],
)
def test_a_device_that_failed_is_named_in_one_line(failed: FailureReport, line: str) -> None:
    assert str(device_failure("gpu0", failed)) == line


def test_every_failure_is_an_outcome() -> None:
    assert {kind.outcome for kind in (StepFailed, OutOfMemory, WorkerEnded)} <= set(OUTCOMES)
