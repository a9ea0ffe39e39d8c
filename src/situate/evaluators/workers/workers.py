"""The interface of workers: their terms, their errors, and the calls of a dispatcher."""

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
    """The terms of all workers of a search, or of some tasks.

    Attributes:
        cpus, gpus: that each has for itself.
        start_limit: seconds that it has to start; None for the usual.
        limit: seconds that a sample or a job may take; None for a multiple of what others take.
        tries: workers that may fail at a task before it is lost.
        lost: what counts as the value of a task that is lost, for this reason; None if that ends
            the search.
    """

    cpus: int = 1
    gpus: int = 0
    start_limit: float | None = None
    limit: float | None = None
    tries: int = MAX_ATTEMPTS
    lost: Callable[[str], Any] | None = None


DEFAULT_TERMS = Terms()
"""The terms of workers that measure whatever they are given."""


class Unfit(SituateError):
    """A worker that cannot measure, for a reason that may pass."""


@runtime_checkable
class Opens(Protocol):
    """An evaluator that each worker opens before it measures with its copy."""

    def open(self) -> str:
        """Get ready. Returns the worker's place: its machine, and which of its devices it owns.

        Raises:
            Unfit: not now; the worker is started again, and left out if it fails on.
            SituateError: never here, which ends the search; names the machine.
        """
        ...


class NoWorkers(SituateError):
    """All workers failed too often, or their cluster is lost."""


class Workers(Protocol):
    """Workers that measure samples or do jobs, each one task at a time; known by their numbers.

    All that is said to them may raise `NoWorkers`, where they are of a cluster that is lost.
    """

    def start(self, worker: int) -> None:
        """Start a worker, also in the place of one that failed; its greeting comes by `wait`."""
        ...

    def equip(self, worker: int) -> None:
        """Give a worker that greeted what it works with; that it is ready comes by `wait`."""
        ...

    def give(self, worker: int, task: Work) -> None:
        """Let a worker do a task, when it has done those before. Does not wait for it."""
        ...

    def wait(self, seconds: float | None) -> list[tuple[int, Message]]:
        """The messages of workers within so many seconds, at least one if any is to say anything; a
        worker that is gone fails. None for as long as it takes."""
        ...

    def show(self, figures: Mapping[str, float]) -> None:
        """Show figures of the search where workers have a board for them."""
        ...

    def stop(self, worker: int) -> None:
        """End a worker, whatever it does."""
        ...

    def close(self) -> None:
        """End all of them."""
        ...
