"""The workers on which placements are measured, kept as long as nothing fails."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from math import inf
from pathlib import Path
from threading import Timer
from time import perf_counter
from typing import Any

from situate import _core
from situate.runtime.device import Ran
from situate.runtime.processes.failures import OutOfMemory, StepFailed, WorkerEnded
from situate.runtime.processes.messages import END, Assignment, Run, Store
from situate.runtime.processes.signals import HeldSignals
from situate.runtime.processes.worker_pool import START_LIMIT, Worker, WorkerPool

MEASURING_WORKER = (
    "import sys; from situate.evaluators.hardware.worker import main; "
    "main(int(sys.argv[1]), *sys.argv[2:])"
)
"""The program of a worker that runs one placement after the other."""

KILLED_STATUS = -signal.SIGKILL
"""Exit status of a process that was killed, also by Linux for want of memory."""

VMSTAT = Path("/proc/vmstat")
"""The file in which Linux counts the processes that it ended for want of memory."""


class TimedOut(StepFailed):
    """A placement that was not measured within its time."""

    outcome = "timeout"


class HardwareWorkers:
    """The workers of all devices that were used so far.

    Args:
        limit: seconds from when the devices are ready for a placement to when it is measured.
        modules: that each worker imports.
    """

    def __init__(self, limit: float, modules: Sequence[str] = ()) -> None:
        self._limit, self._modules = limit, modules
        self._pool = WorkerPool(MEASURING_WORKER, quiet=True)
        self._timer: Timer | None = None
        self._expired, self._reproach = False, ""
        self._deadline = inf
        self._kills = 0

    def start(
        self,
        names: Sequence[str],
        assignments: Sequence[Assignment],
        block: int,
        flags: _core.threads.Flags,
    ) -> AssignedWorkers:
        """Let devices run a placement; a worker that is not there is started.

        Raises:
            StepFailed: one does not get ready.
        """
        if self._expired:  # which nobody may have waited for
            self.close()
        self._kills = memory_kills()
        self._allow(START_LIMIT, "its devices were not ready")
        workers = [
            self._worker(name, assignment.threads)
            for name, assignment in zip(names, assignments, strict=True)
        ]
        self._pool.assign(workers, assignments, block)
        self.answers(workers)
        self._allow(self._limit, "not measured")
        return AssignedWorkers(self, workers)

    def answers(self, workers: Sequence[Worker]) -> list[Any]:
        """The answers of these workers; where one fails, all are ended.

        Raises:
            StepFailed: a device failed, for want of memory, or the time was up.
        """
        try:
            return self._pool.answers(workers)
        except StepFailed as failure:
            reason = self._reason(failure)
            self.close()
            raise reason from None

    def finish(self) -> None:
        """Stop the clock: a placement is measured.

        Raises:
            TimedOut: too late.
        """
        late = perf_counter() > self._deadline  # of which the timer may be told late itself
        self._stop()
        if self._expired or late:
            self.close()
            raise TimedOut(self._reproach)

    def close(self) -> None:
        """End all workers."""
        with HeldSignals():
            self._stop()
            self._pool.end()

    def _worker(self, name: str, threads: int) -> Worker:
        for worker in self._pool.workers:
            if worker.name == name:
                return worker
        return self._pool.start(name, threads, self._modules)

    def _allow(self, seconds: float, reproach: str) -> None:
        """Kill all workers so many seconds from now, which unblocks whoever waits for them."""
        with HeldSignals():  # a timer that was made and not started cannot be joined
            self._stop()
            self._expired, self._reproach = False, f"{reproach} within {seconds:g} s"
            self._deadline = perf_counter() + seconds
            self._timer = Timer(seconds, self._expire)
            self._timer.daemon = True
            self._timer.start()

    def _expire(self) -> None:
        self._expired = True
        self._pool.kill()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
        self._deadline = inf

    def _reason(self, failure: StepFailed) -> StepFailed:
        """The error that tells what lies behind a failure."""
        if self._expired:
            return TimedOut(self._reproach)
        killed = isinstance(failure, WorkerEnded) and failure.status == KILLED_STATUS
        return OutOfMemory(str(failure)) if killed and memory_kills() > self._kills else failure


class AssignedWorkers:
    """The devices of one placement, which are a step's, see `StepDevices`."""

    def __init__(self, all_workers: HardwareWorkers, workers: Sequence[Worker]) -> None:
        self._all, self._workers = all_workers, workers

    def run(self, order: Run) -> list[Ran]:
        """See `StepDevices`."""
        return self._told(order)

    def store(self, order: Store) -> None:
        """See `StepDevices`."""
        self._told(order)

    def close(self) -> None:
        """Let them wait for the next placement."""
        for worker in self._workers:
            worker.send(END)

    def _told(self, order: Run | Store) -> list[Any]:
        for worker in self._workers:
            worker.send(order)
        return self._all.answers(self._workers)


def memory_kills() -> int:
    """Processes that Linux ended for want of memory since it started; 0 elsewhere."""
    try:
        counts = dict(line.split(maxsplit=1) for line in VMSTAT.read_text().splitlines())
    except (OSError, ValueError):
        return 0
    return int(counts.get("oom_kill", 0))
