"""Controllers on the wall clock: gradients are applied in the order in which batches end."""

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
    """A batch that a controller has drawn and not yet learnt from.

    Attributes:
        first: number of its first sample.
        count: number of samples.
    """

    first: int
    count: int


class WallControllers(Controllers):
    """N controllers as one `Learner`, which may have N batches pending and takes their results in
    any order.

    Args:
        controllers, stalest: see `Controllers`.

    Attributes:
        pending: the batch that each controller waits for, by its number.
        samples_asked: number of samples drawn so far.
    """

    def __init__(self, controllers: Sequence[Controller], stalest: int | None = None) -> None:
        super().__init__(controllers, stalest)
        self.pending: dict[int, PendingBatch] = {}
        self.samples_asked = 0
        self._begin = time.monotonic()

    def asynchrony(self) -> Asynchrony:
        """The wall seconds, and the staleness of gradients."""
        seconds = self.seconds + time.monotonic() - self._begin
        return Asynchrony(seconds, self._staleness(), "wall", self._server.stalest)

    def free(self) -> int | None:
        """The number of a controller without a pending batch; None if there is none."""
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
        """Finish the oldest pending batch."""
        oldest = min(self.pending, key=lambda number: self.pending[number].first)
        self.end(oldest, placements, measurements)

    def end(self, number: int, placements: NDArray[np.int32], measurements: Measurements) -> None:
        """Finish the pending batch of a controller."""
        del self.pending[number]
        self._controllers[number].tell(placements, measurements)

    def state(self) -> State:
        """See `Controllers`; also the samples drawn and the clock, which resumes from there."""
        seconds = self.asynchrony().seconds
        return {
            **super().state(),
            "done": np.array([self.samples_asked]),
            "clock": np.array([seconds]),
        }

    def restore(self, state: State) -> None:
        """See `Controllers`; `again` draws the pending batches."""
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
        """The placements of a controller's pending batch, drawn as before."""
        return self._controllers[number].ask(self.pending[number].count)
