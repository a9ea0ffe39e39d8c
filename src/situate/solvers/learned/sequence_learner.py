"""The learner of a sequence-to-sequence policy: samples, failures and checkpoints."""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from situate.data.arrays import Floats
from situate.data.problem import Problem
from situate.evaluators.measurements import Measurements
from situate.grouping import Groups
from situate.policies.arithmetic import arithmetic
from situate.policies.gradient_ascent import Ascent
from situate.policies.group_policy import GroupPolicy
from situate.policies.shapes import Shape
from situate.solvers.learned.checkpoint import restored
from situate.solvers.learned.groups import grouped
from situate.solvers.learned.learner import Learning, State
from situate.solvers.learned.rewards import failure_seconds


class Update(Protocol):
    """The change of a policy after a batch of placements.

    Attributes:
        numbers: its state between two updates.
    """

    numbers: Floats

    def update(
        self,
        policy: GroupPolicy,
        ascent: Ascent,
        devices: torch.Tensor,
        times: Floats,
        ok: NDArray[np.bool_],
    ) -> None:
        """Learn from devices (k, g), their seconds (k,) and their successes `ok` (k,)."""
        ...


class SequenceSettings(Protocol):
    """The settings of a sequence learner that do not belong to its update alone."""

    @property
    def shape(self) -> Shape:
        """Shape of the policy."""
        ...

    @property
    def grouping(self) -> str:
        """Rule of grouping."""
        ...

    @property
    def groups(self) -> int | None:
        """Number of groups that the rule makes; None for its own."""
        ...

    @property
    def K(self) -> int:
        """Placements between two updates."""
        ...

    @property
    def learning_rate(self) -> float:
        """Length of a step of ascent."""
        ...

    @property
    def clip(self) -> float | None:
        """Largest norm of a gradient; None for no limit."""
        ...


class SequenceLearner:
    """A `GroupPolicy` as a `Learner`.

    PyTorch computes on one thread here, so that placements do not depend on the number of threads.

    Args:
        groups: the groups to place.
        policy: over these groups.
        ascent: on the policy's parameters.
        update: of the policy after every batch.
        placements: in a batch.
        failure: seconds of a failed placement, and the upper limit of all others.
        seed: of the samples.
    """

    def __init__(
        self,
        groups: Groups,
        policy: GroupPolicy,
        ascent: Ascent,
        update: Update,
        *,
        placements: int,
        failure: float,
        seed: int,
    ) -> None:
        self.groups = groups
        self.policy = policy
        self._ascent = ascent
        self._update = update
        self._batch = placements
        self._failure = failure
        self._seed = seed
        self._n = 0

    @property
    def ascent(self) -> Ascent:
        """The ascent of its policy."""
        return self._ascent

    @property
    def told_costs(self) -> bool:
        """True if its groups were made with op durations."""
        return self.groups.told_costs

    @property
    def reads_flops(self) -> bool:
        """True if its groups were made with FLOPs of ops."""
        return self.groups.reads_flops

    @property
    def batch(self) -> int:
        """Placements between two updates."""
        return self._batch

    def ask(self, k: int) -> NDArray[np.int32]:
        """Placements (k, n) drawn from the policy."""
        # The number of samples names the stream, so a restored learner draws the same.
        with arithmetic():
            devices = self.policy.sample(k, generator(self._seed, 1, self._n))
        return self.groups.expand(devices.numpy().astype(np.int32))

    def tell(self, placements: NDArray[np.int32], measurements: Measurements) -> None:
        """Update the policy."""
        self._n += len(measurements)
        times = np.minimum(measurements.times(self._failure), self._failure)
        devices = torch.from_numpy(self.groups.devices(placements).astype(np.int64))
        with arithmetic():
            self._update.update(self.policy, self._ascent, devices, times, measurements.ok)

    def state(self) -> State:
        """The parameters, the state of the ascent and of the update, and the number of samples."""
        own = {"numbers": self._update.numbers.copy(), "samples": np.array([self._n], np.int64)}
        return {**self._ascent.state(), **own}

    def restore(self, state: State) -> None:
        """Load `state`."""
        values = restored(state, self.state())
        self._ascent.restore(values)
        self._update.numbers = np.array(values["numbers"], np.float64)
        self._n = int(np.array(values["samples"])[0])


def sequence_learner(
    problem: Problem,
    learning: Learning,
    settings: SequenceSettings,
    update: Update,
    seed: int,
    *,
    ascent: Literal["plain", "adam"],
) -> SequenceLearner:
    """The learner of a problem with a method's update; `learning.grouping` overrides the
    settings."""
    groups = grouped(problem, learning, settings.grouping, settings.groups)
    policy = GroupPolicy(problem, groups, settings.shape, generator(seed, 0))
    return SequenceLearner(
        groups,
        policy,
        Ascent(policy, ascent, settings.learning_rate, settings.clip),
        update,
        placements=settings.K,
        failure=failure_seconds(problem),
        seed=seed,
    )


def generator(seed: int, *purpose: int) -> torch.Generator:
    """A PyTorch generator for a seed and a purpose; purposes have independent streams."""
    words = np.random.SeedSequence(seed, spawn_key=purpose).generate_state(1, np.uint64)
    # PyTorch takes seeds below 2^63.
    return torch.Generator().manual_seed(int(words[0] >> np.uint64(1)))
