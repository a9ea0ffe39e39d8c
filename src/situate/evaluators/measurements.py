"""Measurements of placements: step times and failures; and the evaluators that take them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Outcome = Literal["ok", "out_of_memory", "crash", "timeout", "nan"]
OUTCOMES: tuple[Outcome, ...] = ("ok", "out_of_memory", "crash", "timeout", "nan")


@dataclass(frozen=True, eq=False)
class Measurements:
    """Measured step times and outcomes of k placements, in their order.

    Attributes:
        seconds: (k,) time of a step, of several the mean or median; infinite if none ended.
        outcome: (k,) indices into `OUTCOMES`.
    """

    seconds: NDArray[np.float64]
    outcome: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.seconds)

    @property
    def ok(self) -> NDArray[np.bool_]:
        """(k,) true where the step ran to its end within memory."""
        return np.asarray(self.outcome == 0)

    def then(self, other: Measurements) -> Measurements:
        """These, and those of the placements after them."""
        return Measurements(
            np.concatenate((self.seconds, other.seconds)),
            np.concatenate((self.outcome, other.outcome)),
        )

    def times(self, failure: float) -> NDArray[np.float64]:
        """(k,) seconds, with `failure` for every placement that failed (Post, section 4)."""
        return np.where(self.ok, self.seconds, failure)


FINALISTS = 16
"""Finalists of a machine whose times vary: as a rule so many differ by less than the noise."""


class Evaluator(Protocol):
    """A machine, real or simulated, that runs a step under a placement and takes its time."""

    @property
    def name(self) -> str:
        """The name of what measures, with all settings that change a measurement; a study keeps
        it."""
        ...

    @property
    def at_once(self) -> int | None:
        """Most placements that a call of `measure` is given, what is measured in one being kept
        before the next; None for as many as there are."""
        ...

    @property
    def finalists(self) -> int:
        """Most placements, of those that took least, that are measured again before one is chosen:
        the smallest of many noisy times is a lucky one. None where 0."""
        ...

    def measure(self, placements: NDArray[np.int32], first: int) -> Measurements:
        """Run placements (k, n), the samples number `first`, `first` + 1, ... of a study.

        Failures are results. The same samples with the same numbers give the same measurements on
        a simulated machine.
        """
        ...


@runtime_checkable
class MeasuresEach(Evaluator, Protocol):
    """An evaluator that measures placements side by side, and says of each as it ends."""

    def measure_each(
        self, placements: NDArray[np.int32], numbers: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], Measurements]]:
        """Run placements (k, n), the samples of these numbers (k,) of a study; yields rows of
        `placements` with what was measured of them, each row once, in any order."""
        ...
