"""Messages between the process that calls a step and the workers that run it."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from situate.errors import SituateError
from situate.runtime.device import Share
from situate.runtime.model_state.common import Places
from situate.runtime.model_state.optimizers import Hyperparameters
from situate.runtime.settings import Settings, apply_settings

if TYPE_CHECKING:
    import torch


SPIN_SECONDS = 1e-3
"""Seconds to wait awake where no other device wants the core; waking up takes some 50e-6."""


@dataclass(frozen=True)
class Assignment:
    """The first message to a worker: its share of a placed step, and what it needs to run that.

    Attributes:
        places: of what the devices share.
        device: PyTorch's name of it.
        threads: that its kernels may use.
        hyperparameters: of the updates, by group.
        mirrored: it works on copies of the state in memory of its own.
        spin: seconds it waits awake for a tensor before it sleeps.
        modules: that define operators of its share.
        settings: of PyTorch, where the step is called.
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
        """Set PyTorch in this process as it is told here."""
        import torch

        torch.set_num_threads(self.threads)
        apply_settings(self.settings)


@dataclass(frozen=True)
class Run:
    """The order to run one step.

    Attributes:
        timed: say when each op began and ended.
        hyperparameters: of the updates, by group; None where they are as before.
        memory: say what was allocated.
        changed: what of the state was changed from outside, see `Bindings.changed`.
        keep: the step is undone if it fails, so devices that have memory of their own take over all
            of the state when it begins, and bring it back when it ends.
        inputs, results: tensors to read and to write in this process, rather than those in the
            common memory.
        shifts: of the inputs in the common memory, see `Common`.
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
    """The order to bring back the state of devices that have memory of their own, as after that
    step, with what was changed from outside since. Where it fails, some of the state is old."""

    step: int
    changed: tuple[tuple[int, int], ...] = ()
    keep = False


@dataclass(frozen=True)
class FailureReport:
    """Why a device did not end a step: `out_of_memory`, `aborted` or `error`, and the error."""

    reason: str
    text: str


END_OF_STEP = None
"""The message that ends a placed step: the worker waits for the next one."""


def failure_report(error: Exception) -> FailureReport:
    """The message that a worker sends in place of its answer when this was raised."""
    import torch

    if isinstance(error, torch.OutOfMemoryError):
        return FailureReport("out_of_memory", str(error))
    memory = isinstance(error, MemoryError) or "can't allocate memory" in str(error)
    return FailureReport("out_of_memory" if memory else "error", f"{type(error).__name__}: {error}")


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


def device_failure(name: str, failed: FailureReport) -> StepFailed:
    """The error that stands for what a device says of its failure, in one line."""
    words = failure_line(failed)
    if failed.reason == "out_of_memory":
        return OutOfMemory(
            f"device {name!r}: out of memory ({words}): end other programs, give a smaller batch, "
            "or leave this device out of the cluster"
        )
    return StepFailed(f"device {name!r}: {words}")


def failure_line(failed: FailureReport) -> str:
    """The first line of what a device says of its failure, or the reason where it says nothing."""
    return (failed.text.strip() or failed.reason).splitlines()[0]
