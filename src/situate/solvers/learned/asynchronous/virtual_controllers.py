"""Controllers in the order of a virtual clock, on which workers take as long as the steps that they
measure. So the order of events, and with it the result, depends on the seed alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from situate.evaluators.measurements import Measurements
from situate.results.result import Asynchrony
from situate.solvers.learned.asynchronous.controllers import Controller, Controllers
from situate.solvers.learned.asynchronous.virtual_clock import VirtualClock
from situate.solvers.learned.learner import State


@dataclass
class _Measuring:
    """A batch that a controller's workers are measuring, by the virtual clock, until `end`."""

    placements: NDArray[np.int32]
    measurements: Measurements
    end: float


class VirtualControllers(Controllers):
    """Controllers, each with workers of its own, whose samples come in the order of the clock.

    Args:
        controllers, stalest: see `Controllers`.
        clock: of their workers.

    Attributes:
        seconds: time on the virtual clock at which the current controller began to draw.
    """

    def __init__(
        self, controllers: Sequence[Controller], clock: VirtualClock, stalest: int | None = None
    ) -> None:
        super().__init__(controllers, stalest)
        self._clock = clock
        self._measuring: dict[int, _Measuring] = {}
        self._current = 0

    def asynchrony(self) -> Asynchrony:
        """The virtual time when all batches are measured, and the staleness of gradients."""
        end = max((batch.end for batch in self._measuring.values()), default=self.seconds)
        return Asynchrony(end, self._staleness(), stalest=self._server.stalest)

    def ask(self, k: int) -> NDArray[np.int32]:
        """Placements (k, n) of the first free controller, after it has learnt from its last
        batch."""
        self._current = self._free()
        return self._controllers[self._current].ask(k)

    def tell(self, placements: NDArray[np.int32], measurements: Measurements) -> None:
        """Start the current controller's workers on a batch."""
        duration = self._clock.seconds(measurements, self._current * self._clock.workers)
        end = self.seconds + duration
        self._measuring[self._current] = _Measuring(placements, measurements, end)

    def _free(self) -> int:
        """An idle controller, or the one whose workers end first, after it has learnt from them."""
        for number in range(len(self._controllers)):
            if number not in self._measuring:
                return number
        number, batch = min(self._measuring.items(), key=lambda item: (item[1].end, item[0]))
        del self._measuring[number]
        self.seconds = batch.end
        self._controllers[number].tell(batch.placements, batch.measurements)
        return number

    def _awaited(self, number: int) -> State:
        measuring = self._measuring.get(number)
        size = self.batch
        seconds, outcome, end = np.full(size, np.nan), np.zeros(size, np.uint8), np.nan
        if measuring is not None:
            end, count = measuring.end, len(measuring.measurements)
            seconds[:count] = measuring.measurements.seconds
            outcome[:count] = measuring.measurements.outcome
        return {"end": np.array([end]), "seconds": seconds, "outcome": outcome}

    def _await_again(self, number: int, own: State) -> None:
        self._measuring.pop(number, None)
        end, seconds = float(np.array(own["end"])[0]), np.array(own["seconds"], np.float64)
        if np.isnan(end):
            return
        count = int((~np.isnan(seconds)).sum())
        measurements = Measurements(seconds[:count], np.array(own["outcome"], np.uint8)[:count])
        placements = self._controllers[number].ask(count)
        self._measuring[number] = _Measuring(placements, measurements, end)
