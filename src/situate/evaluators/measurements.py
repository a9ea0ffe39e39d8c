"""Measurements of placements, the protocols of evaluators, and checks of their answers."""

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


FINALISTS = 16
"""Finalists of a machine with noisy times: about as many differ by less than the noise."""


@dataclass(frozen=True)
class Origin:
    """The worker that made a measurement, if workers are distinguished by their speed.

    Attributes:
        place: its machine, and the devices there that it owns.
        reference: seconds of the reference step there at the worker's start.
        pace: its seconds are divided by this to match the first worker of the search.
    """

    place: str
    reference: float
    pace: float = 1.0


@dataclass(frozen=True, eq=False)
class Measurements:
    """Step times and outcomes of k placements, in their order.

    Attributes:
        seconds: (k,) time of a step, or the mean or median of several; infinite if none ended.
        outcome: (k,) indices into `OUTCOMES`.
        origins: the worker of each; empty if workers are not distinguished.
        details: further data of the evaluator for each; usually empty.
    """

    seconds: NDArray[np.float64]
    outcome: NDArray[np.uint8]
    origins: tuple[Origin | None, ...] = ()
    details: tuple[Any, ...] = ()

    def __len__(self) -> int:
        return len(self.seconds)

    @property
    def ok(self) -> NDArray[np.bool_]:
        """(k,) true if the step completed within memory."""
        return np.asarray(self.outcome == 0)

    def then(self, other: Measurements) -> Measurements:
        """These measurements followed by those of `other`."""
        return Measurements(
            np.concatenate((self.seconds, other.seconds)),
            np.concatenate((self.outcome, other.outcome)),
        )

    def times(self, failure: float) -> NDArray[np.float64]:
        """(k,) seconds, with `failure` for every failed placement (Post, section 4)."""
        return np.where(self.ok, self.seconds, failure)


class Evaluator(Protocol):
    """A machine, real or simulated, that runs a step under a placement and measures its time."""

    @property
    def name(self) -> str:
        """The evaluator with all settings that change a measurement; a study stores it."""
        ...

    @property
    def at_once(self) -> int | None:
        """Most placements per call of `measure`; each call is recorded before the next. None for no
        limit."""
        ...

    @property
    def finalists(self) -> int:
        """Number of the fastest placements to measure again before one is chosen, because the
        minimum of noisy times is biased. 0 for none."""
        ...

    def measure(self, placements: NDArray[np.int32], first: int) -> Measurements:
        """Run placements (k, n), the samples numbered `first`, `first` + 1, ... of a study.

        Failures are results, not errors. On a simulated machine, equal samples with equal numbers
        have equal measurements.
        """
        ...


@runtime_checkable
class MeasuresEach(Evaluator, Protocol):
    """An evaluator that measures placements concurrently and reports each as it ends."""

    def measure_each(
        self, placements: NDArray[np.int32], numbers: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], Measurements]]:
        """Run placements (k, n), the samples with these numbers (k,) of a study.

        Yields:
            Rows of `placements` with their measurements, each row once, in any order.
        """
        ...


@runtime_checkable
class HasWorkers(Evaluator, Protocol):
    """An evaluator whose workers users can follow."""

    def progress(self) -> WorkerProgress | None:
        """The workers right now; None before their first task."""
        ...

    def show(self, figures: Mapping[str, float]) -> None:
        """Show figures of the search, by name, on the workers' dashboard if there is one."""
        ...


@runtime_checkable
class MeasuresElsewhere(Evaluator, Protocol):
    """An evaluator with several machines.

    A placement that would become the best counts as measured by a second machine.
    """

    def measure_elsewhere(
        self, placement: NDArray[np.int32], number: int, origin: Origin | None
    ) -> Measurements:
        """Run a placement (n,) again, on another worker than `origin` if there is one.

        Args:
            number: of this measurement, among the repeated ones.
        """
        ...


def checked_measurements(evaluator: Evaluator, answer: Any, count: int) -> Measurements:
    """An evaluator's answer for `count` placements, with the usual array types.

    Raises:
        SituateError: not one finite time or failure for each placement.
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
            f"{_named(evaluator)} gave {len(answer.seconds)} seconds and {len(answer.outcome)} "
            "outcomes"
        )


def _check_values(evaluator: Evaluator, answer: Measurements) -> None:
    # In Python: for the few values of a message NumPy takes several times as long.
    for seconds, outcome in zip(answer.seconds.tolist(), answer.outcome.tolist(), strict=True):
        if not 0 <= outcome < len(OUTCOMES):
            names = ", ".join(f"{i} {name}" for i, name in enumerate(OUTCOMES))
            raise SituateError(f"{_named(evaluator)} gave outcome {outcome}; known: {names}")
        # `not >=` is true of NaN as well.
        if not seconds >= 0 or (outcome == 0 and isinf(seconds)):
            raise SituateError(
                f"{_named(evaluator)} measured {seconds} seconds; a step that was completed takes "
                "some, one that was not infinitely many"
            )


def consecutive_runs(numbers: NDArray[np.int64], most: int | None) -> Iterator[NDArray[np.int64]]:
    """Indices into ascending `numbers` (k,), in runs of consecutive numbers, each of at most
    `most`."""
    indices = np.arange(len(numbers))
    # A gap in the numbers starts a new run.
    for run in np.split(indices, np.flatnonzero(np.diff(numbers) != 1) + 1):
        size = most or max(1, len(run))
        yield from (run[begin : begin + size] for begin in range(0, len(run), size))
