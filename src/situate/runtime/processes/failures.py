"""Errors of a step that a device did not end."""

from __future__ import annotations

import signal

from situate.errors import SituateError
from situate.runtime.processes.messages import Failed


class StepFailed(SituateError):
    """A step that no device has ended; the model is as after the step before.

    Attributes:
        outcome: one of `situate.evaluators.measurements.OUTCOMES`.
    """

    outcome = "crash"


class OutOfMemory(StepFailed):
    """A device ran out of memory."""

    outcome = "out_of_memory"


class WorkerEnded(StepFailed):
    """A worker whose process ended before it answered.

    Attributes:
        status: exit status, below zero for a signal; None if the process only hung up.
    """

    def __init__(self, name: str, status: int | None) -> None:
        how = "hung up" if status is None else f"ended with exit status {status}"
        if status is not None and status < 0:
            how = f"ended by {signal.Signals(-status).name}"
        super().__init__(f"device {name!r}: its process {how}")
        self.status = status


def device_failure(name: str, failed: Failed) -> StepFailed:
    """The error that stands for what a device says of its failure, in one line."""
    words = first_line(failed)
    if failed.reason == "out_of_memory":
        return OutOfMemory(
            f"device {name!r}: out of memory ({words}): end other programs, give a smaller batch, "
            "or leave this device out of the cluster"
        )
    return StepFailed(f"device {name!r}: {words}")


def first_line(failed: Failed) -> str:
    """The first line of what a device says of its failure, or the reason where it says nothing."""
    return (failed.text.strip() or failed.reason).splitlines()[0]
