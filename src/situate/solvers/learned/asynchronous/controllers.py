"""Controllers that update one policy asynchronously, as those of ColocRL (Mirhoseini et al., ICML
2017) and of the Hierarchical Planner (ICLR 2018) do.

A parameter server holds the policy. Each of N controllers pulls its parameters, draws placements
and has workers measure them. It then computes a gradient at the parameters that it drew with. The
server applies the gradient at once, whatever other controllers did meanwhile, and the controller
pulls again. A virtual clock or the workers decide which controller is next.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray

from situate.data.problem import Problem
from situate.evaluators.measurements import Measurements
from situate.policies.gradient_ascent import Ascent
from situate.results.result import Asynchrony
from situate.solvers.learned.asynchronous.virtual_clock import VirtualClock
from situate.solvers.learned.checkpoint import restored
from situate.solvers.learned.learner import Learner, Learning, MakeLearner, State

SHARED = ("parameters", "mean", "square", "steps")
"""The entries of a controller's state that belong to the server."""


@runtime_checkable
class Controller(Learner, Protocol):
    """A learner that ascends the gradient of each batch once."""

    @property
    def ascent(self) -> Ascent:
        """The ascent of its policy."""
        ...

    @property
    def told_costs(self) -> bool:
        """True if its groups were made with op durations."""
        ...

    @property
    def reads_flops(self) -> bool:
        """True if its groups were made with FLOPs of ops."""
        ...


class Controllers(ABC):
    """N controllers as one `Learner`.

    Args:
        controllers: with the same policy and settings, each with a seed of its own.
        stalest: see `ParameterServer`.

    Attributes:
        seconds: time on the clock at the last `tell`, or at the end of the last session.
    """

    def __init__(self, controllers: Sequence[Controller], stalest: int | None = None) -> None:
        self._controllers = list(controllers)
        self._server = controllers[0].ascent.server
        self._server.stalest = stalest
        for controller in controllers:
            # All controllers begin at the parameters of the first, whatever their own seeds.
            controller.ascent.share(self._server)
        self.seconds = 0.0

    @property
    def told_costs(self) -> bool:
        """The value of any controller; all have the same."""
        return self._controllers[0].told_costs

    @property
    def reads_flops(self) -> bool:
        """The value of any controller; all have the same."""
        return self._controllers[0].reads_flops

    @property
    def batch(self) -> int:
        """The batch size of a controller."""
        return self._controllers[0].batch

    @abstractmethod
    def ask(self, k: int) -> NDArray[np.int32]:
        """See `Learner`."""

    @abstractmethod
    def tell(self, placements: NDArray[np.int32], measurements: Measurements) -> None:
        """See `Learner`."""

    @abstractmethod
    def asynchrony(self) -> Asynchrony:
        """The time on the clock, and the staleness of gradients."""

    @abstractmethod
    def _awaited(self, number: int) -> State:
        """The batch that a controller waits for, as arrays."""

    @abstractmethod
    def _await_again(self, number: int, own: State) -> None:
        """Make a controller wait for the batch whose arrays are in `own`."""

    def _staleness(self) -> dict[int, int]:
        return dict(sorted(self._server.staleness.items()))

    def state(self) -> State:
        """The server's state, and for every controller its parameters, state and pending batch."""
        state = self._server.state()
        state["clock"] = np.array([self.seconds])
        counts = sorted(self._server.staleness.items())
        state["staleness"] = np.array(counts, np.int64).reshape(len(counts), 2)
        for number, controller in enumerate(self._controllers):
            state |= {f"{name} of {number}": a for name, a in self._own(number, controller).items()}
        return state

    def _own(self, number: int, controller: Controller) -> State:
        own = {name: a for name, a in controller.state().items() if name not in SHARED}
        return {
            **own,
            "pulled": controller.ascent.pulled().numpy(),
            "pulled at": np.array([controller.ascent.pulled_at]),
            **self._awaited(number),
        }

    def restore(self, state: State) -> None:
        """Load `state`. Controllers draw their pending batches again from the pulled parameters."""
        values = restored(state, self.state(), free=("staleness",))
        shared = {name: values[name] for name in SHARED}
        self.seconds = float(np.array(values["clock"])[0])
        self._server.staleness = Counter(dict(np.array(values["staleness"], int).tolist()))
        for number, controller in enumerate(self._controllers):
            suffix = f" of {number}"
            own = {k.removesuffix(suffix): v for k, v in values.items() if k.endswith(suffix)}
            own_names = controller.state().keys()
            controller.restore({**shared, **{k: v for k, v in own.items() if k in own_names}})
            parameters = torch.tensor(own["pulled"])
            controller.ascent.hold(parameters, int(np.array(own["pulled at"])[0]))
            self._await_again(number, own)


@dataclass
class _Measuring:
    """A batch that a controller's workers are measuring, by the virtual clock, until `end`."""

    placements: NDArray[np.int32]
    measurements: Measurements
    end: float


class _VirtualControllers(Controllers):
    """Controllers with workers of their own, whose samples come in the order of a virtual clock.

    Workers take as long on that clock as the steps that they measure, so the order of events, and
    with it the result, depends on the seed alone.

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
        # Ties go to the lower number, so that the order depends on the seed alone.
        number, batch = min(self._measuring.items(), key=lambda item: (item[1].end, item[0]))
        del self._measuring[number]
        self.seconds = batch.end
        self._controllers[number].tell(batch.placements, batch.measurements)
        return number

    def _awaited(self, number: int) -> State:
        measuring = self._measuring.get(number)
        size = self.batch
        # Fixed sizes with NaN behind the end, because `restored` compares shapes.
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
        # A learner with restored state draws the same placements again.
        placements = self._controllers[number].ask(count)
        self._measuring[number] = _Measuring(placements, measurements, end)


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
    """N controllers on the wall clock: gradients are applied in the order in which batches end.

    As one `Learner` it may have N batches pending, and takes their results in any order.

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


def make_controllers(
    make: MakeLearner, problem: Problem, learning: Learning, samples: int, seed: int
) -> Controllers:
    """The controllers that `learning` asks for, each a learner from `make` with its own seed."""
    assert learning.controllers is not None
    # The first controller has the seed of the search, as a single learner would.
    seeds = np.random.SeedSequence(seed).generate_state(learning.controllers - 1)
    learners = [make(problem, learning, samples, one_seed) for one_seed in (seed, *map(int, seeds))]
    controllers = [learner for learner in learners if isinstance(learner, Controller)]
    assert len(controllers) == len(learners), "asynchronous methods make controllers"
    if learning.clock == "wall":
        return WallControllers(controllers, learning.stalest)
    clock = learning.clock or VirtualClock(workers=controllers[0].batch)
    return _VirtualControllers(controllers, clock, learning.stalest)
