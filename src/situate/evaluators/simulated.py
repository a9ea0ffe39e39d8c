"""A simulated machine that measures placements by the simulator, optionally with noise."""

from __future__ import annotations

from copy import copy

import numpy as np
from numpy.typing import NDArray

from situate.data.placements import rows
from situate.data.problem import LONGEST, Problem
from situate.errors import SituateError
from situate.evaluators.measurements import FINALISTS, OUTCOMES, Measurements
from situate.evaluators.steps import Steps
from situate.simulation.decoding import naming, priority_of, step_times
from situate.simulation.simulator import Simulator

NOISE_STREAM = 1
"""Separates the generators of noise from a learner's. With a common stream of equal seed and
sample, the noise would depend on the placement."""

OUT_OF_MEMORY, TIMEOUT = OUTCOMES.index("out_of_memory"), OUTCOMES.index("timeout")


class SimulatedMachine:
    """Runs ready ops in the graph's order, as frameworks do, or in another order.

    Args:
        problem: a graph on a cluster; its objective is `time`.
        noise: standard deviation of the logarithm of a step's measured time. A measurement is the
            simulated time multiplied by exp(noise * z) with z from a normal distribution, for one
            step or for the steps of `by`.
        seed: of the noise. Sample number i always gets the same z.
        threads: at most this many; the measurements do not depend on it.
        order: (n,) indices of ops, the most urgent first; None for the graph's order.
        simulator: of the problem, if there is one already.

    Raises:
        SituateError: noise below zero or not finite.
    """

    def __init__(
        self,
        problem: Problem,
        noise: float = 0.0,
        seed: int = 0,
        threads: int | None = None,
        order: NDArray[np.int32] | None = None,
        simulator: Simulator | None = None,
    ) -> None:
        if not 0 <= noise < np.inf:
            raise SituateError(f"noise: must be finite and not negative, got {noise}")
        self._problem = problem
        self._simulator = simulator or Simulator(problem)
        self._priority = priority_of(np.array(problem.graph.order if order is None else order))
        self._noise = noise
        self._seed = seed
        self._threads = threads
        self._steps = Steps(dropped=0, timed=1, window=1)

    at_once: int | None = None
    """No limit: a call gets all placements of a batch."""

    @property
    def name(self) -> str:
        """The simulator, its noise, the noise's seed, and the rule of `by`."""
        if not self._noise:
            return f"simulator noise={self._noise!r} seed=None"
        rule = f", {self._steps}" if self._steps.timed > 1 else ""
        return f"simulator noise={self._noise!r} seed={self._seed}{rule}"

    def by(self, steps: Steps) -> SimulatedMachine:
        """The same machine, whose measurements aggregate these steps, each with noise of its own.
        The first step is no slower."""
        other = copy(self)
        other._steps = steps
        return other

    @property
    def finalists(self) -> int:
        """0 without noise."""
        return FINALISTS if self._noise else 0

    def measure(self, placements: NDArray[np.int32], first: int) -> Measurements:
        """Simulated times of placements (k, n), the samples numbered from `first` on.

        A placement that exceeds a capacity is out of memory. One whose calls wait for one another
        times out.

        Raises:
            SituateError: not integers of that shape, or an unknown device.
        """
        placement_rows = rows(placements, self._problem.n, "placements")
        with naming(self._problem, placement_rows, lambda row: f"sample {first + row}: "):
            seconds, peak = step_times(
                self._simulator, placement_rows, self._priority, self._threads
            )
        fits, ends = (peak <= self._problem.capacity).all(axis=1), np.isfinite(seconds)
        outcome = np.where(fits, np.where(ends, 0, TIMEOUT), OUT_OF_MEMORY).astype(np.uint8)
        with np.errstate(over="ignore"):
            # Very large noise may overflow; no measurement exceeds the longest representable step.
            noisy = np.minimum(seconds * self._factors(first, len(seconds)), LONGEST)
        return Measurements(np.where(outcome == 0, noisy, np.inf), outcome)

    def _factors(self, first: int, count: int) -> NDArray[np.float64]:
        if not self._noise:
            return np.ones(count)
        # (count, steps)
        # A generator per sample, so that its noise depends on no other sample of the batch.
        draws = [
            np.random.default_rng(
                np.random.SeedSequence(self._seed, spawn_key=(NOISE_STREAM, i))
            ).standard_normal(self._steps.timed)
            for i in range(first, first + count)
        ]
        with np.errstate(over="ignore"):
            factors = np.clip(np.exp(self._noise * np.array(draws)), 1e-300, 1e300)
        return self._steps.seconds(factors)
