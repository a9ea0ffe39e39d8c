"""Controllers that update one policy asynchronously, as those of ColocRL (Mirhoseini et al., ICML
2017) and of the Hierarchical Planner (ICLR 2018) do.

A parameter server holds the policy. Each of N controllers pulls its parameters, draws placements
and has them measured by workers of its own. When the last of these has ended, it computes a
gradient by the parameters that it drew with, which the server applies at once, whatever other
controllers did meanwhile; then it pulls again.

Which controller ends next, a virtual clock says: workers take the seconds of what they measure. So
the order of all that happens, and with it the result, depends on the seed alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast

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
"""The part of a controller's state that is the server's."""


class Controller(Learner, Protocol):
    """A learner that ascends the gradient of each batch once."""

    @property
    def ascent(self) -> Ascent:
        """The ascent of its policy."""
        ...

    @property
    def told_costs(self) -> bool:
        """True if its groups were made with what ops take."""
        ...


@dataclass
class _Measuring:
    """A batch that a controller's workers are measuring, by the virtual clock, until `end`."""

    placements: NDArray[np.int32]
    measurements: Measurements
    end: float


class Controllers:
    """N controllers as one `Learner`, whose samples come in the order of the virtual clock.

    Args:
        controllers: of one policy and settings, each with a seed of its own.
        clock: of their workers.

    Attributes:
        seconds: what the virtual clock says: when the controller asked last began to draw.
    """

    def __init__(self, controllers: Sequence[Controller], clock: VirtualClock) -> None:
        self._controllers, self._clock = list(controllers), clock
        self._server = controllers[0].ascent.server
        for controller in controllers:
            controller.ascent.share(self._server)
        self._measuring: dict[int, _Measuring] = {}
        self._asked = 0
        self.seconds = 0.0

    @property
    def told_costs(self) -> bool:
        """That of a controller, all being alike."""
        return self._controllers[0].told_costs

    @property
    def batch(self) -> int:
        """That of a controller."""
        return self._controllers[0].batch

    def asynchrony(self) -> Asynchrony:
        """The time by the virtual clock until all is measured, and how stale gradients were."""
        end = max((each.end for each in self._measuring.values()), default=self.seconds)
        return Asynchrony(end, dict(sorted(self._server.staleness.items())))

    def ask(self, k: int) -> NDArray[np.int32]:
        """Placements (k, n) of the controller that is free first, once it has learnt from those
        before."""
        self._asked = self._free()
        return self._controllers[self._asked].ask(k)

    def tell(self, placements: NDArray[np.int32], measurements: Measurements) -> None:
        """The workers of the controller that was asked last begin to measure."""
        taken = self._clock.seconds(measurements, self._asked * self._clock.workers)
        end = self.seconds + taken
        self._measuring[self._asked] = _Measuring(placements, measurements, end)

    def _free(self) -> int:
        """A controller that has not begun yet, or the one whose workers end first, once it has
        learnt from them."""
        for number in range(len(self._controllers)):
            if number not in self._measuring:
                return number
        number, ended = min(self._measuring.items(), key=lambda item: (item[1].end, item[0]))
        del self._measuring[number]
        self.seconds = ended.end
        self._controllers[number].tell(ended.placements, ended.measurements)
        return number

    def state(self) -> State:
        """The server, and of every controller what it pulled, what it keeps and what its workers
        measure."""
        state = self._server.state()
        state["clock"] = np.array([self.seconds])
        counts = sorted(self._server.staleness.items())
        state["staleness"] = np.array(counts, np.int64).reshape(len(counts), 2)
        for number, controller in enumerate(self._controllers):
            state |= {f"{name} of {number}": a for name, a in self._own(number, controller).items()}
        return state

    def _own(self, number: int, controller: Controller) -> dict[str, NDArray[np.generic]]:
        own = {name: a for name, a in controller.state().items() if name not in SHARED}
        measuring = self._measuring.get(number)
        size = self.batch
        seconds, outcome, end = np.full(size, np.nan), np.zeros(size, np.uint8), np.nan
        if measuring is not None:
            end, count = measuring.end, len(measuring.measurements)
            seconds[:count] = measuring.measurements.seconds
            outcome[:count] = measuring.measurements.outcome
        return {
            **own,
            "pulled": controller.ascent.pulled().numpy(),
            "pulled at": np.array([controller.ascent.pulled_at]),
            "end": np.array([end]),
            "seconds": seconds,
            "outcome": outcome,
        }

    def restore(self, state: State) -> None:
        """Become what `state` says. What workers measure is drawn once more, of the parameters that
        their controller had pulled."""
        values = restored(state, self.state(), free=("staleness",))
        shared = {name: values[name] for name in SHARED}
        self.seconds = float(np.array(values["clock"])[0])
        self._measuring = {}
        self._server.staleness = Counter(dict(np.array(values["staleness"], int).tolist()))
        for number, controller in enumerate(self._controllers):
            suffix = f" of {number}"
            own = {k.removesuffix(suffix): v for k, v in values.items() if k.endswith(suffix)}
            kept = controller.state().keys()
            controller.restore({**shared, **{k: v for k, v in own.items() if k in kept}})
            parameters = torch.tensor(own["pulled"])
            controller.ascent.hold(parameters, int(np.array(own["pulled at"])[0]))
            self._measure_again(number, controller, own)

    def _measure_again(self, number: int, controller: Controller, own: State) -> None:
        end, seconds = float(np.array(own["end"])[0]), np.array(own["seconds"], np.float64)
        if np.isnan(end):
            return
        count = int((~np.isnan(seconds)).sum())
        measured = Measurements(seconds[:count], np.array(own["outcome"], np.uint8)[:count])
        self._measuring[number] = _Measuring(controller.ask(count), measured, end)


def make_controllers(
    make: MakeLearner, problem: Problem, learning: Learning, samples: int, seed: int
) -> Controllers:
    """As many controllers as `learning` says, of the learner that `make` makes."""
    assert learning.controllers is not None
    seeds = np.random.SeedSequence(seed).generate_state(learning.controllers - 1)
    made = [make(problem, learning, samples, each) for each in (seed, *map(int, seeds))]
    return Controllers(
        cast(list[Controller], made), learning.clock or VirtualClock(workers=made[0].batch)
    )
