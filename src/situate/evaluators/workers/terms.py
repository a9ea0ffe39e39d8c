"""Terms on which workers measure: what each needs, how long it may take, and how it begins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from situate.errors import SituateError
from situate.evaluators.measurements import Measurements


@dataclass(frozen=True)
class Terms:
    """The terms of all workers of a search.

    Attributes:
        cpus, gpus: that each has for itself.
        start_limit: seconds that it has to start; None for the usual.
        limit: seconds that a sample may take; None for a multiple of what others take.
        lost: what counts as measured of a sample at which workers fail one after the other, for
            this reason; None if that ends the search.
    """

    cpus: int = 1
    gpus: int = 0
    start_limit: float | None = None
    limit: float | None = None
    lost: Callable[[str], Measurements] | None = None


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
