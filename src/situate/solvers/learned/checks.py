"""Checks of learners, evaluators and their answers, all of which may be the user's own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from situate.data.placements import Restrictions, integers
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.evaluators.measurements import (
    Evaluator,
    Measurements,
    MeasuresEach,
    checked_measurements,
    consecutive_runs,
)
from situate.results.result import Knowledge
from situate.solvers.learned.learner import Learner, MakeLearner, State


def custom_name(make: MakeLearner, reserved: Collection[str]) -> str:
    """The method name of a function that makes a learner.

    Args:
        make: the function. Its attribute `name`, or else its own name, names the method.
        reserved: names of other methods.

    Raises:
        SituateError: not a function, no name, or a reserved name.
    """
    if not callable(make):
        raise SituateError(
            "method: must be a name of situate.METHODS or a function that makes a learner, got "
            f"an object of type {type(make).__name__!r}"
        )
    name = _name_of(make)
    if not name:
        raise SituateError(
            f"method: {type(make).__name__!r} has no name for results and studies; set its "
            "attribute 'name' to a string"
        )
    if name in reserved:
        raise SituateError(f"method: {name!r} is a method of situate's; give yours another name")
    return name


def _name_of(make: MakeLearner) -> str:
    names = (getattr(make, "name", None), getattr(make, "__name__", None))
    return next((name for name in names if isinstance(name, str)), "")


class CheckedLearner:
    """A method's learner, with checks of its answers.

    Attributes:
        method: name of the method.
        inner: the learner itself.
        name: the learner's own name, which includes its settings; None without one.
        knows: the learner's knowledge of costs; None if it does not say.

    Raises:
        SituateError: the learner lacks a part of `Learner`, or its name is not a string.
    """

    def __init__(self, method: str, problem: Problem, learner: Learner) -> None:
        self._who = f"method {method!r}"
        _check_parts(learner, Learner, f"{self._who}: its learner")
        name = getattr(learner, "name", None)
        if not isinstance(name, str | None):
            raise SituateError(f"{self._who}: its learner's name must be a string, got {name!r}")
        self.method, self.inner, self.name = method, learner, name
        self.knows = _knowledge(
            getattr(learner, "told_costs", None), getattr(learner, "reads_flops", False)
        )
        self._n = problem.n
        self._restrictions = Restrictions(problem)

    def batch(self) -> int:
        """Number of placements that the learner wants to ask for next.

        Raises:
            SituateError: not an integer of at least one.
        """
        batch = self.inner.batch
        if not isinstance(batch, int | np.integer) or batch < 1:
            raise SituateError(
                f"{self._who}: batch: must be an integer of at least 1, got {batch!r}"
            )
        return int(batch)

    def ask(self, first: int, k: int) -> NDArray[np.int32]:
        """Placements (k, n) of the samples from number `first` on.

        Raises:
            SituateError: not k rows of n device indices; an op on a device that may not run it; a
                group on several devices. Names the method, the sample and the op.
        """
        samples = f"{self._who}: sample{'s' * (k > 1)} {first}{f' to {first + k - 1}' * (k > 1)}"
        answer = self.inner.ask(k)
        placements = integers(answer, (k, self._n), f"{samples}: the result of ask({k})")
        return self.check(placements, f"{self._who}: sample", first)

    def check(self, placements: NDArray[Any], subject: str, first: int) -> NDArray[np.int32]:
        """A copy of integer placements (k, n) as 32-bit integers.

        Args:
            subject: name of a sample in an error, before its number.
            first: number of the first sample.

        Raises:
            SituateError: an op on a device that may not run it, or a group on several devices.
                Names the op.
        """
        return self._restrictions.check(placements, lambda row: f"{subject} {first + row}: ")

    def state(self) -> State:
        """The learner's state.

        Raises:
            SituateError: not a mapping from names to arrays of numbers.
        """
        state = self.inner.state()
        arrays = isinstance(state, Mapping) and all(isinstance(name, str) for name in state)
        if not arrays or not all(map(_is_array, state.values())):
            raise SituateError(f"{self._who}: state: must map names to arrays of numbers")
        return state


def _knowledge(told_costs: bool | None, reads_flops: bool) -> Knowledge | None:
    if told_costs is None:
        return None
    if told_costs:
        return "told costs"
    return "measured times and FLOPs" if reads_flops else "measured times only"


def _is_array(value: object) -> bool:
    try:
        return not np.asarray(value).dtype.hasobject
    except ValueError:  # rows of different lengths
        return False


def check_evaluator(machine: Evaluator) -> None:
    """
    Raises:
        SituateError: the evaluator lacks a part of `Evaluator`, or a part has a wrong value.
    """
    who = f"evaluator {type(machine).__name__!r}"
    _check_parts(machine, Evaluator, who)
    if not isinstance(machine.name, str):
        raise SituateError(f"{who}: name: must be a string, got {machine.name!r}")
    who = f"evaluator {machine.name!r}"
    if machine.at_once is not None:
        _check_count(machine.at_once, 1, f"{who}: at_once: must be None or")
    _check_count(machine.finalists, 0, f"{who}: finalists: must be")


def measure(
    machine: Evaluator, placements: NDArray[np.int32], rows: NDArray[np.int64], first: int
) -> Iterator[tuple[NDArray[np.int64], Measurements]]:
    """Measure some rows (j,) of placements (k, n), the samples from number `first` on.

    Yields rows with their measurements as these become available.

    Raises:
        SituateError: a row has not exactly one finite time or failure.
    """
    if isinstance(machine, MeasuresEach):
        yield from _measure_each(machine, placements, rows, first)
        return
    for run in consecutive_runs(rows, machine.at_once):
        together = rows[run]
        measurements = machine.measure(placements[together], first + int(together[0]))
        yield together, checked_measurements(machine, measurements, len(together))


def _measure_each(
    machine: MeasuresEach, placements: NDArray[np.int32], rows: NDArray[np.int64], first: int
) -> Iterator[tuple[NDArray[np.int64], Measurements]]:
    missing = set(range(len(rows)))
    for measured_rows, measurements in machine.measure_each(placements[rows], first + rows):
        new = set(measured_rows.tolist())
        if len(new) < len(measured_rows) or not new <= missing:
            raise SituateError(
                f"evaluator {machine.name!r}: measure_each must yield rows 0 to {len(rows) - 1}, "
                f"each once, got {measured_rows.tolist()} where {sorted(missing)} were left"
            )
        missing -= new
        yield rows[measured_rows], checked_measurements(machine, measurements, len(measured_rows))
    if missing:
        raise SituateError(
            f"evaluator {machine.name!r}: measure_each ended without rows {sorted(missing)}"
        )


def _check_parts(value: object, protocol: type, subject: str) -> None:
    missing = [
        name for name in vars(protocol) if not name.startswith("_") and not hasattr(value, name)
    ]
    if missing:
        raise SituateError(f"{subject} lacks {missing[0]!r}, see situate.{protocol.__name__}")


def _check_count(count: Any, least: int, must: str) -> None:
    if not isinstance(count, Integral):
        raise SituateError(f"{must} an integer, got {count!r}")
    if count < least:
        raise SituateError(f"{must} at least {least}, got {count}")
