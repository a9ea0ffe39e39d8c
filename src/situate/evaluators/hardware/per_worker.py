"""The evaluator of one worker on hardware: a `RealMachine` on devices that the worker reserves."""

from __future__ import annotations

import contextlib
import os
import re
import socket
from dataclasses import dataclass, field
from statistics import median

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Placement
from situate.data.cluster import Cluster
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.evaluators.hardware.machine import Measurement, RealMachine
from situate.evaluators.hardware.reservation import Reservation
from situate.evaluators.measurements import FINALISTS, OUTCOMES, Measurements, Origin
from situate.evaluators.steps import Steps, repetition_text
from situate.evaluators.workers.workers import Unfit
from situate.host.machine import cpu_name
from situate.runtime.hardware import real_devices
from situate.runtime.subject import find_subject

REFERENCE_RUNS = 3
"""Measurements of the reference step; their median counts."""

DISCOVERED_CPU_MODEL = re.compile(r"(.+) \(\d+ threads?\)")
"""The model of a CPU device as `situate cluster discover` writes it."""


@dataclass
class MachinePerWorker:
    """A `RealMachine` for every worker, which builds the model itself.

    Attributes:
        problem: copied to every worker.
        model: a name for `find_subject`.
        optimizer: of a training step; None for the model's own.
        limit, steps: see `RealMachine`.
        reference: (n,) the placement of the reference step.
        torch: the version of PyTorch that every worker must have.
        folder: working directory of the command, where modules are found.
    """

    problem: Problem
    model: str
    optimizer: str | None
    limit: float
    steps: Steps | None
    reference: Placement
    torch: str
    folder: str = field(default_factory=os.getcwd)

    at_once = 1
    finalists = FINALISTS

    @property
    def name(self) -> str:
        """PyTorch, the devices and the repetition of steps: the settings that all workers share.
        Their machines may differ, see `References`."""
        devices = ", ".join(
            f"{d.name} = {d.torch} x {d.threads}" for d in real_devices(self.problem.cluster)
        )
        text = repetition_text(self.steps)
        return f"hardware of workers; torch {self.torch}; {devices}; {text}, limit {self.limit!r}"

    def open(self) -> str:
        """Reserve devices, build the model and measure the reference step; see `Opens`."""
        host = socket.gethostname()
        try:
            return self._open()
        except Unfit:
            raise
        except SituateError as error:
            raise SituateError(f"worker on {host!r}: {error}") from None

    def _open(self) -> str:
        self._check_versions()
        _check_processor(self.problem.cluster)
        self._reservation = Reservation(*required_hardware(self.problem.cluster))
        with contextlib.suppress(OSError):  # another machine may lack it
            os.chdir(self.folder)
        graph = self.problem.graph
        subject = find_subject(
            self.model, self.optimizer, graph.slices, graph.recompute, graph.cuts
        )
        self._machine = RealMachine(self.problem, subject, self.limit, steps=self.steps)
        self._origin = Origin(self._reservation.place, self._reference_seconds())
        return self._reservation.place

    def _check_versions(self) -> None:
        import torch

        if torch.__version__ != self.torch:
            raise SituateError(
                f"has PyTorch {torch.__version__}, and the command has {self.torch}: install the "
                "same on both"
            )

    def _reference_seconds(self) -> float:
        runs = [self._measure_row(self.reference, 0) for _ in range(REFERENCE_RUNS)]
        for run in runs:
            if run.outcome != "ok":
                raise Unfit(f"did not run the reference step ({run.outcome}: {run.failure})")
        return median(run.seconds for run in runs)

    def measure(self, placements: NDArray[np.int32], first: int) -> Measurements:
        """See `Evaluator`; placements (k, n), or placements and orders (k, 2, n)."""
        log = tuple(self._measure_row(row, first + i) for i, row in enumerate(placements))
        return Measurements(
            np.array([one.seconds for one in log], np.float64),
            np.array([OUTCOMES.index(one.outcome) for one in log], np.uint8),
            (self._origin,) * len(log),
            log,
        )

    def _measure_row(self, row: NDArray[np.int32], number: int) -> Measurement:
        if row.ndim == 1:
            self._machine.measure(row[None], number)
        else:
            placement, order = row
            self._machine.run_in(placement, order.tolist())
        # The process that receives the measurement keeps the log; here it would only grow.
        return self._machine.log.pop()


def required_hardware(cluster: Cluster) -> tuple[int, int]:
    """Cores and GPUs of a worker: a core for every thread of a CPU device, and one for each GPU's
    process.

    Raises:
        SituateError: a CPU device without a number of threads.
    """
    for device in cluster.devices:
        if device.kind == "cpu" and device.threads is None:
            raise SituateError(
                f"--workers: device {device.name!r} of cluster {cluster.name!r} takes all cores, "
                "so that workers would share them: give it threads = N in the cluster's file"
            )
    devices = real_devices(cluster)
    cores = sum(device.threads or 1 for device in devices)
    return cores, sum(device.torch != "cpu" for device in devices)


def _check_processor(cluster: Cluster) -> None:
    """Check that the CPU devices have this machine's processor.

    Raises:
        SituateError: the cluster was discovered on another processor.
    """
    for device in cluster.devices:
        match = DISCOVERED_CPU_MODEL.fullmatch(device.model) if device.kind == "cpu" else None
        if match and match[1] != cpu_name():
            raise SituateError(
                f"device {device.name!r} of cluster {cluster.name!r} is a {match[1]!r}, and the "
                f"processor here a {cpu_name()!r}: leave this machine out, or leave the model out "
                "of the cluster's file"
            )
