"""Measurements of placements: step times and failures; and the evaluators that take them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isinf
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from situate.errors import SituateError

if TYPE_CHECKING:
    from situate.results.result import WorkerProgress


Outcome = Literal["ok", "out_of_memory", "crash", "timeout", "nan"]
OUTCOMES: tuple[Outcome, ...] = ("ok", "out_of_memory", "crash", "timeout", "nan")


@dataclass(frozen=True)
class Origin:
    """The worker that measured something, where workers are told apart by their speed.

    Attributes:
        place: its machine, and which of its devices are the worker's own.
        reference: seconds that the reference step took there when the worker started.
        pace: what its seconds are divided by, to be those of the first worker of the search.
    """

    place: str
    reference: float
    pace: float = 1.0


@dataclass(frozen=True, eq=False)
class Measurements:
    """Measured step times and outcomes of k placements, in their order.

    Attributes:
        seconds: (k,) time of a step, of several the mean or median; infinite if none ended.
        outcome: (k,) indices into `OUTCOMES`.
        origins: who measured each of them; empty where workers are not told apart.
        details: what a machine has to say of each besides; empty of most.
    """

    seconds: NDArray[np.float64]
    outcome: NDArray[np.uint8]
    origins: tuple[Origin | None, ...] = ()
    details: tuple[Any, ...] = ()

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


@runtime_checkable
class HasWorkers(Evaluator, Protocol):
    """An evaluator whose workers people can follow."""

    def progress(self) -> WorkerProgress | None:
        """The workers right now; None before they have something to measure."""
        ...

    def show(self, figures: Mapping[str, float]) -> None:
        """Show figures of the search, by name, where workers have a board for them."""
        ...


@runtime_checkable
class MeasuresElsewhere(Evaluator, Protocol):
    """An evaluator of several machines: a placement that would be the best so far counts as what
    another of them measures."""

    def measure_elsewhere(
        self, placement: NDArray[np.int32], number: int, origin: Origin | None
    ) -> Measurements:
        """Run a placement (n,) once more, where there is another by another worker than `origin`.

        Args:
            number: of this measurement, among those that were made again.
        """
        ...


def checked_measurements(evaluator: Evaluator, answer: Any, count: int) -> Measurements:
    """Measurements of so many placements, as an evaluator gave them, as arrays of the usual types.

    Raises:
        SituateError: not one finite time or failure for each.
    """
    if not isinstance(answer, Measurements):
        raise SituateError(
            f"{_named(evaluator)} returned a {type(answer).__name__}; measure must return "
            "Measurements(seconds, outcome)"
        )
    _check_arrays(evaluator, answer)
    if len(answer) != count:
        raise SituateError(f"{_named(evaluator)} measured {len(answer)} of {count} placements")
    _check_values(evaluator, answer)
    return Measurements(
        answer.seconds.astype(np.float64, copy=False),
        answer.outcome.astype(np.uint8, copy=False),
        answer.origins,
        answer.details,
    )


def _named(evaluator: Evaluator) -> str:
    return f"evaluator {evaluator.name!r}"


def _check_arrays(evaluator: Evaluator, answer: Measurements) -> None:
    for name, kinds, of in (("seconds", "f", "floats"), ("outcome", "iu", "integers")):
        array = getattr(answer, name)
        if not isinstance(array, np.ndarray) or array.dtype.kind not in kinds or array.ndim != 1:
            was = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else type(array)
            raise SituateError(
                f"{_named(evaluator)}: {name}: must be an array (k,) of {of}, got {was}"
            )
    if len(answer.outcome) != len(answer.seconds):
        raise SituateError(
            f"{_named(evaluator)} gave {len(answer.seconds)} seconds and {len(answer.outcome)} outcomes"
        )


def _check_values(evaluator: Evaluator, answer: Measurements) -> None:
    # One by one: on the few of a message numpy would take several times as long.
    for seconds, outcome in zip(answer.seconds.tolist(), answer.outcome.tolist(), strict=True):
        if not 0 <= outcome < len(OUTCOMES):
            names = ", ".join(f"{i} {name}" for i, name in enumerate(OUTCOMES))
            raise SituateError(f"{_named(evaluator)} gave outcome {outcome}; known: {names}")
        if not seconds >= 0 or (outcome == 0 and isinf(seconds)):
            raise SituateError(
                f"{_named(evaluator)} measured {seconds} seconds; a step that was completed takes "
                "some, one that was not infinitely many"
            )


def consecutive_runs(numbers: NDArray[np.int64], most: int | None) -> Iterator[NDArray[np.int64]]:
    """Indices into ascending `numbers` (k,), in runs in which each is one more than the last; none
    of more than `most`."""
    indices = np.arange(len(numbers))
    for run in np.split(indices, np.flatnonzero(np.diff(numbers) != 1) + 1):
        size = most or max(1, len(run))
        yield from (run[begin : begin + size] for begin in range(0, len(run), size))
