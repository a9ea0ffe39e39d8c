"""The interface of workers: terms, errors, and the calls of a dispatcher."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from situate.errors import SituateError
from situate.evaluators.workers.messages import Message, Work

MAX_ATTEMPTS = 3
"""Workers that fail at a task before it is lost."""


@dataclass(frozen=True)
class Terms:
    """Resources and limits of all workers of a search, or of some tasks.

    Attributes:
        cpus, gpus: of each worker.
        start_limit: seconds to start; None for the default.
        limit: seconds of a sample or a job; None for a multiple of the usual time.
        tries: workers that may fail at a task before it is lost.
        lost: returns the value of a lost task, from the reason; None if a loss ends the search.
    """

    cpus: int = 1
    gpus: int = 0
    start_limit: float | None = None
    limit: float | None = None
    tries: int = MAX_ATTEMPTS
    lost: Callable[[str], Any] | None = None


DEFAULT_TERMS = Terms()
"""The terms without special resources or limits."""


class Unfit(SituateError):
    """The error of a worker that cannot measure for a reason that may pass."""


@runtime_checkable
class Opens(Protocol):
    """An evaluator that each worker opens before it measures with its copy."""

    def open(self) -> str:
        """Prepare for measuring. Returns the worker's place: its machine and the devices it owns.

        Raises:
            Unfit: not now; the worker starts again, and is left out after repeated failures.
            SituateError: never on this machine, which ends the search; the message names the
                machine.
        """
        ...


class NoWorkers(SituateError):
    """The error that all workers failed too often, or their cluster is lost."""


class Workers(Protocol):
    """Numbered workers that measure samples or do jobs, each one task at a time.

    Every call may raise `NoWorkers` for workers of a lost cluster.
    """

    def start(self, worker: int) -> None:
        """Start a worker, or replace a failed one; its greeting comes by `wait`."""
        ...

    def equip(self, worker: int) -> None:
        """Send its evaluator or function to a worker that greeted; its readiness comes by
        `wait`."""
        ...

    def give(self, worker: int, task: Work) -> None:
        """Queue a task at a worker. Does not wait for it."""
        ...

    def wait(self, seconds: float | None) -> list[tuple[int, Message]]:
        """The messages of workers within `seconds`; None waits for at least one. A lost worker
        sends a `Failure`."""
        ...

    def show(self, figures: Mapping[str, float]) -> None:
        """Show figures of the search on the workers' dashboard, if there is one."""
        ...

    def stop(self, worker: int) -> None:
        """End a worker, even while it works."""
        ...

    def close(self) -> None:
        """End all workers."""
        ...
