"""The worker processes that measure placements, reused until one fails."""

from __future__ import annotations

import contextlib
import gc
import signal
from collections.abc import Sequence
from importlib import import_module
from math import inf
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Timer
from time import perf_counter
from typing import Any

from situate import _core
from situate.runtime.device import StepRecord
from situate.runtime.processes.messages import (
    END_OF_STEP,
    Assignment,
    OutOfMemory,
    Run,
    StepFailed,
    Store,
    WorkerEnded,
)
from situate.runtime.processes.signals import HeldSignals
from situate.runtime.processes.worker import serve, set_up
from situate.runtime.processes.worker_pool import START_LIMIT_SECONDS, Worker, WorkerPool
from situate.torch_capture.function import current_directory

MEASURING_WORKER = (
    "import sys; from situate.evaluators.hardware.workers import run_worker; "
    "run_worker(int(sys.argv[1]), *sys.argv[2:])"
)
"""The program of a worker process that runs one placement after the other."""

KILLED_STATUS = -signal.SIGKILL
"""Exit status of a killed process; Linux's out-of-memory killer causes it too."""

VMSTAT = Path("/proc/vmstat")
"""Linux's file with the number of processes killed for lack of memory."""


OOM_SCORE = "1000"
"""A worker's own out-of-memory score: Linux kills it first when memory is short."""


class TimedOut(StepFailed):
    """A placement that was not measured within its time."""

    outcome = "timeout"


class HardwareWorkers:
    """One worker for each device used so far.

    Args:
        limit: seconds from when the devices are ready to the end of the measurement.
        modules: modules that each worker imports.
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
    ) -> PlacementDevices:
        """Assign a placement to devices, and start missing workers.

        Raises:
            StepFailed: a worker does not become ready.
        """
        if self._expired:  # perhaps while nobody waited
            self.close()
        self._kills = memory_kills()
        self._allow(START_LIMIT_SECONDS, "its devices were not ready")
        workers = [
            self._worker(name, assignment.threads)
            for name, assignment in zip(names, assignments, strict=True)
        ]
        self._pool.assign(workers, assignments, block)
        self.answers(workers)
        self._allow(self._limit, "not measured")
        return PlacementDevices(self, workers)

    def answers(self, workers: Sequence[Worker]) -> list[Any]:
        """The answers of these workers; a failure of one ends all.

        Raises:
            StepFailed: a device failed, ran out of memory, or exceeded the time.
        """
        try:
            return self._pool.answers(workers)
        except StepFailed as failure:
            reason = self._reason(failure)
            self.close()
            raise reason from None

    def finish(self) -> None:
        """Stop the clock at the end of a measurement.

        Raises:
            TimedOut: too late.
        """
        late = perf_counter() > self._deadline  # the timer itself may run late
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
        """Kill all workers after `seconds`, which unblocks a process that waits for them."""
        with HeldSignals():  # a timer that was made and not started cannot be joined
            self._stop()
            self._expired, self._reproach = False, f"{reproach} within {seconds:g} s"
            self._deadline = perf_counter() + seconds
            self._timer = Timer(seconds, self._expire)
            # The timer must not keep Python alive at exit.
            self._timer.daemon = True
            self._timer.start()

    def _expire(self) -> None:
        self._expired = True
        self._pool.kill()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            # An expiring timer could otherwise kill the workers of the next placement.
            self._timer.join()
        self._deadline = inf

    def _reason(self, failure: StepFailed) -> StepFailed:
        """The error for the cause of a failure."""
        if self._expired:
            return TimedOut(self._reproach)
        # Linux kills without a message; its counter tells this from a kill by a user.
        killed = isinstance(failure, WorkerEnded) and failure.status == KILLED_STATUS
        return OutOfMemory(str(failure)) if killed and memory_kills() > self._kills else failure


class PlacementDevices:
    """The devices of one placement, as a step uses them; see `StepDevices`."""

    def __init__(self, all_workers: HardwareWorkers, workers: Sequence[Worker]) -> None:
        self._all, self._workers = all_workers, workers

    def run(self, order: Run) -> list[StepRecord]:
        """See `StepDevices`."""
        return self._send_to_all(order)

    def store(self, order: Store) -> None:
        """See `StepDevices`."""
        self._send_to_all(order)

    def close(self) -> None:
        """Let the workers wait for the next placement."""
        for worker in self._workers:
            worker.send(END_OF_STEP)

    def _send_to_all(self, order: Run | Store) -> list[Any]:
        for worker in self._workers:
            worker.send(order)
        return self._all.answers(self._workers)


def memory_kills() -> int:
    """Number of processes that Linux killed for lack of memory since it started; 0 elsewhere."""
    try:
        counts = dict(line.split(maxsplit=1) for line in VMSTAT.read_text().splitlines())
    except (OSError, ValueError):
        return 0
    return int(counts.get("oom_kill", 0))


def run_worker(connection: int, *modules: str) -> None:
    """Serve the process at the other end of a connection until it hangs up.

    Args:
        connection: descriptor of a socket.
        modules: to import, as they may define operators.
    """
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE)
    set_up()
    with current_directory():
        for module in modules:
            with contextlib.suppress(ImportError):
                import_module(module)
    # Modules and their tables live for ever; frozen, they cost later collections nothing.
    gc.freeze()
    with Connection(connection) as parent, contextlib.suppress(EOFError, OSError, RuntimeError):
        while True:
            serve(parent)
            # Steps are functions that know one another: only the collector frees their memory.
            gc.collect()
