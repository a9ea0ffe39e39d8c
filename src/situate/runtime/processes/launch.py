"""Start and end of child processes: fresh interpreters with this one's module path.

A child ends with its parent, however the parent ended.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Sequence
from pathlib import Path

from situate.runtime.processes.signals import HeldSignals

PROLOGUE = "from situate.runtime.processes.launch import _die_with_parent; _die_with_parent()\n"
"""First lines of a child: it must not outlive its parent, which may end at any time."""

EPILOGUE = "\nimport os; os._exit(0)"
"""Last lines of a child: it exits at once, without Python's slow teardown of PyTorch."""


POLL_SECONDS = 0.1
"""Seconds between two checks for the parent, on a system without pidfd."""

PARENT_VARIABLE = "SITUATE_PARENT"
"""Environment variable with the number of the parent process."""


class ChildProcesses:
    """Child processes that end together: on request, when this object is collected, or with Python.

    Signals wait while a process starts, so that none runs unregistered, and while processes end.
    """

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []
        # The finalizer holds the list, not this object, which would never be collected.
        weakref.finalize(self, _kill_all, self._processes)

    def start(
        self,
        code: str,
        arguments: Sequence[str],
        descriptors: Sequence[int],
        *,
        threads: int | None,
        name: str,
        quiet: bool = False,
    ) -> subprocess.Popen[bytes]:
        """Start one more; see `launch_process`."""
        with HeldSignals():
            process = launch_process(
                code, arguments, descriptors, threads=threads, name=name, quiet=quiet
            )
            self._processes.append(process)
        return process

    def end_one(self, process: subprocess.Popen[bytes]) -> None:
        """End one of them, with all that it started."""
        with HeldSignals():
            one = [process]
            _kill_all(one)
            self._processes.remove(process)

    def end(self) -> None:
        """End all of them, with all that they started."""
        _kill_all(self._processes)


def _kill_all(processes: list[subprocess.Popen[bytes]]) -> None:
    """Kill processes with all that they started, and wait until they are gone."""
    with HeldSignals():
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        # All are killed before one is waited for, so that they end at once.
        for process in processes:
            process.wait()
        processes.clear()


def launch_process(
    code: str,
    arguments: Sequence[str],
    descriptors: Sequence[int],
    *,
    threads: int | None,
    name: str,
    quiet: bool = False,
) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own, so that Ctrl-C reaches the caller alone, which ends
    it.

    Args:
        code: Python code, followed by these arguments.
        descriptors: to inherit.
        threads: of its kernels from the start; None for as many as there are cores.
        name: of the device, in the variable SITUATE_DEVICE.
        quiet: discard its output.
    """
    counts = ("OMP_NUM_THREADS", "MKL_NUM_THREADS") if threads is not None else ()
    output = subprocess.DEVNULL if quiet else None
    return subprocess.Popen(
        # -P keeps the current directory out of the path, where a file could hide a module.
        [sys.executable, "-P", "-c", PROLOGUE + code + EPILOGUE, *arguments],
        pass_fds=descriptors,
        env={
            **os.environ,
            **dict.fromkeys(counts, str(threads)),
            "PYTHONPATH": os.pathsep.join(_module_path()),
            "SITUATE_DEVICE": name,
            PARENT_VARIABLE: str(os.getpid()),
        },
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )


def _module_path() -> list[str]:
    """The folders where this process looks for modules, with this package's first if it is missing.

    An empty entry means the current directory.
    """
    package = str(Path(__file__).parents[3])
    folders = [entry or os.getcwd() for entry in sys.path]
    return folders if package in folders else [package, *folders]


def _die_with_parent() -> None:
    """End this process soon after its parent, even in the middle of a step.

    PR_SET_PDEATHSIG would not do: the kernel takes the thread that started a process for its
    parent.
    """
    parent = int(os.environ[PARENT_VARIABLE])
    if os.getppid() != parent:
        os._exit(1)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    _wait_for_end(parent)
    # After a wait by pidfd the parent is gone, or will be in a moment.
    while os.getppid() == parent:
        time.sleep(POLL_SECONDS)
    os._exit(1)


def _wait_for_end(parent: int) -> None:
    """Return when the parent ends; at once without pidfd, or if it has ended.

    Polling would wake every process regularly, each with cold caches.
    """
    if not hasattr(os, "pidfd_open"):
        return
    try:
        descriptor = os.pidfd_open(parent)
    except OSError:
        return
    if os.getppid() == parent:  # else the number may be that of another process by now
        end_of_parent = select.poll()
        end_of_parent.register(descriptor, select.POLLIN)
        end_of_parent.poll()
    os.close(descriptor)
