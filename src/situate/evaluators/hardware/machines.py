"""Several machines as one evaluator: each worker runs placements on devices of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Placement
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.evaluators.hardware.machine import MEASUREMENT_LIMIT_SECONDS, Measurement
from situate.evaluators.hardware.per_worker import MachinePerWorker, required_hardware
from situate.evaluators.hardware.reservation import usable_cores, visible_gpus
from situate.evaluators.measurements import FINALISTS, OUTCOMES, Measurements, Origin
from situate.evaluators.references import References, reference_placement
from situate.evaluators.steps import Steps
from situate.evaluators.workers.machine import gather
from situate.evaluators.workers.messages import Counts
from situate.evaluators.workers.places import Place
from situate.evaluators.workers.workers import Terms
from situate.results.result import WorkerProgress
from situate.runtime.processes.worker_pool import START_LIMIT_SECONDS
from situate.schedule.schedule import Schedule
from situate.simulation.decoding import order_of

BUILD_SECONDS = 300.0
"""Seconds for a worker to import PyTorch and to build and capture the model."""

SPARE_SECONDS = 30.0
"""Seconds beyond all limits of a measurement before its worker counts as hung."""


class RealMachines:
    """Runs placements on the devices of many workers; a context manager that ends them.

    Every worker owns as many cores and GPUs as the cluster has, builds the model itself, and
    measures the reference step first. Then it works as a `RealMachine`.

    Args:
        problem: a graph on a cluster; each worker has one such cluster.
        model: a network of the zoo or `package.module:function`, as at capture.
        workers: their number on this machine, or a Ray cluster, see `Learning.workers`.
        optimizer: of the training step; None for the model's own.
        limit, steps: see `RealMachine`.
        reference: (n,) the placement of the reference step; None for `reference_placement`.

    Attributes:
        problem: the problem of its placements.
        log: all measurements, in order of arrival.
        met: the workers, in the order of their first measurement.

    Raises:
        MissingExtra: PyTorch or Ray is not installed.
        SituateError: this machine has too few cores or GPUs for the workers, a CPU device has no
            number of threads, or the Ray cluster does not answer.
    """

    at_once: int | None = None
    """No limit: each measurement is handed over on arrival."""

    finalists = FINALISTS
    """Several, since two measurements of a placement differ."""

    def __init__(
        self,
        problem: Problem,
        model: str,
        workers: int | str,
        *,
        optimizer: str | None = None,
        limit: float = MEASUREMENT_LIMIT_SECONDS,
        steps: Steps | None = None,
        reference: Placement | None = None,
    ) -> None:
        import torch

        place, (cores, gpus) = Place.parse(workers), required_hardware(problem.cluster)
        _check_capacity(place, cores, gpus)
        self.problem = problem
        self.log: list[Measurement] = []
        self.met: list[Origin] = []
        reference_row = reference_placement(problem) if reference is None else reference
        worker_machine = MachinePerWorker(
            problem, model, optimizer, limit, steps, reference_row, torch.__version__
        )
        self.name = worker_machine.name
        longest = START_LIMIT_SECONDS + limit + SPARE_SECONDS
        terms = Terms(cores, gpus, BUILD_SECONDS + longest, longest, lost=_crash_measurements)
        self._stack = ExitStack()
        self._workers = self._stack.enter_context(place.machine(worker_machine, terms=terms))

    @property
    def counts(self) -> Counts:
        """Statistics of the workers so far."""
        return self._workers.counts

    def progress(self) -> WorkerProgress | None:
        """See `Dispatch.progress`."""
        return self._workers.progress()

    def show(self, figures: Mapping[str, float]) -> None:
        """See `HasWorkers`."""
        self._workers.show(figures)

    def measure(self, placements: NDArray[np.int32], first: int) -> Measurements:
        """See `Evaluator`."""
        numbers = first + np.arange(len(placements))
        return gather(self.measure_each(placements, numbers), len(numbers))

    def measure_each(
        self, placements: NDArray[np.int32], numbers: NDArray[np.int64], avoid: str = ""
    ) -> Iterator[tuple[NDArray[np.int64], Measurements]]:
        """See `MeasuresEach`, and `Task.avoid`."""
        for rows, measurements in self._workers.measure_each(placements, numbers, avoid):
            self.log.extend(measurements.details)
            self.met.extend(by for by in measurements.origins if by and by not in self.met)
            yield rows, measurements

    def measure_elsewhere(
        self, placement: Placement, number: int, origin: Origin | None
    ) -> Measurements:
        """See `MeasuresElsewhere`."""
        avoid = origin.place if origin else ""
        [(_, measurements)] = self.measure_each(placement[None], np.array([number]), avoid)
        return measurements

    def run(self, schedule: Schedule) -> Measurement:
        """Measure a schedule, which may come from any method, in seconds of the first worker."""
        order = order_of(self.problem, schedule).astype(np.int32)
        # (1, 2, n): a worker takes a row of two as placement and order.
        one = np.stack([schedule.placement, order])[None]
        [(_, measurements)] = self.measure_each(one, np.array([0]))
        [seconds] = References(self.met).normalise(measurements).seconds.tolist()
        return replace(self.log[-1], seconds=seconds)

    def close(self) -> None:
        """End the workers."""
        self._stack.close()

    def __enter__(self) -> RealMachines:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _check_capacity(place: Place, cores: int, gpus: int) -> None:
    """Check that this machine has room for the workers that run on it.

    Raises:
        SituateError: it has too few cores or GPUs.
    """
    if place.address is not None:
        return
    count = place.count or 1
    for kind, per_worker, available in (
        ("cores", cores, len(usable_cores())),
        ("GPUs", gpus, len(visible_gpus(gpus))),
    ):
        if count * per_worker > available:
            raise SituateError(
                f"--workers: {count} would need {count * per_worker} {kind}, {per_worker} for the "
                f"devices of each, and this machine has {available}: ask for at most "
                f"{available // per_worker}, or plan for a smaller cluster"
            )


def _crash_measurements(reason: str) -> Measurements:
    """The measurement of a placement that crashes every worker."""
    crash = Measurement(np.inf, "crash", failure=reason)
    outcome = np.array([OUTCOMES.index(crash.outcome)], np.uint8)
    return Measurements(np.array([np.inf]), outcome, (), (crash,))
