"""Controllers whose gradients are applied as their workers end, by the wall clock."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from situate.evaluators.measurements import Measurements
from situate.results.result import Asynchrony
from situate.solvers.learned.asynchronous.controllers import Controller, Controllers
from situate.solvers.learned.learner import State


@dataclass(frozen=True)
class PendingBatch:
    """A batch that a controller asked for and was not told of.

    Attributes:
        first: number of its first sample.
        count: of its samples.
    """

    first: int
    count: int


class WallControllers(Controllers):
    """N controllers as one `Learner` that may be asked for N batches before it is told of one, in
    any order.

    Args:
        controllers, stalest: see `Controllers`.

    Attributes:
        pending: by controller, the batch that it waits for.
        samples_asked: samples asked for so far.
    """

    def __init__(self, controllers: Sequence[Controller], stalest: int | None = None) -> None:
        super().__init__(controllers, stalest)
        self.pending: dict[int, PendingBatch] = {}
        self.samples_asked = 0
        self._begin = time.monotonic()

    def asynchrony(self) -> Asynchrony:
        """The wall seconds, and how stale gradients were."""
        seconds = self.seconds + time.monotonic() - self._begin
        return Asynchrony(seconds, self._staleness(), "wall", self._server.stalest)

    def free(self) -> int | None:
        """A controller that waits for nothing."""
        waiting = range(len(self._controllers))
        return next((number for number in waiting if number not in self.pending), None)

    def ask(self, k: int) -> NDArray[np.int32]:
        """Placements (k, n) of a free controller."""
        number = self.free()
        assert number is not None, "all controllers wait"
        self.pending[number] = PendingBatch(self.samples_asked, k)
        self.samples_asked += k
        return self._controllers[number].ask(k)

    def tell(self, placements: NDArray[np.int32], measurements: Measurements) -> None:
        """The batch that was asked for first is measured."""
        oldest = min(self.pending, key=lambda number: self.pending[number].first)
        self.end(oldest, placements, measurements)

    def end(self, number: int, placements: NDArray[np.int32], measurements: Measurements) -> None:
        """The batch of a controller is measured."""
        del self.pending[number]
        self._controllers[number].tell(placements, measurements)

    def state(self) -> State:
        """See `Controllers`, with the samples asked for; the clock goes on from it."""
        seconds = self.asynchrony().seconds
        return {
            **super().state(),
            "done": np.array([self.samples_asked]),
            "clock": np.array([seconds]),
        }

    def restore(self, state: State) -> None:
        """See `Controllers`; what they wait for is drawn by `again`."""
        super().restore(state)
        self.samples_asked = int(np.array(state["done"])[0])
        self._begin = time.monotonic()

    def _awaited(self, number: int) -> State:
        batch = self.pending.get(number, PendingBatch(0, 0))
        return {"asked": np.array([batch.first, batch.count], np.int64)}

    def _await_again(self, number: int, own: State) -> None:
        self.pending.pop(number, None)
        first, count = np.array(own["asked"]).tolist()
        if count:
            self.pending[number] = PendingBatch(first, count)

    def again(self, number: int) -> NDArray[np.int32]:
        """The placements of the batch that a controller waits for, as they were drawn."""
        return self._controllers[number].ask(self.pending[number].count)
