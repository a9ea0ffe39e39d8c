"""The devices on which placements are measured: a process each, kept as long as nothing fails."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from multiprocessing.connection import wait
from pathlib import Path
from threading import Timer
from time import perf_counter
from typing import Any

from situate import _core
from situate.evaluators.hardware_device import END
from situate.evaluators.hardware_process import KILLED, DeviceProcess, Ended
from situate.runtime.device import Ran
from situate.runtime.processes.launch import Started
from situate.runtime.processes.signals import Waiting
from situate.runtime.processes.team import START, OutOfMemory, StepFailed
from situate.runtime.processes.worker import Hello, Run, Store

VMSTAT = Path("/proc/vmstat")
"""Where Linux counts the processes that it ended for want of memory."""


class TimedOut(StepFailed):
    """A placement that was not measured within its time."""

    outcome = "timeout"


class DeviceProcesses:
    """The processes of all devices that were used so far.

    Args:
        limit: seconds from when the devices are ready for a placement to when it is measured.
        modules: that each process imports.
    """

    def __init__(self, limit: float, modules: Sequence[str] = ()) -> None:
        self._limit, self._modules = limit, modules
        self._started = Started()
        self._all: dict[str, DeviceProcess] = {}
        self._timer: Timer | None = None
        self._expired, self._reproach = False, ""
        self._deadline = inf
        self._kills = 0

    def start(
        self, names: Sequence[str], hellos: Sequence[Hello], block: int, flags: _core.Flags
    ) -> Assigned:
        """Let devices run a placement; a process that is not there is started.

        Raises:
            StepFailed: one does not get ready.
        """
        if self._expired:  # which nobody may have waited for
            self.close()
        self._kills = memory_kills()
        self._allow(START, "its devices were not ready")
        members = [
            self._process(name, hello.threads) for name, hello in zip(names, hellos, strict=True)
        ]
        for member, hello in zip(members, hellos, strict=True):
            member.assign(hello, block)
        self.gather(members)
        self._allow(self._limit, "not measured")
        return Assigned(self, members)

    def gather(self, members: Sequence[DeviceProcess]) -> list[Any]:
        """One answer of each; where one fails, all are ended.

        Raises:
            StepFailed: a device failed, for want of memory, or the time was up.
        """
        of = {member.connection: member for member in members}
        found: dict[object, Any] = {}
        try:
            while missing := [c for c in of if c not in found]:
                ready = wait(missing)
                found |= {c: of[c].answer() for c in missing if c in ready}
        except StepFailed as failure:
            reason = self._reason(failure)
            self.close()
            raise reason from None
        return [found[member.connection] for member in members]

    def finish(self) -> None:
        """A placement is measured: stop the clock.

        Raises:
            TimedOut: too late.
        """
        late = perf_counter() > self._deadline  # of which the timer may be told late itself
        self._stop()
        if self._expired or late:
            self.close()
            raise TimedOut(self._reproach)

    def close(self) -> None:
        """End all processes."""
        with Waiting():
            self._stop()
            self._started.end()
            for process in self._all.values():
                process.connection.close()
            self._all = {}

    def _process(self, name: str, threads: int) -> DeviceProcess:
        if name not in self._all:
            self._all[name] = DeviceProcess(name, threads, self._modules, self._started)
        return self._all[name]

    def _allow(self, seconds: float, reproach: str) -> None:
        """Kill all processes so many seconds from now, which unblocks whoever waits for them."""
        with Waiting():  # a timer that was made and not started cannot be joined
            self._stop()
            self._expired, self._reproach = False, f"{reproach} within {seconds:g} s"
            self._deadline = perf_counter() + seconds
            self._timer = Timer(seconds, self._expire)
            self._timer.daemon = True
            self._timer.start()

    def _expire(self) -> None:
        self._expired = True
        for process in list(self._all.values()):
            process.kill()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
        self._deadline = inf

    def _reason(self, failure: StepFailed) -> StepFailed:
        """What lies behind a failure."""
        if self._expired:
            return TimedOut(self._reproach)
        killed = isinstance(failure, Ended) and failure.status == KILLED
        return OutOfMemory(str(failure)) if killed and memory_kills() > self._kills else failure


class Assigned:
    """The devices of one placement, as a team."""

    def __init__(self, processes: DeviceProcesses, members: Sequence[DeviceProcess]) -> None:
        self._processes, self._members = processes, members

    def run(self, order: Run) -> list[Ran]:
        """See `situate.runtime.processes.team.Team`."""
        return self._told(order)

    def store(self, order: Store) -> None:
        """See `situate.runtime.processes.team.Team`."""
        self._told(order)

    def close(self) -> None:
        """Let them wait for the next placement."""
        for member in self._members:
            member.say(END)

    def _told(self, order: Run | Store) -> list[Any]:
        for member in self._members:
            member.say(order)
        return self._processes.gather(self._members)


def memory_kills() -> int:
    """Processes that Linux ended for want of memory since it started; 0 elsewhere."""
    try:
        counts = dict(line.split(maxsplit=1) for line in VMSTAT.read_text().splitlines())
    except (OSError, ValueError):
        return 0
    return int(counts.get("oom_kill", 0))
