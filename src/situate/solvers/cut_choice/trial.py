"""The step on which candidates are compared: itself, or one with fewer of its repeated blocks."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import msgspec

from situate.data.cuts import Cuts
from situate.data.problem import Problem
from situate.data.topology import accelerators
from situate.errors import SituateError
from situate.solvers.cut_choice.candidates import INNER, divided
from situate.solvers.cut_choice.cut_step import CutStep
from situate.solvers.cut_choice.divisions import Division

MANY_OPS = 2_000
"""Number of whole ops from which candidates are compared on fewer of the repeated blocks."""

BLOCKS = 4
"""Number of repeated blocks of such a shorter step for each `TEAM` devices."""

TEAM = 32
"""Devices that the blocks of a shorter step keep busy, as stages that hold its parameters."""

ROOM = 4
"""Least memory of a device for a shorter step, as a multiple of its largest parameter."""


def smallest_problem(step: CutStep) -> Problem:
    """The problem of whole ops, or in the fewest parts that fit some device.

    Raises:
        SituateError: there is none.
    """
    kinds = [kind for kind in INNER if kind in step.units]
    try:
        return step.problem_of(None)
    except SituateError:
        for count in (2**k for k in range(1, 10)):
            if cuts := divided(Division.equal(count), kinds, step.units):
                with suppress(SituateError):
                    return step.problem_of(cuts)
        raise


@dataclass(frozen=True)
class Trial:
    """A step on which candidates are compared.

    Attributes:
        problem: of whole ops, or of the fewest parts that fit.
        memory: the memory of a device as a fraction of the real one.
        least: bytes that it has at least.
    """

    step: CutStep
    problem: Problem
    memory: float = 1.0
    least: int = 0

    def problem_of(self, cuts: Cuts | None) -> Problem:
        return self.on_devices(self.step.problem_of(cuts))

    def on_devices(self, problem: Problem) -> Problem:
        """The problem on devices with this memory."""
        if self.memory == 1:
            return problem
        cluster = problem.cluster
        devices = [
            device
            if device.memory is None
            else msgspec.structs.replace(
                device, memory=min(device.memory, max(self.least, int(device.memory * self.memory)))
            )
            for device in cluster.devices
        ]
        return replace(problem, cluster=replace(cluster, devices=tuple(devices)))


def trial_of(step: CutStep, whole: Problem) -> Trial:
    """The step itself, or one with fewer blocks if it is large."""
    if whole.n < MANY_OPS or whole.graph.cuts is not None:
        return Trial(step, whole)
    short = step.shorter(BLOCKS * max(1, len(accelerators(whole)) // TEAM))
    if short is None:
        return Trial(step, whole)
    problem = short.problem_of(None)
    # Devices lose as much memory as the step loses persistent bytes.
    fraction = problem.persistent.sum() / max(1, whole.persistent.sum())
    trial = Trial(short, problem, min(1.0, float(fraction)), ROOM * int(problem.persistent.max()))
    return replace(trial, problem=trial.on_devices(problem))
