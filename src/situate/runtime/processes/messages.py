"""Messages between the process that calls a step and its workers, and errors from failures."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from situate.errors import SituateError
from situate.runtime.device import Share
from situate.runtime.model_state.optimizers import Hyperparameters
from situate.runtime.model_state.state import Places
from situate.runtime.settings import Settings, apply_settings

if TYPE_CHECKING:
    import torch


SPIN_SECONDS = 1e-3
"""Seconds of busy waiting if no other device needs the core; a wake-up takes about 50e-6."""


END_OF_STEP = None
"""The message that ends a placed step: the worker waits for the next one."""


@dataclass(frozen=True)
class Assignment:
    """The first message to a worker: its share of a placed step, and the data to run it.

    Attributes:
        places: of the shared tensors.
        device: PyTorch's name.
        threads: of its kernels.
        hyperparameters: of the updates, by group.
        mirrored: the device works on copies of the state in memory of its own.
        spin: seconds of busy waiting for a tensor before it sleeps.
        modules: define operators of its share.
        settings: the caller's settings of PyTorch.
    """

    places: Places
    share: Share
    device: str
    threads: int
    hyperparameters: list[Hyperparameters]
    mirrored: bool = False
    spin: float = SPIN_SECONDS
    modules: tuple[str, ...] = ()
    settings: Settings = field(default_factory=dict)

    def set_process(self) -> None:
        """Apply threads and settings to this process."""
        import torch

        torch.set_num_threads(self.threads)
        apply_settings(self.settings)


@dataclass(frozen=True)
class Run:
    """The order to run one step.

    Attributes:
        timed: record when each op starts and ends.
        hyperparameters: of the updates, by group; None if unchanged.
        memory: record allocations.
        changed: state that the caller changed, see `Bindings.changed`.
        keep: undo a failed step. Devices with memory of their own then load all state before the
            step and store it afterwards.
        inputs, results: tensors in this process to read and to write, in place of those in common
            memory.
        shifts: of the inputs in common memory, see `Common`.
    """

    step: int
    timed: bool
    hyperparameters: list[Hyperparameters] | None
    memory: bool = False
    changed: tuple[tuple[int, int], ...] = ()
    keep: bool = True
    inputs: Sequence[torch.Tensor] | None = None
    results: Sequence[torch.Tensor] | None = None
    shifts: tuple[int, ...] = ()


@dataclass(frozen=True)
class Store:
    """The order to devices with memory of their own to store the state as after `step`, with later
    changes by the caller. After a failure some of the state is old."""

    step: int
    changed: tuple[tuple[int, int], ...] = ()
    keep = False


@dataclass(frozen=True)
class FailureReport:
    """The report of a device that did not end a step.

    Attributes:
        reason: `out_of_memory`, `aborted` or `error`.
        text: of the error.
    """

    reason: str
    text: str


def failure_report(error: Exception) -> FailureReport:
    """The report of an exception, sent in place of an answer."""
    import torch

    if isinstance(error, torch.OutOfMemoryError):
        return FailureReport("out_of_memory", str(error))
    # PyTorch's allocator for CPUs raises a RuntimeError with these words.
    memory = isinstance(error, MemoryError) or "can't allocate memory" in str(error)
    return FailureReport("out_of_memory" if memory else "error", f"{type(error).__name__}: {error}")


class StepFailed(SituateError):
    """The error of a step that no device has ended; the model is as after the step before.

    Attributes:
        outcome: one of `situate.evaluators.measurements.OUTCOMES`.
    """

    outcome = "crash"


class OutOfMemory(StepFailed):
    """The error of a device that ran out of memory."""

    outcome = "out_of_memory"


class WorkerEnded(StepFailed):
    """The error of a worker whose process ended before it answered.

    Attributes:
        status: exit status, below zero for a signal; None if the process only hung up.
    """

    def __init__(self, name: str, status: int | None) -> None:
        how = "hung up" if status is None else f"ended with exit status {status}"
        if status is not None and status < 0:
            how = f"ended by {signal.Signals(-status).name}"
        super().__init__(f"device {name!r}: its process {how}")
        self.status = status


def device_failure(name: str, failed: FailureReport) -> StepFailed:
    """The error for a device's failure report, in one line."""
    words = failure_line(failed)
    if failed.reason == "out_of_memory":
        return OutOfMemory(
            f"device {name!r}: out of memory ({words}): end other programs, give a smaller batch, "
            "or leave this device out of the cluster"
        )
    return StepFailed(f"device {name!r}: {words}")


def failure_line(failed: FailureReport) -> str:
    """The first line of a report's text, or else its reason."""
    return (failed.text.strip() or failed.reason).splitlines()[0]
