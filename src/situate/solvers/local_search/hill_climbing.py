"""Hill climbing over blocks of groups, as a `Learner`.

It moves from the fastest placement so far to the best of a few neighbours if that is no slower. A
neighbour has one block of groups on another device.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from situate.data.problem import Problem
from situate.evaluators.measurements import Measurements
from situate.grouping import Groups
from situate.solvers.learned.checkpoint import restored
from situate.solvers.learned.groups import Level, grouped, levels
from situate.solvers.learned.initial_placements import InitialPlacements, initial_placements
from situate.solvers.learned.learner import Learning, State

GROUPS = 384
"""Default number of groups."""

BATCH = 4
"""Neighbours per batch."""

MEASUREMENTS = 4
"""Measurements of the current placement if repeated times differ."""


class HillClimber:
    """Moves from the fastest placement so far to a neighbour that is no slower, as a `Learner`.

    A neighbour has one block of groups on another device. Until a placement runs, each block of a
    random level gets a random device.

    Args:
        groups: the groups to place.
        levels: blocks of groups; the first level has single groups.
        first: initial placements; a random draw of each level follows them.
        seed: of the draws.
        alone: share of the neighbours that move a single group; the others move a block of any
            level.
    """

    def __init__(
        self,
        groups: Groups,
        levels: list[Level],
        first: InitialPlacements,
        seed: int,
        alone: float = 0.5,
    ) -> None:
        self.groups = groups
        self._levels = [_movable(level, groups) for level in levels]
        self._first = first
        self._seed = seed
        self._alone = alone
        self._n = 0
        self._best: NDArray[np.int32] = groups.allowed.argmax(axis=1).astype(np.int32)
        self._seconds, self._measurement_count, self._noisy = np.inf, 0, True

    @property
    def told_costs(self) -> bool:
        """True if its groups were made with op durations, or it measures a plan first."""
        return self.groups.told_costs or self._first.has_plan

    @property
    def reads_flops(self) -> bool:
        """True if FLOPs of ops went into its groups or its blocks."""
        return self.groups.weights in ("work", None)

    @property
    def batch(self) -> int:
        """The number of initial placements, then `BATCH`."""
        return BATCH if self._n else len(self._first) + len(self._levels)

    def ask(self, k: int) -> NDArray[np.int32]:
        """Placements (k, n)."""
        generator = np.random.default_rng([self._seed, self._n])
        if self._n == 0:
            devices = self._begin(k, generator)
        elif np.isinf(self._seconds):
            devices = np.stack(
                [self._random_devices(self._level(generator), generator) for _ in range(k)]
            )
        else:
            devices = np.stack([self._neighbour(generator) for _ in range(k)])
            devices[: self._again()] = self._best
        return self.groups.expand(devices)

    def _begin(self, k: int, generator: Generator) -> NDArray[np.int32]:
        # The first batch (k, g): the initial placements, then a random draw of each level, coarsest
        # first.
        draws = [self._random_devices(level, generator) for level in reversed(self._levels)]
        devices = np.stack([self._best] * len(self._first) + draws)
        self._first.write_into(devices)
        return devices[:k]

    def _again(self) -> int:
        """Copies of the current placement in the next batch: 1 while its time is uncertain.

        The minimum of noisy times is biased, and no neighbour would beat it.
        """
        return int(self._noisy and 0 < self._measurement_count < MEASUREMENTS)

    def _neighbour(self, generator: Generator) -> NDArray[np.int32]:
        neighbour = self._best.copy()
        while any(self._levels) and (neighbour == self._best).all():
            alone = generator.random() < self._alone
            level = self._levels[0] if alone else self._level(generator)
            self._move_block(level[generator.integers(len(level))], neighbour, generator)
        return neighbour

    def _random_devices(self, level: Level, generator: Generator) -> NDArray[np.int32]:
        devices = self._best.copy()
        for block in level:
            self._move_block(block, devices, generator)
        return devices

    def _level(self, generator: Generator) -> Level:
        return self._levels[generator.integers(len(self._levels))]

    def _move_block(
        self, block: NDArray[np.int64], devices: NDArray[np.int32], generator: Generator
    ) -> None:
        """Move a block to a random device; groups that may not run there stay."""
        allowed = self.groups.allowed
        device = generator.integers(allowed.shape[1])
        # Of the block's groups (b,), those that may run on the device.
        devices[block[allowed[block, device]]] = device

    def tell(self, placements: NDArray[np.int32], measurements: Measurements) -> None:
        """Move to the fastest neighbour unless it is slower than the mean at the current
        placement."""
        self._n += len(placements)
        seconds, again = measurements.times(np.inf), self._again()
        for more in seconds[:again].tolist():
            self._add(more)
        # The first `again` rows are measurements of the current placement, not of neighbours.
        seconds, placements = seconds[again:], placements[again:]
        if len(seconds) and seconds.min() <= self._seconds:
            fastest = int(seconds.argmin())
            self._best = self.groups.devices(placements[fastest : fastest + 1])[0]
            self._seconds = float(seconds[fastest])
            self._measurement_count = int(np.isfinite(self._seconds))

    def _add(self, seconds: float) -> None:
        """Add a measurement of the current placement; a failure leaves its mean time as it is."""
        self._noisy = seconds != self._seconds
        if np.isfinite(seconds):
            # The running mean of the times at one placement.
            self._seconds += (seconds - self._seconds) / (self._measurement_count + 1)
        self._measurement_count += 1

    def state(self) -> State:
        """The current placement, its mean time and the number of its measurements."""
        numbers = [self._n, self._seconds, self._measurement_count, self._noisy]
        return {"best": self._best, "numbers": np.array(numbers, np.float64)}

    def restore(self, state: State) -> None:
        """Load `state`."""
        values = restored(state, self.state())
        self._best = values["best"].astype(np.int32)
        n, self._seconds, measurement_count, noisy = map(float, values["numbers"])
        self._n, self._measurement_count, self._noisy = int(n), int(measurement_count), bool(noisy)


def _movable(level: Level, groups: Groups) -> Level:
    """The blocks with a group that may run on several devices."""
    choice = groups.allowed.sum(axis=1) > 1
    return [block for block in level if choice[block].any()]


def learner(problem: Problem, learning: Learning, samples: int, seed: int) -> HillClimber:
    """See `Learner` and docs/methods/hill_climbing.md."""
    groups = grouped(problem, learning, "structure", GROUPS)
    first = initial_placements(problem, learning, groups)
    return HillClimber(groups, levels(problem, groups), first, seed)
