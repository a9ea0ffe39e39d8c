"""Terms on which workers measure: what each needs, how long it may take, and how it begins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from situate.errors import SituateError

TRIES = 3
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
    tries: int = TRIES
    lost: Callable[[str], Any] | None = None


USUAL = Terms()
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
