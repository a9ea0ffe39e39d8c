"""A simulated machine: measures placements by the simulator, with noise where it is asked for."""

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
"""Names the generators of noise: were they a learner's of the same seed and sample, it would depend
on the placement."""

OUT_OF_MEMORY, TIMEOUT = OUTCOMES.index("out_of_memory"), OUTCOMES.index("timeout")


class SimulatedMachine:
    """Runs ready ops in the order in which the graph lists them, as frameworks do, or in another.

    Args:
        problem: a graph on a cluster; its objective is `time`.
        noise: standard deviation of the logarithm of a step's measured time, which is the
            simulated one times exp(noise * z) with z from a normal distribution. A measurement is
            of one step, or of those of `by`.
        seed: of the noise. Sample number i always gets the same z.
        threads: at most this many; the measurements do not depend on it.
        order: (n,) indices of ops, the most urgent first; None for the graph's.
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
    """No limit: it is given all placements that there are."""

    @property
    def name(self) -> str:
        """The simulator, its noise, the noise's seed, and the rule of `by`."""
        if not self._noise:
            return f"simulator noise={self._noise!r} seed=None"
        rule = f", {self._steps}" if self._steps.timed > 1 else ""
        return f"simulator noise={self._noise!r} seed={self._seed}{rule}"

    def by(self, steps: Steps) -> SimulatedMachine:
        """The same machine, each of whose measurements is of these steps, with noise of their own;
        none is slower for being the first."""
        other = copy(self)
        other._steps = steps
        return other

    @property
    def finalists(self) -> int:
        """None without noise."""
        return FINALISTS if self._noise else 0

    def measure(self, placements: NDArray[np.int32], first: int) -> Measurements:
        """Simulated times of placements (k, n), the samples number `first` and on.

        A placement that exceeds a capacity is out of memory; one whose calls wait for one another
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
            noisy = np.minimum(seconds * self._factors(first, len(seconds)), LONGEST)
        return Measurements(np.where(outcome == 0, noisy, np.inf), outcome)

    def _factors(self, first: int, count: int) -> NDArray[np.float64]:
        if not self._noise:
            return np.ones(count)
        # (count, steps)
        draws = [
            np.random.default_rng(
                np.random.SeedSequence(self._seed, spawn_key=(NOISE_STREAM, i))
            ).standard_normal(self._steps.timed)
            for i in range(first, first + count)
        ]
        with np.errstate(over="ignore"):
            factors = np.clip(np.exp(self._noise * np.array(draws)), 1e-300, 1e300)
        return self._steps.seconds(factors)
