"""The protocol of methods that learn from measured step times, and their options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from situate.data.problem import Problem
from situate.errors import SituateError, nearest
from situate.evaluators.measurements import Evaluator, Measurements
from situate.evaluators.workers.places import Place
from situate.grouping import GROUPINGS
from situate.solvers.learned.asynchronous.virtual_clock import VirtualClock
from situate.validation import check_items

Settings = Literal["paper", "tuned"]
OWN_CHECKS = ("grouping", "groups", "noise", "evaluator", "workers", "controllers", "clock")
"""Fields of `Learning` with checks of their own, beyond their types."""

MOST_GROUPS = 10**6
"""Largest number of groups, more than any network has ops."""

State = Mapping[str, NDArray[np.generic]]
"""The state of a learner, as named arrays."""


class Learner(Protocol):
    """A method that sees placements and their measured times, and nothing else of the machine.

    All its randomness comes from its seed and the number of samples so far, so that `state` need
    not hold the state of a generator.

    A learner may have an attribute `name`: a string with all settings that change its samples. A
    study stores the name and refuses a learner with another one. It may also have an attribute
    `told_costs`: True if op durations went into its groups or its first placements.
    """

    @property
    def batch(self) -> int:
        """Number of samples in the next batch, at least one."""
        ...

    def ask(self, k: int) -> NDArray[np.int32]:
        """Placements (k, n) to measure next, as integer device indices.

        They respect `Problem.allowed`, and all ops of a colocation group are on one device.
        """
        ...

    def tell(self, placements: NDArray[np.int32], measurements: Measurements) -> None:
        """Learn from the measurements of the placements of the last `ask`, in their order."""
        ...

    def state(self) -> State:
        """The state between a `tell` and the next `ask`."""
        ...

    def restore(self, state: State) -> None:
        """Load `state`.

        Raises:
            SituateError: arrays of other names or shapes.
        """
        ...


@dataclass(frozen=True)
class Learning:
    """Options of a method that learns from measurements.

    Attributes:
        settings: `paper` for the paper's, or `tuned`, see the method's page.
        grouping: a rule of `situate.grouping.GROUPINGS`, or None for the method's own.
        groups: number of groups to coarsen to, or None for the rule's own number.
        noise: standard deviation of the logarithm of simulated measurements; 0 with an evaluator.
        study: a file that records every measurement; an interrupted search resumes from it.
        evaluator: measures placements; None for the simulator.
        workers: parallel processes, each with a copy of the evaluator: their number on this
            machine, or a Ray cluster, `ray`, `ray:N` or `ray://HOST:PORT`; None for this process
            alone. Measurements do not depend on them. Workers of `auto` search.
        controllers: number of controllers that learn the policy of `colocrl` or `hierarchical`
            asynchronously; None for one that waits for its whole batch.
        clock: virtual clock of the controllers' workers, which orders all events. None for one
            worker per placement of a batch, with no setup time. `wall`: all controllers share the
            `workers`, and gradients are applied in the order in which batches end.
        stalest: largest number of updates since the pull of the parameters with which a gradient
            is still applied; None for any.
        on_measured: called after each batch with the number of its first sample and its
            measurements.
        start: makes a placement (n,) to measure first, for methods that can begin with one.
        weights: a file of trained weights for methods with a network, `real` or `synthetic` for
            the package's weights trained on such graphs, or `constant` for proposals without a
            network. None for `regal`'s constant, or for the package's default weights.

    Raises:
        SituateError: unknown settings or grouping; groups below one or above `MOST_GROUPS`; noise
            that is negative, infinite or beside an evaluator; an invalid number of workers or
            controllers; a clock without controllers.
    """

    settings: Settings = "tuned"
    grouping: str | None = None
    groups: int | None = None
    noise: float = 0.0
    study: str | Path | None = None
    evaluator: Evaluator | None = None
    workers: int | str | None = None
    controllers: int | None = None
    clock: VirtualClock | Literal["wall"] | None = None
    stalest: int | None = None
    on_measured: Callable[[int, Measurements], None] | None = None
    start: Callable[[], NDArray[np.int32]] | None = None
    weights: str | Path | None = None

    def __post_init__(self) -> None:
        check_items([self], Learning, lambda _: "learning", but=OWN_CHECKS)
        _check_name("settings", self.settings, get_args(Settings))
        if self.grouping is not None:
            _check_name("grouping", self.grouping, tuple(GROUPINGS))
        if self.groups is not None and not _is(self.groups, Integral, least=1):
            raise SituateError(f"groups: must be an integer of at least 1, got {self.groups!r}")
        if self.groups is not None and self.groups > MOST_GROUPS:
            raise SituateError(f"groups: must be at most {MOST_GROUPS:,}, got {self.groups}")
        if self.controllers is not None and not _is(self.controllers, Integral, least=1):
            raise SituateError(
                f"controllers: must be an integer of at least 1, got {self.controllers!r}"
            )
        self._check_asynchrony()
        if self.workers is not None:
            Place.parse(self.workers)
        if not (_is(self.noise, Real, least=0) and isfinite(self.noise)):
            raise SituateError(f"noise: must be finite and not negative, got {self.noise!r}")
        if self.noise and self.evaluator is not None:
            raise SituateError(
                "noise: is of simulated measurements, and an evaluator brings its own: leave noise "
                "out, or give situate.SimulatedMachine(problem, noise, seed)"
            )

    def _check_asynchrony(self) -> None:
        if not isinstance(self.clock, VirtualClock | None) and self.clock != "wall":
            raise SituateError(f"clock: must be a VirtualClock or 'wall', got {self.clock!r}")
        for name in ("clock", "stalest"):
            if getattr(self, name) is not None and self.controllers is None:
                raise SituateError(f"{name}: is that of several controllers: give controllers too")
        if self.stalest is not None and self.stalest < 0:
            raise SituateError(f"stalest: must not be negative, got {self.stalest}")
        if self.clock == "wall" and self.workers is None:
            raise SituateError("clock: by the wall clock workers measure: give workers too")


MakeLearner = Callable[[Problem, Learning, int, int], Learner]
"""Makes a learner from a problem, its options, the number of samples to come and a seed."""


def _check_name(subject: str, name: str, names: tuple[str, ...]) -> None:
    if name not in names:
        raise SituateError(f"unknown {subject} {name!r}{nearest(str(name), names)}")


def _is(value: Any, kind: type, least: int) -> bool:
    number = isinstance(value, kind)
    return number and bool(value >= least)
