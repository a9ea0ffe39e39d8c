"""Profiling workers: one a device, as in a placed step, any of which can run a step alone."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from situate.errors import SituateError
from situate.host.machine import usable_cpus
from situate.runtime.device import StepRecord
from situate.runtime.hardware import RealDevice
from situate.runtime.processes.messages import Assignment, Run
from situate.runtime.processes.worker_pool import STEP_WORKER, Worker, WorkerPool


class ProfilingWorkers:
    """A worker for each of several devices; a context manager that ends them.

    Each loads PyTorch at its start. At first, as many start as leave a core for this process, which
    may load PyTorch too; `start_others` starts the rest.

    Attributes:
        overhead: seconds of the last step beyond its devices' work.
    """

    def __init__(self, devices: Sequence[RealDevice]) -> None:
        self._others = list(devices)
        self._pool = WorkerPool(STEP_WORKER)
        self._step = 0
        self.overhead = 0.0
        try:
            # Loading PyTorch takes a whole core; more processes at once would only slow one another
            # down.
            for _ in range(max(1, usable_cpus() - 1)):
                self._start_next()
        except BaseException:
            self._pool.end()
            raise

    def start_others(self) -> None:
        """Start the remaining workers."""
        while self._others:
            self._start_next()

    def _start_next(self) -> None:
        if self._others:
            device = self._others.pop(0)
            self._pool.start(device.name, device.threads)

    def __enter__(self) -> ProfilingWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.end()

    @property
    def pids(self) -> list[int]:
        """The process numbers, by device."""
        return [worker.process.pid for worker in self._pool.workers]

    def assign(self, assignments: Sequence[Assignment], block: int) -> None:
        """Send every worker its assignment.

        Args:
            block: descriptor of the common memory.

        Raises:
            SituateError: a worker ended, or cannot run it; all have ended then.
        """
        self.start_others()
        self._pool.assign(self._pool.workers, assignments, block)
        self._answers(self._pool.workers)

    def run(
        self, members: Iterable[int], timed: bool, memory: bool = False
    ) -> dict[int, StepRecord]:
        """Run one step of these devices at once; their records, by device.

        Raises:
            SituateError: the step failed on one device. All have ended then, since the others may
                wait for it.
        """
        self._step += 1
        device_numbers = list(members)
        workers = [self._pool.workers[i] for i in device_numbers]
        start = time.perf_counter()
        for worker in workers:
            worker.send(Run(self._step, timed, None, memory))
        records: list[StepRecord] = self._answers(workers)
        self.overhead = time.perf_counter() - start - _busy_seconds(records)
        return dict(zip(device_numbers, records, strict=True))

    def _answers(self, workers: Sequence[Worker]) -> list[Any]:
        """The answers of these workers; a failure of one ends all."""
        try:
            return self._pool.answers(workers)
        except SituateError:
            self._pool.end()
            raise


def _busy_seconds(records: Collection[StepRecord]) -> float:
    """Seconds from the first device's start to the last device's end."""
    return max(r.end for r in records) - min(r.start for r in records)
