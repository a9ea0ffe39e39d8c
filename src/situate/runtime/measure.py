"""Step times by the placement papers' rule: of 11 steps the first is dropped, the others are
averaged (Post, section 4)."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from situate.errors import SituateError
from situate.runtime.device import StepRecord
from situate.runtime.processes.messages import StepFailed

STEPS = 11
"""Steps of a measurement, including the dropped one."""


class NotFinite(StepFailed):
    """A loss that is infinite or no number."""

    outcome = "nan"


class Step(Protocol):
    """A placed step, as far as measurements need it."""

    records: list[StepRecord]

    def __call__(self, *inputs: Any) -> Any:
        """Run it."""
        ...


@dataclass(frozen=True)
class StepTimes:
    """Times of steps, by the clock of the calling process.

    Attributes:
        first: seconds of the first step, which starts the devices and fills caches.
        seconds: of every later step.
        records: records of every later step, one a used device.
        losses: of all steps; none if a step returns anything but one number.
    """

    first: float
    seconds: tuple[float, ...]
    records: tuple[tuple[StepRecord, ...], ...]
    losses: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean seconds of a step."""
        return statistics.fmean(self.seconds)

    @property
    def median(self) -> float:
        """Median seconds of a step."""
        return statistics.median(self.seconds)

    @property
    def deviation(self) -> float:
        """Standard deviation of a step's seconds; 0 for a single step."""
        return statistics.stdev(self.seconds) if len(self.seconds) > 1 else 0.0

    @property
    def busy(self) -> tuple[float, ...]:
        """Mean busy seconds in a step, by used device."""
        return self._mean(lambda record: record.end - record.start - record.waited)

    @property
    def waited(self) -> tuple[float, ...]:
        """Mean seconds in a step of waiting for other devices, by used device."""
        return self._mean(lambda record: record.waited)

    def _mean(self, of: Callable[[StepRecord], float]) -> tuple[float, ...]:
        return tuple(
            statistics.fmean(map(of, device)) for device in zip(*self.records, strict=True)
        )


def measure(
    step: Step, inputs: Any, steps: int = STEPS, on_step: Callable[[int], object] | None = None
) -> StepTimes:
    """Run a step several times on the same inputs.

    Args:
        inputs: a tuple of the step's inputs, a dict by name, or a single tensor.
        steps: number of steps, including the first, which is dropped.
        on_step: called with the number of each step before it runs, from 1.

    Raises:
        NotFinite: the loss of a step is not finite.
        StepFailed: a step did not end.
        SituateError: fewer than two steps.
    """
    if steps < 2:
        raise SituateError(f"steps: the first is dropped, so 2 are the least, got {steps}")
    seconds, records, losses = [], [], []
    for number in range(1, steps + 1):
        if on_step is not None:
            on_step(number)
        began = time.perf_counter()
        returned = step(*arguments(inputs))
        seconds.append(time.perf_counter() - began)
        # A step replaces its records at the next call.
        records.append(tuple(step.records))
        losses += finite_loss(returned, number)
    return StepTimes(seconds[0], tuple(seconds[1:]), tuple(records[1:]), tuple(losses))


def arguments(inputs: Any) -> tuple[Any, ...]:
    """The arguments of a step; a dict by name is one argument, and so is a single tensor."""
    return tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)


def finite_loss(returned: Any, number: int) -> list[float]:
    """The loss of step `number`, in a list that is empty for any other result.

    Raises:
        NotFinite: it is not finite.
    """
    import torch

    if not isinstance(returned, torch.Tensor) or returned.numel() != 1:
        return []
    loss = float(returned)
    if not math.isfinite(loss):
        raise NotFinite(
            f"the loss of step {number} is {loss}: build the model with smaller inputs or weights"
        )
    return [loss]


def timeline(
    records: Sequence[StepRecord], ops: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Start and end of each op of a timed step.

    Returns:
        (ops,) seconds since the first device's start, each; NaN for an op that no device timed.
    """
    # Clocks of all devices are one: they are processes of this machine.
    start, end = np.full(ops, np.nan), np.full(ops, np.nan)
    origin = min(device.start for device in records)
    for device in records:
        for op, start_time in device.op_starts.items():
            start[op], end[op] = start_time - origin, device.op_ends[op] - origin
    return start, end
