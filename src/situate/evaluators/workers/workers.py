"""Workers as a manager sees them, wherever they run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from situate.errors import SituateError
from situate.evaluators.workers.messages import Message, Work


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
