"""Controllers that update one policy asynchronously, as those of ColocRL (Mirhoseini et al., ICML
2017) and of the Hierarchical Planner (ICLR 2018) do.

A parameter server holds the policy. Each of N controllers pulls its parameters, draws placements
and has workers measure them. It then computes a gradient at the parameters that it drew with. The
server applies the gradient at once, whatever other controllers did meanwhile, and the controller
pulls again. A virtual clock or the workers decide which controller is next.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from situate.evaluators.measurements import Measurements
from situate.policies.gradient_ascent import Ascent
from situate.results.result import Asynchrony
from situate.solvers.learned.checkpoint import restored
from situate.solvers.learned.learner import Learner, State

SHARED = ("parameters", "mean", "square", "steps")
"""The entries of a controller's state that belong to the server."""


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
            controller.ascent.share(self._server)
        self.seconds = 0.0

    @property
    def told_costs(self) -> bool:
        """The value of any controller; all have the same."""
        return self._controllers[0].told_costs

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
